//! The tables of configurations (broker, topic, group, client metrics, quotas), and where values
//! come from.
//!
//! 1. A configuration is one row of a table; parsing, describing, altering and the document follow
//!    from the rows.
//! 2. Nothing here reads a file or the environment: texts come in as arguments.

mod alter;
mod alter_checks;
mod argument;
mod broker;
mod checks;
mod client_metrics;
mod describe;
pub mod dialect;
mod documents;
mod duration;
mod error;
mod group;
mod group_ranges;
mod listener;
mod near;
mod node;
mod numbers;
mod properties;
mod quotas;
mod row;
mod source;
mod table;
mod throttle;
mod topic;
mod valid;
mod value;
mod words;

#[cfg(test)]
mod alter_tests;
#[cfg(test)]
mod describe_tests;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod table_tests;

pub use alter::{
    AlterOp, Alteration, Changes, Rejection, ResourceType, check_broker_name, find_row,
};
pub use argument::argument_properties;
pub use broker::*;
pub use checks::{RACK_AWARE_SELECTOR, parse_voter};
pub use client_metrics::ClientMetricsConfig;
pub use describe::{Describe, Described, Synonym};
pub use dialect::environment_properties;
pub use documents::configuration_markdown;
pub use error::{ConfigError, ConfigWarning, Origin};
pub use group::GroupConfig;
pub use listener::{Listener, Listeners, SecurityProtocol, split_host_port};
pub use near::nearest;
pub use node::NodeConfig;
pub use properties::{Property, parse_properties};
pub use quotas::{ClientQuotaConfig, IpQuotaConfig, ScramConfig};
pub use row::{ConfigType, Conversion, DefaultValue, Effect, Fallback, Importance, Row, Scope};
pub use source::{ConfigSource, ConfigValue, ONE_REPLICA, Overrides, SINGLE_NODE, Sources};
pub use table::Table;
pub use throttle::ThrottleConfig;
pub use topic::TopicConfig;
pub use valid::{Invalid, Valid, host_and_port};
pub use value::{FromValue, Value};
pub use words::{
    CleanupPolicies, CompressionType, ShareAutoOffsetReset, ShareIsolationLevel, ThrottledReplicas,
    TimestampType,
};
