//! Reading: which bytes of which file hold the batches from an offset on. The bytes themselves are
//! not touched; whoever gets the slice sends them from the file.
//!
//! 1. A slice starts with the batch that holds the offset, or the first one after it (compaction
//!    leaves gaps), and lies in one segment.
//! 2. It ends before the batch that holds `up_to`, or at `max_bytes` even inside a batch. The first
//!    batch comes whole or not at all; whole, whatever `max_bytes` is, if it is asked for.
//! 3. A reader at the end of the log reads nothing from disk to find its place.
//! 4. The view's lock is held to take a copy of what is needed. A segment that is deleted after
//!    that is looked for again.

use std::io;

use crate::types::Offset;

use super::error::{LogError, ReadError};
use super::log::{Log, LogSlice};
use super::names::Kind;
use super::offset_index::OffsetIndex;
use super::segment::Segment;
use super::slice::Hint;
use super::txn_index::{self, AbortedTxn};

/// A file that is gone this often is not being deleted under us: it is missing.
pub(super) const ATTEMPTS_MAX: usize = 5;

struct Plan {
    segment: Segment,
    from: Hint,
    up_to: Hint,
    /// Where the next segment starts; `None` in the active one.
    next: Option<Offset>,
    log_end_offset: Offset,
}

impl Log {
    /// The batches from the one that holds `from`, at most `max_bytes` (the last may be cut, the
    /// first may not and comes anyway if `at_least_one_batch`), none that holds `up_to` or more.
    pub fn read(
        &self,
        from: Offset,
        max_bytes: u32,
        up_to: Offset,
        at_least_one_batch: bool,
    ) -> Result<LogSlice, ReadError> {
        let mut attempt = 1;
        loop {
            let slice = self.read_once(from, max_bytes, up_to, at_least_one_batch);
            match slice {
                Err(ReadError::Storage(e)) if is_gone(&e) && attempt < ATTEMPTS_MAX => {
                    self.wait_for_swap();
                    attempt += 1;
                }
                slice => return slice,
            }
        }
    }

    fn read_once(
        &self,
        from: Offset,
        max_bytes: u32,
        up_to: Offset,
        at_least_one_batch: bool,
    ) -> Result<LogSlice, ReadError> {
        let mut at = from;
        loop {
            let plan = self.plan(from, at, up_to)?;
            let read = self.read_planned(&plan, at, max_bytes, up_to, at_least_one_batch);
            if plan.next.is_some() && !self.is_current(&plan.segment) {
                // Compacted or deleted meanwhile: what was read may be of its successor's file.
                self.wait_for_swap();
                continue;
            }
            match (read?, plan.next) {
                (Some(slice), _) => return Ok(slice),
                (None, next) => at = next.expect("only a segment that is done has nothing"),
            }
        }
    }

    /// `None`: go on in the next segment.
    fn read_planned(
        &self,
        plan: &Plan,
        at: Offset,
        max_bytes: u32,
        up_to: Offset,
        at_least_one_batch: bool,
    ) -> Result<Option<LogSlice>, LogError> {
        let segment = &plan.segment;
        let (start, first_end) = self.dir.locate(segment, at, plan.from)?;
        if start >= segment.log_bytes
            && let Some(next) = plan.next
        {
            return match next >= up_to {
                true => self.slice(plan, start, 0, 0).map(Some),
                false => Ok(None),
            };
        }
        let first_bytes = first_end - start;
        let wanted = if at_least_one_batch {
            max_bytes.max(first_bytes)
        } else {
            max_bytes
        };
        let end = self.end(plan, up_to, start.saturating_add(wanted))?;
        let available = end.saturating_sub(start);
        // A part of the first batch would be of no use to anybody.
        let len = if wanted < first_bytes {
            0
        } else {
            wanted.min(available)
        };
        self.slice(plan, start, len, available).map(Some)
    }

    fn plan(&self, from: Offset, at: Offset, up_to: Offset) -> Result<Plan, ReadError> {
        let view = self.view.lock();
        let log_start_offset = self.log_start_offset();
        let log_end_offset = self.log_end_offset();
        let index = view.segment_of(at);
        let (Some(index), true) = (index, from >= log_start_offset && from <= log_end_offset)
        else {
            return Err(ReadError::OffsetOutOfRange {
                offset: from,
                log_start_offset,
                log_end_offset,
            });
        };
        let next = view.segments.get(index + 1).map(|s| s.base_offset);
        let log_bytes = view.segments[index].log_bytes;
        let end_of_segment = Hint::At {
            start: log_bytes,
            end: log_bytes,
        };
        let is_beyond = up_to >= next.unwrap_or(log_end_offset);
        Ok(Plan {
            segment: view.segments[index],
            from: Hint::of(&view, index, at),
            up_to: if is_beyond {
                end_of_segment
            } else {
                Hint::of(&view, index, up_to)
            },
            next,
            log_end_offset,
        })
    }

