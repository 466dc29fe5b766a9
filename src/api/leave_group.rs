//! LeaveGroup (key 13): members of a classic group go.

use kafka_protocol::messages::leave_group_request::LeaveGroupRequest;
use kafka_protocol::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};

use super::codec::Handled;
use super::context::Context;
use super::{group_request, view};
use crate::machine::group::command::{LeaveGroup, LeaveGroupReply, MemberIdentity};
use crate::types::ErrorCode;

/// From this version on several members may leave in one request (KIP-345).
const VERSION_BATCHED: i16 = 3;

pub fn handle(context: Context, request: LeaveGroupRequest) -> Handled<LeaveGroupResponse> {
    let version = context.api_version;
    let members = if version >= VERSION_BATCHED {
        let members = request.members.iter().map(|member| MemberIdentity {
            member_id: member.member_id.as_str().into(),
            group_instance_id: group_request::owned(member.group_instance_id.as_ref()),
        });
        members.collect()
    } else {
        let member_id = request.member_id.as_str().into();
        vec![MemberIdentity {
            member_id,
            group_instance_id: None,
        }]
    };
    let leave = LeaveGroup {
        group: request.group_id.0.as_str().into(),
        members,
    };
    Handled::later(async move { answer(version, context.node.groups.leave_group(leave).await) })
}

fn answer(version: i16, reply: LeaveGroupReply) -> LeaveGroupResponse {
    if version < VERSION_BATCHED {
        let of_member = reply
            .members
            .first()
            .map_or(ErrorCode::None, |(_, error)| *error);
        let error = if reply.error == ErrorCode::None {
            of_member
        } else {
            reply.error
        };
        return LeaveGroupResponse::default().with_error_code(error.code());
    }
    let members = reply.members.into_iter().map(|(member, error)| {
        MemberResponse::default()
            .with_member_id(view::text(&member.member_id))
            .with_group_instance_id(group_request::wire(member.group_instance_id.as_deref()))
            .with_error_code(error.code())
    });
    LeaveGroupResponse::default()
        .with_error_code(reply.error.code())
        .with_members(members.collect())
}
