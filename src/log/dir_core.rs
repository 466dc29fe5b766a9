//! What the logs of one directory share: the disk, the file cache, and whether the directory works.
//!
//! A write, sync, rename or removal that fails takes the directory offline for good. What was in
//! memory may then be ahead of the disk, or the disk ahead of it; nobody uses either any more, so
//! there is no undo code, but for two cases that change nothing: an append for which there is no
//! space (`Log::append_run`), and a file that there is no space to replace ([`DirCore::replace`]).
//! The next start reads the files. A panic in the middle of a flush leaves the same doubt, and does
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use crate::host::{Disk, OpenMode, Stopwatch};
use crate::metrics::Times;
use crate::types::{Offset, TopicPartition};

use super::checkpoint;
use super::error::LogError;
use super::file_cache::FileCache;
use super::log::{Deletion, Log};
use super::made::MadeLogs;
use super::missing::Missing;
use super::room::Room;

pub(super) struct DirCore {
    pub disk: Arc<dyn Disk>,
    pub files: Arc<FileCache>,
    pub path: PathBuf,
    pub logs: Mutex<BTreeMap<TopicPartition, Arc<Log>>>,
    /// Logs that are to take the place of one in another directory. Their lines in the checkpoint
    /// files are as those of the others: no directory has both of one name. Taken before `logs`.
    pub futures: Mutex<BTreeMap<TopicPartition, Arc<Log>>>,
    pub missing: Mutex<BTreeMap<TopicPartition, Missing>>,
    /// There was no `recovery-point-offset-checkpoint`, or none that can be read, or one that was
    /// written since then (`missing::FORGOT`).
    pub points_unknown: AtomicBool,
    /// Partitions were made whose names are not durable.
    pub has_new_names: AtomicBool,
    /// Taken after `logs`.
    pub made: Mutex<MadeLogs>,
    /// Files that truncation took out.
    pub deletions: Mutex<Vec<Deletion>>,
    pub room: Room,
    pub flush_times: Times,
    /// Logs that the start has still to open.
    pub unopened: AtomicUsize,
    offline: OnceLock<String>,
    on_offline: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Deleted partitions that may still have a line in `recovery-point-offset-checkpoint`.
    /// The number tells one deletion from a later one of the same name.
    stale_points: Mutex<BTreeMap<TopicPartition, u64>>,
    deleted_count: AtomicU64,
    /// Held while a checkpoint file is gathered and written.
    checkpointing: Mutex<()>,
    /// Files that are being replaced: two at once would take the new file from each other.
    replacing: Mutex<BTreeSet<PathBuf>>,
    replaced: Condvar,
}

/// The right to replace one file.
struct ReplaceTurn<'a> {
    core: &'a DirCore,
    path: &'a Path,
}

impl Drop for ReplaceTurn<'_> {
    fn drop(&mut self) {
        self.core.replacing.lock().remove(self.path);
        self.core.replaced.notify_all();
    }
}

/// See [`DirCore::syncing`].
pub(super) struct Syncing<'a> {
    core: &'a DirCore,
}

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.go_offline("a flush has panicked".to_owned());
        }
    }
}

impl DirCore {
    pub fn new(disk: Arc<dyn Disk>, files: Arc<FileCache>, path: &Path) -> DirCore {
        DirCore {
            disk,
            files,
            path: path.to_owned(),
            logs: Mutex::new(BTreeMap::new()),
            futures: Mutex::default(),
            missing: Mutex::default(),
            points_unknown: AtomicBool::new(false),
            has_new_names: AtomicBool::new(false),
            made: Mutex::default(),
            deletions: Mutex::new(Vec::new()),
            room: Room::default(),
            flush_times: Times::default(),
            unopened: AtomicUsize::new(0),
            offline: OnceLock::new(),
            on_offline: OnceLock::new(),
            stale_points: Mutex::new(BTreeMap::new()),
            deleted_count: AtomicU64::new(0),
            checkpointing: Mutex::new(()),
            replacing: Mutex::default(),
            replaced: Condvar::new(),
        }
    }

    /// Runs a flush and notes how long it took, unless it failed.
    pub fn timed<T>(&self, flush: impl FnOnce() -> Result<T, LogError>) -> Result<T, LogError> {
        let watch = Stopwatch::start();
        let done = flush()?;
        self.flush_times.note(watch.elapsed());
        Ok(done)
    }

