//! One connection: requests in, answers out, in the order of the requests.
//!
//! 1. Stage one of a request runs as soon as its frame is whole, in order. Stage two of a
//!    pipelined request (waiting for replicas or data) runs beside the stage one of later ones.
//! 2. A request that is not pipelined starts when all earlier ones are answered, and nothing
//!    starts before it is answered.
//! 3. Only the oldest unanswered request is polled: its reply is the next to leave.
//! 4. After bad input, what came before it is still answered; then the connection closes.
//! 5. A client that reads slowly holds back itself only: while an answer does not leave, nothing is
//!    read, and finished answers behind it are bounded in number and in bytes.
//! 6. Nothing outlasts `connections.max.idle.ms` without a byte read or sent: no wait of a request
//!    that its client wanted longer, no answer that nobody takes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::budget::{FrameBudget, Place};
use super::frames::{FrameError, FrameReader, RequestFrame, SMALL_FRAME_BYTES, told};
use super::send::send_chunks;
use super::traffic::Traffic;
use crate::api::{Answer, Chunk, CloseReason, Connection, Order, Reply};
use crate::host::Stream;

/// Requests of one connection that may be unanswered at a time. Clients send five by default.
const PIPELINE_MAX: usize = 64;

/// Finished answers of one connection that may wait for an earlier one, in bytes of memory, before
/// no further request is started.
const FINISHED_BYTES_MAX: usize = 1 << 20;

/// A frame that was begun must go on arriving, or it would hold its memory for ever.
const STALL_MAX: Duration = Duration::from_secs(30);

/// What a connection needs to know.
pub struct ConnectionSettings {
    pub budget: FrameBudget,
    pub frame_bytes_max: usize,
    pub idle_max: Duration,
    /// Becomes true when the node stops.
    pub stopping: watch::Receiver<bool>,
    pub traffic: Arc<Traffic>,
}

/// Answers requests. The pipeline implements it; tests put their own in.
pub trait Service: Send + Sync + 'static {
    /// Whether the request in `frame` may overlap with others of its connection.
    fn order(&self, frame: &[u8]) -> Order;

    /// Runs a request's first stage.
    fn call(self: &Arc<Self>, connection: &Arc<Connection>, frame: RequestFrame) -> Answer;

    /// The turn of the answer to a request has come, so long after the request was here in whole.
    fn answered(&self, _api_key: i16, _time: Duration) {}

    /// The connection has ended, at whichever end.
    fn ended(&self, _connection: &Arc<Connection>) {}
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    #[error("the client closed it")]
    ByClient,
    #[error("idle for longer than connections.max.idle.ms")]
    Idle,
    #[error("a request stopped arriving half-way")]
    Stalled,
    #[error("the node stops")]
    Stopping,
    #[error("{0}")]
    BadRequest(CloseReason),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("sending failed: {0}")]
    Send(std::io::Error),
}

enum Event {
    Reply(Reply),
    Read(Result<(), FrameError>),
    TimerFired,
    Stopping,
}

/// Serves `stream` until it ends, and says why it ended.
pub async fn serve<S: Service>(
    stream: Stream,
    peer: SocketAddr,
    connection: Arc<Connection>,
    service: Arc<S>,
    settings: ConnectionSettings,
) -> Ended {
    let reader = FrameReader::new(settings.budget.clone(), settings.frame_bytes_max);
    let mut state = State {
        stream,
        connection,
        service,
        reader,
        unanswered: VecDeque::new(),
        finished_bytes: 0,
        alone: false,
        alone_budget: None,
        ending: None,
        held: None,
        traffic: settings.traffic.clone(),
    };
    let ended = state.run(settings).await;
    state.service.ended(&state.connection);
    tracing::debug!(%peer, "connection ended: {ended}");
    ended
}

struct State<S> {
    stream: Stream,
    connection: Arc<Connection>,
    service: Arc<S>,
    reader: FrameReader,
    unanswered: VecDeque<Unanswered>,
    /// What the finished ones of `unanswered` take.
    finished_bytes: usize,
    /// The newest unanswered request runs alone.
    alone: bool,
    /// Its frame's part of the budget: such a request may use its bytes until it is answered.
    alone_budget: Option<Place>,
    /// Set once no more requests are taken; answered in order before the connection ends.
    ending: Option<Ended>,
    /// A frame that runs alone and waits for those before it.
    held: Option<RequestFrame>,
    traffic: Arc<Traffic>,
}

struct Unanswered {
    answer: Answer,
    /// Its share of `finished_bytes`.
    bytes: usize,
    api_key: i16,
    since: Instant,
}

impl<S: Service> State<S> {
    async fn run(&mut self, settings: ConnectionSettings) -> Ended {
        let ConnectionSettings {
            idle_max,
            mut stopping,
            ..
        } = settings;
        let mut last_activity = Instant::now();
        let timer = sleep_until(last_activity + idle_max.min(STALL_MAX));
        tokio::pin!(timer);
        loop {
            while self.start_buffered() {
                tokio::task::yield_now().await;
            }
            let eviction = self.reader.eviction();
            let sent = tokio::select! {
                biased;
                sent = self.send_ready(idle_max) => sent,
                () = told(eviction) => return Ended::Frame(FrameError::InTheWay),
                _ = stopping.wait_for(|stop| *stop) => return Ended::Stopping,
            };
            match sent {
                Ok(true) => {
                    last_activity = Instant::now();
                    // Answering may have unblocked requests that are buffered already.
                    continue;
                }
                Ok(false) => {}
                Err(ended) => return ended,
            }
            if self.unanswered.is_empty() {
                if let Some(ended) = self.ending.take() {
                    return ended;
                }
                if self.reader.is_at_end() {
                    return Ended::ByClient;
                }
            }
            match self.next_event(timer.as_mut(), &mut stopping).await {
                Event::Reply(reply) => {
                    self.unanswered[0].answer = Answer::Ready(reply);
                }
                Event::Read(Ok(())) => last_activity = Instant::now(),
                Event::Read(Err(error)) => {
                    self.reader.give_up();
                    self.end(error.into());
                }
                Event::TimerFired => {
                    let quiet = last_activity.elapsed();
                    if quiet >= idle_max {
                        return Ended::Idle;
                    }
                    let waits_for_client = self.unanswered.is_empty() && self.reader.is_in_frame();
                    if waits_for_client && quiet >= STALL_MAX {
                        return Ended::Stalled;
                    }
                    timer
                        .as_mut()
                        .reset(Instant::now() + idle_max.min(STALL_MAX));
                }
                Event::Stopping => return Ended::Stopping,
            }
        }
    }

