//! A log directory: one entry of `log.dirs`.
//!
//! ```text
//! .lock                              held while a process uses the directory
//! .kafka_cleanshutdown               {"version":0,"brokerEpoch":7}: the last stop was a clean one
//! meta.properties                    whose it is
//! recovery-point-offset-checkpoint   what is flushed; `checkpoint` has the format
//! log-start-offset-checkpoint        logs that start later than their first segment
//! replication-offset-checkpoint      high watermarks
//! cleaner-offset-checkpoint          up to where compacted logs are clean
//! .klamm_forgot_logs                 logs may be missing that no line names (`missing`)
//! klamm-made-logs                    of which topics the logs are (`made`)
//! <topic>-<partition>/               `names` has the rest, `future` those that are moved here
//! ```
//!
//! 1. The marker of a clean stop is written last, and removed, durably, before any log is opened.
//! 2. A checkpoint file that cannot be read is as good as none: recovery reads more.
//! 3. What is not known is left alone and does not stop the start.
//! 4. A log that cannot be opened or is not there keeps its lines in the checkpoints (`missing`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::host::disk::DirLock;
use crate::host::{Disk, in_parallel, random};
use crate::types::{Offset, TimestampMs, TopicId, TopicPartition};

use super::aside::SetAside;
use super::checkpoint;
use super::config::LogConfig;
use super::dir_core::DirCore;
use super::error::LogError;
use super::file_cache::FileCache;
use super::flush_many::{AT_ONCE, MANY, Purpose};
use super::links::SharedLinks;
use super::listing::Listing;
use super::log::{Deletion, Log};
use super::names;
use super::partition_dir::PartitionDir;
use super::partition_metadata;
use super::recovery::{self, Effort, Opening};

const LOCK: &str = ".lock";
pub(super) const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// Closing a log is waiting for the disk.
const CLOSE_THREADS: usize = 8;

/// Why a log directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogDirError {
    #[error(transparent)]
    Storage(#[from] LogError),
    #[error("{path} is locked by another process")]
    Locked { path: PathBuf },
    #[error("{path}: {reason}")]
    Meta { path: PathBuf, reason: &'static str },
}

/// What `LogDir::load` has to know.
pub struct LoadOptions<'a> {
    pub now: TimestampMs,
    /// `file.delete.delay.ms` of the node: as in Kafka it begins anew with the start.
    pub file_delete_delay_ms: i64,
    /// `num.recovery.threads.per.data.dir`
    pub threads: usize,
    /// `SharedLinks::among` the node's directories.
    pub shared_links: &'a SharedLinks,
    pub config_of: &'a (dyn Fn(&TopicPartition) -> Arc<LogConfig> + Sync),
    /// Whether that is its topic's configuration, and not the default of one that is not known.
    pub is_known: &'a (dyn Fn(&TopicPartition) -> bool + Sync),
}

/// What became of one partition directory.
pub struct Loaded {
    pub topic_partition: TopicPartition,
    /// It is to take the place of one in another directory.
    pub is_future: bool,
    pub log: Result<Arc<Log>, LogError>,
    /// From `replication-offset-checkpoint`.
    pub high_watermark: Option<Offset>,
    /// Bytes read for recovery; 0 after a clean stop.
    pub recovered_bytes: u64,
    /// Bytes cut off the end.
    pub truncated_bytes: u64,
}

/// What `LogDir::load` found.
pub struct LoadReport {
    /// The broker epoch of the last clean stop; `None` after a crash.
    pub clean_stop: Option<i64>,
    /// Those with a directory first, by name.
    pub partitions: Vec<Loaded>,
    /// What was deleted before and is to be removed: no start waits for that.
    pub deletions: Vec<Deletion>,
    /// Records that are in no log any more.
    pub set_aside: Vec<SetAside>,
    /// Entries that are no partition and were left alone.
    pub ignored: Vec<String>,
}

/// One entry of `log.dirs`, locked by this process.
pub struct LogDir {
    pub(super) core: Arc<DirCore>,
    /// `None`: it could not be used when it was opened.
    _lock: Option<Box<dyn DirLock>>,
    pub(super) id: OnceLock<Uuid>,
    /// It got its id from this process.
    pub(super) is_fresh: AtomicBool,
}

