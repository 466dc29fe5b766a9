//! One connection: requests are written at once, answers come back in the same order.
//!
//! ```text
//! send --> queue --> writer task --> socket --> reader task --> the oldest that waits
//! ```
//!
//! 1. A request stands in `waiting` before its bytes are written, in the order of the bytes.
//! 2. The first thing that goes wrong ends the connection: everyone who waits gets an error, and so
//!    does every later request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::host::stream::{self, ReadHalf, WriteHalf};
use crate::host::{Stream, tasks};
use crate::types::ErrorCode;
use crate::wire::{self, Value};

use super::address::Address;
use super::error::PeerError;
use super::frames::{self, Spoken};
use super::private::{self, PrivateApi};
use super::versions::{Range, Versions};

/// The largest answer that is read; a fetch of default size is a tenth of it.
const ANSWER_BYTES_MAX: usize = 512 << 20;
const API_VERSIONS_NEWEST: i16 = 4;

/// An open connection to a broker. Requests may be sent from many tasks at once.
pub struct Connection {
    address: Address,
    client_id: String,
    versions: Versions,
    shared: Arc<Shared>,
    queue: mpsc::UnboundedSender<Bytes>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    is_closed: AtomicBool,
    close: Notify,
    /// For those who want to know that it has ended.
    ended: Notify,
}

#[derive(Default)]
struct Waiting {
    next_correlation_id: i32,
    /// Those whose answers have not come yet, oldest first.
    due: VecDeque<(i32, oneshot::Sender<Result<Bytes, PeerError>>)>,
}

/// A request that has been sent.
pub struct Pending<R> {
    answer: oneshot::Receiver<Result<Bytes, PeerError>>,
    spoken: Spoken,
    address: Address,
    shared: Arc<Shared>,
    request_timeout: Duration,
    _answer_type: std::marker::PhantomData<fn() -> R>,
}

impl Connection {
    /// Connects, and asks what the other side serves.
    pub async fn dial(
        address: &Address,
        client_id: &str,
        dial_timeout: Duration,
    ) -> Result<Connection, PeerError> {
        let timed_out = |_| PeerError::Timeout {
            address: address.clone(),
            api: "ApiVersions",
            timeout: dial_timeout,
        };
        let whole = async {
            let mut connection = Self::open(address, client_id).await?;
            connection.versions = connection.negotiate(dial_timeout).await?;
            Ok(connection)
        };
        timeout(dial_timeout, whole).await.map_err(timed_out)?
    }

    /// As [`Connection::dial`], for requests of Klamm's own only: it asks for their versions, which
    /// a node can tell before it serves anything.
    pub async fn dial_own(
        address: &Address,
        client_id: &str,
        dial_timeout: Duration,
    ) -> Result<Connection, PeerError> {
        let api = &private::OWN_VERSIONS;
        let timed_out = |_| PeerError::Timeout {
            address: address.clone(),
            api: api.name,
            timeout: dial_timeout,
        };
        let whole = async {
            let mut connection = Self::open(address, client_id).await?;
            let first = Range {
                min: api.min,
                max: api.max,
            };
            connection.versions.apis.insert(api.key, first);
            let answer = connection.call_private(api, &[], dial_timeout).await?;
            connection.versions = private::read_own_versions(&answer);
            Ok(connection)
        };
        timeout(dial_timeout, whole).await.map_err(timed_out)?
    }

