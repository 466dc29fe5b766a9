//! A replica that moves to another directory of this broker. Its log there, the future log, follows
//! the current one until it can take its place.
//!
//! ```text
//! A/t-0            A/t-0  current         A/t-0  closed       A/t-0.<id>-delete
//! B/t-0.<id>-future   copy_from    ->    B/t-0  current  ->  B/t-0
//!                                 Replacing::finish        LogDir::delete_log
//! ```
//!
//! 1. The future log is a beginning of the current one, or is cut to be one before anything is
//!    appended to it: leader epochs tell, as between a follower and its leader.
//! 2. It takes the place under the locks of both writers, when it has all that the other has: what
//!    is appended goes to the one or to the other. Nothing waits for the disk there.
//! 3. Its log start offset is then the other's, and so on disk since before. It may be larger: what
//!    a crash took back in the other's directory was deleted all the same.
//!
//! What a crash leaves:
//!
//! 1. Before the rename to the plain name: the current log as ever, and a part of it beside it.
//!    Copying goes on at the next start.
//! 2. After the rename, before the old log is taken out: two logs of one name. The new one has all
//!    that the old one has, and perhaps more (`partition::found`).
//! 3. A power cut may undo the rename until the new log is flushed, which syncs its directory's
//!    parent; the old one is taken out after that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::MutexGuard;

use crate::host::random;
use crate::record::{Batch, BatchError, Batches, HEADER_BYTES};
use crate::types::{Offset, TimestampMs, TopicId, TopicPartition};

use super::config::LogConfig;
use super::error::{AppendError, LogError, ReadError};
use super::log::{Deletion, Log, LogSlice};
use super::log_dir::LogDir;
use super::names;

/// What is copied while nobody can append, so at most.
const LAST_BYTES_MAX: u32 = 256 << 10;
/// A flush of the future log is waited for so long: it may be one of many logs at once.
const FLUSHING_WAIT: Duration = Duration::from_millis(100);

/// Why a replica is not moved on.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("the log to move: {0}")]
    Current(#[source] LogError),
    #[error("records at offset {offset} of the log to move are damaged: {reason}")]
    Damaged { offset: Offset, reason: String },
    #[error("the log in its new place: {0}")]
    Future(#[from] AppendError),
}

impl From<LogError> for MoveError {
    fn from(error: LogError) -> MoveError {
        MoveError::Future(error.into())
    }
}

/// What a call of [`Log::copy_from`] has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    pub bytes: u64,
    /// A new segment was begun.
    pub rolled: bool,
    /// So near to the end that it may try to take the place.
    pub is_close: bool,
}

impl LogDir {
    /// A log that is to take the place of one in another directory; the one that is there if there
    /// is one.
    pub fn create_future_log(
        &self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        now: TimestampMs,
    ) -> Result<Arc<Log>, LogError> {
        let name = names::future_dir(&topic_partition, random::uuid());
        let dir = self.partition_dir(topic_partition, Some(name));
        self.log_among(&self.core.futures, dir, topic_id, config, now)
    }

    /// By name.
    pub fn future_logs(&self) -> Vec<Arc<Log>> {
        self.core.futures.lock().values().cloned().collect()
    }

    /// Takes a future log out whose records nobody has given up (renamed to `-stray`).
    pub fn set_aside_future_log(
        &self,
        topic_partition: &TopicPartition,
    ) -> Result<Option<PathBuf>, LogError> {
        let name = names::stray_dir(topic_partition, random::uuid());
        let log = self.core.futures.lock().remove(topic_partition);
        log.map(|log| self.rename_out(&log, &name)).transpose()
    }

    /// Gives a future log up; its files go when the deletion is run.
    pub fn delete_future_log(
        &self,
        topic_partition: &TopicPartition,
        now: TimestampMs,
    ) -> Result<Option<Deletion>, LogError> {
        let log = self.core.futures.lock().remove(topic_partition);
        let Some(log) = log else {
            return Ok(None);
        };
        let name = names::delete_dir(topic_partition, random::uuid());
        let path = self.rename_out(&log, &name)?;
        Ok(Some(Deletion {
            due: TimestampMs(now.0.saturating_add(log.config().file_delete_delay_ms)),
            paths: vec![path],
        }))
    }
}

