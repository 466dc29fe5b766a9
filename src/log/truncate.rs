//! Cutting the log: its end (a follower that has what its leader has not), all of it, or its start.
//!
//! `truncate_to`, and what a crash leaves after each step:
//!
//! 0. The recovery point goes down, on disk too if it was above the cut there. A log that ends
//!    below its line is one that has lost records (`recovery`).
//! 1. Segments behind the cut are renamed, the newest first, each one's `.log` first: the log is
//!    shorter from the end, and indexes without a log are removed at the next start. Then the
//!    directory is synced.
//! 2. The indexes of the segment with the cut are cut and synced: they name less than the log has,
//!    which is allowed.
//! 3. Its log is cut and synced. Nothing of the old end can come back under what is appended next.
//! 4. Snapshots and epochs above the cut go. Left ones are ignored and cut at the next start.
//!
//! A crash before 3 leaves records that the leader will have cut again.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::types::{Offset, TimestampMs};

use super::error::LogError;
use super::log::{Deletion, Log, Writer};
use super::names::Kind;
use super::offset_index::{self, OffsetIndex};
use super::producer_state::OpenTransactions;
use super::replay::Replay;
use super::scan::{BatchScan, LOOKUP_BYTES};
use super::segment::{MaxTimestamp, PendingIndex, Segment};
use super::slice::Hint;
use super::time_index::{self, TimeIndex};
use super::txn_index;

impl Log {
    /// Drops the batch that holds `offset` and everything after it, epochs without records too.
    /// `false` if there were no batches.
    pub fn truncate_to(&self, offset: Offset, now: TimestampMs) -> Result<bool, LogError> {
        let _flushing = self.flushing.lock();
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        let end = self.log_end_offset();
        if offset >= end {
            // A leader that appended nothing has left its epoch there. No other log has it, so the
            // next leader would find a divergence for ever.
            self.view.lock().epochs.truncate_from_end(end);
            return Ok(false);
        }
        self.note_cut(offset);
        self.lower_recovery_point(offset)?;
        if offset < self.first_segment_offset() {
            self.restart_at(&mut writer, offset, now)?;
            return Ok(true);
        }
        // Entries that wait may lie below the cut.
        self.write_pending(false)?;
        self.take_out_above(offset, now)?;
        let (end, written_end) = self.cut_active(offset)?;
        writer.gap_from = (written_end < end).then_some(written_end);
        self.recovery.fetch_min(written_end.0, Ordering::SeqCst);
        self.after_cut(&mut writer, end, now)?;
        Ok(true)
    }

    /// Drops everything; the next record has `offset`.
    pub fn truncate_fully_and_start_at(
        &self,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        self.note_cut(offset);
        self.lower_recovery_point(Offset::ZERO)?;
        self.restart_at(&mut writer, offset, now)
    }

    /// Before the cut: to where the segment with it begins, as the batch with it may begin below.
    fn lower_recovery_point(&self, cut: Offset) -> Result<(), LogError> {
        if self.recovery_point() > cut {
            let point = {
                let view = self.view.lock();
                let index = view.segment_of(cut);
                index.map_or(Offset::ZERO, |index| view.segments[index].base_offset)
            };
            self.recovery.fetch_min(point.0, Ordering::SeqCst);
        }
        match self.checkpointed.load(Ordering::SeqCst) > cut.0 {
            true => self.dir.core.write_recovery_points(),
            false => Ok(()),
        }
    }

    /// DeleteRecords, or what the leader says: nothing below `offset` is served any more. `false`
    /// if it was so before. Whole segments go with the next retention. The caller has checked
    /// `offset` against the high watermark; it is never above the log's end.
    pub fn advance_log_start_offset(&self, offset: Offset) -> Result<bool, LogError> {
        let writer = self.writer.lock();
        self.check_open(&writer)?;
        if offset <= self.log_start_offset() || offset > self.log_end_offset() {
            return Ok(false);
        }
        self.set_log_start(offset);
        Ok(true)
    }

    /// Under the writer's lock.
    pub(super) fn set_log_start(&self, offset: Offset) {
        self.log_start.store(offset.0, Ordering::SeqCst);
        self.view.lock().epochs.truncate_from_start(offset);
    }

