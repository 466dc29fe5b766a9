//! What every request passes: header, API table, layout, handler. Decoding and encoding are the
//! API's own (`api::codec`).
//!
//! 1. A request whose work is not bounded to about a millisecond gets a turn to run apart from the
//!    workers (`host::turns`): those of APIs with [`Work::Long`], and large ones of any API. What a
//!    short one may still ask for, its handler decides (batches to decompress, fetch sessions).
//! 2. A request takes many times its bytes once it is decoded, and so does its answer. Large ones
//!    have a share of [`LARGE_BYTES_MAX`] from then until they are answered, and wait for it,
//!    unless their answer waits for other clients.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::Service;
use super::frames::{RequestFrame, SMALL_FRAME_BYTES};
use super::log_pace::LogPace;
use crate::api::{
    self, Answer, Chunk, CloseReason, Connection, ConnectionKind, Context, Node, Order, Reply, Work,
};
use crate::host::Clock;
use crate::peer::{
    FORWARD, Forwarded, LOG_ENDS, LocalAnswer, LocalController, OWN_VERSIONS, PrivateRequest,
    own_versions, private_api,
};
use crate::quorum::Endpoint;
use crate::types::Offset;
use crate::wire::{self, RequestHeader};

/// A request of fewer bytes has few elements, whatever they are.
const TINY_BYTES: usize = 1024;
/// More than this is not copied, checked and written within a millisecond.
const SHORT_BYTES_MAX: usize = 2 << 20;
/// The same of elements: topics, partitions, members.
const SHORT_ELEMENTS_MAX: usize = 1000;

/// Large requests that are decoded at a time, in bytes of their frames. An element of one byte
/// becomes a structure of some hundred.
const LARGE_BYTES_MAX: u32 = 4 << 20;

/// How long a controller may take with a request that is passed on.
const FORWARD_MAX: Duration = Duration::from_secs(30);

/// Runs requests against a node. Before there is one, only what nodes ask one another to form a
/// cluster is answered.
pub struct Pipeline {
    node: OnceLock<Arc<Node>>,
    endpoint: Arc<Endpoint>,
    clock: Arc<dyn Clock>,
    this: Weak<Pipeline>,
    closings: LogPace,
    /// What is left of [`LARGE_BYTES_MAX`].
    large_bytes: Semaphore,
}

impl Pipeline {
    pub fn new(endpoint: Arc<Endpoint>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new_cyclic(|this| Pipeline {
            node: OnceLock::new(),
            endpoint,
            clock,
            this: this.clone(),
            closings: LogPace::default(),
            large_bytes: Semaphore::new(LARGE_BYTES_MAX as usize),
        })
    }

    /// From now on everything is answered.
    pub fn serve(&self, node: &Arc<Node>) {
        let _ = self.node.set(node.clone());
    }

    fn run(&self, connection: &Arc<Connection>, frame: RequestFrame) -> Answer {
        let called = catch_unwind(AssertUnwindSafe(|| self.answer(connection, &frame.bytes)));
        match called {
            Ok(Ok(answer)) => answer,
            Ok(Err(reason)) => {
                if let Some(left_out) = self.closings.admit(Instant::now()) {
                    let peer = connection.peer;
                    tracing::info!(%peer, left_out, "closing the connection: {reason}");
                }
                Answer::Ready(Reply::Close(reason))
            }
            // The panic hook has logged where; one request's bug ends one connection.
            Err(_) => Answer::Ready(Reply::Close(CloseReason::Internal {
                api: "?",
                version: -1,
            })),
        }
    }

