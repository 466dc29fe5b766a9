//! Making what was appended durable, and the clean stop.
//!
//! `flush` in the order it goes, and what a crash leaves after each step:
//!
//! 1. `leader-epoch-checkpoint`: epochs of batches that may be lost. They are cut at the next
//!    start.
//! 2. `.log` of every segment from the recovery point on, and the indexes of those that are done.
//! 3. the names in the directory.
//! 4. The recovery point goes up, in memory. On disk it does so with the next
//!    `recovery-point-offset-checkpoint`; until then a crash makes recovery read more than it must.
//!
//! `checkpoint` writes the index entries and the producer snapshot too, so that recovery can begin
//! at the recovery point. Before the snapshot is there, recovery begins at the one before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::host::{File, OpenMode};
use crate::types::Offset;

use super::error::LogError;
use super::log::{Log, Writer};
use super::names::{self, Kind};
use super::segment::Segment;

/// What a flush has to make durable, taken under the writer's lock.
struct Dirty {
    reach: Reach,
    files: Vec<(Segment, Kind, Arc<dyn File>)>,
    is_dir_dirty: bool,
    is_parent_dirty: bool,
}

/// Up to where a log is durable once what was dirty is.
pub(super) struct Reach {
    to: Offset,
    /// Everything before this segment is synced with it, or was before.
    active_base: Offset,
}

