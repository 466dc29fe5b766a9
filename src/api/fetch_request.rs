//! A fetch request as the sessions see it, and the answers to those that are refused as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::fetch_request::FetchRequest;

use super::Node;
use super::fetch_answer::{FetchAnswer, FetchedPartition, FetchedTopic};
use crate::machine::fetch_session::{
    FetchPosition, FetchTarget, NO_SESSION, PartitionKey, SessionRequest,
};
use crate::partition::Partition;
use crate::types::{ErrorCode, Offset, TopicId};

/// An error of the whole request: nothing else is in the answer.
pub(super) fn refuse(error: ErrorCode) -> FetchAnswer {
    FetchAnswer {
        error,
        session_id: NO_SESSION,
        topics: Vec::new(),
        node_endpoints: Vec::new(),
    }
}

/// A request that makes no sense. Where the answer goes by name, each partition that the request
/// names has the error too: versions without an error of the whole answer have no other place.
pub(super) fn refuse_all(
    request: &FetchRequest,
    uses_topic_ids: bool,
    error: ErrorCode,
) -> FetchAnswer {
    let mut answer = refuse(error);
    answer.session_id = request.session_id;
    if uses_topic_ids {
        return answer;
    }
    answer.topics = request
        .topics
        .iter()
        .map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| FetchedPartition {
                aborted_transactions: Some(Vec::new()),
                ..FetchedPartition::failed(wanted.partition, error)
            });
            FetchedTopic {
                topic: topic.topic.0.as_str().into(),
                topic_id: TopicId(topic.topic_id),
                partitions: partitions.collect(),
            }
        })
        .collect();
    answer
}

pub(super) fn session_request(request: &FetchRequest, uses_topic_ids: bool) -> SessionRequest {
    let mut targets: Vec<FetchTarget> = Vec::new();
    // A partition that is named twice: the last word counts, in the first one's place.
    let mut places: HashMap<PartitionKey, usize> = HashMap::new();
    for topic in &request.topics {
        let name: Arc<str> = topic.topic.0.as_str().into();
        for partition in &topic.partitions {
            let key = PartitionKey {
                topic: name.clone(),
                topic_id: TopicId(topic.topic_id),
                partition: partition.partition,
            };
            let position = FetchPosition {
                current_leader_epoch: partition.current_leader_epoch,
                fetch_offset: Offset(partition.fetch_offset),
                last_fetched_epoch: partition.last_fetched_epoch,
                log_start_offset: Offset(partition.log_start_offset),
                max_bytes: partition.partition_max_bytes,
            };
            match places.get(&key) {
                Some(&at) => targets[at].position = position,
                None => {
                    places.insert(key.clone(), targets.len());
                    targets.push(FetchTarget { key, position });
                }
            }
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let name: Arc<str> = topic.topic.0.as_str().into();
        forgotten.extend(topic.partitions.iter().map(|&partition| PartitionKey {
            topic: name.clone(),
            topic_id: TopicId(topic.topic_id),
            partition,
        }));
    }
    SessionRequest {
        id: request.session_id,
        epoch: request.session_epoch,
        uses_topic_ids,
        targets,
        forgotten,
    }
}

pub(super) fn find(
    node: &Node,
    key: &PartitionKey,
    by_id: bool,
) -> Result<Arc<Partition>, ErrorCode> {
    if by_id {
        node.partition_by_id(key.topic_id, key.partition)
    } else {
        node.partition_by_name(&key.topic, key.partition)
    }
}

/// The answer for a partition that is not looked for further. Kafka has an empty list for what
/// its metadata does not know, and none for all that its replicas refuse.
pub(super) fn not_here(index: i32, error: ErrorCode) -> FetchedPartition {
    let unknown = matches!(
        error,
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
    );
    FetchedPartition {
        aborted_transactions: unknown.then(Vec::new),
        ..FetchedPartition::failed(index, error)
    }
}
