//! A cluster from the outside: connections to its brokers, its metadata, who leads and who
//! coordinates what.
//!
//! 1. There is at most one connection to each address; a dead one is replaced when it is needed.
//! 2. What a metadata answer says is kept until somebody asks for it anew. Leaders change: whoever
//!    gets "not leader" from a broker calls [`Client::metadata`] again.
//! 3. `call_*` tries again, with growing waits, for as long as `api_timeout` allows, but only what
//!    failed on the way. Error codes inside of answers are the caller's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    FindCoordinatorRequest, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::{Request, StrBytes};
use parking_lot::Mutex;

use crate::host::{Clock, SystemClock};
use crate::types::{ErrorCode, TopicId};

use super::address::Address;
use super::broker::Broker;
use super::connection::Connection;
use super::error::PeerError;
use super::metadata::ClusterView;
use super::retry::Backoff;

#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub bootstrap: Vec<Address>,
    pub client_id: String,
    /// `request.timeout.ms`
    pub request_timeout: Duration,
    /// `default.api.timeout.ms`
    pub api_timeout: Duration,
    /// `socket.connection.setup.timeout.ms`
    pub dial_timeout: Duration,
    /// `retry.backoff.ms`
    pub backoff: Backoff,
    pub on_unreachable: Option<OnUnreachable>,
}

/// Is told of a broker that cannot be connected to, at once and then now and then: the client's
/// name, the broker's id (of a bootstrap server below 0), its address, and why.
pub type OnUnreachable = fn(&str, i32, &Address, &PeerError);

/// How long nothing more is said of an address that cannot be connected to.
const UNREACHABLE_EVERY: Duration = Duration::from_secs(10);

impl ClientConfig {
    /// The defaults of Kafka's admin client.
    pub fn new(bootstrap: Vec<Address>, client_id: &str) -> ClientConfig {
        ClientConfig {
            bootstrap,
            client_id: client_id.to_owned(),
            request_timeout: Duration::from_secs(30),
            api_timeout: Duration::from_secs(60),
            dial_timeout: Duration::from_secs(10),
            backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(1)),
            on_unreachable: None,
        }
    }
}

/// What a coordinator is looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoordinatorKind {
    Group = 0,
    Transaction = 1,
}

/// The connection to one address. The lock is held while it is dialled, so that a dead broker
/// holds up only those who want it.
type Slot = tokio::sync::Mutex<Option<Arc<Connection>>>;

pub struct Client {
    config: ClientConfig,
    clock: SystemClock,
    connections: Mutex<HashMap<Address, Arc<Slot>>>,
    cluster: Mutex<ClusterView>,
    /// When an address was last said to be unreachable.
    unreachable: Mutex<HashMap<Address, Duration>>,
}