impl LogDir {
    /// Makes the directory if need be and takes its lock.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: &Path,
        files: Arc<FileCache>,
    ) -> Result<LogDir, LogDirError> {
        let core = DirCore::new(disk, files, path);
        if let Some(error) = LogError::no_directory(&*core.disk, path) {
            return Err(error.into());
        }
        // Who opens it says what is wrong, and goes on with one that is offline, or not.
        let failed = |operation| {
            let path = path.to_owned();
            move |source| LogError::Io {
                operation,
                path,
                source,
            }
        };
        core.disk.create_dir_all(path).map_err(failed("make"))?;
        let lock = match core.disk.lock(&path.join(LOCK)) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                let path = path.to_owned();
                return Err(LogDirError::Locked { path });
            }
            locked => locked.map_err(failed("lock"))?,
        };
        Ok(LogDir {
            core: Arc::new(core),
            _lock: Some(lock),
            id: OnceLock::new(),
            is_fresh: AtomicBool::new(false),
        })
    }

    /// One that cannot be used, and is named all the same where directories are described.
    pub fn unusable(
        disk: Arc<dyn Disk>,
        path: &Path,
        files: Arc<FileCache>,
        reason: &str,
    ) -> LogDir {
        let core = DirCore::new(disk, files, path);
        core.go_offline(reason.to_owned());
        LogDir {
            core: Arc::new(core),
            _lock: None,
            id: OnceLock::new(),
            is_fresh: AtomicBool::new(false),
        }
    }

    /// Takes it offline for what its user has met.
    pub fn fail(&self, reason: &str) {
        self.core.go_offline(reason.to_owned());
    }

    pub fn path(&self) -> &Path {
        &self.core.path
    }

    /// Opens every partition; after a crash recovers what was not flushed. `each` partition that
    /// cannot be opened is reported, and keeps nobody else from being served.
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<LoadReport, LogDirError> {
        let clean_stop = self.take_clean_stop()?;
        let recovery_points = self.read_checkpoint(checkpoint::RECOVERY_POINT)?;
        self.note_what_it_forgot(recovery_points.is_none());
        let read = |name| Ok::<_, LogError>(self.read_checkpoint(name)?.unwrap_or_default());
        let log_starts = read(checkpoint::LOG_START)?;
        let high_watermarks = read(checkpoint::REPLICATION)?;
        let clean_points = read(checkpoint::CLEANER)?;
        self.read_made();
        let due = TimestampMs(options.now.0.saturating_add(options.file_delete_delay_ms));
        let Listing {
            partitions,
            blocked,
            deletions,
            set_aside,
            ignored,
        } = Listing::read(&self.core, due)?;
        let are_made_up = recovery_points.is_none() && clean_stop.is_some();
        let recovery_points = match are_made_up {
            true => self.points_of_clean_stop(&partitions),
            false => recovery_points.unwrap_or_default(),
        };
        let at = |offsets: &checkpoint::Offsets, partition: &TopicPartition| {
            offsets.get(partition).copied()
        };
        let unopened = &self.core.unopened;
        unopened.store(partitions.len(), Ordering::Relaxed);
        let opened = in_parallel(options.threads, &partitions, |(partition, future_name)| {
            let opening = Opening {
                topic_id: TopicId::NONE,
                config: (options.config_of)(partition),
                now: options.now,
                is_clean: clean_stop.is_some(),
                was_cleaned: at(&clean_points, partition).is_some(),
                is_known: (options.is_known)(partition),
                recovery_point: at(&recovery_points, partition).unwrap_or(Offset::ZERO),
                log_start: at(&log_starts, partition).unwrap_or(Offset::ZERO),
            };
            let dir = self.partition_dir(partition.clone(), future_name.clone());
            let refused = options.shared_links.refuse(&dir.path());
            let opened = refused.and_then(|()| self.open_log(dir, opening));
            unopened.fetch_sub(1, Ordering::Relaxed);
            opened
        });
        let mut futures = self.core.futures.lock();
        let mut logs = self.core.logs.lock();
        let mut report = Vec::with_capacity(partitions.len());
        for ((topic_partition, future_name), opened) in partitions.into_iter().zip(opened) {
            let (log, effort) = match opened {
                Ok((log, effort)) => (Ok(Arc::new(log)), effort),
                Err(e) => (Err(e), Effort::default()),
            };
            if let Ok(log) = &log {
                let clean_point = at(&clean_points, &topic_partition);
                log.set_clean_point(clean_point.unwrap_or(Offset::NONE));
                let logs = match future_name {
                    Some(_) => &mut *futures,
                    None => &mut *logs,
                };
                logs.insert(topic_partition.clone(), Arc::clone(log));
            }
            report.push(Loaded {
                high_watermark: at(&high_watermarks, &topic_partition),
                topic_partition,
                is_future: future_name.is_some(),
                log,
                recovered_bytes: effort.recovered_bytes,
                truncated_bytes: effort.truncated_bytes,
            });
        }
        drop((futures, logs));
        report.extend(blocked.into_iter().filter_map(|p| self.blocked(p)));
        self.note_missing(&recovery_points, &log_starts)?;
        self.drop_stale_lines(&recovery_points, &log_starts)?;
        if are_made_up {
            // The marker of the clean stop is gone, and with it what they were made up from.
            self.core.write_recovery_points()?;
        }
        Ok(LoadReport {
            clean_stop,
            partitions: report,
            deletions,
            set_aside,
            ignored,
        })
    }

    fn blocked(&self, topic_partition: TopicPartition) -> Option<Loaded> {
        let path = self.core.path.join(topic_partition.to_string());
        let error = LogError::no_directory(&*self.core.disk, &path)?;
        Some(Loaded {
            topic_partition,
            is_future: false,
            log: Err(error),
            high_watermark: None,
            recovered_bytes: 0,
            truncated_bytes: 0,
        })
    }

    /// The broker epoch in the marker, which is gone afterwards.
    fn take_clean_stop(&self) -> Result<Option<i64>, LogError> {
        let path = self.core.path.join(CLEAN_SHUTDOWN);
        let Some(content) = self.core.read_if_there(&path)? else {
            return Ok(None);
        };
        self.core.remove_if_there(&path)?;
        self.core.sync_dir(&self.core.path)?;
        // An old Kafka leaves an empty marker; its epoch is not known.
        let json = serde_json::from_slice::<serde_json::Value>(&content).unwrap_or_default();
        Ok(Some(json["brokerEpoch"].as_i64().unwrap_or(-1)))
    }

    /// `None`: it is not there, or empty, or cannot be read.
    fn read_checkpoint(&self, name: &str) -> Result<Option<checkpoint::Offsets>, LogError> {
        let path = self.core.path.join(name);
        let Some(content) = self.core.read_if_there(&path)? else {
            return Ok(None);
        };
        let offsets = checkpoint::parse(&content);
        if offsets.is_none() && !content.is_empty() {
            tracing::warn!("{} cannot be read and is not used", path.display());
        }
        Ok(offsets)
    }

    fn open_log(&self, dir: PartitionDir, mut opening: Opening) -> Result<(Log, Effort), LogError> {
        let path = dir.file(names::PARTITION_METADATA);
        let content = self.core.read_if_there(&path)?;
        let topic_id = content.as_deref().and_then(partition_metadata::parse);
        let was_flushed = opening.recovery_point > Offset::ZERO;
        opening.topic_id = match topic_id {
            Some(topic_id) => topic_id,
            // Without it nobody can tell whether the records are those of today's topic.
            None if was_flushed => {
                let reason = match content {
                    Some(_) => "it is not \"version: 0\" and \"topic_id: ID\"",
                    None => "it is not there",
                };
                return Err(LogError::Corrupt {
                    path,
                    position: 0,
                    reason,
                });
            }
            // A power cut before the first flush leaves anything.
            None => TopicId::NONE,
        };
        recovery::open(dir, &opening)
    }

    pub(super) fn partition_dir(
        &self,
        topic_partition: TopicPartition,
        future_name: Option<String>,
    ) -> PartitionDir {
        PartitionDir::new(Arc::clone(&self.core), topic_partition, future_name)
    }

    /// A new, empty log; the one that is there if there is one. Its files are made by the first
    /// append, and durable with the first flush.
    pub fn create_log(
        &self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        now: TimestampMs,
    ) -> Result<Arc<Log>, LogError> {
        let dir = self.partition_dir(topic_partition, None);
        self.log_among(&self.core.logs, dir, topic_id, config, now)
    }

    /// The log of that partition among `logs`; else a new one in `dir`.
    pub(super) fn log_among(
        &self,
        logs: &Mutex<BTreeMap<TopicPartition, Arc<Log>>>,
        dir: PartitionDir,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        now: TimestampMs,
    ) -> Result<Arc<Log>, LogError> {
        let topic_partition = dir.topic_partition.clone();
        self.drop_lines_of(&topic_partition)?;
        let mut logs = logs.lock();
        if let Some(log) = logs.get(&topic_partition) {
            return Ok(Arc::clone(log));
        }
        let log = self.new_log(dir, topic_id, config, now)?;
        logs.insert(topic_partition, Arc::clone(&log));
        Ok(log)
    }

    pub(super) fn new_log(
        &self,
        dir: PartitionDir,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        now: TimestampMs,
    ) -> Result<Arc<Log>, LogError> {
        let topic_partition = dir.topic_partition.clone();
        let path = dir.path();
        if let Some(error) = LogError::no_directory(&*self.core.disk, &path) {
            return Err(error);
        }
        self.core.note_made(&topic_partition, topic_id)?;
        self.core
            .change("make", &path, || self.core.disk.create_dir_all(&path))?;
        self.core.has_new_names.store(true, Ordering::SeqCst);
        let text = partition_metadata::to_text(topic_id);
        self.core
            .write_file(&dir.file(names::PARTITION_METADATA), text.as_bytes())?;
        let opening = Opening {
            topic_id,
            config,
            now,
            is_clean: true,
            was_cleaned: false,
            is_known: true,
            recovery_point: Offset::ZERO,
            log_start: Offset::ZERO,
        };
        let (log, _) = recovery::open(dir, &opening)?;
        if self.core.has_stale_point(&topic_partition) {
            log.recovery_point_is_on_disk(Offset(i64::MAX));
        }
        log.mark_new();
        Ok(Arc::new(log))
    }

    pub fn log(&self, topic_partition: &TopicPartition) -> Option<Arc<Log>> {
        self.core.logs.lock().get(topic_partition).cloned()
    }

    /// By name.
    pub fn log_count(&self) -> usize {
        self.core.log_count()
    }

    pub fn logs(&self) -> Vec<Arc<Log>> {
        self.core.current_logs()
    }

    /// Takes a partition out (renamed to `-delete`); its files go when the deletion is run.
    pub fn delete_log(
        &self,
        topic_partition: &TopicPartition,
        now: TimestampMs,
    ) -> Result<Option<Deletion>, LogError> {
        let name = names::delete_dir(topic_partition, random::uuid());
        let taken = self.take_out(topic_partition, &name)?;
        Ok(taken.map(|(log, path)| Deletion {
            due: TimestampMs(now.0.saturating_add(log.config().file_delete_delay_ms)),
            paths: vec![path],
        }))
    }

    /// Takes a partition out whose records nobody has given up (renamed to `-stray`, as Kafka
    /// does): its files stay. Returns where they are.
    pub fn set_aside_log(
        &self,
        topic_partition: &TopicPartition,
    ) -> Result<Option<PathBuf>, LogError> {
        let name = names::stray_dir(topic_partition, random::uuid());
        let taken = self.take_out(topic_partition, &name)?;
        Ok(taken.map(|(_, path)| path))
    }

    fn take_out(
        &self,
        topic_partition: &TopicPartition,
        name: &str,
    ) -> Result<Option<(Arc<Log>, PathBuf)>, LogError> {
        let log = self.core.logs.lock().remove(topic_partition);
        let Some(log) = log else {
            return Ok(None);
        };
        let to = self.rename_out(&log, name)?;
        Ok(Some((log, to)))
    }

    /// Of a log that nobody finds any more; where its files are now.
    pub(super) fn rename_out(&self, log: &Log, name: &str) -> Result<PathBuf, LogError> {
        let topic_partition = log.topic_partition();
        self.core.add_stale_point(topic_partition.clone());
        self.core.forget_made(topic_partition, log.topic_id());
        let had_start = log.log_start_offset() > log.first_segment_offset();
        log.stop();
        let from = log.dir.path();
        let to = self.core.path.join(name);
        self.core
            .change("rename", &from, || self.core.disk.rename(&from, &to))?;
        log.forget_files();
        self.core.sync_dir(&self.core.path)?;
        if had_start {
            self.core.write_log_starts()?;
        }
        Ok(to)
    }

    /// What truncation took out since the last call.
    pub fn take_deletions(&self) -> Vec<Deletion> {
        std::mem::take(&mut *self.core.deletions.lock())
    }

    /// Removes what is out of the logs.
    pub fn remove(&self, deletion: &Deletion) -> Result<(), LogError> {
        for path in &deletion.paths {
            if path.extension().is_some_and(|e| e == "deleted") {
                self.core.remove_if_there(path)?;
            } else {
                self.core.remove_dir_if_there(path)?;
            }
        }
        Ok(())
    }

    /// `Log::checkpoint` of every log that has at least so many bytes which recovery would have to
    /// read, then `recovery-point-offset-checkpoint` and `log-start-offset-checkpoint`.
    pub fn checkpoint(&self, uncheckpointed_bytes_min: u64) -> Result<(), LogError> {
        self.checkpoint_as(uncheckpointed_bytes_min, MANY)
    }

    /// `many`: from how many logs on they are flushed at once.
    pub(super) fn checkpoint_as(&self, bytes_min: u64, many: usize) -> Result<(), LogError> {
        let logs = self.core.all_logs();
        let due: Vec<_> = logs
            .iter()
            .filter(|l| l.uncheckpointed_bytes() >= bytes_min.max(1))
            .collect();
        if due.len() >= many {
            for part in due.chunks(AT_ONCE) {
                let part = part.iter().map(|log| &***log);
                self.core.flush_many(part, Purpose::Checkpoint)?;
            }
        } else {
            for log in &due {
                match log.checkpoint() {
                    // Deleted meanwhile.
                    Err(LogError::Closed { .. }) => {}
                    result => result?,
                }
            }
        }
        self.core.write_recovery_points()?;
        self.core.write_log_starts()?;
        for log in due {
            log.remove_old_snapshots()?;
        }
        Ok(())
    }

    /// Only the file. Call it after truncating many logs, before they are appended to; else each
    /// one's next append does.
    pub fn write_recovery_points(&self) -> Result<(), LogError> {
        self.core.write_recovery_points()
    }

    /// Only the file: after DeleteRecords, whose answer promises that it holds.
    pub fn write_log_start_offsets(&self) -> Result<(), LogError> {
        self.core.write_log_starts()
    }

    /// `replication-offset-checkpoint`
    pub fn write_high_watermarks(
        &self,
        high_watermarks: &[(TopicPartition, Offset)],
    ) -> Result<(), LogError> {
        let text = checkpoint::to_text(high_watermarks.iter().map(|(p, o)| (p, *o)));
        let path = self.core.path.join(checkpoint::REPLICATION);
        self.core.replace(&path, text.as_bytes())
    }

    /// Why the directory is offline; `None` while it works.
    pub fn offline_reason(&self) -> Option<String> {
        self.core.offline_reason().map(str::to_owned)
    }

    /// Calls `then` when the directory goes offline.
    pub fn on_offline(&self, then: impl Fn() + Send + Sync + 'static) {
        self.core.on_offline(Box::new(then));
    }

    /// Clean stop: closes every log, writes the checkpoints and, last, the marker.
    pub fn close(&self, broker_epoch: i64) -> Result<(), LogError> {
        self.close_as(broker_epoch, MANY)
    }

    pub(super) fn close_as(&self, broker_epoch: i64, many: usize) -> Result<(), LogError> {
        let logs = self.core.all_logs();
        if logs.len() >= many {
            for part in logs.chunks(AT_ONCE) {
                let part = part.iter().map(|log| &**log);
                self.core.flush_many(part, Purpose::CleanStop)?;
            }
        } else {
            for result in in_parallel(CLOSE_THREADS, &logs, |log| log.close()) {
                match result {
                    // Another has taken its place.
                    Err(LogError::Closed { .. }) => {}
                    result => result?,
                }
            }
        }
        self.core.write_recovery_points()?;
        self.core.write_log_starts()?;
        for log in logs {
            log.remove_old_snapshots()?;
        }
        let marker = format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}");
        let path = self.core.path.join(CLEAN_SHUTDOWN);
        self.core.replace(&path, marker.as_bytes())
    }
}

impl Drop for LogDir {
    /// The logs hold on to what they share, and that to the logs.
    fn drop(&mut self) {
        self.core.logs.lock().clear();
        self.core.futures.lock().clear();
    }
}
