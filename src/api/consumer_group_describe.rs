//! ConsumerGroupDescribe (key 69; KIP-848).

use kafka_protocol::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment, ConsumerGroupDescribeResponse, DescribedGroup, Member, TopicPartitions,
};
use kafka_protocol::messages::{GroupId, TopicName as WireName};

use super::codec::{Handled, Outcome};
use super::context::Context;
use super::group_request::wire;
use super::room::{Room, once};
use super::view;
use crate::machine::group::command::{ConsumerDescribedGroup, ConsumerDescribedMember};
use crate::types::{ErrorCode, TopicId, TopicName};

/// From this version on a member tells which protocol it speaks.
const VERSION_MEMBER_TYPE: i16 = 1;
const MEMBER_TYPE_UNKNOWN: i8 = -1;

pub fn handle(
    context: Context,
    request: ConsumerGroupDescribeRequest,
) -> Handled<ConsumerGroupDescribeResponse> {
    Handled::Later(Box::pin(async move {
        let groups = request
            .group_ids
            .iter()
            .map(|group| group.0.as_str().into());
        let (groups, times) = once(groups);
        let operations = if request.include_authorized_operations {
            view::GROUP_OPERATIONS
        } else {
            view::OPERATIONS_NOT_ASKED
        };
        let described = if context.node.config().serves_consumer_groups() {
            context.node.groups.consumer_group_describe(groups).await
        } else {
            let refused = ErrorCode::UnsupportedVersion;
            let groups = groups.into_iter();
            groups
                .map(|group| ConsumerDescribedGroup::failed(group, refused, None))
                .collect()
        };
        let mut room = Room::of(&context);
        let mut groups = Vec::with_capacity(times.len());
        for group in described {
            let times = times.get(&group.group).copied().unwrap_or(1);
            let answer = answer(context.api_version, group, operations);
            for _ in 0..times {
                match room.put(answer.clone()) {
                    Ok(answer) => groups.push(answer),
                    Err(reason) => return Outcome::Close(reason),
                }
            }
        }
        Outcome::Answer(ConsumerGroupDescribeResponse::default().with_groups(groups))
    }))
}

fn answer(version: i16, group: ConsumerDescribedGroup, operations: i32) -> DescribedGroup {
    let is_found = group.error == ErrorCode::None;
    let message = (group.error == ErrorCode::GroupIdNotFound)
        .then(|| view::text(&format!("Group {} not found.", group.group)));
    let members = group
        .members
        .into_iter()
        .map(|member| answer_member(version, member));
    DescribedGroup::default()
        .with_error_code(group.error.code())
        .with_error_message(message)
        .with_group_id(GroupId(view::text(&group.group)))
        .with_group_state(view::text(if is_found { group.state } else { "" }))
        .with_group_epoch(group.group_epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(view::text(&group.assignor_name))
        .with_members(members.collect())
        .with_authorized_operations(if is_found {
            operations
        } else {
            view::OPERATIONS_NOT_ASKED
        })
}

fn answer_member(version: i16, member: ConsumerDescribedMember) -> Member {
    let names = member
        .subscribed_topic_names
        .iter()
        .map(|name| WireName(view::text(name)));
    let member_type = if version >= VERSION_MEMBER_TYPE {
        member.member_type
    } else {
        MEMBER_TYPE_UNKNOWN
    };
    Member::default()
        .with_member_id(view::text(&member.member_id))
        .with_instance_id(wire(member.instance_id.as_deref()))
        .with_rack_id(wire(member.rack_id.as_deref()))
        .with_member_epoch(member.member_epoch)
        .with_client_id(view::text(&member.client.client_id))
        .with_client_host(view::text(&member.client.client_host))
        .with_subscribed_topic_names(names.collect())
        .with_subscribed_topic_regex(wire(member.subscribed_topic_regex.as_deref()))
        .with_assignment(assignment(member.assignment))
        .with_target_assignment(assignment(member.target_assignment))
        .with_member_type(member_type)
}

fn assignment(topics: Vec<(TopicName, TopicId, Vec<i32>)>) -> Assignment {
    let topics = topics.into_iter().map(|(name, id, partitions)| {
        TopicPartitions::default()
            .with_topic_id(id.0)
            .with_topic_name(WireName(view::text(&name)))
            .with_partitions(partitions)
    });
    Assignment::default().with_topic_partitions(topics.collect())
}