    fn answer(&self, connection: &Arc<Connection>, frame: &Bytes) -> Result<Answer, CloseReason> {
        let short = CloseReason::ShortFrame { len: frame.len() };
        let (api_key, api_version) = key_and_version(frame).ok_or(short)?;
        let unknown = CloseReason::UnknownApi { api_key };
        if private_api(api_key).is_some() && connection.kind != ConnectionKind::Broker {
            return self.answer_own(frame).ok_or(unknown);
        }
        let row = api::find(api_key).ok_or(unknown)?;
        if !row.is_answered_on(connection.kind) {
            return Err(CloseReason::OtherListener { api: row.name });
        }
        let not_serving = CloseReason::NotServing { api: row.name };
        let node = self.node.get().ok_or(not_serving)?;
        if !row.serves(api_version) {
            if row.key == api::API_VERSIONS {
                // The client steps down to a version of the answer (KIP-511).
                return api::unsupported_api_versions(frame);
            }
            let unsupported = CloseReason::UnsupportedVersion {
                api: row.name,
                version: api_version,
            };
            return Err(unsupported);
        }
        let malformed = |reason: String| CloseReason::Malformed {
            api: row.name,
            version: api_version,
            reason,
        };
        let bytes = wire::conform(frame).map_err(|e| malformed(e.to_string()))?;
        let (header, body_at) =
            RequestHeader::read(&bytes).map_err(|e| malformed(e.to_string()))?;
        let body = bytes.slice(body_at..);
        let context = Context {
            node: node.clone(),
            connection: connection.clone(),
            api: row,
            api_version,
            correlation_id: header.correlation_id,
            client_id: header.client_id.map(|id| apart_from(id, frame.len())),
        };
        node.reach.note(&context);
        if connection.kind == ConnectionKind::Broker
            && !node.quorum.is_leader()
            && api::is_forwarded(row, api_version, &body)
        {
            return Ok(Answer::Alone(Box::pin(forward(
                context,
                frame.clone(),
                body,
            ))));
        }
        Ok(api::call(context, body))
    }

    /// Answers what only nodes of the cluster ask.
    fn answer_own(&self, frame: &Bytes) -> Option<Answer> {
        let request = PrivateRequest::read(frame)?;
        if *request.api == OWN_VERSIONS {
            let frame = request.answer(&own_versions())?;
            return Some(Answer::Ready(Reply::Send(frame.into())));
        }
        let this = self.this.upgrade()?;
        let stage = async move {
            let body = match request.api {
                api if *api == FORWARD => this.answer_forwarded(&request.body).await,
                api if *api == LOG_ENDS => this.hear_log_ends(&request.body).await,
                _ => this.endpoint.answer(&request, this.clock.monotonic()).await,
            };
            let frame = body.and_then(|body| request.answer(&body));
            match frame {
                Some(frame) => Reply::Send(frame.into()),
                None => Reply::Close(CloseReason::Malformed {
                    api: request.api.name,
                    version: request.version,
                    reason: "it cannot be read".into(),
                }),
            }
        };
        Some(Answer::Alone(Box::pin(stage)))
    }

    async fn hear_log_ends(&self, body: &Bytes) -> Option<Vec<u8>> {
        self.node.get()?.hear_log_ends(body).await
    }

    /// Answers a request that a broker has passed on, as if it had come in here.
    async fn answer_forwarded(&self, body: &Bytes) -> Option<Vec<u8>> {
        let (listener, frame) = Forwarded::read_request(body)?;
        let node = self.node.get()?;
        if !node.quorum.is_leader() {
            return Some(vec![Forwarded::NOT_CONTROLLER]);
        }
        let connection = local_connection(&listener);
        let frame = self.answer_whole(&connection, &frame).await?;
        let offset = node.image().offset().0;
        Some(Forwarded { frame, offset }.write())
    }

