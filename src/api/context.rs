//! What a handler may use: the node's services, and who asks.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kafka_protocol::protocol::StrBytes;

use super::{ApiRow, Node};
use crate::machine::broker_sessions::ConnectionId;
use crate::types::BrokerId;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// One client connection.
pub struct Connection {
    /// The name of the listener it came in on, as in `PLAINTEXT`.
    pub listener: Arc<str>,
    pub peer: SocketAddr,
    /// Which of this node's addresses the client reached; `None` from within this process.
    pub local: Option<SocketAddr>,
    /// Name and version of the client's software, once it has said so (KIP-511).
    pub software: OnceLock<(String, String)>,
    pub kind: ConnectionKind,
    id: ConnectionId,
    /// The broker that sends its heartbeats here.
    broker: OnceLock<BrokerId>,
    /// What the client has done with it (`api::reach`).
    pub(super) use_of: AtomicU8,
}

/// What may be asked on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKind {
    /// To a listener that serves clients and brokers.
    Broker,
    /// To a listener of `controller.listener.names`.
    Controller,
    /// From within this process to its own controller.
    Local,
}

impl Connection {
    pub fn new(
        listener: Arc<str>,
        peer: SocketAddr,
        local: Option<SocketAddr>,
        kind: ConnectionKind,
    ) -> Self {
        // An IPv4 client of a socket for both has an address that only such sockets know.
        let plain =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Connection {
            listener,
            peer,
            local: local.map(plain),
            use_of: AtomicU8::new(0),
            software: OnceLock::new(),
            kind,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            broker: OnceLock::new(),
        }
    }

    /// Notes that `broker` speaks here. `None`: it speaks from within this process.
    pub fn of_broker(&self, broker: BrokerId) -> Option<ConnectionId> {
        if self.kind == ConnectionKind::Local {
            return None;
        }
        let _ = self.broker.set(broker);
        Some(self.id)
    }

    /// The broker whose heartbeats came in here.
    pub fn broker(&self) -> Option<(BrokerId, ConnectionId)> {
        self.broker.get().map(|broker| (*broker, self.id))
    }
}

/// One request.
#[derive(Clone)]
pub struct Context {
    pub node: Arc<Node>,
    pub connection: Arc<Connection>,
    pub api: &'static ApiRow,
    pub api_version: i16,
    pub correlation_id: i32,
    pub client_id: Option<StrBytes>,
}
