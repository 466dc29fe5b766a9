//! Replicas that are moved to another directory of this broker (AlterReplicaLogDirs).
//!
//! ```text
//! asked for --> copied, part by part --> takes the place --> the old log is deleted
//!                     |
//!                     |--> given up: another directory is asked for, or the replica goes
//!                     '--> ends: a directory has failed; the next start goes on
//! ```
//!
//! 1. A replica has one move at most. `changing` is held while one is begun or given up.
//! 2. One thread at a time works at a move, a part of it. Who gives the move up waits for the end
//!    of that part, and what it finds then is either a move or a moved replica.
//! 3. All that there is to know of a move is in the directories: a future log that is found at the
//!    start is one to go on with.
//! 4. When the replica's new log takes the place, what recovery needs of it is on disk: all but the
//!    last records, its checkpoints, its log start offset, its high watermark.
//! 5. Before that the metadata names the new place: whoever starts without that directory knows
//!    that records are missing.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::found::{Found, FoundLogs};
use super::leader::Partition;
use super::places::id_of;
use super::registry::Partitions;
use crate::log::{AppendError, Log, LogDir, LogError, MoveError};
use crate::metadata::DirectoryId;
use crate::types::{Offset, TopicPartition, with_causes};

/// What is copied before another move has its turn.
const PART_BYTES: u32 = 1 << 20;
/// After what may go away by itself.
const RETRY: Duration = Duration::from_secs(1);
/// The rate may be altered while it is waited for.
const THROTTLED_MAX: Duration = Duration::from_secs(1);
/// Directories for partitions that do not exist are remembered for so many.
const WANTED_MAX: usize = 100_000;

#[derive(Default)]
pub(super) struct Moves {
    changing: Mutex<()>,
    by_name: Mutex<HashMap<TopicPartition, Arc<Move>>>,
    /// Those that nobody works at, and when they may be worked at.
    waiting: Mutex<VecDeque<(Duration, Arc<Move>)>>,
    /// Where partitions are to be made that do not exist yet.
    wanted: Mutex<HashMap<TopicPartition, Arc<LogDir>>>,
    /// Future logs that were found at the start.
    pub found: FoundLogs,
    news: watch::Sender<()>,
}

struct Move {
    partition: Arc<Partition>,
    to: Arc<LogDir>,
    future: Arc<Log>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    is_over: bool,
    /// The log start offset with which everything was written that recovery needs.
    written_with: Option<Offset>,
    has_complained: bool,
}

enum Next {
    Go,
    Retry,
    /// For the metadata to name the new place ([`Moves::wake`]).
    Wait,
    Over,
}

/// Why a replica cannot go to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogDirRefused {
    #[error("it is not one of log.dirs")]
    Unknown,
    #[error("it is offline")]
    Offline,
}

/// Why a move was not begun.
#[derive(Debug, thiserror::Error)]
pub enum MoveRefused {
    #[error("the replica is not here any more")]
    Gone,
    #[error(transparent)]
    Storage(#[from] LogError),
}

impl Moves {
    /// The directory that was asked for before the partition existed, if it works.
    pub fn take_wanted(&self, topic_partition: &TopicPartition) -> Option<Arc<LogDir>> {
        let wanted = self.wanted.lock().remove(topic_partition)?;
        wanted.offline_reason().is_none().then_some(wanted)
    }

    fn begin(&self, partition: &Arc<Partition>, to: &Arc<LogDir>, future: Arc<Log>) {
        let topic_partition = partition.topic_partition.clone();
        tracing::info!(%topic_partition, to = %to.path().display(), "is being moved");
        let begun = Arc::new(Move {
            partition: partition.clone(),
            to: to.clone(),
            future,
            progress: Mutex::default(),
        });
        self.by_name.lock().insert(topic_partition, begun.clone());
        self.waiting.lock().push_back((Duration::ZERO, begun));
        self.news.send_replace(());
    }

    fn get(&self, topic_partition: &TopicPartition) -> Option<Arc<Move>> {
        self.by_name.lock().get(topic_partition).cloned()
    }

    fn forget(&self, over: &Arc<Move>) {
        let mut by_name = self.by_name.lock();
        let name = &over.partition.topic_partition;
        if by_name
            .get(name)
            .is_some_and(|known| Arc::ptr_eq(known, over))
        {
            by_name.remove(name);
        }
    }

