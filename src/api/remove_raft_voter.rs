//! RemoveRaftVoter (key 81): a controller votes no more (KIP-853).

use kafka_protocol::messages::remove_raft_voter_request::RemoveRaftVoterRequest;
use kafka_protocol::messages::remove_raft_voter_response::RemoveRaftVoterResponse;

use super::codec::Handled;
use super::context::Context;
use super::view;
use super::voter_change::{Change, VoterRefused, check_place, check_voter, refused};
use crate::types::BrokerId;

pub fn handle(
    context: Context,
    request: RemoveRaftVoterRequest,
) -> Handled<RemoveRaftVoterResponse> {
    Handled::later(async move {
        let answer = RemoveRaftVoterResponse::default();
        match remove(&context, &request).await {
            Ok(()) => answer.with_error_message(None),
            Err(refused) => answer
                .with_error_code(refused.code.code())
                .with_error_message(Some(view::text(&refused.message))),
        }
    })
}

async fn remove(context: &Context, request: &RemoveRaftVoterRequest) -> Result<(), VoterRefused> {
    let node = &context.node;
    let id = BrokerId(request.voter_id);
    let directory_id = request.voter_directory_id;
    check_place(node, request.cluster_id.as_deref())?;
    check_voter(Change::Remove, id, directory_id)?;
    let removed = node.quorum.remove_voter(id, directory_id).await;
    removed.map_err(|error| refused(node, Change::Remove, (id, directory_id), &error))
}
