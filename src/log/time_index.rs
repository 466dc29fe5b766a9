//! `.timeindex`: from timestamps to offsets. Big endian, 12 bytes an entry, ascending.
//!
//! ```text
//! 0 timestamp       i64   the largest so far in the segment
//! 8 relative offset u32   last offset of the batch that brought it, minus the base offset
//! ```
//!
//! 1. An entry is made together with one of the offset index, and a last one when the segment is
//!    done, each time only if the largest timestamp has grown.
//! 2. The last entry of a segment that is done has its largest timestamp. A segment in which every
//!    timestamp is negative has no entry.
//! 3. A crash leaves what it leaves of the offset index, but not always the same length of it.

use std::io;

use crate::host::File;
use crate::types::TimestampMs;

use super::entries::{Entries, Entry};

pub(super) const ENTRY_BYTES: u32 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeEntry {
    pub timestamp: TimestampMs,
    pub relative_offset: u32,
}

impl TimeEntry {
    pub fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.timestamp.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.relative_offset.to_be_bytes());
        bytes
    }
}

impl Entry<12> for TimeEntry {
    fn from_bytes(bytes: &[u8; 12]) -> TimeEntry {
        let [timestamp @ .., a, b, c, d] = *bytes;
        TimeEntry {
            timestamp: TimestampMs(i64::from_be_bytes(timestamp)),
            relative_offset: u32::from_be_bytes([a, b, c, d]),
        }
    }

    fn is_padding(self, index: u32) -> bool {
        index > 0 && self.timestamp.0 == 0
    }
}

/// The entries in the first `bytes` of the file.
pub(super) struct TimeIndex<'a>(Entries<'a, TimeEntry, 12>);

impl<'a> TimeIndex<'a> {
    pub fn new(file: &'a dyn File, bytes: u32) -> Self {
        TimeIndex(Entries::new(file, bytes))
    }

    /// The number of entries without padding, and the last one.
    pub fn end(&self) -> io::Result<(u32, Option<TimeEntry>)> {
        self.0.end()
    }

    /// The last entry before the timestamp: what it names is too old, what follows may not be.
    pub fn before(&self, timestamp: TimestampMs) -> io::Result<Option<TimeEntry>> {
        Ok(self.0.partition(|e| e.timestamp < timestamp)?.1)
    }

    /// How many entries are below `relative_offset`, and the last of them.
    pub fn below(&self, relative_offset: u32) -> io::Result<(u32, Option<TimeEntry>)> {
        self.0.partition(|e| e.relative_offset < relative_offset)
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;
    use crate::host::{Disk, OpenMode, RealDisk};

    #[test]
    fn lookups_stop_at_padding() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk
            .open(&dir.path().join("t"), OpenMode::Create)
            .unwrap();
        let entry = |n: u32| TimeEntry {
            timestamp: TimestampMs(i64::from(n) * 100),
            relative_offset: n * 10,
        };
        let mut bytes: Vec<u8> = (1..=1000).flat_map(|n| entry(n).to_bytes()).collect();
        bytes.resize(24_000, 0);
        file.write_at(&mut [IoSlice::new(&bytes)], 0).unwrap();
        let index = TimeIndex::new(&*file, 24_000);
        assert_eq!(index.end().unwrap(), (1000, Some(entry(1000))));
        assert_eq!(index.before(TimestampMs(100)).unwrap(), None);
        assert_eq!(index.before(TimestampMs(101)).unwrap(), Some(entry(1)));
        assert_eq!(index.below(20).unwrap(), (1, Some(entry(1))));
        let one = entry(1).to_bytes();
        assert_eq!(one, [0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 10]);
    }
}
