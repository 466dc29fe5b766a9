//! The services of a node that handlers use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::counts::{ElectionCounts, RequestCounts};
use super::internal_topics::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};
use super::reach::Reach;
use crate::config::{Describe, Described, NodeConfig};
use crate::coordinator::TopicLog;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::transaction::{BlockProducerIds, LocalMarkers, TransactionCoordinator};
use crate::host::{Clock, Turns, tasks};
use crate::machine::broker_sessions::BrokerSessions;
use crate::machine::fetch_session::FetchSessionCache;
use crate::machine::log_comparison::LogComparison;
use crate::metadata::planners::{CreatedTopics, NewTopic, TopicDefaults, TopicPlanner};
use crate::metadata::{MetadataImage, Plan, PlanError};
use crate::partition::{Partition, Partitions};
use crate::peer::{BrokerChannels, ControllerChannel};
use crate::quorum::{Endpoint, HostDraw, Quorum, QuorumError};
use crate::types::{BrokerId, ErrorCode, TopicId};

const INTERNAL_TOPICS: [&str; 3] = [CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE];

/// How long a change of the metadata may take before the client is told that it timed out.
const CHANGE_MAX: Duration = Duration::from_secs(30);

/// How long to wait for another controller before what this broker wants is asked for again.
const CONTROLLER_RETRY: Duration = Duration::from_millis(50);

/// The coordinators of a node, and what belongs to them.
pub struct Coordinators {
    pub groups: Arc<GroupCoordinator<TopicLog>>,
    pub transactions: Arc<TransactionCoordinator<TopicLog>>,
    pub markers: Arc<LocalMarkers>,
    pub producer_ids: Arc<BlockProducerIds>,
}

/// The ways to other nodes, and what this node does as a controller.
pub struct Peers {
    pub endpoint: Arc<Endpoint>,
    /// For what this broker asks for itself.
    pub channel: Arc<ControllerChannel>,
    /// For what clients ask for: a slow request must not hold up the others.
    pub forwarding: Arc<ControllerChannel>,
    pub brokers: Arc<BrokerChannels>,
}

/// Everything a handler may touch. One per process.
pub struct Node {
    pub broker_id: BrokerId,
    pub config: Arc<ArcSwap<NodeConfig>>,
    pub clock: Arc<dyn Clock>,
    pub quorum: Arc<Quorum>,
    pub partitions: Arc<Partitions>,
    pub groups: Arc<GroupCoordinator<TopicLog>>,
    pub transactions: Arc<TransactionCoordinator<TopicLog>>,
    pub markers: Arc<LocalMarkers>,
    pub producer_ids: Arc<BlockProducerIds>,
    pub fetch_sessions: Mutex<FetchSessionCache>,
    pub endpoint: Arc<Endpoint>,
    pub channel: Arc<ControllerChannel>,
    pub forwarding: Arc<ControllerChannel>,
    /// The ways to the other brokers.
    pub brokers: Arc<BrokerChannels>,
    /// Of the brokers, while this node is the active controller.
    pub sessions: Mutex<BrokerSessions>,
    /// Of contested partitions, while this node is the active controller.
    pub comparison: Mutex<LogComparison>,
    /// For requests that take long.
    pub turns: Turns,
    pub reach: Reach,
    pub requests: Arc<RequestCounts>,
    pub elections: ElectionCounts,
    /// Topics that are being created because somebody asked for them.
    creating: Mutex<BTreeSet<String>>,
}

impl Node {
    pub fn new(
        broker_id: BrokerId,
        config: Arc<ArcSwap<NodeConfig>>,
        clock: Arc<dyn Clock>,
        quorum: Arc<Quorum>,
        partitions: Arc<Partitions>,
        coordinators: Coordinators,
        peers: Peers,
    ) -> Arc<Node> {
        let slots = config
            .load()
            .broker
            .fetch
            .max_incremental_fetch_session_cache_slots;
        Arc::new(Node {
            broker_id,
            config,
            clock,
            quorum,
            partitions,
            groups: coordinators.groups,
            transactions: coordinators.transactions,
            markers: coordinators.markers,
            producer_ids: coordinators.producer_ids,
            fetch_sessions: Mutex::new(FetchSessionCache::new(slots.max(0) as usize)),
            endpoint: peers.endpoint,
            channel: peers.channel,
            forwarding: peers.forwarding,
            brokers: peers.brokers,
            sessions: Mutex::default(),
            comparison: Mutex::default(),
            turns: Turns::default(),
            reach: Reach::default(),
            requests: Arc::default(),
            elections: ElectionCounts::default(),
            creating: Mutex::default(),
        })
    }

    pub fn image(&self) -> Arc<MetadataImage> {
        self.quorum.image()
    }

    pub fn config(&self) -> Arc<NodeConfig> {
        self.config.load_full()
    }

    pub fn is_internal(&self, topic: &str) -> bool {
        INTERNAL_TOPICS.contains(&topic)
    }