    /// The answer's frame without its length; `None` when the connection would have been closed.
    async fn answer_whole(&self, connection: &Arc<Connection>, frame: &Bytes) -> Option<Bytes> {
        let turns = self.node.get().map(|node| &node.turns);
        let turns = turns.filter(|_| is_long(frame));
        let called = match turns {
            Some(turns) => turns.run(|| self.answer(connection, frame)).await,
            None => self.answer(connection, frame),
        };
        let reply = match (called, turns) {
            (Ok(Answer::Ready(reply)), _) => reply,
            (Ok(Answer::Later(stage) | Answer::Alone(stage)), Some(turns)) => {
                turns.run_steps(stage).await
            }
            (Ok(Answer::Later(stage) | Answer::Alone(stage)), None) => stage.await,
            (Err(_), _) => return None,
        };
        let Reply::Send(frame) = reply else {
            return None;
        };
        let mut whole = BytesMut::new();
        for chunk in frame.chunks {
            match chunk {
                Chunk::Bytes(bytes) => whole.extend_from_slice(&bytes),
                // No answer of a controller holds records.
                Chunk::File { .. } => return None,
            }
        }
        (whole.len() >= 4).then(|| whole.freeze().slice(4..))
    }
}

fn local_connection(listener: &str) -> Arc<Connection> {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    Arc::new(Connection::new(
        listener.into(),
        nowhere,
        None,
        ConnectionKind::Local,
    ))
}

/// Passes a request on to the active controller. When none is to be had, the handler here says so
/// in the way of its API.
async fn forward(context: Context, frame: Bytes, body: Bytes) -> Reply {
    let node = context.node.clone();
    let listener = context.connection.listener.clone();
    let forwarded = node
        .forwarding
        .forward(&listener, &frame, FORWARD_MAX)
        .await;
    let reason = match forwarded {
        Ok(Some(Forwarded { frame, offset })) => {
            node.partitions.wait_applied(Offset(offset)).await;
            node.requests
                .note_errors(context.api, context.api_version, &frame);
            let mut whole = BytesMut::with_capacity(4 + frame.len());
            whole.put_i32(frame.len() as i32);
            whole.put_slice(&frame);
            return Reply::Send(whole.freeze().into());
        }
        Ok(None) => "this node has become the controller".to_owned(),
        Err(error) => error.to_string(),
    };
    tracing::debug!(api = context.api.name, "not forwarded: {reason}");
    match api::call(context, body) {
        Answer::Ready(reply) => reply,
        Answer::Later(stage) | Answer::Alone(stage) => stage.await,
    }
}

impl LocalController for Pipeline {
    fn answer(&self, frame: Bytes) -> LocalAnswer {
        let this = self.this.upgrade();
        Box::pin(async move {
            this?
                .answer_whole(&local_connection("CONTROLLER"), &frame)
                .await
        })
    }
}

/// A client id that a waiting request may keep without keeping a large frame.
fn apart_from(client_id: StrBytes, frame_bytes: usize) -> StrBytes {
    if frame_bytes <= SMALL_FRAME_BYTES {
        return client_id;
    }
    StrBytes::from_string(client_id.to_string())
}

/// Whether the work of a request is more than a worker should do between two looks at its sockets.
fn is_long(frame: &[u8]) -> bool {
    let row = key_and_version(frame).and_then(|(api_key, _)| api::find(api_key));
    row.is_some_and(|row| match row.work {
        Work::Long => true,
        Work::Short if frame.len() <= TINY_BYTES => false,
        Work::Short => {
            frame.len() > SHORT_BYTES_MAX || !wire::has_few_elements(frame, SHORT_ELEMENTS_MAX)
        }
    })
}

/// A request's share of [`LARGE_BYTES_MAX`].
fn large_bytes(frame: &[u8]) -> u32 {
    let row = key_and_version(frame).and_then(|(api_key, _)| api::find(api_key));
    // What waits for other requests would keep a share that those may need.
    match row.is_some_and(|row| row.order == Order::Alone) && frame.len() > SMALL_FRAME_BYTES {
        true => u32::try_from(frame.len()).map_or(LARGE_BYTES_MAX, |len| len.min(LARGE_BYTES_MAX)),
        false => 0,
    }
}

