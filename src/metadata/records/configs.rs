//! Records about configurations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What can carry configurations, numbered as `org.apache.kafka.common.config.ConfigResource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "i8", try_from = "i8")]
pub enum ConfigResourceType {
    Topic = 2,
    Broker = 4,
    ClientMetrics = 16,
    Group = 32,
}

impl ConfigResourceType {
    pub const ALL: [ConfigResourceType; 4] = [
        ConfigResourceType::Topic,
        ConfigResourceType::Broker,
        ConfigResourceType::ClientMetrics,
        ConfigResourceType::Group,
    ];
}

impl From<ConfigResourceType> for i8 {
    fn from(resource_type: ConfigResourceType) -> i8 {
        resource_type as i8
    }
}

impl TryFrom<i8> for ConfigResourceType {
    type Error = UnknownConfigResourceType;

    fn try_from(code: i8) -> Result<Self, Self::Error> {
        ConfigResourceType::ALL
            .into_iter()
            .find(|known| *known as i8 == code)
            .ok_or(UnknownConfigResourceType(code))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("configuration resource type {0} is not known")]
pub struct UnknownConfigResourceType(i8);

/// A topic, a broker (the empty name stands for all of them), a client-metrics subscription or a
/// group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConfigResource {
    pub resource_type: ConfigResourceType,
    pub resource_name: Arc<str>,
}

impl ConfigResource {
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        ConfigResource {
            resource_type: ConfigResourceType::Topic,
            resource_name: name.into(),
        }
    }

    /// The dynamic defaults of all brokers.
    pub fn all_brokers() -> Self {
        ConfigResource {
            resource_type: ConfigResourceType::Broker,
            resource_name: "".into(),
        }
    }
}

/// Sets one configuration, or takes it away when `value` is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRecord {
    pub resource_type: ConfigResourceType,
    pub resource_name: Arc<str>,
    pub name: Arc<str>,
    #[serde(default)]
    pub value: Option<Arc<str>>,
}

impl ConfigRecord {
    pub fn new(resource: &ConfigResource, name: Arc<str>, value: Option<Arc<str>>) -> Self {
        ConfigRecord {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            name,
            value,
        }
    }

    pub fn resource(&self) -> ConfigResource {
        ConfigResource {
            resource_type: self.resource_type,
            resource_name: self.resource_name.clone(),
        }
    }
}