    /// Takes the segments out that start above `offset`.
    fn take_out_above(&self, offset: Offset, now: TimestampMs) -> Result<(), LogError> {
        let mut taken = false;
        loop {
            let segment = {
                let view = self.view.lock();
                *view.active()
            };
            if segment.base_offset <= offset {
                break;
            }
            taken = true;
            self.hide_active(&segment)?;
            let paths = self.dir.take_out(&segment)?;
            self.delete_later(paths, now);
        }
        if taken {
            // Or they could come back behind a log that was cut: a gap that nobody would notice.
            self.dir.core.sync_dir(&self.dir.path())?;
        }
        Ok(())
    }

    /// Readers must not find a segment that is being taken out, and the one before becomes active.
    fn hide_active(&self, segment: &Segment) -> Result<(), LogError> {
        let before = {
            let view = self.view.lock();
            view.segments[view.segments.len() - 2]
        };
        let max_timestamp = self.max_timestamp(&before)?;
        let mut view = self.view.lock();
        view.segments.pop();
        view.tail.clear();
        view.pending = PendingIndex::default();
        view.active_mut().max_timestamp = Some(max_timestamp);
        self.log_end.store(segment.base_offset.0, Ordering::SeqCst);
        Ok(())
    }

    fn delete_later(&self, paths: Vec<PathBuf>, now: TimestampMs) {
        let due = TimestampMs(now.0.saturating_add(self.config().file_delete_delay_ms));
        self.dir.core.deletions.lock().push(Deletion { due, paths });
    }

    /// Cuts the active segment before the batch that holds `offset`; the log's new end, and that of
    /// the last batch.
    fn cut_active(&self, offset: Offset) -> Result<(Offset, Offset), LogError> {
        let (segment, hint) = {
            let view = self.view.lock();
            let index = view.segments.len() - 1;
            (view.segments[index], Hint::of(&view, index, offset))
        };
        let (start, _) = self.dir.locate(&segment, offset, hint)?;
        let mut cut = segment;
        cut.log_bytes = start;
        let end = self.end_before(&segment, start, offset)?;
        self.cut_indexes(&mut cut, end)?;
        // Readers first: nobody may find bytes that are about to go.
        {
            let mut view = self.view.lock();
            view.tail.clear();
            view.pending = PendingIndex::default();
            *view.active_mut() = cut;
            self.log_end.store(end.0, Ordering::SeqCst);
        }
        if start < segment.log_bytes {
            let file = self.dir.open(&segment, Kind::Log)?;
            self.dir.change("truncate", &segment, Kind::Log, || {
                file.set_len(u64::from(start))?;
                file.sync()
            })?;
        }
        let taken = self.dir.take_up(&cut)?;
        let mut view = self.view.lock();
        *view.active_mut() = taken.segment;
        view.pending = taken.pending;
        drop(view);
        Ok((end, taken.end.unwrap_or(cut.base_offset)))
    }

    /// `offset`, or where the batch that is cut begins if `offset` lies inside it: the next append
    /// has to follow what is kept.
    fn end_before(
        &self,
        segment: &Segment,
        start: u32,
        offset: Offset,
    ) -> Result<Offset, LogError> {
        if start >= segment.log_bytes {
            return Ok(offset);
        }
        let file = self.dir.open(segment, Kind::Log)?;
        let (start, file_end) = (u64::from(start), u64::from(segment.log_bytes));
        let mut scan = BatchScan::new(&*file, start, file_end, Offset::ZERO, LOOKUP_BYTES);
        let first = self.dir.scanned(segment, scan.next_header())?;
        Ok(first.map_or(offset, |f| f.header.base_offset.min(offset)))
    }

    /// Cuts the three indexes to what lies below `end`.
    fn cut_indexes(&self, cut: &mut Segment, end: Offset) -> Result<(), LogError> {
        let relative = cut.relative(end).unwrap_or(u32::MAX);
        for kind in [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex] {
            let bytes = *cut.bytes_mut(kind);
            if bytes == 0 {
                continue;
            }
            let file = self.dir.open(cut, kind)?;
            let keep_bytes = match kind {
                Kind::OffsetIndex => OffsetIndex::new(&*file, bytes)
                    .below(relative)
                    .map(|(count, _)| count * offset_index::ENTRY_BYTES),
                Kind::TimeIndex => TimeIndex::new(&*file, bytes)
                    .below(relative)
                    .map(|(count, _)| count * time_index::ENTRY_BYTES),
                _ => txn_index::count_below(&*file, bytes, end)
                    .map(|count| count * txn_index::ENTRY_BYTES),
            };
            let keep_bytes = self.dir.read(cut, kind, keep_bytes)?;
            if keep_bytes < bytes {
                self.dir.change("truncate", cut, kind, || {
                    file.set_len(u64::from(keep_bytes))?;
                    file.sync()
                })?;
                *cut.bytes_mut(kind) = keep_bytes;
            }
        }
        Ok(())
    }

