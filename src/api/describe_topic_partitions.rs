//! DescribeTopicPartitions (key 75; KIP-966): topics page by page.

use std::collections::BTreeSet;

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::metadata::planners::check_topic_name;
use crate::metadata::{MetadataImage, PartitionRegistration, TopicImage};
use crate::types::{BrokerId, ErrorCode};

type TopicAnswer = DescribeTopicPartitionsResponseTopic;
type PartitionAnswer = DescribeTopicPartitionsResponsePartition;

pub fn handle(
    context: Context,
    request: DescribeTopicPartitionsRequest,
) -> Handled<DescribeTopicPartitionsResponse> {
    let image = context.node.image();
    let cursor = request.cursor.as_ref();
    let cursor = cursor.map(|cursor| (cursor.topic_name.0.as_str(), cursor.partition_index));
    let asked: BTreeSet<&str> = if request.topics.is_empty() {
        image.topics().map(|topic| &*topic.name).collect()
    } else {
        request
            .topics
            .iter()
            .map(|topic| topic.name.0.as_str())
            .collect()
    };
    if let Some((topic, partition)) = cursor
        && (partition < 0 || (!request.topics.is_empty() && !asked.contains(topic)))
    {
        return Handled::Ready(refuse(&request, ErrorCode::InvalidRequest));
    }
    let mut from_cursor = asked
        .iter()
        .filter(|name| cursor.is_none_or(|(topic, _)| **name >= topic))
        .peekable();
    if from_cursor.peek().is_some_and(|name| name.is_empty()) {
        // Kafka's handler throws at a name that is empty.
        return Handled::Ready(refuse(&request, ErrorCode::UnknownServerError));
    }
    let limit_max = context
        .node
        .config()
        .broker
        .network
        .max_request_partition_size_limit;
    let mut page = Page {
        context: &context,
        image: &image,
        room: request.response_partition_limit.clamp(1, limit_max.max(1)) as usize,
        topics: Vec::new(),
        next: None,
    };
    for name in from_cursor {
        let first = cursor
            .filter(|(topic, _)| topic == name)
            .map_or(0, |(_, partition)| partition);
        if !page.add(name, first) {
            break;
        }
    }
    Handled::Ready(
        DescribeTopicPartitionsResponse::default()
            .with_topics(page.topics)
            .with_next_cursor(page.next),
    )
}

/// The same error for every topic of the request, in its order, and nothing about any.
fn refuse(
    request: &DescribeTopicPartitionsRequest,
    error: ErrorCode,
) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| {
        let failed = failed(&topic.name.0, error);
        failed.with_topic_authorized_operations(view::OPERATIONS_NOT_ASKED)
    });
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

fn failed(name: &str, error: ErrorCode) -> TopicAnswer {
    TopicAnswer::default()
        .with_error_code(error.code())
        .with_name(Some(WireName(view::text(name))))
        .with_topic_authorized_operations(view::TOPIC_OPERATIONS)
}

struct Page<'a> {
    context: &'a Context,
    image: &'a MetadataImage,
    /// Partitions that still fit.
    room: usize,
    topics: Vec<TopicAnswer>,
    next: Option<Cursor>,
}

impl Page<'_> {
    /// Adds a topic from partition `first` on; false when the page is full.
    fn add(&mut self, name: &str, first: i32) -> bool {
        let cursor = |partition: i32| {
            let cursor = Cursor::default().with_topic_name(WireName(view::text(name)));
            Some(cursor.with_partition_index(partition))
        };
        if self.room == 0 {
            self.next = cursor(first);
            return false;
        }
        let Some(topic) = self.image.topic(name) else {
            let error = match check_topic_name(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            self.topics.push(failed(name, error));
            return true;
        };
        let total = topic.partitions.len() as i32;
        let last = total.min(first.saturating_add(self.room as i32));
        self.topics.push(self.topic(topic, first..last));
        self.room -= (last - first).max(0) as usize;
        if last < total {
            self.next = cursor(last);
            return false;
        }
        true
    }

    fn topic(&self, topic: &TopicImage, range: std::ops::Range<i32>) -> TopicAnswer {
        let partitions = range.filter_map(|index| {
            topic
                .partitions
                .get(index)
                .map(|partition| self.partition(index, partition))
        });
        TopicAnswer::default()
            .with_name(Some(WireName(view::text(&topic.name))))
            .with_topic_id(topic.id.0)
            .with_is_internal(self.context.node.is_internal(&topic.name))
            .with_partitions(partitions.collect())
            .with_topic_authorized_operations(view::TOPIC_OPERATIONS)
    }

    fn partition(&self, index: i32, partition: &PartitionRegistration) -> PartitionAnswer {
        let view = view::partition(self.image, &self.context.connection.listener, partition);
        let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0.into()).collect::<Vec<_>>();
        PartitionAnswer::default()
            .with_error_code(view.error.code())
            .with_partition_index(index)
            .with_leader_id(view.leader.0.into())
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(ids(&partition.replicas))
            .with_isr_nodes(ids(&partition.isr))
            .with_eligible_leader_replicas(Some(ids(partition.eligible_leader_replicas())))
            .with_last_known_elr(Some(ids(partition.last_known_elr())))
            .with_offline_replicas(ids(&view.offline_replicas))
    }
}
