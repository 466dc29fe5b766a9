//! SyncGroup (key 14): the leader brings the assignment, everyone takes theirs.

use kafka_protocol::messages::sync_group_request::SyncGroupRequest;
use kafka_protocol::messages::sync_group_response::SyncGroupResponse;

use super::codec::Handled;
use super::context::Context;
use super::group_request;
use crate::machine::group::command::{SyncGroup, SyncGroupReply};
use crate::types::ErrorCode;

/// From this version on a member says which protocol it thinks was chosen.
const VERSION_PROTOCOL: i16 = 5;

pub fn handle(context: Context, request: SyncGroupRequest) -> Handled<SyncGroupResponse> {
    let assignments = request
        .assignments
        .into_iter()
        .map(|assignment| (assignment.member_id.as_str().into(), assignment.assignment));
    let sync = SyncGroup {
        group: request.group_id.0.as_str().into(),
        generation_id: request.generation_id,
        member_id: request.member_id.as_str().into(),
        group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
        protocol_type: group_request::owned(request.protocol_type.as_ref()),
        protocol_name: group_request::owned(request.protocol_name.as_ref()),
        assignments: assignments.collect(),
    };
    let lacks_protocol = sync.protocol_type.is_none() || sync.protocol_name.is_none();
    let is_refused = context.api_version >= VERSION_PROTOCOL && lacks_protocol;
    Handled::later(async move {
        let reply = if is_refused {
            SyncGroupReply::failed(ErrorCode::InconsistentGroupProtocol)
        } else {
            context.node.groups.sync_group(sync).await
        };
        SyncGroupResponse::default()
            .with_error_code(reply.error.code())
            .with_protocol_type(group_request::wire(reply.protocol_type.as_deref()))
            .with_protocol_name(group_request::wire(reply.protocol_name.as_deref()))
            .with_assignment(reply.assignment)
    })
}
