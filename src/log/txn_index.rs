//! `.txnindex`: the aborted transactions whose abort marker lies in the segment. Big endian, 34
//! bytes an entry, in the order of the markers.
//!
//! ```text
//!  0 version            i16 = 0
//!  2 producer id        i64
//! 10 first offset       i64   of the transaction; may lie in an earlier segment
//! 18 last offset        i64   the marker's
//! 26 last stable offset i64   when the marker was appended
//! ```
//!
//! The file is made with the first entry. An entry is written right after its marker, so a crash
//! may leave the marker alone: recovery writes the entries of what it reads again.

use std::io;

use crate::host::File;
use crate::types::{Offset, ProducerId};

pub(super) const ENTRY_BYTES: u32 = 34;
const READ_ENTRIES: u32 = 120;

/// An aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub last_stable_offset: Offset,
}

impl AbortedTxn {
    pub(super) fn to_bytes(self) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        let fields = [
            self.producer_id.0,
            self.first_offset.0,
            self.last_offset.0,
            self.last_stable_offset.0,
        ];
        for (place, field) in bytes[2..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// `None`: not version 0.
    fn from_bytes(bytes: &[u8]) -> Option<AbortedTxn> {
        let field = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(i64::from_be_bytes(bytes.try_into().ok()?))
        };
        (bytes.get(..2)? == [0, 0]).then_some(())?;
        Some(AbortedTxn {
            producer_id: ProducerId(field(2)?),
            first_offset: Offset(field(10)?),
            last_offset: Offset(field(18)?),
            last_stable_offset: Offset(field(26)?),
        })
    }
}

/// Calls `visit` with each entry of the first `bytes` until it says `false`. Returns whether it
/// went through to the end; an entry that makes no sense is the end.
pub(super) fn visit(
    file: &dyn File,
    bytes: u32,
    mut visit: impl FnMut(u32, AbortedTxn) -> bool,
) -> io::Result<bool> {
    let count = bytes / ENTRY_BYTES;
    let mut page = vec![0; (count.min(READ_ENTRIES) * ENTRY_BYTES) as usize];
    let mut index = 0;
    while index < count {
        let position = u64::from(index * ENTRY_BYTES);
        let read_bytes = file.read_at(&mut page, position)?;
        let entries = page[..read_bytes].chunks_exact(ENTRY_BYTES as usize);
        if entries.len() == 0 {
            break;
        }
        for bytes in entries.take((count - index) as usize) {
            let Some(entry) = AbortedTxn::from_bytes(bytes) else {
                return Ok(true);
            };
            if !visit(index, entry) {
                return Ok(false);
            }
            index += 1;
        }
    }
    Ok(true)
}

/// The number of entries whose marker is below `offset`: what a truncation to it keeps.
pub(super) fn count_below(file: &dyn File, bytes: u32, offset: Offset) -> io::Result<u32> {
    let mut count = 0;
    visit(file, bytes, |_, entry| {
        let keep = entry.last_offset < offset;
        count += u32::from(keep);
        keep
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;
    use crate::host::{Disk, OpenMode, RealDisk};

    #[test]
    fn entries_are_read_in_pages_and_cut_by_marker() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk
            .open(&dir.path().join("x"), OpenMode::Create)
            .unwrap();
        let entry = |n: i64| AbortedTxn {
            producer_id: ProducerId(n),
            first_offset: Offset(n * 10),
            last_offset: Offset(n * 10 + 5),
            last_stable_offset: Offset(n * 10 + 6),
        };
        let bytes: Vec<u8> = (0..500).flat_map(|n| entry(n).to_bytes()).collect();
        file.write_at(&mut [IoSlice::new(&bytes)], 0).unwrap();
        let mut seen = Vec::new();
        let whole = visit(&*file, bytes.len() as u32, |_, e| {
            seen.push(e);
            true
        });
        assert!(whole.unwrap());
        assert_eq!(seen, (0..500).map(entry).collect::<Vec<_>>());
        let below = |offset| count_below(&*file, 17_000, Offset(offset)).unwrap();
        assert_eq!((below(5), below(6), below(4000)), (0, 1, 400));
        assert_eq!(bytes[34..44], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
