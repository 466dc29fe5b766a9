//! What the transactional APIs share: their fields in the coordinator's form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{self, TransactionalId};

use crate::machine::transaction::ProducerIdAndEpoch;
use crate::types::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

pub fn producer(producer_id: messages::ProducerId, producer_epoch: i16) -> ProducerIdAndEpoch {
    ProducerIdAndEpoch {
        producer_id: ProducerId(producer_id.0),
        producer_epoch: ProducerEpoch(producer_epoch),
    }
}

pub fn transactional_id(id: &TransactionalId) -> Arc<str> {
    id.0.as_str().into()
}

pub fn partitions(topics: &[AddPartitionsToTxnTopic]) -> BTreeSet<TopicPartition> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let name: Arc<str> = topic.name.0.as_str().into();
        let partitions = topic.partitions.clone().into_iter();
        partitions.map(move |partition| TopicPartition {
            topic: name.clone(),
            partition,
        })
    };
    topics.iter().flat_map(of_topic).collect()
}

/// The same error for each.
pub fn all(
    partitions: BTreeSet<TopicPartition>,
    error: ErrorCode,
) -> BTreeMap<TopicPartition, ErrorCode> {
    let partitions = partitions.into_iter();
    partitions.map(|partition| (partition, error)).collect()
}
