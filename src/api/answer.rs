//! What a handler gives back, and the frame that leaves for the client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::host::File;

/// A piece of an answer: bytes from memory, or a range of a file that goes out with sendfile.
#[derive(Clone)]
pub enum Chunk {
    Bytes(Bytes),
    File {
        file: Arc<dyn File>,
        position: u64,
        len: usize,
    },
}

impl Chunk {
    pub fn len(&self) -> usize {
        match self {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::File { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A whole answer frame, its length prefix included.
pub struct Frame {
    pub chunks: Vec<Chunk>,
}

impl Frame {
    /// What it takes of memory while it waits to leave.
    pub fn memory_bytes(&self) -> usize {
        let chunk = |chunk: &Chunk| match chunk {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::File { .. } => 0,
        };
        self.chunks.iter().map(chunk).sum::<usize>() + size_of_val(&*self.chunks)
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Frame {
            chunks: vec![Chunk::Bytes(bytes)],
        }
    }
}

/// Why a connection is closed without an answer. Kafka does the same in each case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("frame of {len} bytes is shorter than a request header")]
    ShortFrame { len: usize },
    #[error("unknown api key {api_key}")]
    UnknownApi { api_key: i16 },
    #[error("{api} is not answered on this listener")]
    OtherListener { api: &'static str },
    #[error("{api} came before this node serves")]
    NotServing { api: &'static str },
    #[error("{api} version {version} is not served")]
    UnsupportedVersion { api: &'static str, version: i16 },
    #[error("{api} v{version}: {reason}")]
    Malformed {
        api: &'static str,
        version: i16,
        reason: String,
    },
    #[error("a produce request with acks=0 failed: {reason}")]
    FailedSilently { reason: String },
    #[error("{api} v{version}: the handler failed; see the log")]
    Internal { api: &'static str, version: i16 },
    #[error("{api} v{version}: the answer would have {bytes} bytes")]
    AnswerTooLarge {
        api: &'static str,
        version: i16,
        bytes: usize,
    },
}

/// What becomes of one request.
pub enum Reply {
    Send(Frame),
    /// Nothing is sent, and the connection goes on (acks=0).
    Silent,
    Close(CloseReason),
}

/// The second stage of a request: it waits for replicas, for data, for the quorum.
pub type Stage = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The outcome of a request's first stage.
pub enum Answer {
    Ready(Reply),
    /// The rest runs aside. Later requests of the connection may start before it ends if the API
    /// is [`Order::Pipelined`].
    Later(Stage),
    /// As `Later`, but what has to happen in order is still to come: no later request of the
    /// connection starts before this one is answered.
    Alone(Stage),
}

/// Whether the next request of a connection may start before this one is answered. Replies leave
/// in request order either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Its first stage does what must happen in order (an append takes its place in the log).
    Pipelined,
    /// It runs alone, after all earlier ones and before all later ones, as in Kafka.
    Alone,
    /// As `Alone`, and its answer may have to wait until other clients have asked the same.
    Together,
}

/// Whether the work of an ordinary request is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A request with few elements takes much less than a millisecond, and there are thousands a
    /// second: it runs on the worker that has read it.
    Short,
    /// What a request takes depends on what it asks about: it runs apart ([`crate::host::Turns`]).
    Long,
}
