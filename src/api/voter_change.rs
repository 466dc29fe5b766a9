//! What AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter have in common: how a voter is named, and
//! Kafka's words for what cannot be done.

use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::Node;
use super::error::of_quorum;
use crate::quorum::{QuorumError, VoterChangeError, VoterInfo};
use crate::types::{BrokerId, ErrorCode, base64_uuid};

/// A code, and what there is to say.
pub struct VoterRefused {
    pub code: ErrorCode,
    pub message: String,
}

impl VoterRefused {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> VoterRefused {
        let message = message.into();
        VoterRefused { code, message }
    }
}

/// What a request says of itself is looked at before anything is done.
pub fn check(
    node: &Node,
    cluster_id: Option<&StrBytes>,
    voter: BrokerId,
    directory_id: Uuid,
) -> Result<(), VoterRefused> {
    if cluster_id.is_some_and(|id| **id != **node.quorum.cluster_id()) {
        let message = ErrorCode::InconsistentClusterId.name();
        return Err(VoterRefused::new(ErrorCode::InconsistentClusterId, message));
    }
    if !node.quorum.is_leader() {
        let message = ErrorCode::NotLeaderOrFollower.name();
        return Err(VoterRefused::new(ErrorCode::NotLeaderOrFollower, message));
    }
    if voter.0 < 0 || directory_id.is_nil() {
        let message = "Request didn't include a valid voter";
        return Err(VoterRefused::new(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

/// The voter that a request describes; `listeners` by name, host and port.
pub fn described<'a>(
    node: &Node,
    (id, directory_id): (BrokerId, Uuid),
    listeners: impl Iterator<Item = (&'a str, &'a str, u16)>,
) -> Result<VoterInfo, VoterRefused> {
    let address = address(node, listeners).ok_or_else(|| {
        VoterRefused::new(
            ErrorCode::InvalidRequest,
            "Add voter request didn't include the endpoint of the default listener",
        )
    })?;
    Ok(VoterInfo {
        id,
        address,
        directory_id,
    })
}

/// `host:port` of the listener that controllers of this cluster speak on.
fn address<'a>(
    node: &Node,
    mut listeners: impl Iterator<Item = (&'a str, &'a str, u16)>,
) -> Option<String> {
    let config = node.config();
    let name = config.listeners.controller_names.first()?;
    let (_, host, port) = listeners.find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    Some(match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    })
}

/// Why `what` ("adding voter") was not done to `voter`.
pub fn refused(
    node: &Node,
    what: &str,
    voter: (BrokerId, Uuid),
    error: &VoterChangeError,
) -> VoterRefused {
    let key = |(id, directory): (BrokerId, Uuid)| {
        let directory = base64_uuid(directory);
        format!("ReplicaKey(id={id}, directoryId={directory})")
    };
    let voters = || {
        let voters = node.quorum.voters().into_iter();
        let keys = voters.map(|voter: VoterInfo| key((voter.id, voter.directory_id)));
        keys.collect::<Vec<_>>().join(", ")
    };
    let name = key(voter);
    match error {
        VoterChangeError::Fixed => VoterRefused::new(
            ErrorCode::UnsupportedVersion,
            format!("Cluster doesn't support {what} because the kraft.version feature is 0"),
        ),
        VoterChangeError::Duplicate { .. } => VoterRefused::new(
            ErrorCode::DuplicateVoter,
            format!(
                "The voter id for {name} is already part of the set of voters [{}].",
                voters()
            ),
        ),
        VoterChangeError::NotFound { .. } => VoterRefused::new(
            ErrorCode::VoterNotFound,
            format!(
                "Cannot remove voter {name} from the set of voters [{}]",
                voters()
            ),
        ),
        VoterChangeError::Quorum(error) => {
            let code = match error {
                // Another change is under way.
                QuorumError::Membership(_) => ErrorCode::RequestTimedOut,
                error => of_quorum(error),
            };
            VoterRefused::new(code, error.to_string())
        }
    }
}
