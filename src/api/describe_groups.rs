//! DescribeGroups (key 15): classic groups and their members.

use kafka_protocol::messages::describe_groups_request::DescribeGroupsRequest;
use kafka_protocol::messages::describe_groups_response::{
    DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};

use super::codec::{Handled, Outcome};
use super::context::Context;
use super::room::{Room, once};
use super::{group_request, view};
use crate::machine::group::command;
use crate::types::ErrorCode;

/// From this version on a group that is not there is an error, with a message (KIP-1043).
const VERSION_NOT_FOUND: i16 = 6;

pub fn handle(context: Context, request: DescribeGroupsRequest) -> Handled<DescribeGroupsResponse> {
    Handled::Later(Box::pin(async move {
        let groups = request.groups.iter().map(|group| group.0.as_str().into());
        let (groups, times) = once(groups);
        let operations = if request.include_authorized_operations {
            view::GROUP_OPERATIONS
        } else {
            view::OPERATIONS_NOT_ASKED
        };
        let described = context
            .node
            .groups
            .describe_groups(groups)
            .await
            .into_iter();
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
        Outcome::Answer(DescribeGroupsResponse::default().with_groups(groups))
    }))
}

fn answer(version: i16, group: command::DescribedGroup, operations: i32) -> DescribedGroup {
    let members = group.members.into_iter().map(|member| {
        DescribedGroupMember::default()
            .with_member_id(view::text(&member.member_id))
            .with_group_instance_id(group_request::wire(member.group_instance_id.as_deref()))
            .with_client_id(view::text(&member.client.client_id))
            .with_client_host(view::text(&member.client.client_host))
            .with_member_metadata(member.metadata)
            .with_member_assignment(member.assignment)
    });
    let is_missing = group.error == ErrorCode::GroupIdNotFound;
    let error = if is_missing && version < VERSION_NOT_FOUND {
        ErrorCode::None
    } else {
        group.error
    };
    let message = (is_missing && version >= VERSION_NOT_FOUND)
        .then(|| view::text(&format!("Group {} not found.", group.group)));
    let operations = if error == ErrorCode::None {
        operations
    } else {
        view::OPERATIONS_NOT_ASKED
    };
    DescribedGroup::default()
        .with_error_code(error.code())
        .with_error_message(message)
        .with_group_id(kafka_protocol::messages::GroupId(view::text(&group.group)))
        .with_group_state(view::text(group.state))
        .with_protocol_type(view::text(&group.protocol_type))
        .with_protocol_data(view::text(&group.protocol_data))
        .with_members(members.collect())
        .with_authorized_operations(operations)
}
