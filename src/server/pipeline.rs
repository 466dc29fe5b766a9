//! What every request passes: header, API table, layout, handler. Decoding and encoding are the
//! API's own (`api::codec`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::connection::Service;
use super::frames::{RequestFrame, SMALL_FRAME_BYTES};
use super::log_pace::LogPace;
use crate::api::{self, Answer, CloseReason, Connection, Context, Node, Order, Reply};
use crate::wire::{self, RequestHeader};

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

impl Service for Pipeline {
    fn order(&self, frame: &[u8]) -> Order {
        let row = key_and_version(frame).and_then(|(api_key, _)| api::find(api_key));
        row.map_or(Order::Alone, |row| row.order)
    }

    fn call(&self, connection: &Arc<Connection>, frame: RequestFrame) -> Answer {
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
}

fn key_and_version(frame: &[u8]) -> Option<(i16, i16)> {
    let bytes = frame.first_chunk::<4>()?;
    Some((
        i16::from_be_bytes([bytes[0], bytes[1]]),
        i16::from_be_bytes([bytes[2], bytes[3]]),
    ))
}
