//! Whether the flushed part of a log is all there: what its segments say of each other, looked at
//! before one of them is trusted and before anything is removed.
//!
//! ```text
//! sign                                              what is gone, up to the next segment
//! ------------------------------------------------- ------------------------------------------
//! a segment whose index goes beyond its .log, or    from where that .log ends
//! whose .log ends inside a batch
//! indexes with entries, and no .log or an empty one from where the segment before ends
//! a segment that ends below the next one's start,   what lies between
//! in a log that was never compacted
//! epochs that begin below the first segment, after  from where they begin
//! a clean stop, in a log that was never compacted
//! ```
//!
//! 1. Only segments below the recovery point are judged: a flush that passed a segment's end had
//!    synced its log and its indexes. After a crash the recovery point has to be inside the next
//!    one: at a segment's end it may have come from a time when that was the active one.
//! 2. Without compaction offsets are dense: a leader gives them so, a follower takes them so, and
//!    each segment starts where the one before ends. Compaction by Klamm keeps that
//!    (`cleaner_filter`, 3), but not that by Kafka, which empties whole segments; nor does Kafka's
//!    follower that copies what was compacted. So where there may have been a compaction, or where
//!    a segment beside the gap has gaps of its own, a gap alone says nothing.
//! 3. Below the log start offset nothing is missed: that is what retention and DeleteRecords leave.
//!    Whoever goes on with a log that has lost a part raises it.
//! 4. Who removes the start of a log cuts its epochs there, and the file says so at the latest at a
//!    clean stop. After a crash it may not yet.
//! 5. Indexes without a log are else what a crash has left: in a deletion below the first segment,
//!    in a truncation above the recovery point, in a compaction below the end of the segment that
//!    replaces them.
//! 6. What is no batch at all (an old format, damage) is not judged here.

use std::path::Path;
use std::sync::Arc;

use crate::host::{File, OpenMode};
use crate::record::BatchHeader;
use crate::types::Offset;

use super::epochs::Epochs;
use super::error::LogError;
use super::inventory::{Inventory, SegmentFiles};
use super::names::Kind;
use super::offset_index::OffsetIndex;
use super::partition_dir::PartitionDir;
use super::recovery::Opening;
use super::scan::{BatchScan, LOOKUP_BYTES, ScanError};
use super::time_index::TimeIndex;

/// How a segment ends.
struct Tail {
    end: Offset,
    is_cut: bool,
}

/// Looks for the signs.
struct Seams<'a> {
    dir: &'a PartitionDir,
    opening: &'a Opening,
    inventory: &'a Inventory,
}

/// Fails where flushed records are gone.
pub(super) fn check(
    dir: &PartitionDir,
    opening: &Opening,
    inventory: &Inventory,
    epochs: &Epochs,
) -> Result<(), LogError> {
    let seams = Seams {
        dir,
        opening,
        inventory,
    };
    seams.check_start(epochs)?;
    let pairs = inventory.segments.windows(2);
    let served = pairs.skip_while(|pair| pair[1].base_offset <= opening.log_start);
    for pair in served.take_while(|pair| seams.is_flushed(&pair[1])) {
        seams.check_seam(&pair[0], &pair[1])?;
    }
    Ok(())
}

