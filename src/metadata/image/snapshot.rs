//! The image as records: what a snapshot of it holds. Applying them to the empty image gives it
//! back.

use crate::metadata::records::{
    BrokerEpoch, ClusterRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord, PartitionRecord,
    ProducerIdsRecord, TopicRecord,
};
use crate::types::{BrokerId, ProducerId};

use super::{MetadataImage, PartitionRegistration, TopicImage};

impl MetadataImage {
    /// Every record of the snapshot, in the order in which they can be applied.
    pub fn records(&self) -> impl Iterator<Item = MetadataRecord> {
        let cluster = self.cluster_id.iter().map(|cluster_id| {
            ClusterRecord {
                cluster_id: cluster_id.clone(),
            }
            .into()
        });
        let features = self.features.iter().map(|(name, level)| {
            FeatureLevelRecord {
                name: name.clone(),
                feature_level: *level,
            }
            .into()
        });
        let brokers = self.brokers().map(|broker| broker.as_ref().clone().into());
        let topics = self.topics().flat_map(|topic| topic_records(topic));
        let configs = self.configs.iter().flat_map(|(resource, configs)| {
            let record = |(name, value): (&std::sync::Arc<str>, &std::sync::Arc<str>)| {
                ConfigRecord::new(resource, name.clone(), Some(value.clone())).into()
            };
            configs.iter().map(record).collect::<Vec<MetadataRecord>>()
        });
        cluster
            .chain(features)
            .chain(brokers)
            .chain(topics)
            .chain(configs)
            .chain(self.producer_ids())
    }

    fn producer_ids(&self) -> Option<MetadataRecord> {
        (self.next_producer_id != ProducerId(0)).then(|| {
            ProducerIdsRecord {
                broker_id: BrokerId::NONE,
                broker_epoch: BrokerEpoch::NONE,
                next_producer_id: self.next_producer_id,
            }
            .into()
        })
    }
}

fn topic_records(topic: &TopicImage) -> impl Iterator<Item = MetadataRecord> {
    let first = TopicRecord {
        name: topic.name.clone(),
        topic_id: topic.id,
    };
    let partitions = topic.partitions.iter();
    let partitions = partitions.map(|(index, partition)| partition_record(topic, index, partition));
    std::iter::once(first.into()).chain(partitions)
}

fn partition_record(
    topic: &TopicImage,
    partition_id: i32,
    partition: &PartitionRegistration,
) -> MetadataRecord {
    PartitionRecord {
        partition_id,
        topic_id: topic.id,
        replicas: partition.replicas.clone(),
        isr: partition.isr.clone(),
        removing_replicas: partition.removing_replicas().into(),
        adding_replicas: partition.adding_replicas().into(),
        leader: partition.leader,
        leader_recovery_state: partition.leader_recovery_state(),
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        directories: partition.directories.clone(),
        eligible_leader_replicas: partition.eligible_leader_replicas().into(),
        last_known_elr: partition.last_known_elr().into(),
    }
    .into()
}
