//! UpdateRaftVoter (key 82): a controller tells where it is now (KIP-853).

use kafka_protocol::messages::update_raft_voter_request::UpdateRaftVoterRequest;
use kafka_protocol::messages::update_raft_voter_response::{
    CurrentLeader, UpdateRaftVoterResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use super::voter_change::{Change, VoterRefused, check_place, check_voter, described, refused};
use crate::peer::Address;
use crate::types::{BrokerId, ErrorCode};

/// The level of kraft.version with which voters change.
const KRAFT_VERSION: i16 = 1;

pub fn handle(
    context: Context,
    request: UpdateRaftVoterRequest,
) -> Handled<UpdateRaftVoterResponse> {
    Handled::later(async move {
        let updated = update(&context, &request).await;
        let answer = UpdateRaftVoterResponse::default().with_current_leader(leader(&context));
        match updated {
            Ok(()) => answer,
            Err(refused) => answer.with_error_code(refused.code.code()),
        }
    })
}

async fn update(context: &Context, request: &UpdateRaftVoterRequest) -> Result<(), VoterRefused> {
    let node = &context.node;
    let id = BrokerId(request.voter_id);
    let directory_id = request.voter_directory_id;
    check_place(node, request.cluster_id.as_deref())?;
    check_epoch(context, request.current_leader_epoch)?;
    check_voter(Change::Update, id, directory_id)?;
    let listeners = request.listeners.iter();
    let listeners = listeners.map(|at| (at.name.as_str(), at.host.as_str(), at.port));
    let listeners: Vec<_> = listeners.collect();
    let voter = described(node, Change::Update, (id, directory_id), &listeners)?;
    let feature = &request.k_raft_version_feature;
    if !(feature.min_supported_version..=feature.max_supported_version).contains(&KRAFT_VERSION) {
        return Err(VoterRefused::new(ErrorCode::InvalidRequest, ""));
    }
    let moved = node.quorum.move_voter(voter).await;
    moved.map_err(|error| refused(node, Change::Update, (id, directory_id), &error))
}

fn check_epoch(context: &Context, epoch: i32) -> Result<(), VoterRefused> {
    let (_, term) = context.node.quorum.leader_and_term();
    let code = match i64::from(epoch).cmp(&i64::try_from(term).unwrap_or(i64::MAX)) {
        std::cmp::Ordering::Less => ErrorCode::FencedLeaderEpoch,
        std::cmp::Ordering::Greater => ErrorCode::UnknownLeaderEpoch,
        std::cmp::Ordering::Equal => return Ok(()),
    };
    Err(VoterRefused::new(code, ""))
}

/// Where whoever was refused is to ask.
fn leader(context: &Context) -> CurrentLeader {
    let quorum = &context.node.quorum;
    let (leader, term) = quorum.leader_and_term();
    let epoch = i32::try_from(term).unwrap_or(i32::MAX);
    let known = leader.and_then(|id| quorum.voters().into_iter().find(|voter| voter.id == id));
    let address = known.and_then(|voter| Address::parse(&voter.address).ok());
    let answer = CurrentLeader::default()
        .with_leader_id(leader.map_or(-1, |id| id.0).into())
        .with_leader_epoch(epoch);
    match address {
        Some(address) => answer
            .with_host(view::text(&address.host))
            .with_port(address.port.into()),
        None => answer,
    }
}
