//! Records about brokers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::types::BrokerId;

use super::topics::DirectoryId;

/// A broker's registration, counted by the offset of the entry that holds it: a broker that
/// registers again has a higher one. -1 is "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BrokerEpoch(pub i64);

impl BrokerEpoch {
    /// In a [`RegisterBrokerRecord`]: the offset of the entry it stands in, which is known to
    /// nobody before the entry is in the log.
    pub const NONE: BrokerEpoch = BrokerEpoch(-1);
}

/// What a listener speaks, numbered as `org.apache.kafka.common.security.auth.SecurityProtocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SecurityProtocol {
    Plaintext = 0,
    Ssl = 1,
    SaslPlaintext = 2,
    SaslSsl = 3,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerEndpoint {
    /// The listener's name, as in `PLAINTEXT`.
    pub name: Arc<str>,
    pub host: Arc<str>,
    pub port: u16,
    pub security_protocol: SecurityProtocol,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerFeature {
    pub name: Arc<str>,
    pub min_supported_version: i16,
    pub max_supported_version: i16,
}

/// A broker as it registered itself; also what the image keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterBrokerRecord {
    pub broker_id: BrokerId,
    /// New each time the process starts.
    pub incarnation_id: Uuid,
    pub broker_epoch: BrokerEpoch,
    pub end_points: Vec<BrokerEndpoint>,
    pub features: Vec<BrokerFeature>,
    #[serde(default)]
    pub rack: Option<Arc<str>>,
    /// A fenced broker may not lead and is not shown to clients.
    pub fenced: bool,
    #[serde(default)]
    pub in_controlled_shutdown: bool,
    #[serde(default)]
    pub log_dirs: Vec<DirectoryId>,
    #[serde(default)]
    pub cordoned_log_dirs: Vec<DirectoryId>,
}

impl RegisterBrokerRecord {
    /// Whether it may lead partitions and take new replicas' in-sync places.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// Whether all its log directories are closed to new replicas (KIP-1066).
    pub fn is_cordoned(&self) -> bool {
        let cordoned = |dir| self.cordoned_log_dirs.contains(dir);
        !self.log_dirs.is_empty() && self.log_dirs.iter().all(cordoned)
    }

    pub fn end_point(&self, listener: &str) -> Option<&BrokerEndpoint> {
        self.end_points.iter().find(|e| &*e.name == listener)
    }

    /// Where a new replica goes: the only directory, or "the broker will say".
    pub fn default_directory(&self) -> DirectoryId {
        match self.log_dirs[..] {
            [only] => only,
            _ => DirectoryId::UNASSIGNED,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnregisterBrokerRecord {
    pub broker_id: BrokerId,
    pub broker_epoch: BrokerEpoch,
}

/// What changed on a registered broker; `None` is "as before".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRegistrationChangeRecord {
    pub broker_id: BrokerId,
    pub broker_epoch: BrokerEpoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_controlled_shutdown: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_dirs: Option<Vec<DirectoryId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}
