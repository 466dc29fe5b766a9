//! The partitions of this broker. The metadata says which they are; this follows it.
//!
//! 1. A partition is here if and only if the last applied image has a replica of it on this broker
//!    and its log could be opened.
//! 2. What is on disk and not in the metadata is left alone, and said so once. Where a topic of
//!    that name is here, records of another id are set aside and kept (`found`).
//! 3. Looking up a partition takes a shared lock for a moment; changes come from one task.
//! 4. This broker leads and follows nothing before the metadata has its registration of this run
//!    (`Surroundings::is_registered_in`): what it knew when it started may be older than what it
//!    knew before.
//! 5. A partition that follows is copied from the leader of the last applied image. Its role
//!    changes before the fetcher does, so that what still arrives from the old leader is refused.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, watch};

use super::effective::PartitionConfig;
use super::fetchers::Fetchers;
use super::found::{Found, FoundLogs};
use super::leader::{NewPartition, Partition};
use super::moves::Moves;
use super::observer::PartitionObserver;
use super::surroundings::{Leadership, Surroundings};
use crate::config::NodeConfig;
use crate::host::Clock;
use crate::log::{Deletion, LoadOptions, Loaded, Log, LogDir, LogDirError, LogError};
use crate::metadata::{
    ConfigResource, ConfigResourceType, ImageDelta, MetadataImage, PartitionRegistration,
    TopicImage,
};
use crate::types::{
    BrokerId, Offset, TimestampMs, TopicId, TopicName, TopicPartition, with_causes,
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
    is_registered: AtomicBool,
    by_topic: RwLock<HashMap<TopicId, OfTopic>>,
    found: FoundLogs,
    /// Directories that could not be opened: nothing new may be made in their place.
    unopened: Mutex<HashSet<TopicPartition>>,
    deletions: Mutex<Vec<(Arc<LogDir>, Deletion)>>,
    /// Those that have something to flush and a limit for how long it may wait, and since when.
    pub(super) unflushed: Mutex<HashMap<TopicPartition, TimestampMs>>,
    /// A topic has set `flush.ms`: else nobody looks.
    pub(super) has_flush_ms: AtomicBool,
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
            by_topic: RwLock::default(),
            found: FoundLogs::default(),
            unopened: Mutex::default(),
            deletions: Mutex::default(),
            unflushed: Mutex::default(),
            has_flush_ms: AtomicBool::new(false),
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

    /// Opens what is on disk, all directories side by side. Blocks; after a crash it reads what was
    /// not flushed. Returns the broker epoch of the last clean stop, if every directory had one.
    pub fn load(
        &self,
        node: &NodeConfig,
        image: &MetadataImage,
    ) -> Result<Option<i64>, PartitionsError> {
        let threads = node.broker.log.num_recovery_threads_per_data_dir.max(1) as usize;
        let config_of = |topic_partition: &TopicPartition| {
            PartitionConfig::of_topic(node, image, &topic_partition.topic).log
        };
        let now = self.clock.now_ms();
        let load = |dir: &Arc<LogDir>| {
            let options = LoadOptions {
                now,
                threads,
                config_of: &config_of,
            };
            (dir.load(&options), dir.clone())
        };
        let reports: Vec<_> = match &self.log_dirs[..] {
            [only] => vec![load(only)],
            many => std::thread::scope(|scope| {
                let loading = many.iter().map(|dir| scope.spawn(move || load(dir)));
                let loading: Vec<_> = loading.collect();
                let loaded = loading.into_iter();
                loaded
                    .map(|thread| thread.join().expect("loading panicked"))
                    .collect()
            }),
        };
        let mut clean_stops = Vec::with_capacity(reports.len());
        for (report, dir) in reports {
            let report = report.map_err(|source| PartitionsError::Load {
                dir: dir.path().display().to_string(),
                source,
            })?;
            clean_stops.push(report.clean_stop);
            for loaded in report.partitions {
                self.add_found(dir.clone(), loaded);
            }
        }
        let all: Option<Vec<i64>> = clean_stops.into_iter().collect();
        Ok(all.and_then(|epochs| epochs.into_iter().min()))
    }

    fn add_found(&self, log_dir: Arc<LogDir>, loaded: Loaded) {
        let Loaded {
            topic_partition,
            is_future,
            log,
            high_watermark,
            recovered_bytes,
            truncated_bytes,
        } = loaded;
        match log {
            Ok(log) => {
                if truncated_bytes > 0 {
                    tracing::warn!(
                        %topic_partition, recovered_bytes, truncated_bytes,
                        "recovered; a torn end was cut off"
                    );
                }
                let found = match is_future {
                    true => &self.moves.found,
                    false => &self.found,
                };
                found.add(Found {
                    log,
                    log_dir,
                    high_watermark,
                });
            }
            Err(error) if is_future => {
                let error = with_causes(&error);
                tracing::error!(%topic_partition, "a move cannot be gone on with: {error}");
            }
            Err(error) => {
                tracing::error!(%topic_partition, "cannot be opened: {}", with_causes(&error));
                self.unopened.lock().insert(topic_partition);
            }
        }
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
        if delta.everything || is_first {
            self.remove_all_but(image);
            for topic in image.topics() {
                self.apply_topic(node, image, topic, topic.partitions.iter());
            }
        }
        if delta.everything {
            self.say_what_is_stray();
        } else if !is_first {
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
                self.apply_topic(node, image, topic, changed);
            }
        }
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
    ) {
        let mut config = None;
        let this_broker = self.surroundings.this_broker;
        let is_registered = self.surroundings.is_registered_in(image);
        for (index, registration) in partitions {
            let known = self.get(topic.id, index);
            if !registration.replicas.contains(&this_broker) {
                if known.is_some() {
                    self.remove_replica(topic.id, index);
                }
                continue;
            }
            let mut leadership = Leadership {
                leader: registration.leader,
                leader_epoch: registration.leader_epoch,
                partition_epoch: registration.partition_epoch,
                isr: registration.isr.clone(),
                replicas: registration.replicas.clone(),
            };
            if !is_registered {
                leadership.leader = BrokerId::NONE;
            }
            let partition = match known {
                Some(partition) if *partition.leadership() == leadership => continue,
                Some(partition) => Some(partition),
                None => {
                    let config = config
                        .get_or_insert_with(|| PartitionConfig::of_topic(node, image, &topic.name));
                    self.add(topic, index, config)
                }
            };
            if let Some(partition) = partition {
                self.change_role(&partition, leadership);
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

    fn add(
        &self,
        topic: &TopicImage,
        index: i32,
        config: &PartitionConfig,
    ) -> Option<Arc<Partition>> {
        let topic_partition = TopicPartition {
            topic: topic.name.clone(),
            partition: index,
        };
        let claimed = self.claim(&topic_partition, topic.id);
        let is_new = claimed.is_none();
        let opened = match claimed {
            Some(found) => Ok(found),
            None => self.create(&topic_partition, topic.id, config),
        };
        let Found {
            log,
            log_dir,
            high_watermark,
        } = match opened {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(%topic_partition, "cannot be made: {}", with_causes(&error));
                return None;
            }
        };
        self.note_flush_ms(config);
        let partition = Partition::new(NewPartition {
            topic_id: topic.id,
            log,
            log_dir,
            surroundings: self.surroundings.clone(),
            topic_config: config.topic.clone(),
            high_watermark,
            observer: self.observers.read().get(&topic.name).cloned(),
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
        self.resume_move(&partition, is_new);
        // Whoever is told of its role finds it in its place.
        Some(partition)
    }

    /// A log from disk, if it belongs to this topic and not to an older one of the same name.
    fn claim(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> Option<Found> {
        let claimed = self.found.claim(topic_partition, topic_id)?;
        if let Err(error) = self.make_way(topic_partition, Some(&claimed.log)) {
            let error = with_causes(&error);
            tracing::error!(%topic_partition, "a second log of this name stays: {error}");
        }
        Some(claimed)
    }

    fn create(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        config: &PartitionConfig,
    ) -> Result<Found, LogError> {
        if self.unopened.lock().contains(topic_partition) {
            return Err(LogError::Closed {
                topic_partition: topic_partition.clone(),
            });
        }
        self.make_way(topic_partition, None)?;
        let working = self
            .log_dirs
            .iter()
            .filter(|dir| dir.offline_reason().is_none());
        let emptiest = working.min_by_key(|dir| dir.log_count());
        let wanted = self.moves.take_wanted(topic_partition);
        let log_dir = wanted.unwrap_or_else(|| emptiest.unwrap_or(&self.log_dirs[0]).clone());
        let now = self.clock.now_ms();
        let log = log_dir.create_log(topic_partition.clone(), topic_id, config.log.clone(), now)?;
        Ok(Found {
            log,
            log_dir,
            high_watermark: None,
        })
    }

    /// Takes away what has the name of a partition and is not `own`, its log. Records that are not
    /// in that one are kept: that the metadata does not know them may be the metadata's loss.
    fn make_way(
        &self,
        topic_partition: &TopicPartition,
        own: Option<&Arc<Log>>,
    ) -> Result<(), LogError> {
        for old in self.found.take_rest(topic_partition) {
            if old.has_nothing_beside(own) {
                self.delete(&old.log_dir, topic_partition);
            } else if let Some(path) = old.log_dir.set_aside_log(topic_partition)? {
                let (id, path) = (old.log.topic_id(), path.display());
                tracing::warn!(
                    %topic_partition, %id, %path,
                    "another log of this name was set aside, its records are kept"
                );
            }
        }
        Ok(())
    }

    fn remove_all_but(&self, image: &MetadataImage) {
        let known: Vec<TopicId> = self.by_topic.read().keys().copied().collect();
        for topic_id in known {
            if image.topic_by_id(topic_id).is_none() {
                self.remove(topic_id);
            }
        }
    }

    fn remove(&self, topic_id: TopicId) {
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
        self.delete(&partition.log_dir(), &partition.topic_partition);
    }

    pub(super) fn delete(&self, log_dir: &Arc<LogDir>, topic_partition: &TopicPartition) {
        match log_dir.delete_log(topic_partition, self.clock.now_ms()) {
            Ok(Some(deletion)) => self.delete_later(log_dir.clone(), deletion),
            Ok(None) => {}
            Err(error) => tracing::error!(%topic_partition, "cannot be deleted: {error}"),
        }
    }

    /// Keeps files that may be removed once their time has come.
    pub fn delete_later(&self, log_dir: Arc<LogDir>, deletion: Deletion) {
        self.deletions.lock().push((log_dir, deletion));
    }

    /// Removes the files whose time has come.
    pub fn run_deletions(&self, now: TimestampMs) {
        let due: Vec<_> = {
            let mut deletions = self.deletions.lock();
            let (due, later) = deletions
                .drain(..)
                .partition(|(_, deletion)| deletion.due <= now);
            *deletions = later;
            due
        };
        for (log_dir, deletion) in due {
            if let Err(error) = log_dir.remove(&deletion) {
                tracing::error!(dir = %log_dir.path().display(), "cannot remove: {error}");
            }
        }
    }

    fn say_what_is_stray(&self) {
        let mut strays = self.found.names();
        strays.extend(self.moves.found.names());
        for topic_partition in strays {
            tracing::warn!(%topic_partition, "on disk and not in the metadata; left alone");
        }
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
        self.note_flush_ms(&config);
        for partition in partitions {
            partition.configure(config.clone());
        }
    }
}
