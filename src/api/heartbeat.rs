//! Heartbeat (key 12): a member of a classic group is alive, and asks whether a rebalance is on.

use kafka_protocol::messages::heartbeat_request::HeartbeatRequest;
use kafka_protocol::messages::heartbeat_response::HeartbeatResponse;

use super::codec::Handled;
use super::context::Context;
use super::group_request;
use crate::machine::group::command::Heartbeat;

pub fn handle(context: Context, request: HeartbeatRequest) -> Handled<HeartbeatResponse> {
    let heartbeat = Heartbeat {
        group: request.group_id.0.as_str().into(),
        generation_id: request.generation_id,
        member_id: request.member_id.as_str().into(),
        group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
    };
    Handled::later(async move {
        let error = context.node.groups.heartbeat(heartbeat).await;
        HeartbeatResponse::default().with_error_code(error.code())
    })
}
