//! What every request passes: header, API table, layout, handler. Decoding and encoding are the
//! API's own (`api::codec`).
//!
//! 1. A request whose work is not bounded to about a millisecond gets a turn to run apart from the
//!    workers (`host::turns`): those of APIs with [`Work::Long`], and large ones of any API. What a
//!    short one may still ask for, its handler decides (batches to decompress, fetch sessions).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::connection::Service;
use super::frames::{RequestFrame, SMALL_FRAME_BYTES};
use super::log_pace::LogPace;
use crate::api::{self, Answer, CloseReason, Connection, Context, Node, Order, Reply, Work};
use crate::wire::{self, RequestHeader};

/// A request of fewer bytes has few elements, whatever they are.
const TINY_BYTES: usize = 1024;
/// More than this is not copied, checked and written within a millisecond.
const SHORT_BYTES_MAX: usize = 2 << 20;
/// The same of elements: topics, partitions, members.
const SHORT_ELEMENTS_MAX: usize = 1000;

/// Runs requests against a node.
pub struct Pipeline {
    node: Arc<Node>,
    closings: LogPace,
}

impl Pipeline {
    pub fn new(node: Arc<Node>) -> Arc<Self> {
        let closings = LogPace::default();
        Arc::new(Pipeline { node, closings })
    }

    fn run(&self, connection: &Arc<Connection>, frame: RequestFrame) -> Answer {
        let called = catch_unwind(AssertUnwindSafe(|| self.answer(connection, frame)));
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

    fn answer(
        &self,
        connection: &Arc<Connection>,
        frame: RequestFrame,
    ) -> Result<Answer, CloseReason> {
        let (api_key, api_version) =
            key_and_version(&frame.bytes).ok_or(CloseReason::ShortFrame {
                len: frame.bytes.len(),
            })?;
        let row = api::find(api_key).ok_or(CloseReason::UnknownApi { api_key })?;
        if !row.serves(api_version) {
            if row.key == api::API_VERSIONS {
                // The client steps down to a version of the answer (KIP-511).
                return api::unsupported_api_versions(&frame.bytes);
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
        let bytes = wire::conform(&frame.bytes).map_err(|e| malformed(e.to_string()))?;
        let (header, body_at) =
            RequestHeader::read(&bytes).map_err(|e| malformed(e.to_string()))?;
        let context = Context {
            node: self.node.clone(),
            connection: connection.clone(),
            api: row,
            api_version,
            correlation_id: header.correlation_id,
            client_id: header.client_id.map(|id| apart_from(id, frame.bytes.len())),
        };
        Ok(api::call(context, bytes.slice(body_at..)))
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

impl Service for Pipeline {
    fn order(&self, frame: &[u8]) -> Order {
        let row = key_and_version(frame).and_then(|(api_key, _)| api::find(api_key));
        row.map_or(Order::Alone, |row| row.order)
    }

    fn call(self: &Arc<Self>, connection: &Arc<Connection>, frame: RequestFrame) -> Answer {
        if !is_long(&frame.bytes) {
            return self.run(connection, frame);
        }
        let (pipeline, connection) = (self.clone(), connection.clone());
        Answer::Alone(Box::pin(async move {
            let turns = &pipeline.node.turns;
            match turns.run(|| pipeline.run(&connection, frame)).await {
                Answer::Ready(reply) => reply,
                Answer::Later(stage) | Answer::Alone(stage) => turns.run_steps(stage).await,
            }
        }))
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