impl Log {
    /// Returns once everything appended before the call would survive a power cut.
    pub fn flush(&self) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let _syncing = self.dir.core.syncing();
        let dirty = {
            let mut writer = self.writer.lock();
            self.check_open(&writer)?;
            if self.recovery_point() == self.log_end_offset() && !writer.is_renamed {
                return Ok(());
            }
            self.take_dirty(&mut writer, false)?
        };
        self.dir.core.timed(|| self.sync_dirty(dirty))
    }

    /// As [`Log::flush`], and everything a quick recovery needs: index entries, producer snapshot.
    /// The snapshot that this one replaces goes once the recovery point is on disk
    /// (`LogDir::checkpoint`).
    pub fn checkpoint(&self) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let _syncing = self.dir.core.syncing();
        let dirty = {
            let mut writer = self.writer.lock();
            self.check_open(&writer)?;
            if writer.uncheckpointed_bytes == 0 && !writer.is_renamed {
                return Ok(());
            }
            self.prepare_stop(&mut writer)?;
            self.take_dirty(&mut writer, true)?
        };
        self.dir.core.timed(|| self.sync_dirty(dirty))
    }

    /// Clean stop of this log; appends fail afterwards.
    pub fn close(&self) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let _syncing = self.dir.core.syncing();
        let dirty = {
            let mut writer = self.writer.lock();
            self.check_open(&writer)?;
            writer.is_closed = true;
            if self.is_stopped_cleanly(&writer) {
                self.forget_files();
                return Ok(());
            }
            self.prepare_stop(&mut writer)?;
            self.take_dirty(&mut writer, true)?
        };
        self.dir.core.timed(|| self.sync_dirty(dirty))?;
        self.forget_files();
        Ok(())
    }

    /// Nothing was done since the last checkpoint or clean stop.
    pub(super) fn is_stopped_cleanly(&self, writer: &Writer) -> bool {
        let end = self.log_end_offset();
        let view = self.view.lock();
        writer.uncheckpointed_bytes == 0
            && !writer.is_renamed
            && self.recovery_point() == end
            && !view.epochs.is_dirty
            && (view.active().log_bytes == 0 || writer.snapshots.last() == Some(&end))
    }

    /// Writes index entries and the snapshot of the log's end.
    pub(super) fn prepare_stop(&self, writer: &mut Writer) -> Result<(), LogError> {
        self.write_pending(true)?;
        let end = self.log_end_offset();
        let is_empty = self.view.lock().active().log_bytes == 0;
        // An empty segment's snapshot was written when it was begun.
        if !is_empty && writer.snapshots.last() != Some(&end) {
            self.write_snapshot(writer, end)?;
            writer.snapshots.push(end);
        }
        writer.uncheckpointed_bytes = 0;
        Ok(())
    }

    fn take_dirty(&self, writer: &mut Writer, with_indexes: bool) -> Result<Dirty, LogError> {
        let recovery_point = self.recovery_point();
        let segments: Vec<Segment> = {
            let view = self.view.lock();
            // A segment may be flushed to its end while it is active, and its indexes not yet.
            let from = recovery_point.min(writer.unsynced_from);
            let first = view.segment_of(from).unwrap_or(0);
            view.segments[first..].to_vec()
        };
        self.check_files(&segments)?;
        let mut files = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            let is_done = at + 1 < segments.len();
            for kind in Kind::ALL {
                let is_wanted = match kind {
                    Kind::Log => true,
                    Kind::TxnIndex => segment.txn_index_bytes > 0,
                    _ => is_done || with_indexes,
                };
                let bytes = *segment.clone().bytes_mut(kind);
                if is_wanted && bytes > 0 {
                    files.push((*segment, kind, self.dir.create(segment, kind)?));
                }
            }
        }
        Ok(Dirty {
            is_dir_dirty: writer.is_dir_dirty,
            is_parent_dirty: writer.is_parent_dirty,
            reach: self.take_reach(writer),
            files,
        })
    }

    /// A file that somebody has removed can still be written and synced, to no purpose.
    pub(super) fn check_files(&self, segments: &[Segment]) -> Result<(), LogError> {
        for segment in segments.iter().filter(|segment| segment.log_bytes > 0) {
            let path = self.dir.segment_file(segment.base_offset, Kind::Log);
            if !self.dir.core.disk.exists(&path) {
                let gone = std::io::ErrorKind::NotFound;
                self.dir
                    .core
                    .change("find", &path, || Err::<(), _>(gone.into()))?;
            }
        }
        Ok(())
    }

    /// Notes that all that is dirty is about to be synced.
    pub(super) fn take_reach(&self, writer: &mut Writer) -> Reach {
        let active_base = self.view.lock().active().base_offset;
        writer.unflushed_records = 0;
        writer.unsynced_from = active_base;
        writer.is_dir_dirty = false;
        writer.is_parent_dirty = false;
        writer.is_renamed = false;
        Reach {
            to: writer.gap_from.unwrap_or(self.log_end_offset()),
            active_base,
        }
    }

    /// Without the writer's lock: appends go on meanwhile. `flushing` keeps truncation away.
    fn sync_dirty(&self, dirty: Dirty) -> Result<(), LogError> {
        if dirty.is_parent_dirty {
            // Before the records: they are never there without their topic.
            self.sync_metadata()?;
        }
        self.write_epochs()?;
        for (segment, kind, file) in &dirty.files {
            self.dir.change("sync", segment, *kind, || file.sync())?;
        }
        if dirty.is_dir_dirty {
            self.dir.core.sync_dir(&self.dir.path())?;
        }
        if dirty.is_parent_dirty {
            self.dir.core.sync_dir(&self.dir.core.path)?;
        }
        self.note_synced(&dirty.reach);
        Ok(())
    }

    fn sync_metadata(&self) -> Result<(), LogError> {
        self.dir.core.sync_made()?;
        let path = self.dir.file(names::PARTITION_METADATA);
        self.dir.core.change("sync", &path, || {
            self.dir.core.disk.open(&path, OpenMode::Write)?.sync()
        })
    }

    /// What is within `reach` is durable.
    pub(super) fn note_synced(&self, reach: &Reach) {
        self.recovery.fetch_max(reach.to.0, Ordering::SeqCst);
        self.raise_recovery_max(reach.active_base);
    }

    /// All segments before the one at `active_base` are synced whole.
    fn raise_recovery_max(&self, active_base: Offset) {
        // Rolls come under this lock.
        let _writer = self.writer.lock();
        let view = self.view.lock();
        let above = view.segments.iter().find(|s| s.base_offset > active_base);
        let max = above.map_or(i64::MAX, |s| s.base_offset.0 - 1);
        self.recovery_max.store(max, Ordering::SeqCst);
    }

    /// Writes `leader-epoch-checkpoint` if it does not say what memory says.
    pub(super) fn write_epochs(&self) -> Result<(), LogError> {
        let Some(text) = self.take_dirty_epochs() else {
            return Ok(());
        };
        let path = self.dir.file(names::LEADER_EPOCH_CHECKPOINT);
        self.dir.core.replace(&path, text.as_bytes())
    }

    /// Writes down, durably, in which epoch an empty log begins.
    pub fn note_beginning(&self) -> Result<(), LogError> {
        self.sync_metadata()?;
        self.write_epochs()?;
        self.dir.core.sync_dir(&self.dir.path())?;
        self.dir.core.sync_dir(&self.dir.core.path)
    }

    /// `None`: the file says what memory says.
    pub(super) fn take_dirty_epochs(&self) -> Option<String> {
        let mut view = self.view.lock();
        let is_dirty = std::mem::take(&mut view.epochs.is_dirty);
        is_dirty.then(|| view.epochs.to_text())
    }

    /// Removes the snapshots that newer ones have replaced, as far as the recovery point on disk
    /// has come. Without them recovery would begin at the segment's own: slower, not wrong.
    pub(super) fn remove_old_snapshots(&self) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        let on_disk = Offset(self.checkpointed.load(Ordering::SeqCst));
        let usable = writer.snapshots.partition_point(|s| *s <= on_disk);
        let old = usable.saturating_sub(1);
        for offset in writer.snapshots.drain(..old) {
            self.dir
                .core
                .remove_if_there(&self.dir.snapshot_file(offset))?;
        }
        Ok(())
    }
}
