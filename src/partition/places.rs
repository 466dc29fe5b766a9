//! In which directories the logs of this broker's replicas are: found at the start, made where
//! `machine::replica_place` says, and told to the controller where the metadata names another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::assignments::Assignment;
use super::effective::PartitionConfig;
use super::found::{Found, Why};
use super::leader::Partition;
use super::lost::Lost;
use super::registry::{Partitions, PartitionsError};
use crate::config::NodeConfig;
use crate::log::{LoadOptions, Loaded, LogDir, LogError, SharedLinks};
use crate::machine::replica_place::{self, Assigned, Begin, OwnDirs};
use crate::metadata::{DirectoryId, MetadataImage, PartitionRegistration, TopicImage};
use crate::types::{BrokerId, TopicId, TopicPartition, with_causes};

/// Why a replica has no log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    ForDirectory,
    IsLost,
}

/// What is known of a directory by its id.
pub(super) fn id_of(dir: &LogDir) -> Option<DirectoryId> {
    dir.id().map(DirectoryId)
}

/// For the next start.
pub(super) fn note_made(dir: &LogDir, topic_partition: &TopicPartition, topic_id: TopicId) {
    if let Err(error) = dir.note_made(topic_partition, topic_id) {
        tracing::error!(%topic_partition, "{}", with_causes(&error));
    }
}

/// What `registration` says of the replica of `broker`.
pub(super) fn assigned(
    registration: &PartitionRegistration,
    broker: BrokerId,
    is_new: bool,
) -> Assigned {
    let directory = registration.directory(broker);
    // Without a leader those that crashed may be asked how far their logs go.
    let is_compared = !registration.has_leader() && registration.last_known_elr().contains(&broker);
    let is_in_sync = registration.isr.contains(&broker);
    Assigned {
        directory: directory.unwrap_or(DirectoryId::UNASSIGNED),
        is_counted_on: is_in_sync
            || is_compared
            || registration.eligible_leader_replicas().contains(&broker),
        is_new,
    }
}