impl Log {
    /// Copies about `bytes_max` from `current`, after it was made a beginning of it.
    pub fn copy_from(
        &self,
        current: &Log,
        bytes_max: u32,
        now: TimestampMs,
    ) -> Result<Copied, MoveError> {
        self.update_config(current.config());
        while !self.is_beginning_of(current) {
            self.cut_towards(current, now)?;
        }
        let start = current.log_start_offset();
        if self.log_end_offset() < start {
            self.truncate_fully_and_start_at(start, now)?;
        }
        let copied = self.copy_batches(current, bytes_max, true, now)?;
        self.advance_log_start_offset(start.min(self.log_end_offset()))?;
        Ok(copied)
    }

    /// Whether all that is in this log is in `other` too. Epochs alone do not tell: a leader that
    /// lost its log may have gone on in the same epoch.
    pub fn is_part_of(&self, other: &Log) -> bool {
        let end = self.log_end_offset();
        self.log_start_offset() == end || self.is_beginning_of(other) && self.ends_within(other)
    }

    /// Whether `other` has all that is in this log, and more. An empty log that begins with an
    /// epoch was begun in that one: an older log is not its continuation.
    pub fn goes_on_in(&self, other: &Log) -> bool {
        let end = self.log_end_offset();
        let is_empty = self.log_start_offset() == end;
        end < other.log_end_offset()
            && self.is_beginning_of(other)
            && (is_empty || self.ends_within(other))
    }

    fn ends_within(&self, other: &Log) -> bool {
        let last = self.log_end_offset().plus(-1);
        let own = self.header_at(last);
        own.is_some() && own == other.header_at(last)
    }

    /// Of the batch that holds `offset`; its checksum stands for the records.
    fn header_at(&self, offset: Offset) -> Option<[u8; HEADER_BYTES]> {
        let slice = self.read(offset, 1, self.log_end_offset(), true).ok()?;
        let mut header = [0; HEADER_BYTES];
        let read_bytes = slice.file?.read_at(&mut header, slice.position).ok()?;
        (read_bytes == HEADER_BYTES).then_some(header)
    }

    /// As a leader tells of a follower's log.
    fn is_beginning_of(&self, current: &Log) -> bool {
        let end = self.log_end_offset();
        match self.latest_epoch() {
            None => end <= current.log_end_offset(),
            Some(epoch) => current
                .end_offset_for_epoch(epoch)
                .is_some_and(|(same, its_end)| same == epoch && end <= its_end),
        }
    }

    /// Cuts off what `current` does not have, or a part of it.
    fn cut_towards(&self, current: &Log, now: TimestampMs) -> Result<(), LogError> {
        let before = (self.latest_epoch(), self.log_end_offset());
        let theirs = match self.latest_epoch() {
            None => Some((None, current.log_end_offset())),
            Some(epoch) => current
                .end_offset_for_epoch(epoch)
                .map(|(common, end)| (Some(common), end)),
        };
        if let Some((common, end)) = theirs {
            let own = common.and_then(|common| self.end_offset_for_epoch(common));
            let cut = own.map_or(end, |(_, own_end)| own_end.min(end));
            tracing::info!(
                topic_partition = %self.topic_partition(),
                "its log in the new place is cut from {} to {cut}", before.1
            );
            self.truncate_to(cut, now)?;
        }
        if before == (self.latest_epoch(), self.log_end_offset()) {
            self.truncate_fully_and_start_at(current.log_start_offset(), now)?;
        }
        Ok(())
    }

    fn copy_batches(
        &self,
        current: &Log,
        bytes_max: u32,
        may_cut: bool,
        now: TimestampMs,
    ) -> Result<Copied, MoveError> {
        let (from, up_to) = (self.log_end_offset(), current.log_end_offset());
        if from >= up_to {
            let is_close = true;
            return Ok(Copied {
                is_close,
                ..Copied::default()
            });
        }
        let slice = match current.read(from, bytes_max, up_to, true) {
            Ok(slice) => slice,
            // Cut, or its start has moved, meanwhile.
            Err(ReadError::OffsetOutOfRange { .. }) => return Ok(Copied::default()),
            Err(ReadError::Storage(error)) => return Err(MoveError::Current(error)),
        };
        let is_active = slice.segment_base_offset == current.view.lock().active().base_offset;
        let batches = self.batches_of(slice, from, current)?;
        let Some(first) = batches.first().map(|batch| batch.header.base_offset) else {
            return Ok(Copied::default());
        };
        if first < from && !may_cut {
            return Ok(Copied::default());
        }
        if first < from {
            // The start lies inside a batch, or this log's end does.
            match self.log_start_offset() == from {
                true => self.truncate_fully_and_start_at(first, now)?,
                false => drop(self.truncate_to(first, now)?),
            }
        }
        let appended = self.append_as_follower(&batches, now)?;
        let bytes = batches.iter().map(|batch| batch.size_bytes() as u64).sum();
        Ok(Copied {
            bytes,
            rolled: appended.rolled,
            // Less than was asked for: that was the end but for what came meanwhile.
            is_close: is_active && bytes < u64::from(LAST_BYTES_MAX),
        })
    }