impl Service for Pipeline {
    fn order(&self, frame: &[u8]) -> Order {
        let row = key_and_version(frame).and_then(|(api_key, _)| api::find(api_key));
        row.map_or(Order::Alone, |row| row.order)
    }

    fn call(self: &Arc<Self>, connection: &Arc<Connection>, frame: RequestFrame) -> Answer {
        let long = || is_long(&frame.bytes);
        let Some(node) = self.node.get().filter(|_| long()).cloned() else {
            return self.run(connection, frame);
        };
        let (pipeline, connection) = (self.clone(), connection.clone());
        Answer::Alone(Box::pin(async move {
            let bytes = large_bytes(&frame.bytes);
            // Only a closed semaphore refuses, and nobody closes this one.
            let _share = pipeline.large_bytes.acquire_many(bytes).await;
            let turns = &node.turns;
            match turns.run(|| pipeline.run(&connection, frame)).await {
                Answer::Ready(reply) => reply,
                Answer::Later(stage) | Answer::Alone(stage) => turns.run_steps(stage).await,
            }
        }))
    }

    fn answered(&self, api_key: i16, time: Duration) {
        if let Some(node) = self.node.get() {
            node.requests.answered(api_key, time);
        }
    }

    fn ended(&self, connection: &Arc<Connection>) {
        if let (Some(node), Some((broker, id))) = (self.node.get(), connection.broker()) {
            node.lost_broker_connection(broker, id);
        }
    }
}

fn key_and_version(frame: &[u8]) -> Option<(i16, i16)> {
    let bytes = frame.first_chunk::<4>()?;
    Some((
        i16::from_be_bytes([bytes[0], bytes[1]]),
        i16::from_be_bytes([bytes[2], bytes[3]]),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of `api` with the topics of `body`.
    fn frame(api: &str, version: i16, topics: usize) -> Vec<u8> {
        let layout = wire::api_by_name(api).unwrap();
        let name = b"\0\x03abc\0\0\0\0";
        let mut frame = Vec::new();
        frame.extend(layout.key.to_be_bytes());
        frame.extend(version.to_be_bytes());
        frame.extend([0, 0, 0, 1, 0xff, 0xff]);
        frame.extend([0xff; 4]);
        frame.extend((topics as i32).to_be_bytes());
        for _ in 0..topics {
            frame.extend(name);
        }
        frame
    }

    #[test]
    fn only_so_many_large_requests_are_decoded_at_a_time() {
        let mut large = frame("OffsetFetch", 1, 0);
        assert_eq!(large_bytes(&large), 0);
        large.resize(900_000, 0);
        assert_eq!(large_bytes(&large), 900_000);
        large.resize(90_000_000, 0);
        assert_eq!(large_bytes(&large), LARGE_BYTES_MAX, "alone");
        for waits in ["JoinGroup", "SyncGroup", "Fetch"] {
            let mut large = frame(waits, 4, 0);
            large.resize(900_000, 0);
            assert_eq!(large_bytes(&large), 0);
        }
    }

    #[test]
    fn what_may_take_long_does_not_run_on_a_worker() {
        // ListOffsets v1: replica_id, [topic]
        assert!(!is_long(&frame("ListOffsets", 1, 1)));
        assert!(!is_long(&frame("ListOffsets", 1, SHORT_ELEMENTS_MAX)));
        assert!(is_long(&frame("ListOffsets", 1, SHORT_ELEMENTS_MAX + 1)));
        assert!(is_long(&frame("DescribeConfigs", 1, 0)));
        assert!(is_long(&frame("CreateTopics", 2, 1)));
        let mut large = frame("Produce", 3, 0);
        assert!(!is_long(&large));
        large.resize(SHORT_BYTES_MAX + 1, 0);
        assert!(is_long(&large));
        assert!(
            !is_long(b""),
            "it is answered with the end of the connection"
        );
    }
}
