//! From a request frame to the typed request, and from the typed answer to its frame.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use super::answer::{Answer, Chunk, CloseReason, Frame, Reply, Stage};
use super::context::{ConnectionKind, Context};
use super::counts::RequestCounts;
use super::{ApiRow, fetch};
use crate::wire::{self, Value};

/// What a handler returns.
pub enum Handled<R> {
    Ready(R),
    /// The rest waits for something; see [`Handled::later`].
    Later(std::pin::Pin<Box<dyn Future<Output = Outcome<R>> + Send>>),
    /// As `Later`, when the first stage itself has to wait; see [`Answer::Alone`].
    Alone(std::pin::Pin<Box<dyn Future<Output = Outcome<R>> + Send>>),
    Done(Outcome<R>),
}

/// How a request ends.
pub enum Outcome<R> {
    Answer(R),
    /// An answer that the handler has encoded itself.
    Frame(Frame),
    Silent,
    Close(CloseReason),
}

impl<R: Send + 'static> Handled<R> {
    pub fn later(stage: impl Future<Output = R> + Send + 'static) -> Handled<R> {
        Handled::Later(Box::pin(async move { Outcome::Answer(stage.await) }))
    }

    /// Goes on to the end.
    pub async fn outcome(self) -> Outcome<R> {
        match self {
            Handled::Ready(answer) => Outcome::Answer(answer),
            Handled::Done(outcome) => outcome,
            Handled::Later(stage) | Handled::Alone(stage) => stage.await,
        }
    }
}

/// Decodes the body, runs the handler and encodes its answer.
pub fn run<Q, R>(context: Context, body: Bytes, handler: fn(Context, Q) -> Handled<R>) -> Answer
where
    Q: Decodable,
    R: Encodable + HeaderVersion + Send + 'static,
{
    let row = context.api;
    let header = AnswerHeader::of(&context);
    let counted = Counted::of(&context);
    let mut rest = body;
    let request = match Q::decode(&mut rest, header.codec_version) {
        Ok(request) => request,
        Err(error) => {
            return Answer::Ready(Reply::Close(CloseReason::Malformed {
                api: row.name,
                version: context.api_version,
                reason: error.to_string(),
            }));
        }
    };
    match handler(context, request) {
        Handled::Ready(answer) => {
            Answer::Ready(counted.note(header.reply(Outcome::Answer(answer))))
        }
        Handled::Done(outcome) => Answer::Ready(counted.note(header.reply(outcome))),
        Handled::Later(stage) => {
            let stage: Stage = Box::pin(async move { counted.note(header.reply(stage.await)) });
            Answer::Later(stage)
        }
        Handled::Alone(stage) => {
            let stage: Stage = Box::pin(async move { counted.note(header.reply(stage.await)) });
            Answer::Alone(stage)
        }
    }
}

/// As [`run`], for a version whose layouts the codec lacks: the bodies are trees.
pub fn run_values(
    context: Context,
    body: Bytes,
    handler: fn(Context, Value) -> Handled<Value>,
) -> Answer {
    let (row, version) = (context.api, context.api_version);
    let correlation_id = context.correlation_id;
    let request = match wire::decode_request_body(row.key, version, &body) {
        Ok(request) => request,
        Err(error) => {
            return Answer::Ready(Reply::Close(CloseReason::Malformed {
                api: row.name,
                version,
                reason: error.to_string(),
            }));
        }
    };
    let counted = Counted::of(&context);
    let reply = move |outcome: Outcome<Value>| {
        counted.note(match outcome {
            Outcome::Answer(answer) => {
                match wire::encode_response(row.key, version, correlation_id, &answer) {
                    Ok(bytes) => match check_size(row.name, version, bytes.len()) {
                        Ok(()) => Reply::Send(with_length(bytes)),
                        Err(reason) => Reply::Close(reason),
                    },
                    Err(reason) => {
                        Reply::Close(unencodable(row.name, version, &reason.to_string()))
                    }
                }
            }
            Outcome::Frame(frame) => Reply::Send(frame),
            Outcome::Silent => Reply::Silent,
            Outcome::Close(reason) => Reply::Close(reason),
        })
    };
    match handler(context, request) {
        Handled::Ready(answer) => Answer::Ready(reply(Outcome::Answer(answer))),
        Handled::Done(outcome) => Answer::Ready(reply(outcome)),
        Handled::Later(stage) => {
            let stage: Stage = Box::pin(async move { reply(stage.await) });
            Answer::Later(stage)
        }
        Handled::Alone(stage) => {
            let stage: Stage = Box::pin(async move { reply(stage.await) });
            Answer::Alone(stage)
        }
    }
}

/// The length before every frame.
const LENGTH_BYTES: usize = 4;

/// Where the errors of an answer are counted. Fetch and DescribeConfigs, whose answers lie in
/// several pieces, do it themselves.
struct Counted {
    /// `None`: this node asks itself.
    requests: Option<Arc<RequestCounts>>,
    row: &'static ApiRow,
    api_version: i16,
}

impl Counted {
    fn of(context: &Context) -> Counted {
        Counted {
            requests: (context.connection.kind != ConnectionKind::Local)
                .then(|| context.node.requests.clone()),
            row: context.api,
            api_version: context.api_version,
        }
    }