    /// The whole batches of a slice.
    fn batches_of(
        &self,
        slice: LogSlice,
        from: Offset,
        current: &Log,
    ) -> Result<Vec<Batch>, MoveError> {
        let Some(file) = &slice.file else {
            return Ok(Vec::new());
        };
        let mut buffer = BytesMut::zeroed(slice.len as usize);
        let read = file.read_at(&mut buffer, slice.position);
        let read_bytes = read.map_err(|error| {
            let path = current.dir.path();
            MoveError::Current(current.dir.core.read_failed(&path, error))
        })?;
        buffer.truncate(read_bytes);
        whole_batches(buffer.freeze()).map_err(|reason| MoveError::Damaged {
            offset: from,
            reason,
        })
    }

    /// Gets ready to put this log, a future one, in the place of `current`. `None`: its files are
    /// being flushed, try again.
    pub fn replacing<'a>(self: &'a Arc<Self>, current: &'a Log) -> Option<Replacing<'a>> {
        // Nobody cuts, cleans or deletes what is read under the writer's lock.
        let of_current = current.flushing.lock();
        // Not waited for without an end: whoever flushes many logs holds those of a directory.
        let of_future = self.flushing.try_lock_for(FLUSHING_WAIT)?;
        Some(Replacing {
            current,
            future: self,
            _flushing: (of_current, of_future),
        })
    }
}

/// See [`Log::replacing`].
pub struct Replacing<'a> {
    current: &'a Log,
    future: &'a Arc<Log>,
    _flushing: (MutexGuard<'a, ()>, MutexGuard<'a, ()>),
}

impl Replacing<'_> {
    /// Copies what is left and puts the future log in the place. `publish` shows it to everyone;
    /// who has come to append to the old one finds it closed and has to look again. `false`:
    /// nothing has changed, copying has to go on.
    pub fn finish(self, now: TimestampMs, publish: impl FnOnce()) -> Result<bool, MoveError> {
        let (current, future) = (self.current, self.future);
        let mut of_current = current.writer.lock();
        current
            .check_open(&of_current)
            .map_err(MoveError::Current)?;
        if !future.is_beginning_of(current)
            || future.log_start_offset() < current.log_start_offset()
        {
            return Ok(false);
        }
        future.copy_batches(current, LAST_BYTES_MAX, false, now)?;
        if future.log_end_offset() != current.log_end_offset() {
            return Ok(false);
        }
        future.update_config(current.config());
        let mut of_future = future.writer.lock();
        future.check_open(&of_future)?;
        of_future.producers = of_current.producers.clone();
        of_future.fenced_below = of_current.fenced_below;
        {
            let (from, mut to) = (current.view.lock(), future.view.lock());
            to.transactions = from.transactions.clone();
            to.epochs = from.epochs.clone();
            to.epochs.truncate_from_start(future.log_start_offset());
            to.epochs.is_dirty = true;
        }
        future.dir.take_plain_name()?;
        of_future.is_dir_dirty = true;
        of_future.is_parent_dirty = true;
        of_future.is_renamed = true;
        future.dir.core.make_current(future.topic_partition());
        of_current.is_closed = true;
        publish();
        Ok(true)
    }
}

/// Each of them checked; the last one may be cut by the limit of the read.
fn whole_batches(records: Bytes) -> Result<Vec<Batch>, String> {
    let mut whole = Vec::new();
    for batch in Batches::new(records) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(BatchError::Torn { .. }) => break,
            Err(error) => return Err(error.to_string()),
        };
        if !batch.is_crc_right() {
            return Err(format!("wrong checksum at {}", batch.header.base_offset));
        }
        whole.push(batch);
    }
    Ok(whole)
}
