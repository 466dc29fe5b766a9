//! JoinGroup (key 11): a member of a classic group takes part in the next generation.

use kafka_protocol::messages::join_group_request::JoinGroupRequest;
use kafka_protocol::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};

use super::codec::Handled;
use super::context::Context;
use super::{group_request, view};
use crate::host::random;
use crate::machine::group::command::{JoinGroup, JoinGroupReply, Protocol};

/// Before this version the session time-out is the rebalance time-out as well.
const VERSION_REBALANCE_TIMEOUT: i16 = 1;
/// From this version on a new member is told its id first (KIP-394).
const VERSION_KNOWN_MEMBER_ID: i16 = 4;
/// From this version on the protocol's name may be null.
const VERSION_NULL_PROTOCOL: i16 = 7;
const VERSION_SKIPS_ASSIGNMENT: i16 = 9;

pub fn handle(context: Context, request: JoinGroupRequest) -> Handled<JoinGroupResponse> {
    let version = context.api_version;
    let protocols = request.protocols.into_iter().map(|protocol| Protocol {
        name: protocol.name.to_string(),
        metadata: protocol.metadata,
    });
    let join = JoinGroup {
        group: request.group_id.0.as_str().into(),
        member_id: request.member_id.as_str().into(),
        group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
        client: group_request::client(&context),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if version < VERSION_REBALANCE_TIMEOUT {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols.collect(),
        requires_known_member_id: version >= VERSION_KNOWN_MEMBER_ID,
        supports_skipping_assignment: version >= VERSION_SKIPS_ASSIGNMENT,
        random_id: random::uuid(),
    };
    Handled::later(async move { answer(version, context.node.groups.join_group(join).await) })
}

fn answer(version: i16, reply: JoinGroupReply) -> JoinGroupResponse {
    let members = reply.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(view::text(&member.member_id))
            .with_group_instance_id(group_request::wire(member.group_instance_id.as_deref()))
            .with_metadata(member.metadata)
    });
    let protocol_name = match reply.protocol_name {
        None if version < VERSION_NULL_PROTOCOL => Some(view::text("")),
        name => group_request::wire(name.as_deref()),
    };
    JoinGroupResponse::default()
        .with_error_code(reply.error.code())
        .with_generation_id(reply.generation_id)
        .with_protocol_type(group_request::wire(reply.protocol_type.as_deref()))
        .with_protocol_name(protocol_name)
        .with_leader(view::text(&reply.leader))
        .with_skip_assignment(reply.skip_assignment)
        .with_member_id(view::text(&reply.member_id))
        .with_members(members.collect())
}
