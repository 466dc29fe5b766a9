//! Records about the cluster as a whole.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::{BrokerId, ProducerId};

use super::brokers::BrokerEpoch;

/// The first record of a cluster's log. Kafka keeps the cluster id in `meta.properties` alone and
/// has no such record; here it travels with the log, so that a node can tell a foreign one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    pub cluster_id: Arc<str>,
}

/// Finalizes a feature at a level; level 0 is "off".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureLevelRecord {
    pub name: Arc<str>,
    pub feature_level: i16,
}

/// A broker took the producer ids below `next_producer_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerIdsRecord {
    pub broker_id: BrokerId,
    pub broker_epoch: BrokerEpoch,
    pub next_producer_id: ProducerId,
}
