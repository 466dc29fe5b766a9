//! From offsets to places in a segment's file.
//!
//! An offset is looked up where it is cheapest: at the ends of the segment, in the tail of newest
//! batches, in index entries that are still in memory, and only then in the index file. The first
//! two give the place; the others a place to step on from, batch by batch.

use crate::record::HEADER_BYTES;
use crate::types::Offset;

use super::error::LogError;
use super::log::View;
use super::names::Kind;
use super::offset_index::{OffsetEntry, OffsetIndex};
use super::partition_dir::PartitionDir;
use super::scan::{BatchScan, ScanError, find_offset};
use super::segment::Segment;

/// What memory knows about an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The batch that holds it, or the first after it, lies here; the end if there is none.
    At { start: u32, end: u32 },
    /// It lies here or later.
    From { position: u32 },
    /// The index file may know.
    Unknown,
}

impl Hint {
    /// Looks `offset` up in the segment at `index`, under the view's lock.
    pub fn of(view: &View, index: usize, offset: Offset) -> Hint {
        let segment = &view.segments[index];
        let log_bytes = segment.log_bytes;
        let past_end = Hint::At {
            start: log_bytes,
            end: log_bytes,
        };
        let is_active = index + 1 == view.segments.len();
        let Some(relative_offset) = segment.relative(offset) else {
            return if offset < segment.base_offset {
                Hint::From { position: 0 }
            } else {
                past_end
            };
        };
        if log_bytes == 0 {
            return past_end;
        }
        if is_active {
            if let Some((start, end)) = view.tail.find(relative_offset, log_bytes) {
                return Hint::At { start, end };
            }
            let entries = &view.pending.offsets;
            let above = entries.partition_point(|e| e.relative_offset <= relative_offset);
            if let Some(entry) = above.checked_sub(1).map(|i| entries[i]) {
                return Hint::From {
                    position: entry.position,
                };
            }
        }
        if segment.offset_index_bytes == 0 {
            return Hint::From { position: 0 };
        }
        Hint::Unknown
    }
}

impl PartitionDir {
    /// A place at or before the batch that holds `offset`.
    pub fn floor(&self, segment: &Segment, offset: Offset, hint: Hint) -> Result<u32, LogError> {
        match hint {
            Hint::At { start, .. } => return Ok(start),
            Hint::From { position } => return Ok(position),
            Hint::Unknown => {}
        }
        let Some(relative_offset) = segment.relative(offset) else {
            return Ok(0);
        };
        let file = self.open(segment, Kind::OffsetIndex)?;
        let index = OffsetIndex::new(&*file, segment.offset_index_bytes);
        let entry = index.floor(relative_offset);
        let entry = self.read(segment, Kind::OffsetIndex, entry)?;
        match entry {
            Some(entry) if self.is_believable(segment, entry)? => Ok(entry.position),
            // Stepping from the start is slow and right.
            _ => Ok(0),
        }
    }

    /// Whether a batch begins where an entry of the index says, and not behind its offset: if the
    /// index is damaged, records would be passed over.
    fn is_believable(&self, segment: &Segment, entry: OffsetEntry) -> Result<bool, LogError> {
        if entry.position >= segment.log_bytes {
            return Ok(false);
        }
        let file = self.open(segment, Kind::Log)?;
        let (position, end) = (u64::from(entry.position), u64::from(segment.log_bytes));
        let mut scan = BatchScan::new(&*file, position, end, Offset::ZERO, HEADER_BYTES);
        match scan.next_header() {
            Ok(Some(found)) => {
                let offset = segment.absolute(entry.relative_offset);
                Ok(found.header.base_offset <= offset)
            }
            Ok(None) | Err(ScanError::Invalid { .. }) => Ok(false),
            Err(error) => self.scanned(segment, Err(error)),
        }
    }

    /// Where the batch that holds `offset`, or the first one after it, starts and ends; the end of
    /// the segment if there is none.
    pub fn locate(
        &self,
        segment: &Segment,
        offset: Offset,
        hint: Hint,
    ) -> Result<(u32, u32), LogError> {
        if let Hint::At { start, end } = hint {
            return Ok((start, end));
        }
        let position = self.floor(segment, offset, hint)?;
        let file = self.open(segment, Kind::Log)?;
        let end = u64::from(segment.log_bytes);
        let found = find_offset(&*file, u64::from(position), end, offset);
        let found = self.scanned(segment, found)?;
        Ok(match found {
            Some(found) => (found.position as u32, found.end() as u32),
            None => (segment.log_bytes, segment.log_bytes),
        })
    }
}
