//! A segment: the batches from its base offset up to the next segment's, and the indexes over them.
//!
//! [`Segment`] is what is kept of it in memory: some eighty bytes, no file and no map. The last
//! segment of a log is the active one. Only that one has a [`Tail`] and [`PendingIndex`].
//!
//! 1. `log_bytes` is the end of the last whole batch. The file may be longer for a moment, while a
//!    batch is being written; nobody reads there.
//! 2. `*_index_bytes` count what is on disk and valid, without padding where that is known.
//! 3. Positions and relative offsets fit in 31 bits, since Kafka's do.

use std::collections::VecDeque;

use crate::record::BatchHeader;
use crate::types::{Offset, TimestampMs};

use super::file_cache::FileKey;
use super::names::Kind;
use super::offset_index::{self, OffsetEntry};
use super::time_index::{self, TimeEntry};

/// The largest timestamp of a segment, and the last offset of the first batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxTimestamp {
    pub timestamp: TimestampMs,
    pub offset: Offset,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub base_offset: Offset,
    pub key: FileKey,
    pub log_bytes: u32,
    pub offset_index_bytes: u32,
    pub time_index_bytes: u32,
    pub txn_index_bytes: u32,
    /// `None`: in the time index, not read yet.
    pub max_timestamp: Option<MaxTimestamp>,
    /// The max timestamp of the first batch, which `segment.ms` counts from. `None`: not read yet.
    pub first_timestamp: Option<TimestampMs>,
    /// When this process opened or made it: its age if its batches have no timestamps.
    pub opened: TimestampMs,
}

impl Segment {
    pub fn new(base_offset: Offset, key: FileKey, now: TimestampMs) -> Segment {
        Segment {
            base_offset,
            key,
            log_bytes: 0,
            offset_index_bytes: 0,
            time_index_bytes: 0,
            txn_index_bytes: 0,
            max_timestamp: Some(MaxTimestamp {
                timestamp: TimestampMs::NONE,
                offset: base_offset,
            }),
            first_timestamp: None,
            opened: now,
        }
    }

    pub fn bytes_mut(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Log => &mut self.log_bytes,
            Kind::OffsetIndex => &mut self.offset_index_bytes,
            Kind::TimeIndex => &mut self.time_index_bytes,
            Kind::TxnIndex => &mut self.txn_index_bytes,
        }
    }

    /// `None`: too far away for this segment.
    pub fn relative(&self, offset: Offset) -> Option<u32> {
        let relative = offset.0.checked_sub(self.base_offset.0)?;
        u32::try_from(relative)
            .ok()
            .filter(|r| *r <= i32::MAX as u32)
    }

    pub fn absolute(&self, relative_offset: u32) -> Offset {
        self.base_offset.plus(i64::from(relative_offset))
    }
}

/// Index entries of the active segment that are not in the files yet: a write for every few KiB
/// appended would double the number of system calls.
#[derive(Debug, Default)]
pub(super) struct PendingIndex {
    pub offsets: Vec<OffsetEntry>,
    pub times: Vec<TimeEntry>,
    /// The newest timestamp in the time index, files and pending; the next must be larger.
    pub last_timestamp: Option<TimestampMs>,
    /// Appended since the last entry.
    pub bytes_since_entry: u32,
}

impl PendingIndex {
    pub const ENTRIES_MAX: usize = 64;

