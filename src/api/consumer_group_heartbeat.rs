//! ConsumerGroupHeartbeat (key 68; KIP-848): a member of a consumer group tells what it has and is
//! told what it gets.

use kafka_protocol::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use kafka_protocol::messages::consumer_group_heartbeat_response::{
    Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions as WirePartitions,
};

use super::codec::Handled;
use super::context::Context;
use super::group_request::{client, owned, wire};
use crate::host::random;
use crate::machine::group::command::{ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply};
use crate::machine::group::records::TopicPartitions;
use crate::types::{ErrorCode, TopicId};

/// From this version on a member brings its own id.
const VERSION_MEMBER_BRINGS_ID: i16 = 1;

pub fn handle(
    context: Context,
    request: ConsumerGroupHeartbeatRequest,
) -> Handled<ConsumerGroupHeartbeatResponse> {
    if !context.node.config().serves_consumer_groups() {
        let refused = ConsumerGroupHeartbeatReply::failed(ErrorCode::UnsupportedVersion, None);
        return Handled::later(async move { answer(refused) });
    }
    let names = request.subscribed_topic_names.map(|names| {
        names
            .iter()
            .map(|name| name.0.to_string())
            .collect::<Vec<_>>()
    });
    let owned_partitions = request.topic_partitions.map(|topics| {
        let mut partitions = TopicPartitions::new();
        for topic in topics {
            let of_topic = partitions.entry(TopicId(topic.topic_id)).or_default();
            of_topic.extend(topic.partitions);
        }
        partitions
    });
    let heartbeat = ConsumerGroupHeartbeat {
        group: request.group_id.0.as_str().into(),
        member_id: request.member_id.as_str().into(),
        member_epoch: request.member_epoch,
        instance_id: owned(request.instance_id.as_ref()),
        rack_id: owned(request.rack_id.as_ref()),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        subscribed_topic_names: names,
        subscribed_topic_regex: owned(request.subscribed_topic_regex.as_ref()),
        server_assignor: owned(request.server_assignor.as_ref()),
        owned: owned_partitions,
        client: client(&context),
        generates_member_id: context.api_version < VERSION_MEMBER_BRINGS_ID,
        random_id: random::uuid(),
    };
    Handled::later(async move {
        answer(
            context
                .node
                .groups
                .consumer_group_heartbeat(heartbeat)
                .await,
        )
    })
}

fn answer(reply: ConsumerGroupHeartbeatReply) -> ConsumerGroupHeartbeatResponse {
    let assignment = reply.assignment.map(|assigned| {
        let topics = assigned.into_iter().map(|(topic_id, partitions)| {
            WirePartitions::default()
                .with_topic_id(topic_id.0)
                .with_partitions(partitions.into_iter().collect())
        });
        Assignment::default().with_topic_partitions(topics.collect())
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_error_code(reply.error.code())
        .with_error_message(wire(reply.error_message.as_deref()))
        .with_member_id(wire(reply.member_id.as_deref()))
        .with_member_epoch(reply.member_epoch)
        .with_heartbeat_interval_ms(reply.heartbeat_interval_ms)
        .with_assignment(assignment)
}
