//! The table of broker configurations, by area, and the typed struct it gives.
//!
//! 1. Every area is one file; a new configuration is one row in it.
//! 2. Names are unique over all areas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::table::Table;
use super::{Row, ThrottleConfig, Value};

macro_rules! areas {
    ($($area:ident: $struct:ident,)*) => {
        $( mod $area; pub use $area::$struct; )*

        /// What this node was told, area by area.
        #[derive(Debug, Clone, PartialEq)]
        pub struct BrokerConfig {
            $( pub $area: $struct, )*
        }

        impl BrokerConfig {
            /// The names that have a field, by area.
            pub const FIELDS: &[&[&str]] = &[ $( <$struct as Table>::FIELDS, )* ];

            pub(super) fn build(value_of: &dyn Fn(&'static Row) -> Value) -> BrokerConfig {
                BrokerConfig { $( $area: $struct::build(value_of), )* }
            }
        }

        /// The areas in the order of the document, each with its rows.
        pub const AREAS: &[(&str, &[Row])] =
            &[ $( (stringify!($area), <$struct as Table>::ROWS), )* ];
    };
}

areas! {
    identity: IdentityConfig,
    network: NetworkConfig,
    topics: TopicsConfig,
    log: LogConfig,
    cleaner: CleanerConfig,
    replication: ReplicationConfig,
    fetch: FetchConfig,
    group: GroupsConfig,
    share: ShareConfig,
    streams: StreamsConfig,
    transaction: TransactionConfig,
    quorum: QuorumConfig,
    metrics: MetricsConfig,
    quota: QuotaConfig,
    security: SecurityConfig,
    sasl: SaslConfig,
    ssl: SslConfig,
    remote: RemoteConfig,
}

impl BrokerConfig {
    /// The directories of the partitions: `log.dirs`, or `log.dir` when that is not set.
    pub fn log_dirs(&self) -> &[String] {
        self.identity
            .log_dirs
            .as_deref()
            .unwrap_or(&self.identity.log_dir)
    }

    /// The directory of the metadata: `metadata.log.dir`, or the first of [`Self::log_dirs`].
    pub fn metadata_log_dir(&self) -> Option<&str> {
        let dir = self.identity.metadata_log_dir.as_ref();
        dir.or(self.log_dirs().first()).map(String::as_str)
    }

    pub fn is_broker(&self) -> bool {
        self.identity
            .process_roles
            .iter()
            .any(|role| role == "broker")
    }

    pub fn is_controller(&self) -> bool {
        self.identity
            .process_roles
            .iter()
            .any(|role| role == "controller")
    }
}

static BY_NAME: LazyLock<BTreeMap<&'static str, &'static Row>> = LazyLock::new(|| {
    let rows = AREAS.iter().flat_map(|(_, rows)| rows.iter());
    rows.map(|row| (row.name, row)).collect()
});

/// Every broker row, by name.
pub fn broker_rows() -> impl Iterator<Item = &'static Row> {
    BY_NAME.values().copied()
}

/// A broker's row, or that of a throttle.
pub fn broker_row(name: &str) -> Option<&'static Row> {
    let throttle = || ThrottleConfig::ROWS.iter().find(|row| row.name == name);
    BY_NAME.get(name).copied().or_else(throttle)
}