    /// Takes in the batch that lies at `position`.
    pub fn add(
        &mut self,
        segment: &mut Segment,
        header: &BatchHeader,
        position: u32,
        index_interval_bytes: u32,
    ) {
        let last_offset = header.last_offset();
        let is_larger = segment
            .max_timestamp
            .is_none_or(|max| header.max_timestamp > max.timestamp);
        if is_larger {
            segment.max_timestamp = Some(MaxTimestamp {
                timestamp: header.max_timestamp,
                offset: last_offset,
            });
        }
        if position == 0 {
            segment.first_timestamp = Some(header.max_timestamp);
        }
        if self.bytes_since_entry > index_interval_bytes {
            let relative_offset = (last_offset.0 - segment.base_offset.0) as u32;
            self.offsets.push(OffsetEntry {
                relative_offset,
                position,
            });
            self.add_time(segment);
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size_bytes() as u32;
    }

    /// Makes an entry of the largest timestamp, if it has grown.
    pub fn add_time(&mut self, segment: &Segment) {
        let Some(max) = segment.max_timestamp else {
            return;
        };
        if max.timestamp > self.last_timestamp.unwrap_or(TimestampMs::NONE) {
            self.times.push(TimeEntry {
                timestamp: max.timestamp,
                relative_offset: (max.offset.0 - segment.base_offset.0) as u32,
            });
            self.last_timestamp = Some(max.timestamp);
        }
    }

    pub fn is_due(&self) -> bool {
        self.offsets.len() >= Self::ENTRIES_MAX || self.times.len() >= Self::ENTRIES_MAX
    }

    /// Whether one of the indexes has no room for another entry.
    pub fn is_full(&self, segment: &Segment, segment_index_bytes: u32) -> bool {
        let pending = |entries: usize, entry_bytes: u32| entries as u32 * entry_bytes;
        let offsets = pending(self.offsets.len(), offset_index::ENTRY_BYTES);
        let times = pending(self.times.len(), time_index::ENTRY_BYTES);
        let offsets_max = segment_index_bytes / offset_index::ENTRY_BYTES;
        let times_max = segment_index_bytes / time_index::ENTRY_BYTES;
        let offsets_count = (segment.offset_index_bytes + offsets) / offset_index::ENTRY_BYTES;
        let times_count = (segment.time_index_bytes + times) / time_index::ENTRY_BYTES;
        // The time index keeps room for the entry that ends it.
        offsets_count >= offsets_max || times_count + 1 >= times_max
    }
}

/// Where one of the newest batches lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TailEntry {
    pub base: u32,
    pub last: u32,
    pub position: u32,
}

/// The newest batches of the active segment, so that a reader at the end needs no look-up on disk.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<TailEntry>);

impl Tail {
    const ENTRIES_MAX: usize = 32;

    pub fn push(&mut self, entry: TailEntry) {
        if self.0.len() == Self::ENTRIES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    pub fn clear(&mut self) {
        self.0 = VecDeque::new();
    }

    /// The batch that holds `relative_offset` or comes after it, and where it ends, if the tail
    /// reaches back far enough to know.
    pub fn find(&self, relative_offset: u32, log_bytes: u32) -> Option<(u32, u32)> {
        let oldest = self.0.front()?;
        if relative_offset < oldest.base && oldest.position > 0 {
            return None;
        }
        let at = self.0.partition_point(|e| e.last < relative_offset);
        let entry = self.0.get(at)?;
        let end = self.0.get(at + 1).map_or(log_bytes, |e| e.position);
        Some((entry.position, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_knows_the_newest_batches_only() {
        let mut tail = Tail::default();
        assert_eq!(tail.find(0, 0), None);
        // Batches of two records and a gap of one: 0-1, 3-4, 6-7 ...
        for n in 0..40 {
            tail.push(TailEntry {
                base: n * 3,
                last: n * 3 + 1,
                position: n * 100,
            });
        }
        assert_eq!(tail.find(7 * 3, 4000), None);
        assert_eq!(tail.find(8 * 3, 4000), Some((800, 900)));
        assert_eq!(tail.find(8 * 3 + 1, 4000), Some((800, 900)));
        assert_eq!(tail.find(8 * 3 + 2, 4000), Some((900, 1000)));
        assert_eq!(tail.find(39 * 3, 4000), Some((3900, 4000)));
        assert_eq!(tail.find(39 * 3 + 2, 4000), None);
    }

    #[test]
    fn a_full_index_is_noticed() {
        let pending = PendingIndex::default();
        let files = super::super::FileCache::new(1);
        let mut segment = Segment::new(Offset(0), files.new_key(), TimestampMs(0));
        assert!(!pending.is_full(&segment, 100));
        segment.offset_index_bytes = 96;
        assert!(pending.is_full(&segment, 100));
        segment.offset_index_bytes = 0;
        segment.time_index_bytes = 84;
        assert!(pending.is_full(&segment, 100));
    }
}
