//! What the metadata log holds, named and shaped as Kafka names and shapes it. One file per group
//! of records.
//!
//! An entry of the log is a list of records, written as MessagePack with field names:
//!
//! ```text
//! [ {"TopicRecord": {"name": "orders", "topic_id": <16 bytes>}}, {"PartitionRecord": {...}}, ... ]
//! ```
//!
//! 1. A field that is added to a record carries `#[serde(default)]`: an older log has no value.
//! 2. A field that this version does not know is skipped; a *record* it does not know is an error,
//!    because an image that left it out would differ from the other nodes'.
//! 3. What is usually empty is left out.

mod brokers;
mod cluster;
mod configs;
mod topics;

use serde::{Deserialize, Serialize};

pub use brokers::{
    BrokerEndpoint, BrokerEpoch, BrokerFeature, BrokerRegistrationChangeRecord,
    RegisterBrokerRecord, SecurityProtocol, UnregisterBrokerRecord,
};
pub use cluster::{ClusterRecord, FeatureLevelRecord, ProducerIdsRecord};
pub use configs::{ConfigRecord, ConfigResource, ConfigResourceType};
pub use topics::{
    DirectoryId, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, Replicas, TopicRecord,
};

/// One change of the metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetadataRecord {
    TopicRecord(TopicRecord),
    PartitionRecord(PartitionRecord),
    PartitionChangeRecord(PartitionChangeRecord),
    RemoveTopicRecord(RemoveTopicRecord),
    ConfigRecord(ConfigRecord),
    RegisterBrokerRecord(RegisterBrokerRecord),
    UnregisterBrokerRecord(UnregisterBrokerRecord),
    BrokerRegistrationChangeRecord(BrokerRegistrationChangeRecord),
    ProducerIdsRecord(ProducerIdsRecord),
    FeatureLevelRecord(FeatureLevelRecord),
    ClusterRecord(ClusterRecord),
}

macro_rules! from_record {
    ($($record:ident)*) => {
        $(impl From<$record> for MetadataRecord {
            fn from(record: $record) -> Self {
                MetadataRecord::$record(record)
            }
        })*
    };
}

from_record! {
    TopicRecord PartitionRecord PartitionChangeRecord RemoveTopicRecord ConfigRecord
    RegisterBrokerRecord UnregisterBrokerRecord BrokerRegistrationChangeRecord ProducerIdsRecord
    FeatureLevelRecord ClusterRecord
}