impl Seams<'_> {
    /// Whether all that lies before the segment was (1).
    fn is_flushed(&self, next: &SegmentFiles) -> bool {
        let recovery_point = self.opening.recovery_point;
        match self.opening.is_clean {
            true => next.base_offset <= recovery_point,
            false => next.base_offset < recovery_point,
        }
    }

    fn check_start(&self, epochs: &Epochs) -> Result<(), LogError> {
        let (Some(first), Some(begun)) = (self.inventory.segments.first(), epochs.start()) else {
            return Ok(());
        };
        let from = begun.max(self.opening.log_start);
        let is_gone = self.opening.is_clean
            && !self.opening.may_be_compacted()
            && from < first.base_offset
            && self.is_flushed(first);
        match is_gone {
            true => Err(self.gone(from, first.base_offset)),
            false => Ok(()),
        }
    }

    fn check_seam(&self, segment: &SegmentFiles, next: &SegmentFiles) -> Result<(), LogError> {
        let Some(tail) = self.tail(segment)? else {
            return Ok(());
        };
        let end = tail.end;
        if end >= next.base_offset {
            return Ok(());
        }
        let is_gone = tail.is_cut
            || self.has_lost_a_log(end, next.base_offset)?
            || (!self.opening.may_be_compacted()
                && self.is_dense(segment)?
                && self.is_dense(next)?);
        match is_gone {
            true => Err(self.gone(end.max(self.opening.log_start), next.base_offset)),
            false => Ok(()),
        }
    }

    fn gone(&self, from: Offset, to: Offset) -> LogError {
        LogError::SegmentGone {
            path: self.dir.path(),
            from,
            last: to.plus(-1),
            to,
        }
    }

    /// `None`: it cannot be told.
    fn tail(&self, segment: &SegmentFiles) -> Result<Option<Tail>, LogError> {
        let indexed = self.last_position(segment)?;
        let is_beyond = indexed > 0 && indexed >= segment.log_bytes;
        let from = if is_beyond { 0 } else { indexed };
        let mut found = self.scan(segment, from, |_, _| true)?;
        if found.1.is_some() && from > 0 {
            // Perhaps it is the index that is wrong.
            found = self.scan(segment, 0, |_, _| true)?;
        }
        let (end, is_cut) = match found {
            (end, None) => (end, is_beyond),
            (end, Some(error)) if error.is_cut() => (end, true),
            (_, Some(_)) => return Ok(None),
        };
        Ok(Some(Tail { end, is_cut }))
    }

    /// Of the last batch that the offset index names; 0 if there is none.
    fn last_position(&self, segment: &SegmentFiles) -> Result<u64, LogError> {
        let bytes = segment.offset_index_bytes;
        if bytes == 0 {
            return Ok(0);
        }
        let path = self
            .dir
            .segment_file(segment.base_offset, Kind::OffsetIndex);
        let file = self.open(&path)?;
        let end = OffsetIndex::new(&*file, bytes.min(i32::MAX as u64) as u32).end();
        let (_, last) = end.map_err(|e| self.dir.core.read_failed(&path, e))?;
        Ok(last.map_or(0, |entry| u64::from(entry.position)))
    }

    /// Steps from `position` on as long as `goes_on` likes what each batch's base offset is and
    /// where the one before has ended. Where the last one ends, and why that was not the file's
    /// end.
    fn scan(
        &self,
        segment: &SegmentFiles,
        position: u64,
        mut goes_on: impl FnMut(&BatchHeader, Offset) -> bool,
    ) -> Result<(Offset, Option<ScanError>), LogError> {
        let path = self.dir.segment_file(segment.base_offset, Kind::Log);
        let file = self.open(&path)?;
        let mut end = segment.base_offset;
        let mut scan = BatchScan::new(&*file, position, segment.log_bytes, end, LOOKUP_BYTES);
        loop {
            match scan.next_header() {
                Ok(Some(found)) if goes_on(&found.header, end) => end = found.header.next_offset(),
                Ok(_) => return Ok((end, None)),
                Err(ScanError::Io(e)) => return Err(self.dir.core.read_failed(&path, e)),
                Err(error) => return Ok((end, Some(error))),
            }
        }
    }

    /// Whether there are no gaps in it, as compaction leaves them.
    fn is_dense(&self, segment: &SegmentFiles) -> Result<bool, LogError> {
        let mut is_dense = true;
        self.scan(segment, 0, |header, end| {
            let is_full = header.records_count == header.last_offset_delta.saturating_add(1);
            is_dense &= is_full && header.base_offset == end;
            is_dense
        })?;
        Ok(is_dense)
    }

    /// Whether between these offsets there are the indexes of a segment that has no records (5).
    fn has_lost_a_log(&self, from: Offset, to: Offset) -> Result<bool, LogError> {
        for empty in &self.inventory.emptied {
            let is_between = from <= empty.base_offset && empty.base_offset < to;
            if is_between && (self.last_position(empty)? > 0 || self.has_times(empty)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_times(&self, segment: &SegmentFiles) -> Result<bool, LogError> {
        let bytes = segment.time_index_bytes;
        if bytes == 0 {
            return Ok(false);
        }
        let path = self.dir.segment_file(segment.base_offset, Kind::TimeIndex);
        let file = self.open(&path)?;
        let end = TimeIndex::new(&*file, bytes.min(i32::MAX as u64) as u32).end();
        let (_, last) = end.map_err(|e| self.dir.core.read_failed(&path, e))?;
        // Zeros: Kafka had made room for entries.
        Ok(last.is_some_and(|entry| entry.timestamp.0 > 0))
    }

    /// Not through the cache: most of these segments are not read again soon.
    fn open(&self, path: &Path) -> Result<Arc<dyn File>, LogError> {
        let file = self.dir.core.disk.open(path, OpenMode::Read);
        file.map_err(|e| self.dir.core.read_failed(path, e))
    }
}
