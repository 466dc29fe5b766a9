//! What a handler may use: the node's services, and who asks.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use kafka_protocol::protocol::StrBytes;

use super::{ApiRow, Node};

/// One client connection.
pub struct Connection {
    /// The name of the listener it came in on, as in `PLAINTEXT`.
    pub listener: Arc<str>,
    pub peer: SocketAddr,
    /// Name and version of the client's software, once it has said so (KIP-511).
    pub software: OnceLock<(String, String)>,
}

impl Connection {
    pub fn new(listener: Arc<str>, peer: SocketAddr) -> Self {
        Connection {
            listener,
            peer,
            software: OnceLock::new(),
        }
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