    /// The largest timestamp of a segment; of one that is done, the last entry of its time index.
    pub(super) fn max_timestamp(&self, segment: &Segment) -> Result<MaxTimestamp, LogError> {
        if let Some(max) = segment.max_timestamp {
            return Ok(max);
        }
        let max = self.dir.sealed_max(segment)?;
        let mut view = self.view.lock();
        let same = view.segments.iter_mut().find(|s| s.key == segment.key);
        if let Some(same) = same {
            same.max_timestamp = Some(max);
        }
        Ok(max)
    }

    /// Producers, epochs and offsets after a cut.
    fn after_cut(
        &self,
        writer: &mut Writer,
        end: Offset,
        now: TimestampMs,
    ) -> Result<(), LogError> {
        writer.written_back_bytes = 0;
        writer.is_dir_dirty = true;
        let active = self.view.lock().active().base_offset;
        writer.unsynced_from = writer.unsynced_from.min(active);
        let segments = {
            let mut view = self.view.lock();
            view.epochs.truncate_from_end(end);
            view.segments.clone()
        };
        let log_start_was = self.log_start_offset();
        let log_start = log_start_was.min(end);
        self.log_start.store(log_start.0, Ordering::SeqCst);
        self.write_epochs()?;
        let mut snapshots = self.dir.snapshots()?;
        let above = snapshots.partition_point(|s| *s <= end);
        for offset in snapshots.split_off(above) {
            self.dir
                .core
                .remove_if_there(&self.dir.snapshot_file(offset))?;
        }
        writer.snapshots.retain(|s| *s <= end);
        let expiration = (now, self.config().producer_id_expiration_ms);
        let mut replay = Replay::from_snapshot(&self.dir, &snapshots, end, expiration)?;
        replay.segments(&self.dir, &segments, log_start)?;
        writer.producers = replay.producers;
        self.view.lock().transactions = replay.transactions;
        self.dir.core.sync_dir(&self.dir.path())?;
        self.lower_start_on_disk(log_start_was, log_start)
    }

    /// A start above the log's end would make the next start drop the new records.
    fn lower_start_on_disk(&self, was: Offset, is: Offset) -> Result<(), LogError> {
        if was > is {
            self.dir.core.write_log_starts()?;
        }
        Ok(())
    }

    /// Takes every segment out and begins a new one, whose file is made at once: its name is all
    /// that says where the log starts.
    fn restart_at(
        &self,
        writer: &mut Writer,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<(), LogError> {
        let log_start_was = self.log_start_offset();
        let segment = Segment::new(offset, self.dir.core.files.new_key(), now);
        let old = {
            let mut view = self.view.lock();
            let old = std::mem::replace(&mut view.segments, vec![segment]);
            view.tail.clear();
            view.pending = PendingIndex::default();
            view.transactions = OpenTransactions::default();
            view.epochs.clear();
            self.log_start.store(offset.0, Ordering::SeqCst);
            self.log_end.store(offset.0, Ordering::SeqCst);
            old
        };
        self.recovery.store(offset.0, Ordering::SeqCst);
        writer.producers = Default::default();
        writer.written_back_bytes = 0;
        writer.unflushed_records = 0;
        writer.gap_from = None;
        writer.unsynced_from = offset;
        self.recovery_max.store(i64::MAX, Ordering::SeqCst);
        for segment in old.iter().rev() {
            let paths = self.dir.take_out(segment)?;
            self.delete_later(paths, now);
        }
        for snapshot in std::mem::take(&mut writer.snapshots) {
            self.dir
                .core
                .remove_if_there(&self.dir.snapshot_file(snapshot))?;
        }
        self.write_epochs()?;
        self.dir.create(&segment, Kind::Log)?;
        self.dir.core.sync_dir(&self.dir.path())?;
        self.lower_start_on_disk(log_start_was, offset)
    }
}
