//! The configurations that groups obey, as plain numbers. The names are the broker's configuration
//! names with underscores; the defaults are Kafka's.

use std::collections::BTreeMap;

/// Which way a group may change its protocol while it has members
/// (`group.consumer.migration.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationPolicy {
    Disabled,
    Upgrade,
    Downgrade,
    Bidirectional,
}

impl MigrationPolicy {
    /// Whether members of both protocols may be in one group.
    pub const fn may_mix(self) -> bool {
        !matches!(self, MigrationPolicy::Disabled)
    }

    pub const fn may_upgrade(self) -> bool {
        matches!(
            self,
            MigrationPolicy::Upgrade | MigrationPolicy::Bidirectional
        )
    }

    pub const fn may_downgrade(self) -> bool {
        matches!(
            self,
            MigrationPolicy::Downgrade | MigrationPolicy::Bidirectional
        )
    }
}

/// What one group may override (`kafka-configs --entity-type groups`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupOverrides {
    pub consumer_session_timeout_ms: Option<i32>,
    pub consumer_heartbeat_interval_ms: Option<i32>,
    pub consumer_assignment_interval_ms: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    pub group_min_session_timeout_ms: i32,
    pub group_max_session_timeout_ms: i32,
    pub group_initial_rebalance_delay_ms: i32,
    pub group_max_size: usize,
    pub offset_metadata_max_bytes: usize,
    pub offsets_retention_ms: i64,
    pub offsets_retention_check_interval_ms: i64,
    pub consumer_session_timeout_ms: i32,
    pub consumer_heartbeat_interval_ms: i32,
    pub consumer_assignment_interval_ms: i32,
    pub consumer_max_size: usize,
    /// In order of preference: the first one serves members that name none.
    pub consumer_assignors: Vec<String>,
    pub consumer_migration_policy: MigrationPolicy,
    /// Dynamic configurations of single groups.
    pub overrides: BTreeMap<String, GroupOverrides>,
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: i32::MAX as usize,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: 10_080 * 60_000,
            offsets_retention_check_interval_ms: 600_000,
            consumer_session_timeout_ms: 45_000,
            consumer_heartbeat_interval_ms: 5_000,
            consumer_assignment_interval_ms: 1_000,
            consumer_max_size: i32::MAX as usize,
            consumer_assignors: vec!["uniform".into(), "range".into()],
            consumer_migration_policy: MigrationPolicy::Bidirectional,
            overrides: BTreeMap::new(),
        }
    }
}

impl GroupConfig {
    fn of(&self, group: &str) -> GroupOverrides {
        self.overrides.get(group).copied().unwrap_or_default()
    }

    pub fn session_timeout_ms(&self, group: &str) -> i32 {
        let own = self.of(group).consumer_session_timeout_ms;
        own.unwrap_or(self.consumer_session_timeout_ms)
    }

    pub fn heartbeat_interval_ms(&self, group: &str) -> i32 {
        let own = self.of(group).consumer_heartbeat_interval_ms;
        own.unwrap_or(self.consumer_heartbeat_interval_ms)
    }

    pub fn assignment_interval_ms(&self, group: &str) -> i32 {
        let own = self.of(group).consumer_assignment_interval_ms;
        own.unwrap_or(self.consumer_assignment_interval_ms)
    }
}
