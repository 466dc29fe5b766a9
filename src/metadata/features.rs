//! The features of Apache Kafka 4.4 and what a new cluster begins with.

use std::sync::Arc;

use super::records::{
    ClusterRecord, ConfigRecord, ConfigResource, FeatureLevelRecord, MetadataRecord,
};

/// A feature and the levels this version can work at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    pub min_version: i16,
    pub max_version: i16,
}

const fn feature(name: &'static str, min_version: i16, max_version: i16) -> Feature {
    Feature {
        name,
        min_version,
        max_version,
    }
}

/// By name. A new cluster finalizes each at its highest level, as `kafka-storage format` does.
pub const SUPPORTED_FEATURES: &[Feature] = &[
    feature("eligible.leader.replicas.version", 0, 1),
    feature("group.version", 0, 1),
    feature("kraft.version", 0, 1),
    feature("metadata.version", 7, 33),
    feature("share.version", 0, 2),
    feature("streams.version", 0, 1),
    feature("transaction.version", 0, 2),
];

/// The first records of a cluster, by the controller that begins it.
pub fn bootstrap_records(cluster_id: Arc<str>, min_insync_replicas: i32) -> Vec<MetadataRecord> {
    let mut records = vec![ClusterRecord { cluster_id }.into()];
    for feature in SUPPORTED_FEATURES {
        records.push(
            FeatureLevelRecord {
                name: feature.name.into(),
                feature_level: feature.max_version,
            }
            .into(),
        );
    }
    // Turning the ELR on pins the default that it depends on (KIP-966), as this controller has it.
    records.push(
        ConfigRecord::new(
            &ConfigResource::all_brokers(),
            "min.insync.replicas".into(),
            Some(min_insync_replicas.to_string().into()),
        )
        .into(),
    );
    records
}
