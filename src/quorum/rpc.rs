//! The messages between nodes of one cluster, as bytes under the private APIs (`peer::private`).
//!
//! ```text
//! Raft request = length:u32 RpcHeader(MessagePack) openraft's message(MessagePack)
//! Raft answer  = status:u8 openraft's answer(MessagePack), or nothing when the status is a refusal
//! the others   = one MessagePack value each way
//! ```
//!
//! 1. A Raft message says which cluster it belongs to, who sends it and whom it is for, down to
//!    the directory: a voter that lost its disk is another one, and must not vote in its place.
//! 2. Nothing is longer than a frame may be, and what is read is bounded by what is there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::metadata::MetadataRecord;
use crate::types::BrokerId;

use super::QuorumError;
use super::keys;

/// In front of every Raft message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RpcHeader {
    pub cluster_id: String,
    pub source: BrokerId,
    pub target: BrokerId,
    /// Nil: not known to the sender.
    pub target_directory_id: Uuid,
}

/// Why a Raft message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Taken = 0,
    /// This node is of no cluster yet.
    NotReady = 1,
    OtherCluster = 2,
    OtherNode = 3,
    /// The node is the one that was meant, its directory is not.
    OtherDirectory = 4,
    Failed = 5,
}

impl Status {
    pub(super) fn from_code(code: u8) -> Status {
        let known = [
            Status::Taken,
            Status::NotReady,
            Status::OtherCluster,
            Status::OtherNode,
            Status::OtherDirectory,
        ];
        let found = known.into_iter().find(|status| *status as u8 == code);
        found.unwrap_or(Status::Failed)
    }
}

pub(super) fn wrap(header: &RpcHeader, message: &[u8]) -> Vec<u8> {
    let header = keys::encode(header);
    let mut bytes = Vec::with_capacity(4 + header.len() + message.len());
    bytes.extend((header.len() as u32).to_be_bytes());
    bytes.extend(&header);
    bytes.extend(message);
    bytes
}

pub(super) fn unwrap(bytes: &[u8]) -> Result<(RpcHeader, &[u8]), QuorumError> {
    let short = || keys::damaged("the message of a node", "it is cut short".into());
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_be_bytes(*length) as usize;
    let (header, message) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((keys::decode("the message of a node", header)?, message))
}

/// A voter, by its number, address and directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterInfo {
    pub id: BrokerId,
    /// `host:port`
    pub address: String,
    pub directory_id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HelloRequest {
    pub node_id: BrokerId,
}

/// What a controller tells of itself and of the quorum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HelloAnswer {
    pub node_id: BrokerId,
    pub directory_id: Uuid,
    /// `None`: it belongs to no cluster yet.
    pub cluster_id: Option<String>,
    pub leader: Option<BrokerId>,
    pub term: u64,
    pub voters: Vec<VoterInfo>,
    /// Its `controller.quorum.voters`.
    #[serde(default)]
    pub listed: BTreeMap<BrokerId, String>,
    /// It belongs to no cluster and did before: its metadata is gone.
    #[serde(default)]
    pub had_cluster: bool,
}

/// "Would you vote for me?"
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreVoteRequest {
    pub cluster_id: String,
    pub candidate: BrokerId,
    /// The term of the last entry in its log, and the number behind it.
    pub last_log: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreVoteAnswer {
    pub is_granted: bool,
}

/// "I am this voter, and this is where I am."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JoinRequest {
    pub cluster_id: String,
    pub voter: VoterInfo,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinAnswer {
    Voter,
    NotLeader { leader: Option<BrokerId> },
    Refused { reason: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FetchRequest {
    pub cluster_id: Option<String>,
    pub node_id: BrokerId,
    /// The last entry that the node has; -1 for none.
    pub offset: i64,
    pub max_wait_ms: u32,
    /// The leader and term that it knows: it is answered at once when they changed.
    pub leader: Option<BrokerId>,
    pub term: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FetchAnswer {
    /// This controller belongs to no cluster yet, or to another one.
    Refused { cluster_id: Option<String> },
    Taken {
        cluster_id: String,
        leader: Option<BrokerId>,
        term: u64,
        voters: Vec<VoterInfo>,
        content: Content,
    },
}

/// Committed metadata behind an offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    Nothing,
    Entries(Vec<FetchedEntry>),
    /// The whole image, as a snapshot holds it.
    Image {
        offset: i64,
        epoch: u64,
        #[serde(with = "bytes_of")]
        bytes: Vec<u8>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FetchedEntry {
    pub offset: i64,
    pub epoch: u64,
    pub records: std::sync::Arc<[MetadataRecord]>,
}

/// Bytes as MessagePack's own bytes, not as a list of numbers.
mod bytes_of {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_message_comes_back_and_a_cut_one_does_not() {
        let header = RpcHeader {
            cluster_id: "c".into(),
            source: BrokerId(1),
            target: BrokerId(2),
            target_directory_id: Uuid::from_u128(3),
        };
        let bytes = wrap(&header, b"message");
        assert_eq!(unwrap(&bytes).unwrap(), (header, &b"message"[..]));
        for end in 0..bytes.len() - 7 {
            assert!(unwrap(&bytes[..end]).is_err(), "{end}");
        }
        assert!(unwrap(&[0xff; 8]).is_err());
    }
}
