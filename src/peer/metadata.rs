//! The cluster as a Metadata answer shows it.
//!
//! A port outside of 0..=65535 makes a broker unreachable, not the answer unreadable.

use std::collections::BTreeMap;

use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};

use crate::types::{ErrorCode, TopicId};

use super::address::Address;
use super::broker::Broker;

#[derive(Debug, Clone, Default)]
pub struct ClusterView {
    pub cluster_id: Option<String>,
    pub controller_id: i32,
    pub brokers: BTreeMap<i32, Broker>,
    pub topics: BTreeMap<String, TopicView>,
}

#[derive(Debug, Clone)]
pub struct TopicView {
    pub error: ErrorCode,
    pub name: String,
    pub id: TopicId,
    pub is_internal: bool,
    /// Ascending.
    pub partitions: Vec<PartitionView>,
}

#[derive(Debug, Clone)]
pub struct PartitionView {
    pub error: ErrorCode,
    pub index: i32,
    /// -1: none.
    pub leader: i32,
    pub leader_epoch: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub offline: Vec<i32>,
}

impl ClusterView {
    pub fn read(answer: &MetadataResponse) -> ClusterView {
        let brokers = answer.brokers.iter().filter_map(|broker| {
            let address = Address::new(&broker.host, u16::try_from(broker.port).ok()?);
            let id = broker.node_id.0;
            let rack = broker.rack.as_ref().map(|r| r.to_string());
            Some((id, Broker { id, address, rack }))
        });
        let topics = answer.topics.iter().map(TopicView::read);
        ClusterView {
            cluster_id: answer.cluster_id.as_ref().map(|id| id.to_string()),
            controller_id: answer.controller_id.0,
            brokers: brokers.collect(),
            topics: topics.map(|topic| (topic.name.clone(), topic)).collect(),
        }
    }
}

impl TopicView {
    fn read(topic: &MetadataResponseTopic) -> TopicView {
        let name = topic.name.as_ref().map(|name| name.0.to_string());
        let mut partitions: Vec<_> = topic.partitions.iter().map(PartitionView::read).collect();
        partitions.sort_by_key(|partition| partition.index);
        TopicView {
            error: ErrorCode::of_answer(topic.error_code),
            name: name.unwrap_or_default(),
            id: TopicId(topic.topic_id),
            is_internal: topic.is_internal,
            partitions,
        }
    }

    pub fn partition(&self, index: i32) -> Option<&PartitionView> {
        let found = self.partitions.binary_search_by_key(&index, |p| p.index);
        found.ok().map(|at| &self.partitions[at])
    }
}

impl PartitionView {
    fn read(partition: &MetadataResponsePartition) -> PartitionView {
        let ids = |ids: &[kafka_protocol::messages::BrokerId]| ids.iter().map(|id| id.0).collect();
        PartitionView {
            error: ErrorCode::of_answer(partition.error_code),
            index: partition.partition_index,
            leader: partition.leader_id.0,
            leader_epoch: partition.leader_epoch,
            replicas: ids(&partition.replica_nodes),
            isr: ids(&partition.isr_nodes),
            offline: ids(&partition.offline_replicas),
        }
    }
}