    pub fn check_online(&self) -> Result<(), LogError> {
        match self.offline.get() {
            None => Ok(()),
            Some(_) => Err(LogError::Offline {
                dir: self.path.clone(),
            }),
        }
    }

    pub fn offline_reason(&self) -> Option<&str> {
        self.offline.get().map(String::as_str)
    }

    /// Calls `then` when the directory goes offline. The first call counts.
    pub fn on_offline(&self, then: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_offline.set(then);
    }

    /// Makes an error of a failed read. The directory stays online: nothing was lost.
    pub fn read_failed(&self, path: &Path, source: io::Error) -> LogError {
        LogError::Io {
            operation: "read",
            path: path.to_owned(),
            source,
        }
    }

    /// Runs something that changes the disk; if it fails, the directory is offline.
    pub fn change<T>(
        &self,
        operation: &'static str,
        path: &Path,
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, LogError> {
        self.check_online()?;
        change().map_err(|source| {
            self.go_offline(format!("cannot {operation} {}: {source}", path.display()));
            LogError::Io {
                operation,
                path: path.to_owned(),
                source,
            }
        })
    }

    /// Only the first reason counts.
    pub fn go_offline(&self, reason: String) {
        let dir = self.path.display();
        tracing::error!("log directory {dir} goes offline: {reason}");
        if self.offline.set(reason).is_ok()
            && let Some(on_offline) = self.on_offline.get()
        {
            on_offline();
        }
    }

    /// To be held while what is noted as durable is not yet: a panic takes the directory offline.
    pub fn syncing(&self) -> Syncing<'_> {
        Syncing { core: self }
    }

    pub fn check_room(&self, bytes: u64) -> Result<(), LogError> {
        match self.room.take(&*self.disk, &self.path, bytes) {
            true => Ok(()),
            false => Err(self.full()),
        }
    }

    pub fn full(&self) -> LogError {
        LogError::Full {
            dir: self.path.clone(),
        }
    }

    /// Writes a file in one go, without making it durable.
    pub fn write_file(&self, path: &Path, content: &[u8]) -> Result<(), LogError> {
        self.change("write", path, || {
            let file = self.disk.open(path, OpenMode::Create)?;
            file.set_len(0)?;
            file.write_at(&mut [IoSlice::new(content)], 0)
        })
    }

