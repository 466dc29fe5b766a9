//! The types openraft is instantiated with.

use std::io::Cursor;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::metadata::MetadataRecord;
use crate::types::BrokerId;

/// The records of one entry of the log. Shared, because an entry is cloned on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Batch(pub Arc<[MetadataRecord]>);

/// Where a voter is, and which one it is: a voter that lost its disk has another directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VoterNode {
    /// `host:port`
    pub addr: String,
    /// Nil: not known.
    #[serde(default)]
    pub directory_id: Uuid,
}

impl VoterNode {
    pub fn new(addr: &str, directory_id: Uuid) -> Self {
        VoterNode {
            addr: addr.to_owned(),
            directory_id,
        }
    }
}

openraft::declare_raft_types!(
    pub Types:
        D = Batch,
        R = (),
        NodeId = u64,
        Node = VoterNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = super::runtime::HostRuntime,
);

pub(super) type Entry = openraft::Entry<Types>;
pub(super) type LogId = openraft::LogId<u64>;
pub(super) type Vote = openraft::Vote<u64>;
pub(super) type Membership = openraft::StoredMembership<u64, VoterNode>;
pub(super) type SnapshotMeta = openraft::SnapshotMeta<u64, VoterNode>;
pub(super) type StorageError = openraft::StorageError<u64>;
pub(super) type Raft = openraft::Raft<Types>;

/// openraft counts nodes from 0 up; so do brokers.
pub(super) fn raft_id(broker: BrokerId) -> u64 {
    debug_assert!(broker.0 >= 0);
    broker.0 as u64
}

pub(super) fn broker_id(raft: u64) -> BrokerId {
    i32::try_from(raft).map_or(BrokerId::NONE, BrokerId)
}
