//! AddRaftVoter (key 80): a controller that follows gets a vote (KIP-853).

use std::time::Duration;

use kafka_protocol::messages::add_raft_voter_request::AddRaftVoterRequest;
use kafka_protocol::messages::add_raft_voter_response::AddRaftVoterResponse;

use super::by_topic::timeout;
use super::codec::Handled;
use super::context::Context;
use super::view;
use super::voter_change::{VoterRefused, check, described, refused};
use crate::types::BrokerId;

/// However long the client would wait.
const TIME_MAX: Duration = Duration::from_secs(300);

pub fn handle(context: Context, request: AddRaftVoterRequest) -> Handled<AddRaftVoterResponse> {
    Handled::later(async move {
        let answer = AddRaftVoterResponse::default();
        match add(&context, &request).await {
            Ok(()) => answer.with_error_message(None),
            Err(refused) => answer
                .with_error_code(refused.code.code())
                .with_error_message(Some(view::text(&refused.message))),
        }
    })
}

async fn add(context: &Context, request: &AddRaftVoterRequest) -> Result<(), VoterRefused> {
    let node = &context.node;
    let id = BrokerId(request.voter_id);
    let directory_id = request.voter_directory_id;
    check(node, request.cluster_id.as_ref(), id, directory_id)?;
    let listeners = request.listeners.iter();
    let listeners = listeners.map(|at| (at.name.as_str(), at.host.as_str(), at.port));
    let voter = described(node, (id, directory_id), listeners)?;
    let time = timeout(request.timeout_ms).min(TIME_MAX);
    let added = node.quorum.add_voter(voter, time).await;
    added.map_err(|error| refused(node, "adding voter", (id, directory_id), &error))
}
