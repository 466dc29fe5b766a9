//! What AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter have in common: how a voter is named, and
//! Kafka's words for what cannot be done.

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

/// What is done to a voter, in the words of Kafka's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add,
    Remove,
    Update,
}

impl Change {
    fn request(self) -> &'static str {
        match self {
            Change::Add => "Add voter request",
            Change::Remove => "Remove voter request",
            Change::Update => "Update voter request",
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Change::Add => "adding voter",
            Change::Remove => "removing voter",
            Change::Update => "updating voter",
        }
    }
}

/// Whether the request has come to the right cluster, and to its leader.
pub fn check_place(node: &Node, cluster_id: Option<&str>) -> Result<(), VoterRefused> {
    let own = node.quorum.cluster_id();
    if let Some(given) = cluster_id.filter(|id| **id != **own) {
        let message = format!("The given id \"{given}\" doesn't match the cluster id \"{own}\"");
        return Err(VoterRefused::new(ErrorCode::InconsistentClusterId, message));
    }
    match node.quorum.is_leader() {
        true => Ok(()),
        false => Err(VoterRefused::new(ErrorCode::NotLeaderOrFollower, "")),
    }
}

/// Whether the request names what can be a voter.
pub fn check_voter(
    change: Change,
    voter: BrokerId,
    directory_id: Uuid,
) -> Result<(), VoterRefused> {
    if voter.0 < 0 || directory_id.is_nil() {
        let message = format!("{} didn't include a valid voter", change.request());
        return Err(VoterRefused::new(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

/// A listener of a request: name, host and port.
pub type Listener<'a> = (&'a str, &'a str, u16);

/// The voter that a request describes.
pub fn described(
    node: &Node,
    change: Change,
    (id, directory_id): (BrokerId, Uuid),
    listeners: &[Listener<'_>],
) -> Result<VoterInfo, VoterRefused> {
    let config = node.config();
    let names = &config.listeners.controller_names;
    let name = names.first().map_or("CONTROLLER", String::as_str);
    let address = address(name, listeners).ok_or_else(|| {
        let given = listeners
            .iter()
            .map(|(name, host, port)| format!("ListenerName({name})={host}/<unresolved>:{port}"));
        let given = given.collect::<Vec<_>>().join(", ");
        let request = change.request();
        let message = format!(
            "{request} didn't include the endpoint (Endpoints(endpoints={{{given}}})) for the \
             default listener ListenerName({name})"
        );
        VoterRefused::new(ErrorCode::InvalidRequest, message)
    })?;
    Ok(VoterInfo {
        id,
        address,
        directory_id,
    })
}

/// `host:port` of the listener that controllers of this cluster speak on.
fn address(name: &str, listeners: &[Listener<'_>]) -> Option<String> {
    let named = |listener: &&Listener<'_>| listener.0.eq_ignore_ascii_case(name);
    let (_, host, port) = listeners.iter().find(named)?;
    Some(match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    })
}

/// Why it was not done to `voter`.
pub fn refused(
    node: &Node,
    change: Change,
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
            format!(
                "Cluster doesn't support {} because the kraft.version feature is 0",
                change.doing()
            ),
        ),
        VoterChangeError::NotReady { .. } => VoterRefused::new(
            ErrorCode::RequestTimedOut,
            format!("New voter {name} is not ready to receive requests"),
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
