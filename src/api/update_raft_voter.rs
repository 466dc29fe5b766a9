//! UpdateRaftVoter (key 82): a controller tells where it is now (KIP-853).

use kafka_protocol::messages::update_raft_voter_request::UpdateRaftVoterRequest;
use kafka_protocol::messages::update_raft_voter_response::UpdateRaftVoterResponse;

use super::codec::Handled;
use super::context::Context;
use super::voter_change::{VoterRefused, check, described, refused};
use crate::types::BrokerId;

pub fn handle(
    context: Context,
    request: UpdateRaftVoterRequest,
) -> Handled<UpdateRaftVoterResponse> {
    Handled::later(async move {
        let answer = UpdateRaftVoterResponse::default();
        match update(&context, &request).await {
            Ok(()) => answer,
            Err(refused) => answer.with_error_code(refused.code.code()),
        }
    })
}

async fn update(context: &Context, request: &UpdateRaftVoterRequest) -> Result<(), VoterRefused> {
    let node = &context.node;
    let id = BrokerId(request.voter_id);
    let directory_id = request.voter_directory_id;
    check(node, request.cluster_id.as_ref(), id, directory_id)?;
    let listeners = request.listeners.iter();
    let listeners = listeners.map(|at| (at.name.as_str(), at.host.as_str(), at.port));
    let voter = described(node, (id, directory_id), listeners)?;
    let moved = node.quorum.move_voter(voter).await;
    moved.map_err(|error| refused(node, "updating voter", (id, directory_id), &error))
}
