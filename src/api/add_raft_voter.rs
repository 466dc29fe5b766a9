//! AddRaftVoter (key 80): a controller that follows gets a vote (KIP-853).

use std::time::Duration;

use kafka_protocol::messages::add_raft_voter_request::AddRaftVoterRequest;
use kafka_protocol::messages::add_raft_voter_response::AddRaftVoterResponse;
use uuid::Uuid;

use super::by_topic::timeout;
use super::codec::Handled;
use super::context::Context;
use super::value::{boolean, elements, int32, structure, text, uuid};
use super::view;
use super::voter_change::{
    Change, Listener, VoterRefused, check_place, check_voter, described, refused,
};
use crate::quorum::Until;
use crate::types::BrokerId;
use crate::wire::Value;

/// However long the client would wait.
const TIME_MAX: Duration = Duration::from_secs(300);

/// What every version asks for.
struct Asked<'a> {
    cluster_id: Option<&'a str>,
    timeout_ms: i32,
    voter: (BrokerId, Uuid),
    listeners: Vec<Listener<'a>>,
    until: Until,
}

pub fn handle(context: Context, request: AddRaftVoterRequest) -> Handled<AddRaftVoterResponse> {
    Handled::later(async move {
        let listeners = request.listeners.iter();
        let asked = Asked {
            cluster_id: request.cluster_id.as_deref(),
            timeout_ms: request.timeout_ms,
            voter: (BrokerId(request.voter_id), request.voter_directory_id),
            listeners: listeners
                .map(|at| (at.name.as_str(), at.host.as_str(), at.port))
                .collect(),
            until: Until::Committed,
        };
        let answer = AddRaftVoterResponse::default();
        match add(&context, asked).await {
            Ok(()) => answer.with_error_message(None),
            Err(refused) => answer
                .with_error_code(refused.code.code())
                .with_error_message(Some(view::text(&refused.message))),
        }
    })
}

/// v1: whether it is answered only once the voters are committed.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let listeners = elements(&request, "listeners").iter().map(|at| {
            let of = |name| text(at, name).unwrap_or_default();
            let port = u16::try_from(int32(at, "port")).unwrap_or_default();
            (of("name"), of("host"), port)
        });
        let voter = BrokerId(int32(&request, "voter_id"));
        let asked = Asked {
            cluster_id: text(&request, "cluster_id"),
            timeout_ms: int32(&request, "timeout_ms"),
            voter: (voter, uuid(&request, "voter_directory_id")),
            listeners: listeners.collect(),
            until: match boolean(&request, "ack_when_committed") {
                true => Until::Committed,
                false => Until::Written,
            },
        };
        let (code, message) = match add(&context, asked).await {
            Ok(()) => (0, Value::Null),
            Err(refused) => (refused.code.code(), Value::Text(refused.message)),
        };
        structure([
            ("error_code", Value::Integer(code.into())),
            ("error_message", message),
        ])
    })
}

async fn add(context: &Context, asked: Asked<'_>) -> Result<(), VoterRefused> {
    let node = &context.node;
    let (id, directory_id) = asked.voter;
    check_place(node, asked.cluster_id)?;
    check_voter(Change::Add, id, directory_id)?;
    let voter = described(node, Change::Add, asked.voter, &asked.listeners)?;
    let time = timeout(asked.timeout_ms).min(TIME_MAX);
    let added = node.quorum.add_voter(voter, time, asked.until).await;
    added.map_err(|error| refused(node, Change::Add, asked.voter, &error))
}
