//! The partitions of this broker. The metadata says which they are; this follows it.
//!
//! 1. A partition is here if and only if the last applied image has a replica of it on this broker
//!    and its log could be opened.
//! 2. What is on disk and not in the metadata is set aside and kept (`strays`, `found`).
//! 3. Looking up a partition takes a shared lock for a moment; changes come from one task.
//! 4. This broker leads and follows nothing before the metadata has its registration of this run
//!    (`Surroundings::is_registered_in`): what it knew when it started may be older than what it
//!    knew before. Nor does it make a log before that, whose place a newer one may have, or choose
//!    between several logs of one partition.
//! 5. A partition that follows is copied from the leader of the last applied image. Its role
//!    changes before the fetcher does, so that what still arrives from the old leader is refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, watch};

use super::aside::Records;
use super::effective::PartitionConfig;
use super::fetchers::Fetchers;
use super::found::{Found, FoundLogs};
use super::leader::{NewPartition, Partition};
use super::lost::Unopened;
use super::moves::Moves;
use super::observer::PartitionObserver;
use super::places::{Waits, assigned};
use super::surroundings::{Leadership, Surroundings};
use super::traffic::TopicTraffic;
use crate::config::NodeConfig;
use crate::host::Clock;
use crate::log::{Deletion, Log, LogDir, LogDirError};
use crate::machine::replica_place::Assigned;
use crate::metadata::{
    ConfigResource, ConfigResourceType, ImageDelta, MetadataImage, PartitionRegistration,
    TopicImage,
};
use crate::types::{
    BrokerId, LeaderEpoch, Offset, TopicId, TopicName, TopicPartition, with_causes,
};

/// The replicas of one topic on this broker, by partition index.
type OfTopic = Vec<Option<Arc<Partition>>>;

/// Every partition of this broker.
pub struct Partitions {
    surroundings: Arc<Surroundings>,
    log_dirs: Vec<Arc<LogDir>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) moves: Moves,
    fetchers: OnceLock<Fetchers>,
    /// Whether an image with this run's registration was applied (invariant 4).
    pub(super) is_registered: AtomicBool,
    /// This broker registered last with a directory that it has no more.
    pub(super) has_lost_dirs: AtomicBool,
    /// It registered last with more than one.
    pub(super) had_several_dirs: AtomicBool,
    /// Replicas whose log is in a directory that is not here, or is lost.
    pub(super) waiting: Mutex<HashMap<(TopicId, i32), Waits>>,
    /// A log that was found belongs to a partition of the metadata.
    pub(super) has_claimed: AtomicBool,
    by_topic: RwLock<HashMap<TopicId, OfTopic>>,
    pub(super) found: FoundLogs,
    /// Nothing new may be made in the place of these.
    pub(super) unopened: Mutex<Unopened>,
    pub(super) set_aside: Mutex<Records>,
    pub(super) deletions: Mutex<Vec<(Arc<LogDir>, Deletion)>>,
    observers: RwLock<HashMap<TopicName, Arc<dyn PartitionObserver>>>,
    applied: watch::Sender<Offset>,
}

#[derive(Debug, thiserror::Error)]
pub enum PartitionsError {
    #[error("{dir}: {source}")]
    Load {
        dir: String,
        #[source]
        source: LogDirError,
    },
}

impl Partitions {
    /// `rolled` takes the logs whose older segments want to be flushed.
    pub fn new(
        this_broker: BrokerId,
        log_dirs: Vec<Arc<LogDir>>,
        clock: Arc<dyn Clock>,
        rolled: mpsc::UnboundedSender<Arc<Log>>,
    ) -> Self {
        Partitions {
            surroundings: Arc::new(Surroundings::new(this_broker, clock.clone(), rolled)),
            log_dirs,
            clock,
            moves: Moves::default(),
            fetchers: OnceLock::new(),
            is_registered: AtomicBool::new(false),
            has_lost_dirs: AtomicBool::new(false),
            had_several_dirs: AtomicBool::new(false),
            waiting: Mutex::default(),
            has_claimed: AtomicBool::new(false),
            by_topic: RwLock::default(),
            found: FoundLogs::default(),
            unopened: Mutex::default(),
            set_aside: Mutex::default(),
            deletions: Mutex::default(),
            observers: RwLock::default(),
            applied: watch::Sender::new(Offset::NONE),
        }
    }