impl Client {
    /// Nothing is connected to before it is needed.
    pub fn new(config: ClientConfig) -> Client {
        Client {
            config,
            clock: SystemClock::new(),
            connections: Mutex::default(),
            cluster: Mutex::default(),
            unreachable: Mutex::default(),
        }
    }

    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Time since this client was made.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Wall-clock time.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms().0
    }

    /// The cluster as it was last seen.
    pub fn cluster(&self) -> ClusterView {
        self.cluster.lock().clone()
    }

    /// The connection to an address, dialled if need be.
    pub async fn connection(&self, address: &Address) -> Result<Arc<Connection>, PeerError> {
        let slot = self
            .connections
            .lock()
            .entry(address.clone())
            .or_default()
            .clone();
        let mut slot = slot.lock().await;
        if let Some(open) = slot.as_ref().filter(|c| !c.is_closed()) {
            return Ok(open.clone());
        }
        let (client_id, dial_timeout) = (&self.config.client_id, self.config.dial_timeout);
        let dialled = Connection::dial(address, client_id, dial_timeout).await;
        let fresh = dialled.inspect_err(|error| self.tell_unreachable(address, error))?;
        Ok(slot.insert(Arc::new(fresh)).clone())
    }

    fn tell_unreachable(&self, address: &Address, error: &PeerError) {
        let Some(tell) = self.config.on_unreachable else {
            return;
        };
        let now = self.clock.monotonic();
        let mut told = self.unreachable.lock();
        if told
            .get(address)
            .is_some_and(|at| now < *at + UNREACHABLE_EVERY)
        {
            return;
        }
        told.insert(address.clone(), now);
        let known = self.cluster.lock().brokers.values().find_map(|broker| {
            let is_this = broker.address == *address;
            is_this.then_some(broker.id)
        });
        let bootstrap = self.config.bootstrap.iter().position(|a| a == address);
        // Kafka counts them down from -1.
        let unnamed = bootstrap.map_or(-1, |index| -1 - index as i32);
        tell(
            &self.config.client_id,
            known.unwrap_or(unnamed),
            address,
            error,
        );
    }

    fn open_connection(&self) -> Option<Arc<Connection>> {
        let connections = self.connections.lock();
        connections.values().find_map(|slot| {
            let slot = slot.try_lock().ok()?;
            slot.as_ref().filter(|c| !c.is_closed()).cloned()
        })
    }

    /// A connection to any broker: one that is open, else the first that answers.
    pub async fn any(&self) -> Result<Arc<Connection>, PeerError> {
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let known: Vec<Address> = {
            let cluster = self.cluster.lock();
            cluster
                .brokers
                .values()
                .map(|b| b.address.clone())
                .collect()
        };
        let mut last = None;
        for address in self.config.bootstrap.iter().chain(&known) {
            match self.connection(address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(Box::new(error)),
            }
        }
        Err(PeerError::NoBroker { last })
    }

    /// Sends to any broker, and tries again on the way's failures.
    pub async fn call_any<Q: Request>(&self, request: &Q) -> Result<Q::Response, PeerError> {
        self.retry(async || {
            let connection = self.any().await?;
            connection.call(request, self.config.request_timeout).await
        })
        .await
    }

    /// Sends to the broker with this id.
    pub async fn call_broker<Q: Request>(
        &self,
        id: i32,
        request: &Q,
    ) -> Result<Q::Response, PeerError> {
        self.retry(async || {
            let connection = self.broker(id).await?;
            connection.call(request, self.config.request_timeout).await
        })
        .await
    }

    /// The connection to the coordinator of `key`.
    pub async fn coordinator(
        &self,
        kind: CoordinatorKind,
        key: &str,
    ) -> Result<Arc<Connection>, PeerError> {
        let broker = self.find_coordinator(kind, key).await?;
        self.connection(&broker.address).await
    }

    /// Runs `attempt` until it succeeds, fails for good, or `api_timeout` has passed.
    pub async fn retry<T>(
        &self,
        attempt: impl AsyncFn() -> Result<T, PeerError>,
    ) -> Result<T, PeerError> {
        let deadline = self
            .clock
            .monotonic()
            .saturating_add(self.config.api_timeout);
        let mut backoff = self.config.backoff;
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = backoff.next_wait();
            if !error.is_retriable() || self.clock.monotonic() + wait >= deadline {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// The connection to the broker with this id; asks for the cluster if it is not known.
    pub async fn broker(&self, id: i32) -> Result<Arc<Connection>, PeerError> {
        let known = self.cluster.lock().brokers.get(&id).cloned();
        let broker = match known {
            Some(broker) => broker,
            None => {
                let cluster = self.ask_metadata(Some(&[])).await?;
                let found = cluster.brokers.get(&id).cloned();
                found.ok_or(PeerError::UnknownBroker { id })?
            }
        };
        self.connection(&broker.address).await
    }

    /// Asks for the cluster and these topics (`None`: all) and keeps the answer.
    pub async fn metadata(&self, topics: Option<&[&str]>) -> Result<ClusterView, PeerError> {
        self.retry(async || self.ask_metadata(topics).await).await
    }

    /// As [`Client::metadata`] of one topic, which the broker may create if it is missing.
    pub async fn metadata_creating(&self, topic: &str) -> Result<ClusterView, PeerError> {
        self.retry(async || self.ask_metadata_of(Some(&[topic]), true).await)
            .await
    }

    async fn ask_metadata(&self, topics: Option<&[&str]>) -> Result<ClusterView, PeerError> {
        self.ask_metadata_of(topics, false).await
    }

    async fn ask_metadata_of(
        &self,
        topics: Option<&[&str]>,
        may_create: bool,
    ) -> Result<ClusterView, PeerError> {
        let row = |name: &&str| {
            let name = TopicName(StrBytes::from_string((*name).to_owned()));
            MetadataRequestTopic::default().with_name(Some(name))
        };
        let request = MetadataRequest::default()
            .with_topics(topics.map(|names| names.iter().map(row).collect()))
            .with_allow_auto_topic_creation(may_create);
        let connection = self.any().await?;
        let answer: MetadataResponse = connection
            .call(&request, self.config.request_timeout)
            .await?;
        let view = ClusterView::read(&answer);
        let mut kept = self.cluster.lock();
        kept.cluster_id.clone_from(&view.cluster_id);
        kept.controller_id = view.controller_id;
        kept.brokers.clone_from(&view.brokers);
        if topics.is_none() {
            kept.topics.clear();
        }
        let fresh = view.topics.iter().map(|(n, t)| (n.clone(), t.clone()));
        kept.topics.extend(fresh);
        Ok(view)
    }

    /// The broker that leads a partition, asked for if it is not known.
    pub async fn leader(&self, topic: &str, partition: i32) -> Result<i32, PeerError> {
        let known = |cluster: &ClusterView| {
            let leader = cluster.topics.get(topic)?.partition(partition)?.leader;
            (leader >= 0).then_some(leader)
        };
        if let Some(leader) = known(&self.cluster.lock()) {
            return Ok(leader);
        }
        let cluster = self.metadata(Some(&[topic])).await?;
        known(&cluster).ok_or_else(|| PeerError::NoLeader {
            topic: topic.to_owned(),
            partition,
        })
    }

    /// The id of a topic whose metadata is known.
    pub fn topic_id(&self, topic: &str) -> Option<TopicId> {
        self.cluster.lock().topics.get(topic).map(|t| t.id)
    }

    /// The topic with this id, as far as its metadata is known.
    pub fn topic_of_id(&self, id: TopicId) -> Option<String> {
        let cluster = self.cluster.lock();
        let found = cluster.topics.values().find(|topic| topic.id == id);
        found.map(|topic| topic.name.clone())
    }

    /// Forgets who leads what: some broker said that it is not so any more.
    pub fn forget_topics(&self) {
        self.cluster.lock().topics.clear();
    }

    /// Asks who coordinates `key`.
    pub async fn find_coordinator(
        &self,
        kind: CoordinatorKind,
        key: &str,
    ) -> Result<Broker, PeerError> {
        let text = StrBytes::from_string(key.to_owned());
        let request = FindCoordinatorRequest::default().with_key_type(kind as i8);
        let connection = self.any().await?;
        let version = connection
            .versions()
            .pick(FindCoordinatorRequest::KEY, i16::MAX);
        // Version 4 asks for many keys at once, those before for one.
        let request = match version.is_some_and(|v| v >= 4) {
            true => request.with_coordinator_keys(vec![text]),
            false => request.with_key(text),
        };
        let answer = connection
            .call(&request, self.config.request_timeout)
            .await?;
        let (code, id, host, port) = match answer.coordinators.first() {
            Some(found) => (found.error_code, found.node_id, &found.host, found.port),
            None => (answer.error_code, answer.node_id, &answer.host, answer.port),
        };
        let failed = |error| PeerError::NoCoordinator {
            key: key.to_owned(),
            error,
        };
        match (ErrorCode::of_answer(code), u16::try_from(port)) {
            (ErrorCode::None, Ok(port)) => Ok(Broker {
                id: id.0,
                address: Address::new(host, port),
                rack: None,
            }),
            (ErrorCode::None, Err(_)) => Err(failed(ErrorCode::CoordinatorNotAvailable)),
            (error, _) => Err(failed(error)),
        }
    }
}
