//! Files that are arrays of entries of one size: the offset index and the time index.
//!
//! 1. Entries ascend. A search reads pages of 4 KiB, never the whole file.
//! 2. Kafka makes an index at its full size and cuts it when the segment is done: after a crash
//!    zeros follow the entries. They are padding and never found.

use std::io;
use std::marker::PhantomData;

use crate::host::File;

const PAGE_BYTES: u32 = 4096;

/// What a file has entries of: `N` bytes each.
pub(super) trait Entry<const N: usize>: Copy {
    fn from_bytes(bytes: &[u8; N]) -> Self;

    /// Zeros that Kafka left behind the entries; `index` is the place in the file.
    fn is_padding(self, index: u32) -> bool;
}

/// The entries in the first `bytes` of `file`.
pub(super) struct Entries<'a, E, const N: usize> {
    file: &'a dyn File,
    count: u32,
    of: PhantomData<E>,
}

impl<'a, E: Entry<N>, const N: usize> Entries<'a, E, N> {
    pub fn new(file: &'a dyn File, bytes: u32) -> Self {
        Entries {
            file,
            count: bytes / N as u32,
            of: PhantomData,
        }
    }

    /// The number of entries without padding, and the last one.
    pub fn end(&self) -> io::Result<(u32, Option<E>)> {
        self.partition(|_| true)
    }

    pub fn get(&self, index: u32) -> io::Result<Option<E>> {
        if index >= self.count {
            return Ok(None);
        }
        let entry = self.page(index, index + 1)?.first().copied();
        Ok(entry.filter(|entry| !entry.is_padding(index)))
    }

    /// How many entries at the start hold `is_before`, which is true for a leading part and false
    /// for the rest; and the last of them.
    pub fn partition(&self, is_before: impl Fn(E) -> bool) -> io::Result<(u32, Option<E>)> {
        let page_entries = PAGE_BYTES / N as u32;
        let (mut low, mut high) = (0, self.count);
        let mut last = None;
        while low < high {
            // The page around the middle; the whole rest once that is no larger than a page.
            let middle = low + (high - low) / 2;
            let start = middle.saturating_sub(page_entries / 2).max(low);
            let end = (start + page_entries).min(high);
            let page = self.page(start, end)?;
            let before = page
                .iter()
                .zip(start..)
                .take_while(|(entry, index)| !entry.is_padding(*index) && is_before(**entry))
                .count();
            if let Some(entry) = before.checked_sub(1).map(|i| page[i]) {
                last = Some(entry);
                low = start + before as u32;
                // Inside the page the answer is final.
                if before < page.len() {
                    break;
                }
            } else {
                high = start;
            }
            // The file is shorter than it should be: what is missing counts as "after".
            if page.len() < (end - start) as usize {
                high = high.min(start + page.len() as u32);
            }
        }
        Ok((low, last))
    }

    fn page(&self, start: u32, end: u32) -> io::Result<Vec<E>> {
        let mut bytes = vec![0; (end - start) as usize * N];
        let read_bytes = self.file.read_at(&mut bytes, u64::from(start) * N as u64)?;
        let whole = bytes[..read_bytes].chunks_exact(N);
        let entry = |chunk: &[u8]| E::from_bytes(chunk.try_into().expect("chunks have N bytes"));
        Ok(whole.map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;
    use crate::host::{Disk, OpenMode, RealDisk};

    impl Entry<8> for u64 {
        fn from_bytes(bytes: &[u8; 8]) -> u64 {
            u64::from_be_bytes(*bytes)
        }

        fn is_padding(self, index: u32) -> bool {
            index > 0 && self == 0
        }
    }

    #[test]
    fn every_point_of_every_size_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("entries");
        let file = RealDisk.open(&path, OpenMode::Create).unwrap();
        let bytes: Vec<u8> = (0..5000_u64).flat_map(|n| n.to_be_bytes()).collect();
        file.write_at(&mut [IoSlice::new(&bytes)], 0).unwrap();
        for count in [0, 1, 2, 511, 512, 513, 1024, 1025, 5000, 5100] {
            let entries = Entries::<u64, 8>::new(&*file, count * 8);
            let there = count.min(5000);
            for point in (0..=there).step_by(1 + there as usize / 97).chain([there]) {
                let (found, last) = entries.partition(|e| e < u64::from(point)).unwrap();
                assert_eq!(found, point, "of {count}");
                let before = point.checked_sub(1).map(u64::from);
                assert_eq!(last, before);
            }
        }
    }
}