    /// Where the readable part of the segment ends. Not looked up exactly if it is at `enough` or
    /// beyond: then that is all the reader can see of it.
    fn end(&self, plan: &Plan, up_to: Offset, enough: u32) -> Result<u32, LogError> {
        let segment = &plan.segment;
        let floor = self.dir.floor(segment, up_to, plan.up_to)?;
        if floor >= enough {
            return Ok(floor);
        }
        let hint = match plan.up_to {
            Hint::At { start, end } => Hint::At { start, end },
            _ => Hint::From { position: floor },
        };
        Ok(self.dir.locate(segment, up_to, hint)?.0)
    }

    fn slice(
        &self,
        plan: &Plan,
        start: u32,
        len: u32,
        available: u32,
    ) -> Result<LogSlice, LogError> {
        let file = match len {
            0 => None,
            _ => Some(self.dir.open(&plan.segment, Kind::Log)?),
        };
        Ok(LogSlice {
            file,
            position: u64::from(start),
            len,
            available,
            segment_base_offset: plan.segment.base_offset,
            log_start_offset: self.log_start_offset(),
            log_end_offset: plan.log_end_offset,
        })
    }

    /// The aborted transactions that a reader of `slice`, which was read from `from` up to `up_to`,
    /// has to know, in the order of their markers.
    pub fn aborted_transactions(
        &self,
        from: Offset,
        slice: &LogSlice,
        up_to: Offset,
    ) -> Result<Vec<AbortedTxn>, LogError> {
        let mut attempt = 1;
        loop {
            let segments: Vec<Segment> = {
                let view = self.view.lock();
                let Some(first) = view.segment_of(from) else {
                    return Ok(Vec::new());
                };
                // Most logs have none; then nothing is copied.
                let with_entries = view.segments[first..].iter();
                with_entries
                    .filter(|s| s.txn_index_bytes > 0)
                    .copied()
                    .collect()
            };
            if segments.is_empty() {
                return Ok(Vec::new());
            }
            let aborted = self.aborted_in(&segments, from, self.end_of_slice(slice, up_to)?);
            // Deleted, with its batches; or compacted: then its successor has to be read.
            if self.is_settled(&segments, &aborted) || attempt == ATTEMPTS_MAX {
                return aborted;
            }
            self.wait_for_swap();
            attempt += 1;
        }
    }

    fn aborted_in(
        &self,
        segments: &[Segment],
        from: Offset,
        end: Offset,
    ) -> Result<Vec<AbortedTxn>, LogError> {
        let mut aborted = Vec::new();
        for segment in segments {
            let file = self.dir.open(segment, Kind::TxnIndex)?;
            let visited = txn_index::visit(&*file, segment.txn_index_bytes, |_, txn| {
                if txn.last_offset >= from && txn.first_offset < end {
                    aborted.push(txn);
                }
                // Later markers are of transactions that began after the slice.
                txn.last_stable_offset < end
            });
            if !self.dir.read(segment, Kind::TxnIndex, visited)? {
                break;
            }
        }
        Ok(aborted)
    }

    /// Whether what was read is what the view shows.
    pub(super) fn is_settled<T>(&self, segments: &[Segment], read: &Result<T, LogError>) -> bool {
        let is_missing = read.as_ref().is_err_and(is_gone);
        !is_missing && segments.iter().all(|s| self.is_current(s))
    }

    /// An offset above all those of the slice, and not far above where the index can tell.
    fn end_of_slice(&self, slice: &LogSlice, up_to: Offset) -> Result<Offset, LogError> {
        let (segment, pending, next) = {
            let view = self.view.lock();
            let found = view
                .segments
                .iter()
                .position(|s| s.base_offset == slice.segment_base_offset);
            let Some(index) = found else {
                return Ok(up_to);
            };
            let next = view.next_base_offset(index, self.log_end_offset());
            let is_active = index + 1 == view.segments.len();
            let pending = view.pending.offsets.iter();
            let slice_end = slice.position + u64::from(slice.len);
            let pending = pending
                .copied()
                .find(|e| is_active && u64::from(e.position) >= slice_end);
            (view.segments[index], pending, next.min(up_to))
        };
        let slice_end = slice.position + u64::from(slice.len);
        let (Ok(slice_end), true) = (u32::try_from(slice_end), slice.len < slice.available) else {
            return Ok(next);
        };
        let mut entry = None;
        if segment.offset_index_bytes > 0 {
            let file = match self.dir.open(&segment, Kind::OffsetIndex) {
                Err(e) if is_gone(&e) => return Ok(next),
                file => file?,
            };
            let index = OffsetIndex::new(&*file, segment.offset_index_bytes);
            let found = index.at_or_after(slice_end);
            entry = self.dir.read(&segment, Kind::OffsetIndex, found)?;
        }
        let entry = entry.or(pending);
        Ok(entry.map_or(next, |e| segment.absolute(e.relative_offset).min(next)))
    }
}

/// A segment's file that was renamed between the look at the view and its opening.
fn is_gone(error: &LogError) -> bool {
    matches!(error, LogError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