    fn note(&self, reply: Reply) -> Reply {
        if let Reply::Send(frame) = &reply
            && let [Chunk::Bytes(bytes)] = &frame.chunks[..]
            && self.row.key != fetch::KEY
            && let Some(requests) = &self.requests
        {
            requests.note_errors(self.row, self.api_version, &bytes[LENGTH_BYTES..]);
        }
        reply
    }
}

/// What an answer may take in memory, the records of a fetch apart: they stay in their files.
pub const ANSWER_BYTES_MAX: usize = 100 << 20;

/// Why an answer of `bytes` is not given.
pub fn check_size(api: &'static str, version: i16, bytes: usize) -> Result<(), CloseReason> {
    if bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    tracing::warn!(
        api,
        "an answer of {bytes} bytes is not given, {ANSWER_BYTES_MAX} is the limit: the connection \
         is closed"
    );
    Err(CloseReason::AnswerTooLarge {
        api,
        version,
        bytes,
    })
}

fn with_length(bytes: Bytes) -> Frame {
    let mut frame = BytesMut::with_capacity(4 + bytes.len());
    frame.put_i32(bytes.len() as i32);
    frame.put_slice(&bytes);
    Frame::from(frame.freeze())
}

pub fn put_varint(buffer: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        buffer.put_u8((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    buffer.put_u8(value as u8);
}

fn unencodable(api: &'static str, version: i16, reason: &str) -> CloseReason {
    tracing::error!(api, "an answer cannot be encoded: {reason}");
    CloseReason::Internal { api, version }
}

/// What is needed of a request to head its answer.
#[derive(Clone, Copy)]
pub struct AnswerHeader {
    pub api: &'static str,
    pub api_version: i16,
    pub codec_version: i16,
    pub correlation_id: i32,
}

impl AnswerHeader {
    pub fn of(context: &Context) -> Self {
        let codec_version = wire::codec_version(context.api.key, context.api_version)
            .expect("a test holds the table of APIs against the codec");
        AnswerHeader::at(context, codec_version)
    }

    /// For an answer that is laid out as the codec's `codec_version`.
    pub fn at(context: &Context, codec_version: i16) -> Self {
        AnswerHeader {
            api: context.api.name,
            api_version: context.api_version,
            codec_version,
            correlation_id: context.correlation_id,
        }
    }

    fn reply<R: Encodable + HeaderVersion>(&self, outcome: Outcome<R>) -> Reply {
        match outcome {
            Outcome::Answer(answer) => match self.frame(&answer) {
                Ok(frame) => Reply::Send(frame),
                Err(reason) => Reply::Close(reason),
            },
            Outcome::Frame(frame) => Reply::Send(frame),
            Outcome::Silent => Reply::Silent,
            Outcome::Close(reason) => Reply::Close(reason),
        }
    }

    /// As [`AnswerHeader::reply`], for a handler that says itself how its answer is laid out.
    pub fn outcome<R, T>(&self, answer: &R) -> Outcome<T>
    where
        R: Encodable + HeaderVersion,
    {
        match self.frame(answer) {
            Ok(frame) => Outcome::Frame(frame),
            Err(reason) => Outcome::Close(reason),
        }
    }

    /// The whole answer frame for `answer`.
    fn frame<R: Encodable + HeaderVersion>(&self, answer: &R) -> Result<Frame, CloseReason> {
        let version = self.codec_version;
        let unencodable =
            |error: &dyn ToString| unencodable(self.api, self.api_version, &error.to_string());
        let body_bytes = answer.compute_size(version).map_err(|e| unencodable(&e))?;
        check_size(self.api, self.api_version, body_bytes)?;
        let flexible = R::header_version(version) >= 1;
        let mut buffer = BytesMut::with_capacity(9 + body_bytes);
        self.put_prefix(&mut buffer, flexible, body_bytes);
        answer
            .encode(&mut buffer, version)
            .map_err(|e| unencodable(&e))?;
        Ok(Frame::from(buffer.freeze()))
    }

    /// One element of an answer by itself, for an answer that has it several times.
    pub fn element<E: Encodable>(&self, element: &E) -> Result<Bytes, CloseReason> {
        let unencodable =
            |error: &dyn ToString| unencodable(self.api, self.api_version, &error.to_string());
        let bytes = element
            .compute_size(self.codec_version)
            .map_err(|e| unencodable(&e))?;
        let mut buffer = BytesMut::with_capacity(bytes);
        let encoded = element.encode(&mut buffer, self.codec_version);
        encoded.map_err(|e| unencodable(&e))?;
        Ok(buffer.freeze())
    }

    /// The answer frame whose body is `parts`.
    pub fn frame_of(&self, flexible: bool, parts: Vec<Bytes>) -> Result<Frame, CloseReason> {
        let body_bytes = parts.iter().map(Bytes::len).sum();
        check_size(self.api, self.api_version, body_bytes)?;
        let mut prefix = BytesMut::with_capacity(9);
        self.put_prefix(&mut prefix, flexible, body_bytes);
        let all = std::iter::once(prefix.freeze()).chain(parts);
        let chunks = all.map(Chunk::Bytes).collect();
        Ok(Frame { chunks })
    }

    /// Length, correlation id and, in flexible headers, the empty tagged fields.
    pub fn put_prefix(&self, buffer: &mut BytesMut, flexible: bool, body_bytes: usize) {
        let header_bytes = if flexible { 5 } else { 4 };
        buffer.put_i32((header_bytes + body_bytes) as i32);
        buffer.put_i32(self.correlation_id);
        if flexible {
            buffer.put_u8(0);
        }
    }
}