    /// Replaces a file durably. Where there is no space for the new content the old one stays, and
    /// the directory is as it was.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<(), LogError> {
        let _turn = self.turn_to_replace(path);
        self.check_online()?;
        match self.disk.replace(path, content) {
            Err(source) if is_full(&source) => Err(LogError::Io {
                operation: "replace",
                path: path.to_owned(),
                source,
            }),
            replaced => self.change("replace", path, || replaced),
        }
    }

    fn turn_to_replace<'a>(&'a self, path: &'a Path) -> ReplaceTurn<'a> {
        let mut replacing = self.replacing.lock();
        while !replacing.insert(path.to_owned()) {
            self.replaced.wait(&mut replacing);
        }
        ReplaceTurn { core: self, path }
    }

    pub fn remove_if_there(&self, path: &Path) -> Result<(), LogError> {
        self.change("remove", path, || {
            absent_is_fine(self.disk.remove_file(path))
        })
    }

    pub fn remove_dir_if_there(&self, path: &Path) -> Result<(), LogError> {
        self.change("remove", path, || {
            absent_is_fine(self.disk.remove_dir_all(path))
        })
    }

    pub fn rename_if_there(&self, from: &Path, to: &Path) -> Result<(), LogError> {
        self.change("rename", from, || {
            absent_is_fine(self.disk.rename(from, to))
        })
    }

    pub fn sync_dir(&self, path: &Path) -> Result<(), LogError> {
        self.change("sync", path, || self.disk.sync_dir(path))
    }

    /// The content of a file; `None` if there is no such file.
    pub fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
        match self.disk.read(path) {
            Ok(content) => Ok(Some(content)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.read_failed(path, e)),
        }
    }

    /// Writes `recovery-point-offset-checkpoint`.
    ///
    /// A log must not be cut, nor a new one appended to, while a higher recovery point is on disk:
    /// after a crash it would pass for one that has lost records, or new, unflushed ones for
    /// flushed ones. So each log knows the highest value that may be on disk, and a cut or an
    /// append below it comes here first. The order of loads and stores (all sequentially
    /// consistent) makes that sound against a checkpoint that runs at the same time:
    ///
    /// 1. here: read the recovery point; raise `checkpointed` to it; read the recovery point again
    ///    and write the smaller of the two;
    /// 2. truncation: lower the recovery point; then read `checkpointed`.
    ///
    /// Either the truncation sees the raised value and waits for this lock, or the second read sees
    /// the lowered recovery point.
    pub fn write_recovery_points(&self) -> Result<(), LogError> {
        let _checkpointing = self.checkpointing.lock();
        self.sign_that_it_forgot()?;
        // What is deleted after this line may be written once more, and stays stale.
        let stale = self.stale_points.lock().clone();
        let logs = self.all_logs();
        let points: Vec<_> = logs.iter().map(|l| l.announce_recovery_point()).collect();
        let missing = self.lines_of_missing(|missing| Some(missing.recovery_point));
        let lines = logs.iter().zip(&points);
        let mut lines: Vec<_> = lines
            .map(|(l, point)| (l.topic_partition(), *point))
            .collect();
        lines.extend(missing.iter().map(|(name, point)| (name, *point)));
        let text = checkpoint::to_text(lines.into_iter());
        let path = self.path.join(checkpoint::RECOVERY_POINT);
        self.replace(&path, text.as_bytes())?;
        for (log, point) in logs.iter().zip(points) {
            log.recovery_point_is_on_disk(point);
        }
        let mut still_stale = self.stale_points.lock();
        still_stale.retain(|partition, number| stale.get(partition) != Some(number));
        Ok(())
    }

    /// A new log of that name must not be appended to before its line is right.
    pub fn has_stale_point(&self, topic_partition: &TopicPartition) -> bool {
        self.stale_points.lock().contains_key(topic_partition)
    }

    pub fn has_stale_points(&self) -> bool {
        !self.stale_points.lock().is_empty()
    }

    pub fn add_stale_point(&self, topic_partition: TopicPartition) {
        let number = self.deleted_count.fetch_add(1, Ordering::Relaxed);
        self.stale_points.lock().insert(topic_partition, number);
    }

    pub fn write_log_starts(&self) -> Result<(), LogError> {
        let _checkpointing = self.checkpointing.lock();
        let logs = self.all_logs();
        // As Kafka: only logs that start later than their first segment need a line.
        let missing = self.lines_of_missing(|missing| missing.log_start);
        let mut lines: Vec<_> = logs
            .iter()
            .filter(|l| l.log_start_offset() > l.first_segment_offset())
            .map(|l| (l.topic_partition(), l.log_start_offset()))
            .collect();
        lines.extend(missing.iter().map(|(name, start)| (name, *start)));
        let text = checkpoint::to_text(lines.into_iter());
        self.replace(&self.path.join(checkpoint::LOG_START), text.as_bytes())
    }

    /// Writes `cleaner-offset-checkpoint`: up to where each compacted log is clean.
    pub fn write_clean_points(&self) -> Result<(), LogError> {
        let _checkpointing = self.checkpointing.lock();
        let logs = self.all_logs();
        let lines: Vec<_> = logs
            .iter()
            .map(|l| (l.topic_partition(), l.clean_point()))
            .filter(|(_, point)| *point > Offset::NONE)
            .collect();
        let text = checkpoint::to_text(lines.into_iter());
        self.replace(&self.path.join(checkpoint::CLEANER), text.as_bytes())
    }

    pub fn log_count(&self) -> usize {
        self.logs.lock().len()
    }

    pub fn current_logs(&self) -> Vec<Arc<Log>> {
        self.logs.lock().values().cloned().collect()
    }

    /// The future ones too.
    pub fn all_logs(&self) -> Vec<Arc<Log>> {
        let futures = self.futures.lock();
        let logs = self.logs.lock();
        logs.values().chain(futures.values()).cloned().collect()
    }

    /// Whether a line in a checkpoint file is of a log that is here.
    pub fn has_log(&self, topic_partition: &TopicPartition) -> bool {
        self.futures.lock().contains_key(topic_partition)
            || self.logs.lock().contains_key(topic_partition)
    }

    /// The future log of this name is the current one from now on.
    pub fn make_current(&self, topic_partition: &TopicPartition) {
        let mut futures = self.futures.lock();
        if let Some(log) = futures.remove(topic_partition) {
            self.logs.lock().insert(topic_partition.clone(), log);
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    kinds.contains(&error.kind())
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