    /// The metadata has changed for a replica that is being moved.
    fn wake(&self, topic_partition: &TopicPartition) {
        let mut waiting = self.waiting.lock();
        let is_of = |moving: &Move| moving.partition.topic_partition == *topic_partition;
        for (at, _) in waiting.iter_mut().filter(|(_, moving)| is_of(moving)) {
            *at = Duration::ZERO;
        }
        self.news.send_replace(());
    }

    /// One to work at now; else how long there is none.
    fn next(&self, now: Duration) -> Result<Arc<Move>, Option<Duration>> {
        let mut waiting = self.waiting.lock();
        let due = waiting.iter().position(|(at, _)| *at <= now);
        match due.and_then(|due| waiting.remove(due)) {
            Some((_, next)) => Ok(next),
            None => Err(waiting.iter().map(|(at, _)| *at - now).min()),
        }
    }
}

impl Partitions {
    /// The directory of this path, as `log.dirs` has it.
    pub fn working_dir(&self, path: &str) -> Result<Arc<LogDir>, LogDirRefused> {
        let mut dirs = self.log_dirs().iter();
        let found = dirs.find(|dir| dir.path().as_os_str() == Path::new(path).as_os_str());
        let dir = found.ok_or(LogDirRefused::Unknown)?;
        match dir.offline_reason() {
            None => Ok(dir.clone()),
            Some(_) => Err(LogDirRefused::Offline),
        }
    }

    /// Has a partition that is not here yet made in this directory.
    pub fn place_in(&self, topic_partition: TopicPartition, dir: Arc<LogDir>) {
        let mut wanted = self.moves.wanted.lock();
        if wanted.len() < WANTED_MAX || wanted.contains_key(&topic_partition) {
            wanted.insert(topic_partition, dir);
        }
    }

    /// Moves a replica to another directory, or leaves it where it is, in place of what was asked
    /// for before.
    pub fn move_replica(
        &self,
        partition: &Arc<Partition>,
        to: &Arc<LogDir>,
    ) -> Result<(), MoveRefused> {
        let _changing = self.moves.changing.lock();
        let topic_partition = &partition.topic_partition;
        let known = self.get(partition.topic_id, topic_partition.partition);
        if !known.is_some_and(|known| Arc::ptr_eq(&known, partition)) {
            return Err(MoveRefused::Gone);
        }
        if let Some(moving) = self.moves.get(topic_partition) {
            if Arc::ptr_eq(&moving.to, to) {
                return Ok(());
            }
            self.give_up(&moving);
        }
        let from = partition.log_dir();
        if from.offline_reason().is_some() {
            let dir = from.path().to_owned();
            return Err(LogError::Offline { dir }.into());
        }
        if Arc::ptr_eq(&from, to) {
            return Ok(());
        }
        let config = partition.log().config();
        let now = self.clock.now_ms();
        let name = topic_partition.clone();
        let future = to.create_future_log(name, partition.topic_id, config, now)?;
        self.moves.begin(partition, to, future);
        Ok(())
    }

    /// The replica goes: nothing of it is to be moved any more.
    pub(super) fn give_up_move(&self, partition: &Partition) {
        let _changing = self.moves.changing.lock();
        if let Some(moving) = self.moves.get(&partition.topic_partition)
            && std::ptr::eq(&*moving.partition, partition)
        {
            self.give_up(&moving);
        }
        // What a move has copied that ended because a directory failed.
        let works = |dir: &&Arc<LogDir>| dir.offline_reason().is_none();
        for dir in self.log_dirs().iter().filter(works) {
            self.delete_future(dir, &partition.topic_partition);
        }
    }

    fn give_up(&self, moving: &Arc<Move>) {
        self.moves.forget(moving);
        let mut progress = moving.progress.lock();
        if std::mem::replace(&mut progress.is_over, true) {
            return;
        }
        let topic_partition = &moving.partition.topic_partition;
        tracing::info!(%topic_partition, to = %moving.to.path().display(), "the move is given up");
        self.delete_future(&moving.to, topic_partition);
        self.tell_old_place(&moving.partition);
    }

    fn delete_future(&self, dir: &Arc<LogDir>, topic_partition: &TopicPartition) {
        match dir.delete_future_log(topic_partition, self.clock.now_ms()) {
            Ok(Some(deletion)) => self.delete_later(dir.clone(), deletion),
            Ok(None) => {}
            Err(error) => tracing::error!(%topic_partition, "cannot be deleted: {error}"),
        }
    }