    /// The replica of a partition on this broker, or Kafka's word for why there is none.
    pub fn partition_by_name(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<Arc<Partition>, ErrorCode> {
        let image = self.quorum.image();
        let topic = image
            .topic(topic)
            .ok_or(ErrorCode::UnknownTopicOrPartition)?;
        self.partition(&image, topic.id, partition)
    }

    /// As [`Node::partition_by_name`], by the topic's id.
    pub fn partition_by_id(
        &self,
        topic_id: TopicId,
        partition: i32,
    ) -> Result<Arc<Partition>, ErrorCode> {
        if let Some(found) = self.partitions.get(topic_id, partition) {
            return Ok(found);
        }
        let image = self.quorum.image();
        image
            .topic_by_id(topic_id)
            .ok_or(ErrorCode::UnknownTopicId)?;
        self.partition(&image, topic_id, partition)
    }

    fn partition(
        &self,
        image: &MetadataImage,
        topic_id: TopicId,
        partition: i32,
    ) -> Result<Arc<Partition>, ErrorCode> {
        if let Some(found) = self.partitions.get(topic_id, partition) {
            return Ok(found);
        }
        let topic = image.topic_by_id(topic_id);
        let registered = topic.and_then(|topic| topic.partitions.get(partition));
        match registered {
            None => Err(ErrorCode::UnknownTopicOrPartition),
            Some(registered) if registered.leader == self.broker_id => {
                // Its log could not be opened.
                Err(ErrorCode::KafkaStorageError)
            }
            Some(_) => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// Runs `planner` on the controller and returns its answer once this broker has acted on it.
    pub async fn submit<T, F>(&self, planner: F) -> Result<T, QuorumError>
    where
        T: Send + 'static,
        F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
    {
        self.submit_within(CHANGE_MAX, planner).await
    }

    /// As [`Node::submit`], for a client that waits no longer than `timeout`. In no time nothing is
    /// done.
    pub async fn submit_within<T, F>(&self, timeout: Duration, planner: F) -> Result<T, QuorumError>
    where
        T: Send + 'static,
        F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
    {
        if timeout.is_zero() {
            return Err(QuorumError::TimedOut);
        }
        let answer = self.quorum.submit(timeout, planner).await?;
        self.partitions
            .wait_applied(self.quorum.image().offset())
            .await;
        Ok(answer)
    }

    /// The randomness of planners.
    pub fn draw(&self) -> HostDraw {
        HostDraw
    }

    /// Creates topics for this broker itself, wherever the controller is.
    pub async fn create_topics(
        &self,
        topics: Vec<NewTopic>,
        validate_only: bool,
    ) -> Result<CreatedTopics, QuorumError> {
        let deadline = self.clock.monotonic() + CHANGE_MAX;
        loop {
            let left = deadline.saturating_sub(self.clock.monotonic());
            let topics = topics.clone();
            let created = match self.quorum.is_leader() {
                true => self.create_topics_within(left, topics, validate_only).await,
                false => super::create_topics::forward(self, left, topics, validate_only).await,
            };
            match created {
                // The leader changed meanwhile. If it was made all the same, the next one says so.
                Err(QuorumError::NotController { .. }) if !left.is_zero() => {
                    tokio::time::sleep(CONTROLLER_RETRY).await;
                }
                done => return done,
            }
        }
    }

    pub async fn create_topics_within(
        &self,
        timeout: Duration,
        topics: Vec<NewTopic>,
        validate_only: bool,
    ) -> Result<CreatedTopics, QuorumError> {
        let config = self.config();
        let mut draw = self.draw();
        self.submit_within(timeout, move |image| {
            let check = |topic: &NewTopic| {
                config
                    .topic_overrides(&topic.configs)
                    .map(|_| ())
                    .map_err(|rejection| PlanError {
                        code: rejection.code,
                        message: rejection.message.map(Into::into),
                    })
            };
            let defaults = TopicDefaults {
                num_partitions: config.broker.topics.num_partitions,
                replication_factor: config.broker.topics.default_replication_factor as i16,
            };
            let mut planner = TopicPlanner {
                defaults,
                check_configs: &check,
                draw: &mut draw,
            };
            planner.plan(image, &topics, validate_only)
        })
        .await
    }

    /// Creates topics that clients asked for, aside; a name that is under way is not tried twice.
    pub fn auto_create(self: &Arc<Self>, names: Vec<String>) {
        if !self.config().broker.topics.auto_create_topics_enable {
            return;
        }
        let new: Vec<String> = {
            let mut creating = self.creating.lock();
            names
                .into_iter()
                .filter(|name| creating.insert(name.clone()))
                .collect()
        };
        if new.is_empty() {
            return;
        }
        let node = self.clone();
        tasks::spawn(async move {
            let topics = new.iter().map(|name| NewTopic {
                name: name.clone(),
                num_partitions: -1,
                replication_factor: -1,
                ..NewTopic::default()
            });
            match node.create_topics(topics.collect(), false).await {
                Ok(created) => {
                    for (topic, result) in created {
                        match result {
                            Ok(_) => tracing::info!(topic = &*topic, "created on demand"),
                            Err(error) => {
                                tracing::info!(topic = &*topic, "not created on demand: {error}");
                            }
                        }
                    }
                }
                Err(error) => tracing::warn!("topics not created on demand: {error}"),
            }
            let mut creating = node.creating.lock();
            for name in &new {
                creating.remove(name);
            }
        });
    }

    /// Every configuration that a topic made of `topic` has.
    pub fn describe_new_topic(&self, topic: &NewTopic) -> Vec<Described> {
        let config = self.config();
        let overrides = config.topic_overrides(&topic.configs).unwrap_or_default();
        config.describe(Describe::Topic(&overrides), None)
    }
}
