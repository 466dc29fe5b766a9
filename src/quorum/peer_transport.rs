//! Raft messages over the network: one connection to each voter, dialled when it is needed.
//!
//! A connection that is lost fails what waits on it at once, and the next message dials again.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::host::tasks;
use crate::peer::{
    Address, Connection, PeerError, PrivateApi, RAFT_APPEND_ENTRIES, RAFT_INSTALL_SNAPSHOT,
    RAFT_VOTE,
};
use crate::types::BrokerId;

use super::keys;
use super::network::{RaftMessage, RaftRpc, Sent, Transport};
use super::rpc::{RpcHeader, Status, wrap};

/// How long a node may take to accept a connection.
const DIAL_MAX: Duration = Duration::from_secs(1);

/// A voter that answers nothing for so long is dialled anew.
pub(super) const HANG_UP: Duration = Duration::from_secs(2);

/// Dials nodes and keeps their connections.
pub struct PeerTransport {
    node_id: BrokerId,
    connections: Mutex<HashMap<String, Arc<Connection>>>,
}

impl PeerTransport {
    pub fn new(node_id: BrokerId) -> Arc<PeerTransport> {
        Arc::new(PeerTransport {
            node_id,
            connections: Mutex::default(),
        })
    }

    /// The connection to the node at `address` (`host:port`).
    pub(super) async fn connect(&self, address: &str) -> Result<Arc<Connection>, PeerError> {
        let kept = self.connections.lock().get(address).cloned();
        if let Some(kept) = kept.filter(|connection| !connection.is_closed()) {
            return Ok(kept);
        }
        let parsed = Address::parse(address).map_err(|_| PeerError::NoController {
            api: "QuorumHello",
            last: None,
        })?;
        let client_id = format!("quorum-{}", self.node_id);
        let dialled = Connection::dial_own(&parsed, &client_id, DIAL_MAX).await?;
        let dialled = Arc::new(dialled);
        let mut connections = self.connections.lock();
        connections.insert(address.to_owned(), dialled.clone());
        Ok(dialled)
    }

    /// Asks the node at `address`.
    pub(super) async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        address: &str,
        api: &'static PrivateApi,
        question: &Q,
        within: Duration,
    ) -> io::Result<A> {
        let connection = self.connect(address).await.map_err(io::Error::other)?;
        let body = keys::encode(question);
        let answer = connection.call_private(api, &body, within);
        let answer = answer.await.map_err(io::Error::other)?;
        keys::decode("the answer of a node", &answer).map_err(io::Error::other)
    }

    async fn deliver(self: Arc<Self>, message: RaftMessage) -> io::Result<Vec<u8>> {
        let header = RpcHeader {
            cluster_id: message.cluster_id.to_string(),
            source: self.node_id,
            target: message.target,
            target_directory_id: message.directory_id,
        };
        let api = match message.rpc {
            RaftRpc::AppendEntries => &RAFT_APPEND_ENTRIES,
            RaftRpc::Vote => &RAFT_VOTE,
            RaftRpc::InstallSnapshot => &RAFT_INSTALL_SNAPSHOT,
        };
        let body = wrap(&header, &message.body);
        let connection = self.connect(&message.address).await;
        let connection = connection.map_err(io::Error::other)?;
        // openraft gives up soon and sends again; only what is silent for long is hung up on.
        let call = tasks::spawn(async move { connection.call_private(api, &body, HANG_UP).await });
        let answer = timeout(message.timeout, call).await;
        let answer = answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let answer = answer
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        match answer.split_first() {
            Some((code, rest)) if *code == Status::Taken as u8 => Ok(rest.to_vec()),
            Some((code, _)) => Err(io::Error::other(format!(
                "node {} at {} does not take the message: {:?}",
                message.target,
                message.address,
                Status::from_code(*code)
            ))),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Transport for Arc<PeerTransport> {
    fn send(&self, message: RaftMessage) -> Sent {
        Box::pin(self.clone().deliver(message))
    }
}