    async fn open(address: &Address, client_id: &str) -> Result<Connection, PeerError> {
        let stream = open(address).await?;
        let (read_half, write_half) = stream.into_split();
        let (queue, queued) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            is_closed: AtomicBool::new(false),
            close: Notify::new(),
            ended: Notify::new(),
        });
        tasks::spawn(write(write_half, queued, shared.clone()));
        tasks::spawn(read(read_half, address.clone(), shared.clone()));
        Ok(Connection {
            address: address.clone(),
            client_id: client_id.to_owned(),
            versions: Versions::default(),
            shared,
            queue,
        })
    }

    /// Asks with the newest version, and with version 0 where that is refused (KIP-511).
    async fn negotiate(&self, request_timeout: Duration) -> Result<Versions, PeerError> {
        let name = |text: &'static str| StrBytes::from_static_str(text);
        let request = ApiVersionsRequest::default()
            .with_client_software_name(name("klamm"))
            .with_client_software_version(name(env!("CARGO_PKG_VERSION")));
        let api = wire::api(wire::API_VERSIONS).expect("the table has ApiVersions");
        for version in [API_VERSIONS_NEWEST, 0] {
            let spoken = Spoken { api, version };
            let pending = self.queue_request::<_, ApiVersionsResponse>(spoken, &request)?;
            let frame = pending.frame(request_timeout).await?;
            // Of a version it lacks the other side says so in version 0, which starts with the
            // error code as every version does.
            let code = frame.get(4..6).map(|b| i16::from_be_bytes([b[0], b[1]]));
            if code == Some(ErrorCode::UnsupportedVersion.code()) && version > 0 {
                continue;
            }
            let answer: ApiVersionsResponse = frames::decode(spoken, &self.address, &frame)?;
            if let Some(error) = ErrorCode::from_code(answer.error_code)
                && error != ErrorCode::None
            {
                let address = self.address.clone();
                return Err(PeerError::Refused { address, error });
            }
            return Ok(Versions::read(answer));
        }
        let (address, api) = (self.address.clone(), "ApiVersions");
        Err(PeerError::Unsupported { address, api })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Returns once the connection has ended, at either end.
    pub async fn closed(&self) {
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.is_closed() {
                return;
            }
            ended.await;
        }
    }

    /// Sends a request of Klamm's own and waits for the body of its answer.
    pub async fn call_private(
        &self,
        api: &'static PrivateApi,
        body: &[u8],
        request_timeout: Duration,
    ) -> Result<Bytes, PeerError> {
        let theirs = self.versions.apis.get(&api.key).copied();
        let version = theirs.map(|range| range.max.min(api.max));
        let served = |version: &i16| theirs.is_some_and(|r| *version >= r.min.max(api.min));
        let version = version.filter(served).ok_or(PeerError::Unsupported {
            address: self.address.clone(),
            api: api.name,
        })?;
        let too_long = PeerError::Encode {
            api: api.name,
            version,
        };
        let answer = self.queue_frame(|correlation_id| {
            private::frame(api, version, correlation_id, &self.client_id, body).ok_or(too_long)
        })?;
        let frame = self.wait(answer, api.name, request_timeout).await?;
        Ok(frame.slice(4..))
    }

    /// Waits for an answer's frame; one that does not come in time ends the connection.
    async fn wait(
        &self,
        answer: oneshot::Receiver<Result<Bytes, PeerError>>,
        api: &'static str,
        request_timeout: Duration,
    ) -> Result<Bytes, PeerError> {
        match timeout(request_timeout, answer).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(_)) => Err(self.gone()),
            Err(_) => {
                self.shared.end();
                Err(PeerError::Timeout {
                    address: self.address.clone(),
                    api,
                    timeout: request_timeout,
                })
            }
        }
    }

    /// Sends a request; the answer is to be waited for, or let go of.
    pub fn send<Q: Request>(
        &self,
        request: &Q,
        request_timeout: Duration,
    ) -> Result<Pending<Q::Response>, PeerError> {
        self.send_at_most(request, i16::MAX, request_timeout)
    }

    /// As [`Connection::send`], in a version of at most `version_max`.
    pub fn send_at_most<Q: Request>(
        &self,
        request: &Q,
        version_max: i16,
        request_timeout: Duration,
    ) -> Result<Pending<Q::Response>, PeerError> {
        let spoken = self.spoken(Q::KEY, version_max)?;
        let mut pending = self.queue_request(spoken, request)?;
        pending.request_timeout = request_timeout;
        Ok(pending)
    }

    /// Sends a request that has no answer: a produce request with acks=0.
    pub fn send_unanswered<Q: Request>(&self, request: &Q) -> Result<(), PeerError> {
        let spoken = self.spoken(Q::KEY, i16::MAX)?;
        let mut waiting = self.shared.waiting.lock();
        let correlation_id = waiting.next_id();
        let frame = frames::encode(spoken, correlation_id, &self.client_id, request)?;
        self.queue.send(frame).map_err(|_| self.gone())
    }

    pub async fn call<Q: Request>(
        &self,
        request: &Q,
        request_timeout: Duration,
    ) -> Result<Q::Response, PeerError> {
        self.send(request, request_timeout)?.answer().await
    }

    /// Sends a request of a version that the codec lacks, as a tree.
    pub async fn call_value(
        &self,
        api_key: i16,
        version: i16,
        request: &Value,
        request_timeout: Duration,
    ) -> Result<Value, PeerError> {
        let api = wire::api(api_key).expect("only APIs of the table are asked");
        let theirs = self.versions.apis.get(&api_key);
        if !theirs.is_some_and(|range| (range.min..=range.max).contains(&version)) {
            return Err(PeerError::Unsupported {
                address: self.address.clone(),
                api: api.name,
            });
        }
        let answer = self.queue_frame(|correlation_id| {
            frames::encode_value(
                Spoken { api, version },
                correlation_id,
                &self.client_id,
                request,
            )
        })?;
        let frame = self.wait(answer, api.name, request_timeout).await?;
        let decoded = wire::decode_response(api_key, version, &frame);
        let (_, value) = decoded.map_err(|source| PeerError::Malformed {
            address: self.address.clone(),
            api: api.name,
            version,
            source,
        })?;
        Ok(value)
    }

    fn spoken(&self, api_key: i16, version_max: i16) -> Result<Spoken, PeerError> {
        let api = wire::api(api_key).expect("the table has every API of the crate");
        let version = self.versions.pick(api_key, version_max);
        let version = version.ok_or_else(|| PeerError::Unsupported {
            address: self.address.clone(),
            api: api.name,
        })?;
        Ok(Spoken { api, version })
    }

    fn queue_request<Q: Encodable, R>(
        &self,
        spoken: Spoken,
        request: &Q,
    ) -> Result<Pending<R>, PeerError> {
        let answer = self.queue_frame(|correlation_id| {
            frames::encode(spoken, correlation_id, &self.client_id, request)
        })?;
        Ok(Pending {
            answer,
            spoken,
            address: self.address.clone(),
            shared: self.shared.clone(),
            request_timeout: Duration::MAX,
            _answer_type: std::marker::PhantomData,
        })
    }

    /// Queues the frame that `encode` makes for a correlation id.
    fn queue_frame(
        &self,
        encode: impl FnOnce(i32) -> Result<Bytes, PeerError>,
    ) -> Result<oneshot::Receiver<Result<Bytes, PeerError>>, PeerError> {
        let (done, answer) = oneshot::channel();
        let mut waiting = self.shared.waiting.lock();
        let correlation_id = waiting.next_id();
        let frame = encode(correlation_id)?;
        // Under the lock, so that a connection that closes finds this one in `due`.
        if self.is_closed() {
            return Err(self.gone());
        }
        waiting.due.push_back((correlation_id, done));
        self.queue.send(frame).map_err(|_| self.gone())?;
        Ok(answer)
    }

    fn gone(&self) -> PeerError {
        PeerError::Gone {
            address: self.address.clone(),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl<R> Pending<R> {
    async fn frame(self, request_timeout: Duration) -> Result<Bytes, PeerError> {
        let gone = PeerError::Gone {
            address: self.address.clone(),
        };
        match timeout(request_timeout, self.answer).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(_)) => Err(gone),
            Err(_) => {
                self.shared.end();
                Err(PeerError::Timeout {
                    address: self.address,
                    api: self.spoken.api.name,
                    timeout: request_timeout,
                })
            }
        }
    }
}

