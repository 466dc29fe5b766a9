//! `.index`: from offsets to positions in `.log`. Big endian, 8 bytes an entry, ascending.
//!
//! ```text
//! 0 relative offset u32   last offset of a batch, minus the segment's base offset
//! 4 position        u32   where that batch starts
//! ```
//!
//! 1. An entry is made for a batch when more than `index.interval.bytes` were appended since the
//!    last one; the first batch of a segment has none.
//! 2. It only speeds things up: a crash may leave any leading part of it, followed by zeros.
//!    Recovery cuts it back to the newest producer snapshot and makes the rest anew.

use std::io;

use crate::host::File;

use super::entries::{Entries, Entry};

pub(super) const ENTRY_BYTES: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetEntry {
    pub relative_offset: u32,
    pub position: u32,
}

impl OffsetEntry {
    pub fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.relative_offset.to_be_bytes());
        bytes[4..].copy_from_slice(&self.position.to_be_bytes());
        bytes
    }
}

impl Entry<8> for OffsetEntry {
    fn from_bytes(bytes: &[u8; 8]) -> OffsetEntry {
        let number = u64::from_be_bytes(*bytes);
        OffsetEntry {
            relative_offset: (number >> 32) as u32,
            position: number as u32,
        }
    }

    fn is_padding(self, index: u32) -> bool {
        index > 0 && self.relative_offset == 0
    }
}

/// The entries in the first `bytes` of the file.
pub(super) struct OffsetIndex<'a>(Entries<'a, OffsetEntry, 8>);

impl<'a> OffsetIndex<'a> {
    pub fn new(file: &'a dyn File, bytes: u32) -> Self {
        OffsetIndex(Entries::new(file, bytes))
    }

    /// The number of entries without padding, and the last one.
    pub fn end(&self) -> io::Result<(u32, Option<OffsetEntry>)> {
        self.0.end()
    }

    /// The last entry that is not above `relative_offset`.
    pub fn floor(&self, relative_offset: u32) -> io::Result<Option<OffsetEntry>> {
        Ok(self
            .0
            .partition(|e| e.relative_offset <= relative_offset)?
            .1)
    }

    /// How many entries are below `relative_offset`, and the last of them.
    pub fn below(&self, relative_offset: u32) -> io::Result<(u32, Option<OffsetEntry>)> {
        self.0.partition(|e| e.relative_offset < relative_offset)
    }

    /// The first entry at or after a position in the log.
    pub fn at_or_after(&self, position: u32) -> io::Result<Option<OffsetEntry>> {
        let (count, _) = self.0.partition(|e| e.position < position)?;
        self.0.get(count)
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
            .open(&dir.path().join("i"), OpenMode::Create)
            .unwrap();
        let entry = |n: u32| OffsetEntry {
            relative_offset: n * 10,
            position: n * 5000,
        };
        let mut bytes: Vec<u8> = (1..=3000).flat_map(|n| entry(n).to_bytes()).collect();
        bytes.resize(100_000, 0);
        file.write_at(&mut [IoSlice::new(&bytes)], 0).unwrap();
        let index = OffsetIndex::new(&*file, 100_000);
        assert_eq!(index.end().unwrap(), (3000, Some(entry(3000))));
        assert_eq!(index.floor(9).unwrap(), None);
        assert_eq!(index.floor(10).unwrap(), Some(entry(1)));
        assert_eq!(index.floor(12_345).unwrap(), Some(entry(1234)));
        assert_eq!(index.floor(u32::MAX).unwrap(), Some(entry(3000)));
        assert_eq!(index.below(20).unwrap(), (1, Some(entry(1))));
        assert_eq!(index.at_or_after(5001).unwrap(), Some(entry(2)));
        assert_eq!(index.at_or_after(3000 * 5000 + 1).unwrap(), None);
        assert_eq!(entry(1).to_bytes(), [0, 0, 0, 10, 0, 0, 0x13, 0x88]);
    }
}
