//! One connection: requests in, answers out, in the order of the requests.
//!
//! 1. Stage one of a request runs as soon as its frame is whole, in order. Stage two of a
//!    pipelined request (waiting for replicas or data) runs beside the stage one of later ones.
//! 2. A request that is not pipelined starts when all earlier ones are answered, and nothing
//!    starts before it is answered.
//! 3. Only the oldest unanswered request is polled: its reply is the next to leave.
//! 4. After bad input, what came before it is still answered; then the connection closes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::frames::{FrameBudget, FrameError, FrameReader, RequestFrame};
use super::send::send_chunks;
use crate::api::{Answer, Chunk, CloseReason, Connection, Order, Reply};

/// Requests of one connection that may be unanswered at a time. Clients send five by default.
const PIPELINE_MAX: usize = 64;

/// A frame that was begun must go on arriving, or it would hold its memory for ever.
const STALL_MAX: Duration = Duration::from_secs(30);

/// What a connection needs to know.
pub struct ConnectionSettings {
    pub budget: FrameBudget,
    pub frame_bytes_max: usize,
    pub idle_max: Duration,
    /// Becomes true when the node stops.
    pub stopping: watch::Receiver<bool>,
}

/// Answers requests. The pipeline implements it; tests put their own in.
pub trait Service: Send + Sync + 'static {
    /// Whether the request in `frame` may overlap with others of its connection.
    fn order(&self, frame: &[u8]) -> Order;

    /// Runs a request's first stage.
    fn call(&self, connection: &Arc<Connection>, frame: RequestFrame) -> Answer;
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
    stream: TcpStream,
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
        alone: false,
        ending: None,
        held: None,
    };
    let ended = state.run(settings).await;
    tracing::debug!(%peer, "connection ended: {ended}");
    ended
}

struct State<S> {
    stream: TcpStream,
    connection: Arc<Connection>,
    service: Arc<S>,
    reader: FrameReader,
    unanswered: VecDeque<Answer>,
    /// The newest unanswered request runs alone.
    alone: bool,
    /// Set once no more requests are taken; answered in order before the connection ends.
    ending: Option<Ended>,
    /// A frame that runs alone and waits for those before it.
    held: Option<RequestFrame>,
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
            self.start_buffered();
            match self.send_ready().await {
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
                    self.unanswered[0] = Answer::Ready(reply);
                }
                Event::Read(Ok(())) => last_activity = Instant::now(),
                Event::Read(Err(error)) => self.end(error.into()),
                Event::TimerFired => {
                    let quiet = last_activity.elapsed();
                    if self.unanswered.is_empty() {
                        if quiet >= idle_max {
                            return Ended::Idle;
                        }
                        if self.reader.is_in_frame() && quiet >= STALL_MAX {
                            return Ended::Stalled;
                        }
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

    /// Starts every buffered request that may start now.
    fn start_buffered(&mut self) {
        while self.ending.is_none() && !self.alone && self.unanswered.len() < PIPELINE_MAX {
            let frame = match self.held.take() {
                Some(frame) => frame,
                None => match self.reader.next_buffered() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => return,
                    Err(error) => return self.end(error.into()),
                },
            };
            let alone = self.service.order(&frame.bytes) == Order::Alone;
            if alone && !self.unanswered.is_empty() {
                self.held = Some(frame);
                return;
            }
            self.alone = alone;
            let answer = self.service.call(&self.connection, frame);
            // Nothing after bad input is looked at.
            let ends = matches!(answer, Answer::Ready(Reply::Close(_)));
            self.alone |= ends || matches!(answer, Answer::Alone(_));
            self.unanswered.push_back(answer);
        }
    }

    /// Sends the answers that are ready at the front; true if there were any.
    async fn send_ready(&mut self) -> Result<bool, Ended> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut any = false;
        while let Some(Answer::Ready(_)) = self.unanswered.front() {
            any = true;
            let Some(Answer::Ready(reply)) = self.unanswered.pop_front() else {
                unreachable!()
            };
            match reply {
                Reply::Send(frame) => chunks.extend(frame.chunks),
                Reply::Silent => {}
                Reply::Close(reason) => {
                    self.ending = Some(Ended::BadRequest(reason));
                    self.unanswered.clear();
                }
            }
        }
        if self.unanswered.is_empty() {
            self.alone = false;
        }
        if !chunks.is_empty() {
            send_chunks(&self.stream, chunks)
                .await
                .map_err(Ended::Send)?;
        }
        Ok(any)
    }

    async fn next_event(
        &mut self,
        timer: std::pin::Pin<&mut tokio::time::Sleep>,
        stopping: &mut watch::Receiver<bool>,
    ) -> Event {
        let may_read = self.ending.is_none()
            && !self.reader.is_at_end()
            && !self.alone
            && self.held.is_none()
            && self.unanswered.len() < PIPELINE_MAX;
        let front = self.unanswered.front_mut();
        tokio::select! {
            biased;
            reply = next_reply(front) => Event::Reply(reply),
            read = self.reader.read_from(&self.stream), if may_read => Event::Read(read),
            () = timer => Event::TimerFired,
            _ = stopping.wait_for(|stop| *stop) => Event::Stopping,
        }
    }
}

async fn next_reply(front: Option<&mut Answer>) -> Reply {
    match front {
        Some(Answer::Later(stage) | Answer::Alone(stage)) => stage.await,
        _ => std::future::pending().await,
    }
}