impl<R: Decodable> Pending<R> {
    pub async fn answer(self) -> Result<R, PeerError> {
        let (spoken, address) = (self.spoken, self.address.clone());
        let request_timeout = self.request_timeout;
        let frame = self.frame(request_timeout).await?;
        frames::decode(spoken, &address, &frame)
    }

    /// The version in which the request was sent.
    pub fn version(&self) -> i16 {
        self.spoken.version
    }
}

impl Waiting {
    fn next_id(&mut self) -> i32 {
        let id = self.next_correlation_id;
        self.next_correlation_id = id.wrapping_add(1) & i32::MAX;
        id
    }
}

impl Shared {
    /// Ends the connection. Dropping the senders tells everyone who waits.
    fn end(&self) {
        let mut waiting = self.waiting.lock();
        self.is_closed.store(true, Ordering::Release);
        waiting.due.clear();
        drop(waiting);
        self.close.notify_waiters();
        // For the task that is not waiting at this moment.
        self.close.notify_one();
        self.ended.notify_waiters();
    }
}

/// Tries every address that the name stands for.
async fn open(address: &Address) -> Result<Stream, PeerError> {
    let resolved = tokio::net::lookup_host((address.target(), address.port)).await;
    let candidates: Vec<_> = resolved
        .map_err(|source| PeerError::Resolve {
            address: address.clone(),
            source,
        })?
        .collect();
    let mut failure = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for candidate in candidates {
        match stream::connect(candidate).await {
            Ok(stream) => {
                // Without it, a small request would wait for the answer to the one before.
                if let Err(source) = stream.set_nodelay(true) {
                    failure = source;
                    continue;
                }
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(PeerError::Connect {
        address: address.clone(),
        source: failure,
    })
}

async fn write(
    mut socket: WriteHalf,
    mut queued: mpsc::UnboundedReceiver<Bytes>,
    shared: Arc<Shared>,
) {
    while let Some(frame) = queued.recv().await {
        if socket.write_all(&frame).await.is_err() {
            shared.end();
            return;
        }
    }
    // The connection was dropped; the reader ends by its own.
}

async fn read(mut socket: ReadHalf, address: Address, shared: Arc<Shared>) {
    loop {
        let next = tokio::select! {
            biased;
            _ = shared.close.notified() => Ok(None),
            next = frames::read_frame(&mut socket, &address, ANSWER_BYTES_MAX) => next,
        };
        let next = match next {
            Ok(Some(frame)) => shared.answer(&address, frame),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        if let Err(error) = next {
            // The oldest request hears the reason, the others that the connection is gone.
            let oldest = shared.waiting.lock().due.pop_front();
            if let Some((_, done)) = oldest {
                let _ = done.send(Err(error));
            }
            break;
        }
    }
    shared.end();
}

impl Shared {
    fn answer(&self, address: &Address, frame: Bytes) -> Result<(), PeerError> {
        let id = frame.first_chunk::<4>().map(|b| i32::from_be_bytes(*b));
        let mut waiting = self.waiting.lock();
        let due = waiting.due.front().map(|(due, _)| *due);
        if due.is_none() || due != id {
            let address = address.clone();
            return Err(PeerError::OutOfOrder { address });
        }
        if let Some((_, done)) = waiting.due.pop_front() {
            // Whoever asked may have let go of it.
            let _ = done.send(Ok(frame));
        }
        Ok(())
    }
}
