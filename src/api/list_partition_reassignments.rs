//! ListPartitionReassignments (key 46): the partitions whose replicas are on their way to others.

use kafka_protocol::messages::ListPartitionReassignmentsRequest;
use kafka_protocol::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{BrokerId as WireBrokerId, TopicName as WireName};

use super::answer::CloseReason;
use super::codec::Handled;
use super::context::Context;
use super::room::Room;
use super::view;
use crate::metadata::{PartitionRegistration, TopicImage};
use crate::types::BrokerId;

pub fn handle(
    context: Context,
    request: ListPartitionReassignmentsRequest,
) -> Handled<ListPartitionReassignmentsResponse> {
    let answer = ListPartitionReassignmentsResponse::default();
    let listed = list(&context, &request);
    let answer = listed.map(|topics| answer.with_error_message(None).with_topics(topics));
    Handled::Done(answer.into())
}

fn list(
    context: &Context,
    request: &ListPartitionReassignmentsRequest,
) -> Result<Vec<OngoingTopicReassignment>, CloseReason> {
    let image = context.node.image();
    let mut room = Room::of(context);
    let mut listed = Vec::new();
    match &request.topics {
        None => {
            for topic in image.topics() {
                let partitions = topic.partitions.iter();
                let indexes = partitions.map(|(index, _)| index);
                listed.extend(ongoing(topic, indexes, &mut room)?);
            }
        }
        Some(topics) => {
            for asked in topics {
                if let Some(topic) = image.topic(&asked.name.0) {
                    let indexes = asked.partition_indexes.iter().copied();
                    listed.extend(ongoing(topic, indexes, &mut room)?);
                }
            }
        }
    }
    Ok(listed)
}

/// `None`: none of them is.
fn ongoing(
    topic: &TopicImage,
    indexes: impl Iterator<Item = i32>,
    room: &mut Room,
) -> Result<Option<OngoingTopicReassignment>, CloseReason> {
    let partition = |index: i32| {
        let known = topic.partitions.get(index)?;
        known.is_reassigning().then(|| row(index, known))
    };
    let rows = indexes.filter_map(partition).map(|row| room.put(row));
    let partitions = rows.collect::<Result<Vec<_>, _>>()?;
    Ok((!partitions.is_empty()).then(|| {
        OngoingTopicReassignment::default()
            .with_name(WireName(view::text(&topic.name)))
            .with_partitions(partitions)
    }))
}

fn row(index: i32, partition: &PartitionRegistration) -> OngoingPartitionReassignment {
    let ids = |brokers: &[BrokerId]| brokers.iter().map(|id| WireBrokerId(id.0)).collect();
    OngoingPartitionReassignment::default()
        .with_partition_index(index)
        .with_replicas(ids(&partition.replicas))
        .with_adding_replicas(ids(partition.adding_replicas()))
        .with_removing_replicas(ids(partition.removing_replicas()))
}
