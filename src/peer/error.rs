//! Why a request got no answer.

use std::io;
use std::time::Duration;

use crate::types::ErrorCode;
use crate::wire::Malformed;

use super::address::Address;

#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("{address} cannot be resolved")]
    Resolve {
        address: Address,
        #[source]
        source: io::Error,
    },
    #[error("no connection to {address}")]
    Connect {
        address: Address,
        #[source]
        source: io::Error,
    },
    #[error("the connection to {address} is gone")]
    Gone { address: Address },
    #[error("{address} did not answer {api} within {} ms", timeout.as_millis())]
    Timeout {
        address: Address,
        api: &'static str,
        timeout: Duration,
    },
    #[error("{address} serves no version of {api} that is known here")]
    Unsupported { address: Address, api: &'static str },
    #[error("{api} v{version} cannot say this request")]
    Encode { api: &'static str, version: i16 },
    #[error("the answer of {address} to {api} v{version} cannot be read")]
    Malformed {
        address: Address,
        api: &'static str,
        version: i16,
        #[source]
        source: Malformed,
    },
    #[error("the answer of {address} to {api} v{version} is refused by the decoder")]
    Decode {
        address: Address,
        api: &'static str,
        version: i16,
    },
    #[error("{address} announces an answer of {bytes} bytes; {bytes_max} is the limit")]
    TooLong {
        address: Address,
        bytes: i64,
        bytes_max: usize,
    },
    #[error("{address} answers a request that is not due")]
    OutOfOrder { address: Address },
    #[error("{address} refuses the handshake: {error}")]
    Refused { address: Address, error: ErrorCode },
    #[error("none of the bootstrap servers answers")]
    NoBroker {
        #[source]
        last: Option<Box<PeerError>>,
    },
    #[error("no controller is known that answers {api}")]
    NoController {
        api: &'static str,
        #[source]
        last: Option<Box<PeerError>>,
    },
    #[error("no broker has the id {id}")]
    UnknownBroker { id: i32 },
    #[error("no leader is known for {topic}-{partition}")]
    NoLeader { topic: String, partition: i32 },
    #[error("the coordinator of {key} is not to be had: {error}")]
    NoCoordinator { key: String, error: ErrorCode },
}

impl PeerError {
    /// Whether another try, here or at another broker, may do better.
    pub fn is_retriable(&self) -> bool {
        match self {
            PeerError::Resolve { .. }
            | PeerError::Connect { .. }
            | PeerError::Gone { .. }
            | PeerError::Timeout { .. }
            | PeerError::NoBroker { .. }
            | PeerError::NoController { .. }
            | PeerError::UnknownBroker { .. }
            | PeerError::NoLeader { .. } => true,
            PeerError::NoCoordinator { error, .. } => error.is_retriable(),
            PeerError::Unsupported { .. }
            | PeerError::Encode { .. }
            | PeerError::Malformed { .. }
            | PeerError::Decode { .. }
            | PeerError::TooLong { .. }
            | PeerError::OutOfOrder { .. }
            | PeerError::Refused { .. } => false,
        }
    }
}