    /// Goes on with a move of the last run; `is_new`: the partition had no log.
    pub(super) fn resume_move(&self, partition: &Arc<Partition>, is_new: bool) {
        let topic_partition = &partition.topic_partition;
        for Found { log, log_dir, .. } in self.moves.found.take_rest(topic_partition) {
            let is_own = log.topic_id() == partition.topic_id;
            let is_elsewhere = !Arc::ptr_eq(&log_dir, &partition.log_dir());
            let is_first = self.moves.get(topic_partition).is_none();
            if is_own && is_elsewhere && is_first && !is_new {
                if let Err(error) = self.make_part_of(&log, &partition.log()) {
                    tracing::error!(%topic_partition, "a move does not go on: {error}");
                    continue;
                }
                self.moves.begin(partition, &log_dir, log);
            } else if is_own && is_new && log.log_end_offset() > Offset::ZERO {
                // The log that it was copied from is gone: nobody has given up these records.
                match log_dir.set_aside_future_log(topic_partition) {
                    Ok(path) => tracing::warn!(%topic_partition, ?path, "records are set aside"),
                    Err(error) => tracing::error!(%topic_partition, "not set aside: {error}"),
                }
            } else {
                self.delete_future(&log_dir, topic_partition);
            }
        }
    }

    /// A crash may have taken records from the log to move that were copied before.
    fn make_part_of(&self, future: &Log, current: &Log) -> Result<(), LogError> {
        if future.is_part_of(current) {
            return Ok(());
        }
        let start = current.log_start_offset();
        future.truncate_fully_and_start_at(start, self.clock.now_ms())
    }

    /// Tells when there is a move to work at.
    pub fn moves_begun(&self) -> watch::Receiver<()> {
        self.moves.news.subscribe()
    }

    /// Works at one of the moves. Blocks on the disk. How long to rest then; `None`: until there is
    /// news.
    pub fn move_on(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let moving = match self.moves.next(now) {
            Ok(moving) => moving,
            Err(rest) => return rest,
        };
        let throttle = &self.surroundings().throttles.alter_log_dirs;
        if let Some(wait) = throttle.wait(now) {
            self.moves.waiting.lock().push_front((now, moving));
            return Some(wait.min(THROTTLED_MAX));
        }
        let next = self.work_at(&moving);
        let retry_at = match next {
            Next::Go => now,
            Next::Retry | Next::Wait => now + RETRY,
            Next::Over => {
                self.moves.forget(&moving);
                return Some(Duration::ZERO);
            }
        };
        let waiting = &self.moves.waiting;
        waiting.lock().push_back((retry_at, moving.clone()));
        // It may have been named before it was here to be woken.
        if matches!(next, Next::Wait) && self.is_named(&moving) {
            self.moves.wake(&moving.partition.topic_partition);
        }
        Some(Duration::ZERO)
    }

    fn work_at(&self, moving: &Arc<Move>) -> Next {
        let mut progress = moving.progress.lock();
        if progress.is_over {
            return Next::Over;
        }
        let error = match self.copy_part(moving, &mut progress) {
            Ok(Next::Over) => {
                progress.is_over = true;
                return Next::Over;
            }
            Ok(next) => {
                progress.has_complained = false;
                return next;
            }
            Err(error) => error,
        };
        let topic_partition = &moving.partition.topic_partition;
        let to = moving.to.path().display();
        let is_stuck = match &error {
            MoveError::Future(AppendError::Storage(error)) | MoveError::Current(error) => {
                matches!(error, LogError::Closed { .. } | LogError::Offline { .. })
            }
            _ => false,
        };
        if is_stuck || moving.to.offline_reason().is_some() {
            tracing::error!(%topic_partition, %to, "not moved: {}", with_causes(&error));
            progress.is_over = true;
            self.tell_old_place(&moving.partition);
            return Next::Over;
        }
        if !std::mem::replace(&mut progress.has_complained, true) {
            let error = with_causes(&error);
            tracing::warn!(%topic_partition, %to, "not moved on, tried again: {error}");
        }
        Next::Retry
    }

