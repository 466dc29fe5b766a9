//! Puts a compacted segment in the place of those it was made of.
//!
//! What a crash leaves after each step:
//!
//! 1. The indexes are renamed from `.cleaned` to `.swap`, the directory is synced. Without a
//!    `.log.swap` they are removed at the next start.
//! 2. So is the log, and the directory synced: from here on the next start finishes the work
//!    (`swap`).
//! 3. The old segments are renamed out, and the directory is synced: none of them can come back
//!    beside what replaces them. (One that was compacted before may wait for its removal under the
//!    same name: then it goes a little early, which only takes it from nobody.)
//! 4. Readers are shown the new segment. Its files do not have their names yet.
//! 5. The indexes get their names, the directory is synced, then the log does.
//!
//! In steps 3 to 5 a reader may find no file, or, if it has looked at the view before, the new file
//! instead of the old one. `swapping` is held meanwhile: who finds no file waits for it and looks
//! again; who has opened a file looks whether its segment is still shown (`Log::is_current`).

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::types::{Offset, TimestampMs};

use super::cleaned_segment;
use super::error::LogError;
use super::log::{Deletion, Log};
use super::names::{self, Kind};
use super::segment::Segment;

const INDEXES: [Kind; 3] = [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex];

impl Log {
    /// `None`: the log was cut meanwhile, and nothing was done.
    pub(super) fn replace_segments(
        &self,
        cleaned: Segment,
        old: &[Segment],
        (cuts, now): (u64, TimestampMs),
    ) -> Result<Option<Deletion>, LogError> {
        assert!(cleaned.log_bytes > 0, "the last batch is kept");
        let _flushing = self.flushing.lock();
        self.check_open(&self.writer.lock())?;
        let Some(first) = self.place_of(old, cuts) else {
            cleaned_segment::remove(&self.dir, cleaned.base_offset)?;
            return Ok(None);
        };
        self.offer(&cleaned)?;
        let _swapping = self.swapping.lock();
        let mut paths = Vec::new();
        for segment in old {
            paths.extend(self.take_out_old(segment, cleaned.base_offset)?);
        }
        self.dir.core.sync_dir(&self.dir.path())?;
        {
            let mut view = self.view.lock();
            view.segments.splice(first..first + old.len(), [cleaned]);
        }
        self.forget_snapshots(old, &cleaned);
        self.put_in(&cleaned)?;
        for segment in old {
            self.dir.core.files.remove(segment.key);
        }
        let delay_ms = self.config().file_delete_delay_ms;
        let due = TimestampMs(now.0.saturating_add(delay_ms));
        Ok(Some(Deletion { due, paths }))
    }

    /// Where the segments are in the view; `None` if the log was cut, or some were deleted.
    fn place_of(&self, old: &[Segment], cuts: u64) -> Option<usize> {
        if self.cuts.load(Ordering::SeqCst) != cuts {
            return None;
        }
        let view = self.view.lock();
        let first = view.segments.iter().position(|s| s.key == old[0].key)?;
        let shown = view.segments.get(first..first + old.len())?;
        let same = shown
            .iter()
            .zip(old)
            .all(|(shown, old)| shown.key == old.key);
        // The active segment is never compacted.
        (same && first + old.len() < view.segments.len()).then_some(first)
    }

    /// Steps 1 and 2.
    fn offer(&self, cleaned: &Segment) -> Result<(), LogError> {
        let path = self.dir.path();
        for kind in INDEXES {
            self.rename_cleaned(cleaned, kind)?;
        }
        self.dir.core.sync_dir(&path)?;
        self.rename_cleaned(cleaned, Kind::Log)?;
        self.dir.core.sync_dir(&path)
    }

    fn rename_cleaned(&self, cleaned: &Segment, kind: Kind) -> Result<(), LogError> {
        let from = cleaned_segment::path(&self.dir, cleaned.base_offset, kind);
        let to = self.swap_path(cleaned, kind);
        self.dir.core.rename_if_there(&from, &to)
    }

    fn swap_path(&self, cleaned: &Segment, kind: Kind) -> PathBuf {
        let plain = self.dir.segment_file(cleaned.base_offset, kind);
        with_suffix(&plain, names::SWAP_SUFFIX)
    }

    /// Step 3, for one segment. A snapshot at an offset where a segment will still start stays.
    fn take_out_old(
        &self,
        segment: &Segment,
        base_offset: Offset,
    ) -> Result<Vec<PathBuf>, LogError> {
        let kinds = Kind::ALL.iter().rev();
        let mut from: Vec<_> = kinds
            .map(|kind| self.dir.segment_file(segment.base_offset, *kind))
            .collect();
        if segment.base_offset != base_offset {
            from.push(self.dir.snapshot_file(segment.base_offset));
        }
        let mut taken = Vec::with_capacity(from.len());
        for from in from {
            let to = with_suffix(&from, names::DELETED_SUFFIX);
            self.dir.core.rename_if_there(&from, &to)?;
            taken.push(to);
        }
        Ok(taken)
    }

    fn forget_snapshots(&self, old: &[Segment], cleaned: &Segment) {
        let mut writer = self.writer.lock();
        writer.snapshots.retain(|snapshot| {
            *snapshot == cleaned.base_offset || old.iter().all(|s| s.base_offset != *snapshot)
        });
        writer.is_dir_dirty = true;
    }

    /// Step 5.
    fn put_in(&self, cleaned: &Segment) -> Result<(), LogError> {
        let path = self.dir.path();
        for kind in INDEXES {
            let to = self.dir.segment_file(cleaned.base_offset, kind);
            let from = self.swap_path(cleaned, kind);
            self.dir.core.rename_if_there(&from, &to)?;
        }
        self.dir.core.sync_dir(&path)?;
        let to = self.dir.segment_file(cleaned.base_offset, Kind::Log);
        let from = self.swap_path(cleaned, Kind::Log);
        self.dir.core.rename_if_there(&from, &to)?;
        self.dir.core.sync_dir(&path)
    }

    /// Whether the view still shows the segment. What was read from its files after their opening
    /// may else be of another segment.
    pub(super) fn is_current(&self, segment: &Segment) -> bool {
        let view = self.view.lock();
        let at = view.segment_of(segment.base_offset);
        at.is_some_and(|at| view.segments[at].key == segment.key)
    }

    /// Waits until files have the names that the view says they have.
    pub(super) fn wait_for_swap(&self) {
        drop(self.swapping.lock());
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
