//! What can go wrong in the quorum.

use std::io;

use openraft::error::Fatal;

use crate::metadata::ApplyError;
use crate::types::BrokerId;

#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    /// Ask `leader`; `None` while there is none.
    #[error("{}", active(*.leader))]
    NotController { leader: Option<BrokerId> },
    /// The change may or may not happen.
    #[error("the metadata change was not committed in time")]
    TimedOut,
    #[error("the metadata quorum on this node has stopped")]
    Stopped,
    #[error("the planner of a metadata change has panicked")]
    PlannerPanicked,
    #[error("a planned record does not fit the metadata: {0}")]
    Plan(#[source] ApplyError),
    #[error("the metadata store belongs to node {stored}, this is node {configured}")]
    WrongNode {
        stored: BrokerId,
        configured: BrokerId,
    },
    #[error("the metadata store belongs to cluster {stored}, the configuration says {configured}")]
    WrongCluster { stored: String, configured: String },
    #[error("node {node} is not among the voters")]
    NotAVoter { node: BrokerId },
    #[error("several voters need a cluster id that they all agree on")]
    NoClusterId,
    /// `found`: where it was told.
    #[error("the controllers serve {}, the data of this node is of cluster {expected}", other(.found))]
    ForeignCluster {
        found: Option<String>,
        expected: String,
    },
    #[error("controller {address} does not answer")]
    NoAnswer {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("the voters cannot be changed: {0}")]
    Membership(String),
    #[error("the metadata store failed: {0}")]
    Store(#[source] io::Error),
    #[error("the metadata store is damaged at {place}: {reason}")]
    Damaged { place: &'static str, reason: String },
    /// openraft gave up on the store, for good.
    #[error("the metadata quorum on this node gave up: {0}")]
    Failed(#[source] Box<openraft::StorageError<u64>>),
}

impl QuorumError {
    /// The way out, where there is one to name.
    pub fn advice(&self) -> Option<String> {
        match self {
            QuorumError::ForeignCluster { expected, .. } => Some(format!(
                "name the controllers of cluster {expected} (controller.quorum.voters or \
                 controller.quorum.bootstrap.servers), or give this node an empty directory \
                 (log.dirs) to become a part of theirs"
            )),
            _ => None,
        }
    }
}

fn other(cluster: &Option<String>) -> String {
    match cluster {
        Some(id) => format!("cluster {id}"),
        None => "another cluster".to_owned(),
    }
}

/// In Kafka's words, which clients see.
fn active(leader: Option<BrokerId>) -> String {
    match leader {
        Some(leader) => format!("The active controller appears to be node {leader}."),
        None => "No controller appears to be active.".to_owned(),
    }
}

impl From<Fatal<u64>> for QuorumError {
    fn from(fatal: Fatal<u64>) -> Self {
        match fatal {
            Fatal::StorageError(error) => QuorumError::Failed(Box::new(error)),
            Fatal::Panicked | Fatal::Stopped => QuorumError::Stopped,
        }
    }
}