impl Partitions {
    /// Opens what is on disk, all directories side by side. Blocks; after a crash it reads what was
    /// not flushed. A directory that cannot be read is offline from then on. Returns the broker
    /// epoch of the last clean stop, if every directory works and had one.
    pub fn load(
        &self,
        node: &NodeConfig,
        image: &MetadataImage,
    ) -> Result<Option<i64>, PartitionsError> {
        let threads = node.broker.log.num_recovery_threads_per_data_dir.max(1) as usize;
        let config_of = |topic_partition: &TopicPartition| {
            PartitionConfig::of_topic(node, image, &topic_partition.topic).log
        };
        let is_known = |topic_partition: &TopicPartition| {
            let topic = image.topic(&topic_partition.topic);
            topic.is_some()
        };
        let now = self.clock.now_ms();
        let shared_links = SharedLinks::among(self.working_dirs());
        let load = |dir: &Arc<LogDir>| {
            let options = LoadOptions {
                now,
                file_delete_delay_ms: node.topic_defaults.file_delete_delay_ms,
                threads,
                shared_links: &shared_links,
                config_of: &config_of,
                is_known: &is_known,
            };
            (dir.load(&options), dir.clone())
        };
        let working: Vec<_> = self.working_dirs().collect();
        let reports: Vec<_> = match working[..] {
            [only] => vec![load(only)],
            ref many => std::thread::scope(|scope| {
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
            let report = match report {
                Ok(report) => report,
                Err(source) => {
                    dir.fail(&with_causes(&source));
                    if self.working_dirs().next().is_none() {
                        let dir = dir.path().display().to_string();
                        return Err(PartitionsError::Load { dir, source });
                    }
                    continue;
                }
            };
            clean_stops.push(report.clean_stop);
            for loaded in report.partitions {
                self.add_found(dir.clone(), loaded);
            }
            self.set_aside.lock().add(report.set_aside);
            for deletion in report.deletions {
                self.delete_later(dir.clone(), deletion);
            }
        }
        self.note_dirs_of_before(image);
        if self.working_dirs().count() < self.log_dirs().len() {
            return Ok(None);
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
                let why = with_causes(&error);
                match error {
                    // It may be nobody's.
                    LogError::NoDirectory { .. } => tracing::warn!(%topic_partition, "{why}"),
                    _ => tracing::error!(%topic_partition, "cannot be opened: {why}"),
                }
                self.unopened.lock().add(topic_partition, log_dir, why);
            }
        }
    }

    /// Notes how many directories this broker had when it registered last, and whether it has one
    /// of them no more.
    fn note_dirs_of_before(&self, image: &MetadataImage) {
        let own = self.own_dirs();
        let before = image.broker(self.surroundings().this_broker);
        let before = before.map_or(&[][..], |known| &known.log_dirs);
        let is_missing = before.iter().any(|dir| !own.working.contains(dir));
        self.has_lost_dirs.store(is_missing, Ordering::Relaxed);
        self.had_several_dirs
            .store(before.len() > 1, Ordering::Relaxed);
    }

    pub(super) fn own_dirs(&self) -> OwnDirs {
        let is_some_offline = self.working_dirs().count() < self.log_dirs().len();
        let fresh = self.working_dirs().filter(|dir| dir.is_fresh());
        OwnDirs {
            working: self.working_dirs().filter_map(|dir| id_of(dir)).collect(),
            fresh: fresh.filter_map(|dir| id_of(dir)).collect(),
            is_some_missing: is_some_offline || self.has_lost_dirs.load(Ordering::Relaxed),
            is_some_offline,
        }
    }

    /// The directories that the broker may register with.
    pub fn online_directories(&self) -> Vec<DirectoryId> {
        self.working_dirs().filter_map(|dir| id_of(dir)).collect()
    }

    /// Those that do not work and whose id is known.
    pub fn offline_directories(&self) -> Vec<DirectoryId> {
        let dirs = self.log_dirs().iter();
        let offline = dirs.filter(|dir| dir.offline_reason().is_some());
        offline.filter_map(|dir| id_of(dir)).collect()
    }

    /// A log from disk, if it belongs to this topic and not to an older one of the same name.
    pub(super) fn claim(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        named: DirectoryId,
    ) -> Option<Found> {
        let (claimed, why) = self.found.claim(topic_partition, topic_id, named)?;
        let key = (topic_id, topic_partition.partition);
        self.waiting.lock().remove(&key);
        self.has_claimed.store(true, Ordering::Relaxed);
        self.forget_missing(topic_partition);
        // An older metadata may take an older topic's for its own.
        if self.is_registered.load(Ordering::SeqCst) {
            note_made(&claimed.log_dir, topic_partition, topic_id);
        }
        let cleared = self.make_way(topic_partition, Some((&claimed, why)));
        if let Err(error) = cleared.and_then(|()| self.set_aside_unopened(topic_partition)) {
            let error = with_causes(&error);
            tracing::error!(%topic_partition, "a second log of this name stays: {error}");
        }
        Some(claimed)
    }

    /// A log for a replica that has none. `None`: its log is in a directory that is not here, or is
    /// `lost`, or the metadata may be older than what is on disk.
    pub(super) fn create(
        &self,
        topic: &TopicImage,
        topic_partition: &TopicPartition,
        replica: Assigned,
        lost: Option<Lost>,
        config: &PartitionConfig,
    ) -> Result<Option<Found>, LogError> {
        // An older topic of this name would have the newer one's records make way.
        if !self.is_registered.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let key = (topic.id, topic_partition.partition);
        let place = replica_place::begin(replica, lost.is_some(), &self.own_dirs());
        let named = match place {
            Begin::In(named) => Some(named),
            Begin::Anywhere => None,
            Begin::Waits | Begin::IsLost => {
                if place == Begin::IsLost {
                    self.tell(key, DirectoryId::LOST);
                }
                let mut waiting = self.waiting.lock();
                let before = waiting.get(&key).copied();
                // What the metadata calls lost because this broker has said so stays that.
                let is_known = replica.directory == DirectoryId::LOST;
                let why = match lost {
                    None if before != Some(Waits::IsLost) || !is_known => Waits::ForDirectory,
                    _ => Waits::IsLost,
                };
                waiting.insert(key, why);
                drop(waiting);
                if let Some(lost) = lost.filter(|_| before != Some(why)) {
                    let registration = topic.partitions.get(topic_partition.partition);
                    let is_alone = registration.is_none_or(|it| it.replicas.len() == 1);
                    self.say_what_is_lost(topic_partition, &lost, is_alone);
                }
                return Ok(None);
            }
        };
        self.waiting.lock().remove(&key);
        self.make_way(topic_partition, None)?;
        self.set_aside_unopened(topic_partition)?;
        let wanted = self.moves.take_wanted(topic_partition);
        let in_named = || self.working_dirs().find(|dir| id_of(dir) == named);
        let log_dir = wanted.or_else(|| named.and_then(|_| in_named()).cloned());
        let may_differ = named.is_none();
        let made = self.make_log(topic.id, topic_partition, (log_dir, may_differ), config)?;
        self.forget_missing(topic_partition);
        Ok(Some(made))
    }

    /// An empty log in that directory, else in the emptiest. If it `may_differ`, the controller
    /// does not know the directory: nobody would hear that the replica is in one that has just
    /// failed, and so it is made in another.
    fn make_log(
        &self,
        topic_id: TopicId,
        topic_partition: &TopicPartition,
        (log_dir, may_differ): (Option<Arc<LogDir>>, bool),
        config: &PartitionConfig,
    ) -> Result<Found, LogError> {
        let mut others: Vec<Arc<LogDir>> = self.working_dirs().cloned().collect();
        others.retain(|dir| {
            log_dir
                .as_ref()
                .is_none_or(|first| !Arc::ptr_eq(dir, first))
        });
        others.sort_by_key(|dir| dir.log_count());
        let mut dirs = log_dir.into_iter().chain(others);
        let mut log_dir = dirs.next().unwrap_or_else(|| self.log_dirs()[0].clone());
        loop {
            let (name, now) = (topic_partition.clone(), self.clock.now_ms());
            match log_dir.create_log(name, topic_id, config.log.clone(), now) {
                Ok(log) => {
                    return Ok(Found {
                        log,
                        log_dir,
                        high_watermark: None,
                    });
                }
                Err(error) => {
                    let Some(next) = dirs.next().filter(|_| may_differ) else {
                        return Err(error);
                    };
                    let error = with_causes(&error);
                    tracing::warn!(%topic_partition, "made in another directory: {error}");
                    log_dir = next;
                }
            }
        }
    }

    /// Takes away what has the name of a partition and is not `own`, its log. Records that are not
    /// in that one are kept: that the metadata does not know them may be the metadata's loss.
    fn make_way(
        &self,
        topic_partition: &TopicPartition,
        own: Option<(&Found, Why)>,
    ) -> Result<(), LogError> {
        let log = own.map(|(own, _)| &own.log);
        for old in self.found.take_rest(topic_partition) {
            let (id, was) = (old.log.topic_id(), old.described());
            let what = match old.has_nothing_beside(log) {
                true => {
                    self.delete(&old.log_dir, topic_partition);
                    "it has no records of its own and is deleted".to_owned()
                }
                false => match old.log_dir.set_aside_log(topic_partition)? {
                    Some(path) => format!("its records are kept, set aside as {}", path.display()),
                    None => continue,
                },
            };
            let why = match own {
                Some((own, why)) => format!("{} is served: {}", own.described(), why.text()),
                None => "it is of another topic of that name".to_owned(),
            };
            let all = format!("{was}; {why}; {what}");
            tracing::warn!(%topic_partition, %id, "a log of this name makes way: {all}");
        }
        Ok(())
    }

    /// Tells the controller where a replica is, if the metadata has it elsewhere.
    pub(super) fn tell_place(&self, partition: &Partition, replica: Assigned) {
        let log_dir = partition.log_dir();
        let index = partition.topic_partition.partition;
        let Some(actual) = id_of(&log_dir).filter(|actual| *actual != replica.directory) else {
            self.surroundings()
                .assignments
                .forget(partition.topic_id, index);
            return;
        };
        // Where it is being moved to was told before it goes there.
        let is_target = self.move_target(partition) == Some(replica.directory);
        if log_dir.offline_reason().is_none()
            && !is_target
            && replica_place::is_to_be_told(replica, actual, &self.own_dirs())
        {
            self.tell((partition.topic_id, index), actual);
        }
    }

    pub(super) fn tell(&self, (topic_id, partition): (TopicId, i32), directory: DirectoryId) {
        if self.is_registered.load(Ordering::SeqCst) {
            self.surroundings().assignments.want(Assignment {
                topic_id,
                partition,
                directory,
            });
        }
    }

    /// How many replicas wait for a directory.
    pub(super) fn count_waiting(&self) -> usize {
        self.count_without_log().0
    }

    /// Replicas that are not served: whose directory is not here, and whose log is lost.
    pub fn count_without_log(&self) -> (usize, usize) {
        let waiting = self.waiting.lock();
        let waits = |why: &&Waits| **why == Waits::ForDirectory;
        let for_directory = waiting.values().filter(waits).count();
        (for_directory, waiting.len() - for_directory)
    }
}
