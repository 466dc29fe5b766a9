//! Where a value comes from, as DescribeConfigs says it.

use std::collections::BTreeMap;

use super::Property;

/// The values that were set for one resource of the cluster: a topic, a group, one broker, all
/// brokers, a subscription.
pub type Overrides = BTreeMap<String, String>;

/// The code of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    BrokerLogger = 6,
    ClientMetrics = 7,
    Group = 8,
}

impl ConfigSource {
    pub const fn code(self) -> i8 {
        self as i8
    }
}

/// A value as it was written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValue {
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// What a node is started with. Nothing here is read from a file or the environment by this
/// module.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The pairs of `server.properties`; `None` when there is no such file.
    pub file: Option<Vec<Property>>,
    /// [`super::environment_properties`].
    pub environment: Vec<Property>,
    /// [`super::argument_properties`].
    pub arguments: Vec<Property>,
}

/// What a node without a file starts with: alone, broker and controller in one. Each counts only
/// where the environment and the arguments do not set it.
pub const SINGLE_NODE: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    (
        "listeners",
        "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    ),
    ("controller.listener.names", "CONTROLLER"),
    ("log.dirs", "./klamm-data"),
];

/// A node without a file that is told of no quorum is its only member, so there is no second
/// replica that these could wait for.
pub const ONE_REPLICA: &[(&str, &str)] = &[
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
];
