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
    clock: Arc<dyn Clock>,
    fetchers: OnceLock<Fetchers>,
    /// Whether an image with this run's registration was applied (invariant 4).
    is_registered: AtomicBool,
    by_topic: RwLock<HashMap<TopicId, OfTopic>>,
    found: FoundLogs,
    /// Directories that could not be opened: nothing new may be made in their place.
    unopened: Mutex<HashSet<TopicPartition>>,
    deletions: Mutex<Vec<(Arc<LogDir>, Deletion)>>,
    /// Those that have something to flush and a limit for how long it may wait, and since when.
    unflushed: Mutex<HashMap<TopicPartition, TimestampMs>>,
    /// A topic has set `flush.ms`: else nobody looks.
    has_flush_ms: AtomicBool,
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
                self.found.add(Found {
                    log,
                    log_dir,
                    high_watermark,
                });
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
        let opened = match self.claim(&topic_partition, topic.id) {
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
        let mut by_topic = self.by_topic.write();
        let of_topic = by_topic.entry(topic.id).or_default();
        let at = index as usize;
        if of_topic.len() <= at {
            of_topic.resize(at + 1, None);
        }
        of_topic[at] = Some(partition.clone());
        // Whoever is told of its role finds it in its place.
        Some(partition)
    }

    /// A log from disk, if it belongs to this topic and not to an older one of the same name.
    fn claim(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> Option<Found> {
        let claimed = self.found.claim(topic_partition, topic_id)?;
        if let Err(error) = self.make_way(topic_partition) {
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
        self.make_way(topic_partition)?;
        let working = self
            .log_dirs
            .iter()
            .filter(|dir| dir.offline_reason().is_none());
        let emptiest = working.min_by_key(|dir| dir.log_count());
        let log_dir = emptiest.unwrap_or(&self.log_dirs[0]).clone();
        let now = self.clock.now_ms();
        let log = log_dir.create_log(topic_partition.clone(), topic_id, config.log.clone(), now)?;
        Ok(Found {
            log,
            log_dir,
            high_watermark: None,
        })
    }

    /// Takes away what has the name of a partition and is not its log. Records are kept: that the
    /// metadata does not know them may be the metadata's loss.
    fn make_way(&self, topic_partition: &TopicPartition) -> Result<(), LogError> {
        for old in self.found.take_rest(topic_partition) {
            if old.log.log_end_offset() == Offset::ZERO {
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
        if let Some(fetchers) = self.fetchers.get() {
            fetchers.leave((partition.topic_id, partition.topic_partition.partition));
        }
        self.delete(&partition.log_dir, &partition.topic_partition);
    }

    fn delete(&self, log_dir: &Arc<LogDir>, topic_partition: &TopicPartition) {
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

    /// Flushes what has waited for `flush.ms`.
    pub fn flush_overdue(&self) {
        if !self.has_flush_ms.load(Ordering::Relaxed) {
            return;
        }
        let now = self.clock.now_ms();
        let mut unflushed = self.unflushed.lock();
        let before = std::mem::take(&mut *unflushed);
        for partition in self.all() {
            let flush_ms = partition.topic_config().flush_ms;
            let is_flushed = partition.log.recovery_point() >= partition.log.log_end_offset();
            if flush_ms == i64::MAX || is_flushed {
                continue;
            }
            let topic_partition = &partition.topic_partition;
            let since = before.get(topic_partition).copied().unwrap_or(now);
            if now.0 - since.0 < flush_ms {
                unflushed.insert(topic_partition.clone(), since);
            } else if let Err(error) = partition.log.flush() {
                tracing::error!(%topic_partition, "flush failed: {error}");
            }
        }
    }

    fn note_flush_ms(&self, config: &PartitionConfig) {
        if config.topic.flush_ms < i64::MAX {
            self.has_flush_ms.store(true, Ordering::Relaxed);
        }
    }

    fn say_what_is_stray(&self) {
        for topic_partition in self.found.names() {
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