    fn end(&mut self, why: Ended) {
        self.ending.get_or_insert(why);
    }

    /// Starts every buffered request that may start now. True after one that is so large that
    /// others should have their turn.
    fn start_buffered(&mut self) -> bool {
        while self.ending.is_none() && self.has_room() {
            let frame = match self.held.take() {
                Some(frame) => frame,
                None => match self.reader.next_buffered() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => return false,
                    Err(error) => {
                        self.end(error.into());
                        return false;
                    }
                },
            };
            let alone = self.service.order(&frame.bytes) != Order::Pipelined;
            if alone && !self.unanswered.is_empty() {
                self.held = Some(frame);
                return false;
            }
            self.alone = alone;
            let is_large = frame.bytes.len() > SMALL_FRAME_BYTES;
            let mut frame = frame;
            self.alone_budget = frame.budget.take_if(|_| alone);
            let since = Instant::now();
            self.traffic
                .received_bytes
                .add(4 + frame.bytes.len() as u64);
            let api_key = api_key(&frame.bytes);
            let answer = self.service.call(&self.connection, frame);
            let mut bytes = 0;
            match &answer {
                // Nothing after bad input is looked at.
                Answer::Ready(Reply::Close(_)) => self.alone = true,
                Answer::Ready(Reply::Send(frame)) => bytes = frame.memory_bytes(),
                Answer::Alone(_) => self.alone = true,
                Answer::Ready(Reply::Silent) | Answer::Later(_) => {}
            }
            self.finished_bytes += bytes;
            self.unanswered.push_back(Unanswered {
                answer,
                bytes,
                api_key,
                since,
            });
            if is_large {
                return true;
            }
        }
        false
    }

    /// Whether another request may start.
    fn has_room(&self) -> bool {
        !self.alone
            && self.unanswered.len() < PIPELINE_MAX
            && self.finished_bytes < FINISHED_BYTES_MAX
    }

    /// Sends the answers that are ready at the front; true if there were any.
    async fn send_ready(&mut self, stall_max: Duration) -> Result<bool, Ended> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut any = false;
        while let Some(reply) = self.pop_ready() {
            any = true;
            match reply {
                Reply::Send(frame) => chunks.extend(frame.chunks),
                Reply::Silent => {}
                Reply::Close(reason) => {
                    self.ending = Some(Ended::BadRequest(reason));
                    self.unanswered.clear();
                    self.finished_bytes = 0;
                }
            }
        }
        if self.unanswered.is_empty() {
            self.alone = false;
            self.alone_budget = None;
        }
        if !chunks.is_empty() {
            let bytes: usize = chunks.iter().map(Chunk::len).sum();
            self.traffic.sent_bytes.add(bytes as u64);
            send_chunks(&self.stream, chunks, stall_max)
                .await
                .map_err(Ended::Send)?;
        }
        Ok(any)
    }

    /// The reply of the oldest unanswered request, if it is there.
    fn pop_ready(&mut self) -> Option<Reply> {
        let front = self.unanswered.pop_front()?;
        match front.answer {
            Answer::Ready(reply) => {
                self.finished_bytes -= front.bytes;
                if !matches!(reply, Reply::Close(_)) {
                    self.service.answered(front.api_key, front.since.elapsed());
                }
                Some(reply)
            }
            answer => {
                self.unanswered.push_front(Unanswered { answer, ..front });
                None
            }
        }
    }

    async fn next_event(
        &mut self,
        timer: std::pin::Pin<&mut tokio::time::Sleep>,
        stopping: &mut watch::Receiver<bool>,
    ) -> Event {
        let may_read = self.ending.is_none()
            && !self.reader.is_at_end()
            && self.held.is_none()
            && self.has_room();
        let eviction = self.reader.eviction().filter(|_| !may_read);
        let front = self.unanswered.front_mut();
        tokio::select! {
            biased;
            reply = next_reply(front) => Event::Reply(reply),
            read = self.reader.read_from(&self.stream), if may_read => Event::Read(read),
            () = told(eviction) => Event::Read(Err(FrameError::InTheWay)),
            () = timer => Event::TimerFired,
            _ = stopping.wait_for(|stop| *stop) => Event::Stopping,
        }
    }
}

/// Of a frame that is no request, whatever stands in its place.
fn api_key(frame: &[u8]) -> i16 {
    let key = frame.first_chunk::<2>();
    key.map_or(-1, |key| i16::from_be_bytes(*key))
}

async fn next_reply(front: Option<&mut Unanswered>) -> Reply {
    match front.map(|oldest| &mut oldest.answer) {
        Some(Answer::Later(stage) | Answer::Alone(stage)) => stage.await,
        _ => std::future::pending().await,
    }
}
