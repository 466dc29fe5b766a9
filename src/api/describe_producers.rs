//! DescribeProducers (key 61): the producers that partitions know, and who holds a transaction open
//! since which offset.

use kafka_protocol::messages::describe_producers_request::DescribeProducersRequest;
use kafka_protocol::messages::describe_producers_response::{
    DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};

use super::answer::CloseReason;
use super::codec::Handled;
use super::context::Context;
use super::room::Room;
use super::{Node, view};
use crate::log::ActiveProducer;
use crate::metadata::planners::check_topic_name;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

pub fn handle(
    context: Context,
    request: DescribeProducersRequest,
) -> Handled<DescribeProducersResponse> {
    let node = &context.node;
    let mut room = Room::of(&context);
    let topics = request.topics.into_iter().map(|topic| {
        let topic_error = topic_error(node, &topic.name.0);
        let partitions = topic.partition_indexes.iter().map(|&partition| {
            let response = PartitionResponse::default().with_partition_index(partition);
            if let Some((error, message)) = &topic_error {
                let response = response.with_error_code(error.code());
                return room.put(response.with_error_message(Some(view::text(message))));
            }
            room.put(match producers(node, &topic.name.0, partition) {
                Ok(producers) => response.with_active_producers(producers),
                Err(error) => response.with_error_code(error.code()),
            })
        });
        let partitions = partitions.collect::<Result<_, CloseReason>>()?;
        let response = TopicResponse::default().with_name(topic.name);
        Ok(response.with_partitions(partitions))
    });
    let topics = topics.collect::<Result<_, CloseReason>>();
    let answer = topics.map(|topics| DescribeProducersResponse::default().with_topics(topics));
    Handled::Done(answer.into())
}

/// Why a topic has no partitions to describe.
fn topic_error(node: &Node, topic: &str) -> Option<(ErrorCode, String)> {
    if let Err(invalid) = check_topic_name(topic) {
        return Some((ErrorCode::InvalidTopicException, invalid.to_string()));
    }
    let missing = node.image().topic(topic).is_none();
    let message = "This server does not host this topic-partition.";
    missing.then(|| (ErrorCode::UnknownTopicOrPartition, message.to_owned()))
}

fn producers(node: &Node, topic: &str, partition: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let partition = node.partition_by_name(topic, partition)?;
    partition.check_leader(LeaderEpoch::NONE.0)?;
    let active = partition.log().active_producers();
    Ok(active.iter().map(state).collect())
}

fn state(producer: &ActiveProducer) -> ProducerState {
    let txn_start = producer.current_txn_start_offset.unwrap_or(Offset::NONE);
    ProducerState::default()
        .with_producer_id(producer.producer_id.0.into())
        .with_producer_epoch(i32::from(producer.producer_epoch.0))
        .with_last_sequence(producer.last_sequence)
        .with_last_timestamp(producer.last_timestamp.0)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(txn_start.0)
}