    /// Has `observer` told of the partitions of `topic` that come from now on.
    pub fn observe(&self, topic: &str, observer: Arc<dyn PartitionObserver>) {
        self.observers.write().insert(topic.into(), observer);
    }

    pub fn surroundings(&self) -> &Arc<Surroundings> {
        &self.surroundings
    }

    /// What copies the partitions that follow. To be given before the first image.
    pub fn copy_with(&self, fetchers: Fetchers) {
        let _ = self.fetchers.set(fetchers);
    }

    /// Copies nothing any more.
    pub fn stop_copying(&self) {
        if let Some(fetchers) = self.fetchers.get() {
            fetchers.stop();
        }
    }

    /// Looks for followers that have fallen behind.
    pub fn check_lag(&self) {
        for partition in self.all() {
            partition.check_lag();
        }
    }

    pub fn log_dirs(&self) -> &[Arc<LogDir>] {
        &self.log_dirs
    }

    /// Those that are not offline.
    pub fn working_dirs(&self) -> impl Iterator<Item = &Arc<LogDir>> {
        let dirs = self.log_dirs.iter();
        dirs.filter(|dir| dir.offline_reason().is_none())
    }

    pub fn get(&self, topic_id: TopicId, partition: i32) -> Option<Arc<Partition>> {
        let index = usize::try_from(partition).ok()?;
        self.by_topic.read().get(&topic_id)?.get(index)?.clone()
    }

    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.by_topic
            .read()
            .values()
            .flatten()
            .flatten()
            .cloned()
            .collect()
    }

    /// Makes the partitions those of `image`; `delta` says where to look. Blocks on the disk.
    pub fn apply(&self, node: &NodeConfig, image: &MetadataImage, delta: &ImageDelta) {
        if delta.everything || !delta.brokers.is_empty() {
            let listener = &node.listeners.inter_broker_name;
            self.surroundings.learn_brokers(image, listener);
        }
        let of_broker =
            |resource: &ConfigResource| resource.resource_type == ConfigResourceType::Broker;
        if delta.everything || delta.configs.iter().any(of_broker) {
            let (this_broker, now) = (self.surroundings.this_broker, self.clock.monotonic());
            self.surroundings.throttles.learn(image, this_broker, now);
        }
        let lag_ms = node.broker.replication.replica_lag_time_max_ms;
        self.surroundings.set_lag_max_ms(lag_ms);
        let is_registered = self.surroundings.is_registered_in(image);
        let was_registered = self.is_registered.swap(is_registered, Ordering::SeqCst);
        let is_first = is_registered && !was_registered;
        let waited = self.count_waiting();
        if delta.everything || is_first {
            self.remove_all_but(image);
            for topic in image.topics() {
                self.apply_topic(node, image, topic, topic.partitions.iter(), false);
            }
        }
        if is_registered && (delta.everything || is_first) {
            self.set_aside_strays(image);
        }
        if !delta.everything && !is_first {
            for topic_id in delta.removed_topics.keys() {
                if image.topic_by_id(*topic_id).is_none() {
                    self.remove(*topic_id);
                }
            }
            for (topic_id, changed) in &delta.topics {
                let Some(topic) = image.topic_by_id(*topic_id) else {
                    continue;
                };
                let changed = changed.iter().filter_map(|index| {
                    topic
                        .partitions
                        .get(*index)
                        .map(|partition| (*index, partition))
                });
                self.apply_topic(node, image, topic, changed, was_registered);
            }
        }
        if is_registered {
            self.forget_missing_of_others(image);
            self.remember_logs(image, delta.everything || is_first);
        }
        self.say_what_waits(waited, image);
        self.apply_configs(node, image, delta);
        self.applied.send_replace(image.offset());
    }

    /// The offset of the image that was applied last.
    pub fn applied(&self) -> Offset {
        *self.applied.borrow()
    }

    /// Waits until the image at `offset`, or a later one, was applied.
    pub async fn wait_applied(&self, offset: Offset) {
        // The sender lives as long as self.
        let _ = self
            .applied
            .subscribe()
            .wait_for(|applied| *applied >= offset)
            .await;
    }

    fn apply_topic<'a>(
        &self,
        node: &NodeConfig,
        image: &MetadataImage,
        topic: &TopicImage,
        partitions: impl Iterator<Item = (i32, &'a PartitionRegistration)>,
        are_new: bool,
    ) {
        let mut config = None;
        let this_broker = self.surroundings.this_broker;
        let is_registered = self.surroundings.is_registered_in(image);
        for (index, registration) in partitions {
            let known = self.get(topic.id, index);
            if !registration.replicas.contains(&this_broker) {
                match known {
                    Some(_) => self.remove_replica(topic.id, index),
                    None => drop(self.waiting.lock().remove(&(topic.id, index))),
                }
                continue;
            }
            let replica = assigned(registration, this_broker, are_new);
            let mut leadership = Leadership {
                leader: registration.leader,
                leader_epoch: registration.leader_epoch,
                partition_epoch: registration.partition_epoch,
                isr: registration.isr.clone(),
                replicas: registration.replicas.clone(),
                directory: replica.directory,
            };
            if !is_registered {
                leadership.leader = BrokerId::NONE;
            }
            let opened = match known {
                Some(partition) if *partition.leadership() == leadership => {
                    self.tell_place(&partition, replica);
                    continue;
                }
                Some(partition) => Some((partition, false)),
                None => {
                    let config = config
                        .get_or_insert_with(|| PartitionConfig::of_topic(node, image, &topic.name));
                    self.add(image, topic, index, replica, config)
                }
            };
            if let Some((partition, is_made)) = opened {
                self.change_role(&partition, leadership);
                if is_made {
                    self.note_beginning(&partition);
                }
                self.tell_place(&partition, replica);
                self.wake_move(&partition);
            }
        }
    }

    fn change_role(&self, partition: &Arc<Partition>, leadership: Leadership) {
        let before = partition.leadership();
        let (leader, leader_epoch) = (leadership.leader, leadership.leader_epoch);
        partition.follow_metadata(leadership);
        let Some(fetchers) = self.fetchers.get() else {
            return;
        };
        if leader == self.surroundings.this_broker || leader == BrokerId::NONE {
            fetchers.leave((partition.topic_id, partition.topic_partition.partition));
        } else if (before.leader, before.leader_epoch) != (leader, leader_epoch) {
            fetchers.follow(partition.clone(), leader, leader_epoch);
        }
    }

    /// A log that is made after the partition had leaders is made for an election that gave its
    /// records up. Its epoch tells it from the old log, should that come back.
    fn note_beginning(&self, partition: &Partition) {
        let leadership = partition.leadership();
        let leads = leadership.leader == self.surroundings.this_broker;
        if !leads || leadership.leader_epoch == LeaderEpoch(0) {
            return;
        }
        if let Err(error) = partition.log().note_beginning() {
            let topic_partition = &partition.topic_partition;
            tracing::error!(%topic_partition, "{}", with_causes(&error));
        }
    }

    /// The partition, and whether its log was made now.
    fn add(
        &self,
        image: &MetadataImage,
        topic: &TopicImage,
        index: i32,
        replica: Assigned,
        config: &PartitionConfig,
    ) -> Option<(Arc<Partition>, bool)> {
        let topic_partition = TopicPartition {
            topic: topic.name.clone(),
            partition: index,
        };
        let is_registered = self.is_registered.load(Ordering::SeqCst);
        if !is_registered && self.found.count(&topic_partition, topic.id) > 1 {
            // Which one is the newest metadata's to say.
            return None;
        }
        let lost = self.lost(image, (&topic_partition, topic.id), replica);
        let claimed = match &lost {
            Some(lost) if !self.found.has(&topic_partition, topic.id, lost.flushed) => None,
            _ => self.claim(&topic_partition, topic.id, replica.directory),
        };
        let is_new = claimed.is_none();
        let opened = match claimed {
            Some(found) => Ok(Some(found)),
            None => self.create(topic, &topic_partition, replica, lost, config),
        };
        let Found {
            log,
            log_dir,
            high_watermark,
        } = match opened {
            Ok(found) => found?,
            Err(error) => {
                tracing::error!(%topic_partition, "cannot be made: {}", with_causes(&error));
                return None;
            }
        };
        let partition = Partition::new(NewPartition {
            topic_id: topic.id,
            log,
            log_dir,
            surroundings: self.surroundings.clone(),
            topic_config: config.topic.clone(),
            high_watermark,
            observer: self.observers.read().get(&topic.name).cloned(),
            topic_traffic: self.traffic_of(topic.id),
        });
        {
            let mut by_topic = self.by_topic.write();
            let of_topic = by_topic.entry(topic.id).or_default();
            let at = index as usize;
            if of_topic.len() <= at {
                of_topic.resize(at + 1, None);
            }
            of_topic[at] = Some(partition.clone());
        }
        // Who flushes finds it in its place.
        partition.note_flush_ms();
        self.resume_move(&partition, is_new);
        // Whoever is told of its role finds it in its place.
        Some((partition, is_new))
    }

    /// The counts of the topic's other partitions, or new ones.
    fn traffic_of(&self, topic_id: TopicId) -> Arc<TopicTraffic> {
        let by_topic = self.by_topic.read();
        let mut others = by_topic.get(&topic_id).into_iter().flatten().flatten();
        let other = others.next();
        other.map_or_else(Arc::default, |other| other.topic_traffic.clone())
    }

    fn remove_all_but(&self, image: &MetadataImage) {
        let mut known: Vec<TopicId> = self.by_topic.read().keys().copied().collect();
        known.extend(self.waiting.lock().keys().map(|(topic_id, _)| *topic_id));
        for topic_id in known {
            if image.topic_by_id(topic_id).is_none() {
                self.remove(topic_id);
            }
        }
    }

    fn remove(&self, topic_id: TopicId) {
        self.waiting.lock().retain(|(id, _), _| *id != topic_id);
        let removed = self.by_topic.write().remove(&topic_id);
        for partition in removed.into_iter().flatten().flatten() {
            self.drop_replica(&partition);
        }
    }

    /// The replica has moved to other brokers.
    fn remove_replica(&self, topic_id: TopicId, index: i32) {
        let removed = {
            let mut by_topic = self.by_topic.write();
            let of_topic = by_topic.get_mut(&topic_id);
            of_topic.and_then(|of_topic| of_topic.get_mut(index as usize)?.take())
        };
        if let Some(partition) = removed {
            self.drop_replica(&partition);
        }
    }

    fn drop_replica(&self, partition: &Partition) {
        partition.close();
        self.give_up_move(partition);
        if let Some(fetchers) = self.fetchers.get() {
            fetchers.leave((partition.topic_id, partition.topic_partition.partition));
        }
        let index = partition.topic_partition.partition;
        let assignments = &self.surroundings.assignments;
        assignments.forget(partition.topic_id, index);
        self.delete(&partition.log_dir(), &partition.topic_partition);
    }

    fn apply_configs(&self, node: &NodeConfig, image: &MetadataImage, delta: &ImageDelta) {
        let of_brokers = |resource_type| resource_type == ConfigResourceType::Broker;
        if delta
            .configs
            .iter()
            .any(|resource| of_brokers(resource.resource_type))
        {
            for topic in image.topics() {
                self.configure(node, image, topic);
            }
            return;
        }
        for resource in &delta.configs {
            if resource.resource_type == ConfigResourceType::Topic
                && let Some(topic) = image.topic(&resource.resource_name)
            {
                self.configure(node, image, topic);
            }
        }
    }

    fn configure(&self, node: &NodeConfig, image: &MetadataImage, topic: &TopicImage) {
        let partitions: Vec<Arc<Partition>> = {
            let by_topic = self.by_topic.read();
            by_topic
                .get(&topic.id)
                .into_iter()
                .flatten()
                .flatten()
                .cloned()
                .collect()
        };
        if partitions.is_empty() {
            return;
        }
        let config = PartitionConfig::of_topic(node, image, &topic.name);
        for partition in partitions {
            partition.configure(config.clone());
        }
    }
}