    fn copy_part(&self, moving: &Move, progress: &mut Progress) -> Result<Next, MoveError> {
        let Move {
            partition, future, ..
        } = moving;
        let now = self.clock.now_ms();
        let copied = future.copy_from(&partition.log(), PART_BYTES, now)?;
        let surroundings = self.surroundings();
        let throttle = &surroundings.throttles.alter_log_dirs;
        throttle.take(copied.bytes, self.clock.monotonic());
        if copied.rolled {
            // Nobody listens any more when the node stops, which flushes everything.
            let _ = surroundings.rolled.send(future.clone());
        }
        if !copied.is_close {
            return Ok(Next::Go);
        }
        let start = future.log_start_offset();
        if progress.written_with != Some(start) {
            self.write_what_recovery_needs(moving)?;
            progress.written_with = Some(start);
            // Records have come meanwhile.
            return Ok(Next::Go);
        }
        let from = partition.log_dir();
        if !self.is_named(moving) {
            self.tell_new_place(moving);
            return Ok(Next::Wait);
        }
        if !partition.move_to(future, &moving.to, now)? {
            return Ok(Next::Go);
        }
        self.clear_old_place(moving, &from);
        Ok(Next::Over)
    }

    /// Whether the metadata names the new place.
    fn is_named(&self, moving: &Move) -> bool {
        let to = id_of(&moving.to);
        to.is_none_or(|to| moving.partition.leadership().directory == to)
    }

    fn tell_new_place(&self, moving: &Move) {
        let partition = &moving.partition;
        let key = (partition.topic_id, partition.topic_partition.partition);
        if let Some(to) = id_of(&moving.to) {
            self.tell(key, to);
        }
    }

    /// The directory that a replica is being moved to.
    pub(super) fn move_target(&self, partition: &Partition) -> Option<DirectoryId> {
        let moving = self.moves.get(&partition.topic_partition)?;
        let is_of = std::ptr::eq(&*moving.partition, partition);
        is_of.then(|| id_of(&moving.to)).flatten()
    }

    pub(super) fn wake_move(&self, partition: &Partition) {
        if self.moves.get(&partition.topic_partition).is_some() {
            self.moves.wake(&partition.topic_partition);
        }
    }

    /// The metadata may name the place that a replica did not reach.
    fn tell_old_place(&self, partition: &Partition) {
        let Some(actual) = id_of(&partition.log_dir()) else {
            return;
        };
        if partition.leadership().directory != actual {
            let key = (partition.topic_id, partition.topic_partition.partition);
            self.tell(key, actual);
        }
    }

    fn write_what_recovery_needs(&self, moving: &Move) -> Result<(), LogError> {
        moving.future.checkpoint()?;
        moving.to.write_recovery_points()?;
        moving.to.write_log_start_offsets()?;
        self.write_high_watermarks(&moving.to)
    }

    /// Deletes the old log once the new one would survive a power cut.
    fn clear_old_place(&self, moving: &Move, from: &Arc<LogDir>) {
        let topic_partition = &moving.partition.topic_partition;
        let flushed = moving.future.checkpoint();
        match flushed.and_then(|()| moving.to.write_recovery_points()) {
            Ok(()) => {
                self.delete(from, topic_partition);
                let to = moving.to.path().display();
                tracing::info!(%topic_partition, from = %from.path().display(), %to, "moved");
            }
            Err(error) => {
                let error = with_causes(&error);
                tracing::error!(%topic_partition, "moved, and the old log stays: {error}");
            }
        }
    }

    /// Writes `replication-offset-checkpoint` of a directory. Replicas that are being moved there
    /// are in it too, for the moment when they are there.
    pub fn write_high_watermarks(&self, dir: &Arc<LogDir>) -> Result<(), LogError> {
        let moving = self.moves.by_name.lock().clone();
        let is_here = |partition: &Arc<Partition>| {
            let moving = moving.get(&partition.topic_partition);
            Arc::ptr_eq(&partition.log_dir(), dir)
                || moving.is_some_and(|moving| Arc::ptr_eq(&moving.to, dir))
        };
        let all = self.all();
        let here = all.iter().filter(|partition| is_here(partition));
        let high_watermarks: Vec<_> = here
            .map(|partition| {
                let topic_partition = partition.topic_partition.clone();
                (topic_partition, partition.high_watermark())
            })
            .filter(|(_, high_watermark)| *high_watermark > Offset::ZERO)
            .collect();
        dir.write_high_watermarks(&high_watermarks)
    }
}
