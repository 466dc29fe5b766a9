//! Raft messages between voters, as bytes over a [`Transport`].
//!
//! A quorum of one sends nothing. With several voters the transport carries the messages over the
//! controller listener; what arrives there goes to `Quorum::handle_rpc`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{RaftNetwork, RaftNetworkFactory};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::types::BrokerId;

use super::QuorumError;
use super::keys;
use super::raft_types::{Raft, Types, VoterNode, broker_id};
use super::reach::Reach;

/// The kinds of Raft messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaftRpc {
    AppendEntries,
    Vote,
    InstallSnapshot,
}

/// One message to another voter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftMessage {
    pub cluster_id: Arc<str>,
    pub target: BrokerId,
    /// The directory of the voter that is meant; nil when it is not known.
    pub directory_id: Uuid,
    /// `host:port`, as in the list of voters.
    pub address: String,
    pub rpc: RaftRpc,
    pub body: Vec<u8>,
    /// When the answer is of no use any more.
    pub timeout: Duration,
}

pub type Sent = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

/// Carries a message to another node and its answer back.
pub trait Transport: Send + Sync + 'static {
    fn send(&self, message: RaftMessage) -> Sent;
}

/// The transport of a quorum of one: there is nobody to reach.
pub struct NoTransport;

impl Transport for NoTransport {
    fn send(&self, message: RaftMessage) -> Sent {
        let error = io::Error::other(format!("there is no way to node {}", message.target));
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Gives openraft a [`Peer`] for each voter.
pub(super) struct Network {
    pub(super) cluster_id: Arc<str>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) reach: Reach,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &VoterNode) -> Peer {
        Peer {
            target: broker_id(target),
            node: node.clone(),
            cluster_id: self.cluster_id.clone(),
            transport: self.transport.clone(),
            reach: self.reach.clone(),
        }
    }
}

pub(super) struct Peer {
    target: BrokerId,
    node: VoterNode,
    cluster_id: Arc<str>,
    transport: Arc<dyn Transport>,
    reach: Reach,
}

type CallError<E> = RPCError<u64, VoterNode, RaftError<u64, E>>;

impl Peer {
    async fn call<Q, A, E>(
        &self,
        rpc: RaftRpc,
        request: Q,
        option: RPCOption,
    ) -> Result<A, CallError<E>>
    where
        Q: Serialize,
        A: DeserializeOwned,
        E: std::error::Error + DeserializeOwned,
    {
        let call = self.reach.call(self.target, &self.node.addr);
        let sent = self.transport.send(RaftMessage {
            cluster_id: self.cluster_id.clone(),
            target: self.target,
            directory_id: self.node.directory_id,
            address: self.node.addr.clone(),
            rpc,
            body: keys::encode(&request),
            timeout: option.hard_ttl(),
        });
        let answer = sent.await;
        call.ended(answer.as_ref().map(drop));
        let answer = answer.map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))?;
        let answer: Result<A, RaftError<u64, E>> =
            keys::decode("the answer of a voter", &answer)
                .map_err(|error| RPCError::Network(NetworkError::new(&error)))?;
        let target = self.target.0 as u64;
        answer.map_err(|error| RPCError::RemoteError(RemoteError::new(target, error)))
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, VoterNode, RaftError<u64>>> {
        self.call(RaftRpc::AppendEntries, request, option).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, CallError<InstallSnapshotError>> {
        self.call(RaftRpc::InstallSnapshot, request, option).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, VoterNode, RaftError<u64>>> {
        self.call(RaftRpc::Vote, request, option).await
    }
}

/// Answers a message that came from another voter.
pub(super) async fn handle_rpc(
    raft: &Raft,
    rpc: RaftRpc,
    body: &[u8],
) -> Result<Vec<u8>, QuorumError> {
    let place = "the message of a voter";
    Ok(match rpc {
        RaftRpc::AppendEntries => {
            keys::encode(&raft.append_entries(keys::decode(place, body)?).await)
        }
        RaftRpc::Vote => keys::encode(&raft.vote(keys::decode(place, body)?).await),
        RaftRpc::InstallSnapshot => {
            keys::encode(&raft.install_snapshot(keys::decode(place, body)?).await)
        }
    })
}
