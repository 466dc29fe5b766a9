//! The way to the active controller, wherever it is: what a broker sends to it goes through here.
//!
//! 1. A request that gets NOT_CONTROLLER, or whose connection is lost, is sent again to whoever
//!    leads then, until its time is up. So what is sent must be safe to send twice: it names the
//!    epochs it was made in.
//!    The same goes for one that waits for an answer while another node is found to lead: a
//!    controller that stopped answers nothing and refuses nothing.
//! 2. When this node is the active controller nothing leaves it: the request is answered by its own
//!    handler, which decodes and judges it as if it had come over the network.
//! 3. One connection is kept; requests on it are answered in order.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest,
    AlterPartitionResponse, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse,
};
use kafka_protocol::protocol::Request;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use crate::types::{BrokerId, ErrorCode};
use crate::wire;

use super::address::Address;
use super::connection::Connection;
use super::error::PeerError;
use super::frames::{self, Spoken};
use super::private::{FORWARD, PrivateApi};

/// How long to wait before another try (`controller.quorum.retry.backoff.ms`).
const RETRY: Duration = Duration::from_millis(20);

/// How long a controller may take to accept a connection before it is looked for again.
const DIAL_MAX: Duration = Duration::from_secs(2);

/// How often it is looked whether the controller that is waited for still leads.
const LOOK: Duration = Duration::from_millis(50);

/// Where the active controller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerPlace {
    /// On this node.
    Here,
    At {
        id: BrokerId,
        address: Address,
    },
}

/// Knows who leads the quorum.
pub trait ControllerFinder: Send + Sync + 'static {
    /// `None` while nobody is known to lead.
    fn controller(&self) -> Option<ControllerPlace>;
}

/// An answer's frame without its length; `None` when there is none.
pub type LocalAnswer = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// Answers requests on the node that is the active controller.
pub trait LocalController: Send + Sync + 'static {
    /// `frame` is a request without its length.
    fn answer(&self, frame: Bytes) -> LocalAnswer;
}

/// A request whose answer says NOT_CONTROLLER in one place.
pub trait ControllerRequest: Request {
    fn error_code(answer: &Self::Response) -> i16;
}

macro_rules! controller_requests {
    ($($request:ident $answer:ident)*) => {
        $(impl ControllerRequest for $request {
            fn error_code(answer: &$answer) -> i16 {
                answer.error_code
            }
        })*
    };
}

controller_requests! {
    AllocateProducerIdsRequest AllocateProducerIdsResponse
    AlterPartitionRequest AlterPartitionResponse
    AssignReplicasToDirsRequest AssignReplicasToDirsResponse
    BrokerHeartbeatRequest BrokerHeartbeatResponse
    BrokerRegistrationRequest BrokerRegistrationResponse
}

/// The answer to a request that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// The answer's frame without its length.
    pub frame: Bytes,
    /// The controller's metadata had this offset when it answered.
    pub offset: i64,
}

impl Forwarded {
    pub const ANSWERED: u8 = 0;
    pub const NOT_CONTROLLER: u8 = 1;

    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![Forwarded::ANSWERED];
        bytes.put_i64(self.offset);
        bytes.put_slice(&self.frame);
        bytes
    }

    fn read(answer: &Bytes) -> Option<Forwarded> {
        let mut rest = answer.clone();
        rest.try_get_u8().ok()?;
        let offset = rest.try_get_i64().ok()?;
        Some(Forwarded {
            frame: rest,
            offset,
        })
    }

    /// The listener and the frame of a request that was passed on.
    pub fn read_request(body: &Bytes) -> Option<(String, Bytes)> {
        let mut rest = body.clone();
        let length = usize::from(rest.try_get_u16().ok()?);
        if length > rest.len() {
            return None;
        }
        let listener = String::from_utf8(rest.split_to(length).to_vec()).ok()?;
        Some((listener, rest))
    }
}

/// The newest version of an API that this side can write and read.
fn newest(api_key: i16, address: &Address) -> Result<Spoken, PeerError> {
    let api = wire::api(api_key).expect("the table has every API of the crate");
    let newest = (*api.versions.start()..=api.stable_max)
        .rev()
        .find(|version| wire::codec_version(api_key, *version).is_some());
    let version = newest.ok_or(PeerError::Unsupported {
        address: address.clone(),
        api: api.name,
    })?;
    Ok(Spoken { api, version })
}

pub struct ControllerChannel {
    client_id: String,
    finder: Arc<dyn ControllerFinder>,
    local: OnceLock<Weak<dyn LocalController>>,
    connection: Mutex<Option<(ControllerPlace, Arc<Connection>)>>,
}

/// What is tried again.
type Try<'a, R> = Pin<Box<dyn Future<Output = Result<R, PeerError>> + Send + 'a>>;

impl ControllerChannel {
    pub fn new(client_id: &str, finder: Arc<dyn ControllerFinder>) -> Arc<ControllerChannel> {
        Arc::new(ControllerChannel {
            client_id: client_id.to_owned(),
            finder,
            local: OnceLock::new(),
            connection: Mutex::default(),
        })
    }

    /// Says who answers when this node is the active controller; before that such requests wait.
    pub fn answer_locally(&self, local: Weak<dyn LocalController>) {
        let _ = self.local.set(local);
    }

    /// Sends `request` to the active controller until it is answered or `time` is up.
    pub async fn call<Q>(&self, request: &Q, time: Duration) -> Result<Q::Response, PeerError>
    where
        Q: ControllerRequest + Sync,
        Q::Response: Send,
    {
        let name = wire::api(Q::KEY).map_or("?", |api| api.name);
        let once = |place, left| -> Try<'_, Option<Q::Response>> {
            Box::pin(async move {
                let answer = match place {
                    ControllerPlace::Here => self.call_here(request).await?,
                    at => self.connect(at).await?.call(request, left).await?,
                };
                let moved = Q::error_code(&answer) == ErrorCode::NotController.code();
                Ok((!moved).then_some(answer))
            })
        };
        self.until_answered(name, time, once).await
    }

    /// As [`ControllerChannel::call`], for a request of Klamm's own. `is_answer` is false for "not
    /// the controller". `None`: this node is the controller.
    pub async fn call_private(
        &self,
        api: &'static PrivateApi,
        body: &[u8],
        time: Duration,
        is_answer: &(dyn Fn(&Bytes) -> bool + Sync),
    ) -> Result<Option<Bytes>, PeerError> {
        let once = |place, left| -> Try<'_, Option<Option<Bytes>>> {
            Box::pin(async move {
                if place == ControllerPlace::Here {
                    return Ok(Some(None));
                }
                let connection = self.connect(place).await?;
                let answer = connection.call_private(api, body, left).await?;
                Ok(is_answer(&answer).then_some(Some(answer)))
            })
        };
        self.until_answered(api.name, time, once).await
    }

    async fn until_answered<'a, R>(
        &'a self,
        api: &'static str,
        time: Duration,
        once: impl Fn(ControllerPlace, Duration) -> Try<'a, Option<R>>,
    ) -> Result<R, PeerError> {
        let deadline = Instant::now() + time;
        let mut last = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(place) = self.finder.controller() {
                let answer = once(place.clone(), left);
                let answer = tokio::select! {
                    answer = timeout_at(deadline, answer) => answer.ok(),
                    () = self.moved_from(&place) => None,
                };
                match answer {
                    Some(Ok(Some(answer))) => return Ok(answer),
                    Some(Ok(None)) | None => {}
                    Some(Err(error)) => {
                        *self.connection.lock().await = None;
                        last = Some(Box::new(error));
                    }
                }
            }
            if Instant::now() + RETRY >= deadline {
                return Err(PeerError::NoController { api, last });
            }
            sleep(RETRY).await;
        }
    }

    /// Returns when another node than the one at `place` leads.
    async fn moved_from(&self, place: &ControllerPlace) {
        loop {
            sleep(LOOK).await;
            if self.finder.controller().is_some_and(|now| now != *place) {
                return;
            }
        }
    }

    /// Passes a client's request on. `frame` is without its length; `listener` is where it came in.
    /// `None`: this node is the active controller by now, and answers itself.
    pub async fn forward(
        &self,
        listener: &str,
        frame: &[u8],
        time: Duration,
    ) -> Result<Option<Forwarded>, PeerError> {
        let mut body = BytesMut::with_capacity(2 + listener.len() + frame.len());
        body.put_u16(listener.len() as u16);
        body.put_slice(listener.as_bytes());
        body.put_slice(frame);
        let is_answer = |answer: &Bytes| answer.first() == Some(&Forwarded::ANSWERED);
        let answer = self.call_private(&FORWARD, &body, time, &is_answer).await?;
        Ok(answer.and_then(|answer| Forwarded::read(&answer)))
    }

    /// As [`ControllerChannel::forward`], for a request that this node makes itself.
    pub async fn forward_own<Q: Request>(
        &self,
        listener: &str,
        request: &Q,
        time: Duration,
    ) -> Result<Option<(Q::Response, i64)>, PeerError> {
        let address = Address::new("controller", 0);
        let spoken = newest(Q::KEY, &address)?;
        let frame = frames::encode(spoken, 0, &self.client_id, request)?;
        let Some(answer) = self.forward(listener, &frame[4..], time).await? else {
            return Ok(None);
        };
        let response = frames::decode(spoken, &address, &answer.frame)?;
        Ok(Some((response, answer.offset)))
    }

    /// A block of producer ids for a broker: the first, and how many.
    pub async fn allocate_producer_ids(
        &self,
        broker: BrokerId,
        broker_epoch: i64,
        time: Duration,
    ) -> Result<Result<(i64, i32), ErrorCode>, PeerError> {
        let request = AllocateProducerIdsRequest::default()
            .with_broker_id(broker.0.into())
            .with_broker_epoch(broker_epoch);
        let answer = self.call(&request, time).await?;
        Ok(match ErrorCode::from_code(answer.error_code) {
            Some(ErrorCode::None) => Ok((answer.producer_id_start.0, answer.producer_id_len)),
            Some(error) => Err(error),
            None => Err(ErrorCode::UnknownServerError),
        })
    }

    async fn call_here<Q: Request>(&self, request: &Q) -> Result<Q::Response, PeerError> {
        let address = Address::new("localhost", 0);
        let gone = || PeerError::Gone {
            address: address.clone(),
        };
        let local = self.local.get().and_then(Weak::upgrade).ok_or_else(gone)?;
        let spoken = newest(Q::KEY, &address)?;
        let frame = frames::encode(spoken, 0, &self.client_id, request)?;
        let answer = local.answer(frame.slice(4..)).await.ok_or_else(gone)?;
        frames::decode(spoken, &address, &answer)
    }

    /// The connection to the controller at `place`.
    async fn connect(&self, place: ControllerPlace) -> Result<Arc<Connection>, PeerError> {
        let mut kept = self.connection.lock().await;
        if let Some((known, connection)) = &*kept
            && *known == place
            && !connection.is_closed()
        {
            return Ok(connection.clone());
        }
        let ControllerPlace::At { address, .. } = &place else {
            unreachable!("this node is not dialled");
        };
        let connection = Arc::new(Connection::dial(address, &self.client_id, DIAL_MAX).await?);
        *kept = Some((place, connection.clone()));
        Ok(connection)
    }
}
