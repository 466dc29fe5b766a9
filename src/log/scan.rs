//! Steps from batch to batch through a segment's `.log`.
//!
//! A window of the file is read at a time: small for a look-up, which needs a few headers, large
//! for recovery, which needs everything. A batch whose header cannot be one, whose offsets do not
//! follow or that goes over the end is [`ScanError::Invalid`]; whether its bytes are right is the
//! caller's question ([`BatchView::is_crc_right`]).

use std::io;

use crate::host::File;
use crate::record::{BatchHeader, BatchView, HEADER_BYTES};
use crate::types::Offset;

/// For look-ups: one index interval and a batch or two.
pub(super) const LOOKUP_BYTES: usize = 8 << 10;
/// For recovery.
pub(super) const RECOVERY_BYTES: usize = 1 << 20;

const ENDS_IN_HEADER: &str = "the file ends inside a header";
const ENDS_IN_BATCH: &str = "the file ends inside a batch";

#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no batch at {position}: {reason}")]
    Invalid { position: u64, reason: &'static str },
}

impl ScanError {
    /// What is there may be right, and there was more of it.
    pub fn is_cut(&self) -> bool {
        let cut = [ENDS_IN_HEADER, ENDS_IN_BATCH];
        matches!(self, ScanError::Invalid { reason, .. } if cut.contains(reason))
    }
}

/// Where a batch lies, and its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub position: u64,
    pub header: BatchHeader,
}

impl Found {
    pub fn end(&self) -> u64 {
        self.position + self.header.size_bytes() as u64
    }
}

pub(super) struct BatchScan<'a> {
    file: &'a dyn File,
    /// Of the next batch.
    position: u64,
    end: u64,
    /// The smallest base offset that the next batch may have.
    offset_min: Offset,
    window: Vec<u8>,
    window_start: u64,
    window_bytes: usize,
}

impl<'a> BatchScan<'a> {
    /// Of the bytes `position..end` of `file`, which hold no offset below `offset_min`.
    pub fn new(
        file: &'a dyn File,
        position: u64,
        end: u64,
        offset_min: Offset,
        window_bytes: usize,
    ) -> Self {
        BatchScan {
            file,
            position,
            end,
            offset_min,
            window: Vec::new(),
            window_start: 0,
            window_bytes,
        }
    }

    pub fn next_header(&mut self) -> Result<Option<Found>, ScanError> {
        let position = self.position;
        if position >= self.end {
            return Ok(None);
        }
        let invalid = |reason| ScanError::Invalid { position, reason };
        let left = self.end - position;
        if left < HEADER_BYTES as u64 {
            return Err(invalid(ENDS_IN_HEADER));
        }
        let bytes = self.fill(position, HEADER_BYTES)?;
        let header = BatchHeader::read(bytes).map_err(|_| invalid("no header"))?;
        if header.size_bytes() as u64 > left {
            return Err(invalid(ENDS_IN_BATCH));
        }
        let overflows = header
            .base_offset
            .0
            .checked_add(i64::from(header.last_offset_delta));
        if header.base_offset < self.offset_min || header.last_offset_delta < 0 {
            return Err(invalid("its offsets do not follow"));
        }
        if overflows.is_none_or(|last| last == i64::MAX) {
            return Err(invalid("its offsets are too large"));
        }
        self.position += header.size_bytes() as u64;
        self.offset_min = header.next_offset();
        Ok(Some(Found { position, header }))
    }

    /// The body of a batch that `next_header` gave.
    pub fn body(&mut self, found: &Found) -> Result<&[u8], ScanError> {
        let bytes = self.fill(found.position, found.header.size_bytes())?;
        if bytes.len() < found.header.size_bytes() {
            return Err(ScanError::Invalid {
                position: found.position,
                reason: "the file is shorter than it was",
            });
        }
        Ok(&bytes[HEADER_BYTES..])
    }

    /// As `next_header`, and the checksum is right.
    pub fn next_checked(&mut self) -> Result<Option<Found>, ScanError> {
        let Some(found) = self.next_header()? else {
            return Ok(None);
        };
        let body = self.body(&found)?;
        let view = BatchView {
            position: 0,
            header: found.header,
            body,
        };
        if view.is_crc_right() {
            return Ok(Some(found));
        }
        self.position = found.position;
        Err(ScanError::Invalid {
            position: found.position,
            reason: "the checksum is wrong",
        })
    }

    /// The `bytes` bytes at `position`, or what the file has of them.
    fn fill(&mut self, position: u64, bytes: usize) -> io::Result<&[u8]> {
        let window_end = self.window_start + self.window.len() as u64;
        if position < self.window_start || position + bytes as u64 > window_end {
            // Never more than the file has, whatever a length says.
            let left = (self.end - position).min(usize::MAX as u64) as usize;
            let wanted = bytes.max(self.window_bytes).min(left);
            self.window.resize(wanted, 0);
            let read_bytes = self.file.read_at(&mut self.window, position)?;
            self.window.truncate(read_bytes);
            self.window_start = position;
        }
        let start = (position - self.window_start) as usize;
        let end = (start + bytes).min(self.window.len());
        Ok(&self.window[start..end])
    }
}

/// The first batch at or after `position` that holds `offset` or comes after it.
pub(super) fn find_offset(
    file: &dyn File,
    position: u64,
    end: u64,
    offset: Offset,
) -> Result<Option<Found>, ScanError> {
    let mut scan = BatchScan::new(file, position, end, Offset::ZERO, LOOKUP_BYTES);
    while let Some(found) = scan.next_header()? {
        if found.header.last_offset() >= offset {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::sync::Arc;

    use super::*;
    use crate::host::{Disk, OpenMode, RealDisk};
    use crate::record::BatchBuilder;
    use crate::types::TimestampMs;

    fn batch(base_offset: i64, value_bytes: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.base_offset = Offset(base_offset);
        builder.append(TimestampMs(1), None, Some(&vec![7; value_bytes]));
        builder.append(TimestampMs(1), None, None);
        builder.build().unwrap().to_bytes().to_vec()
    }

    fn file(dir: &tempfile::TempDir, bytes: &[u8]) -> Arc<dyn File> {
        let path = dir.path().join("f");
        let file = RealDisk.open(&path, OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(&mut [IoSlice::new(bytes)], 0).unwrap();
        file
    }

    fn stop(bytes: &[u8]) -> (usize, Option<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir, bytes);
        let end = bytes.len() as u64;
        let mut scan = BatchScan::new(&*file, 0, end, Offset(0), 100);
        let mut batches = 0;
        loop {
            match scan.next_checked() {
                Ok(Some(_)) => batches += 1,
                Ok(None) => return (batches, None),
                Err(ScanError::Invalid { position, .. }) => {
                    assert_eq!(scan.position, position);
                    return (batches, Some(position));
                }
                Err(ScanError::Io(e)) => panic!("{e}"),
            }
        }
    }

    #[test]
    fn every_kind_of_damage_ends_the_scan_where_it_is() {
        let (first, second) = (batch(0, 10), batch(5, 3000));
        let both = [&first[..], &second].concat();
        let at = first.len() as u64;
        assert_eq!(stop(&both), (2, None));
        for cut in first.len() + 1..both.len() {
            assert_eq!(stop(&both[..cut]), (1, Some(at)), "cut at {cut}");
        }
        let mut torn = both.clone();
        torn.extend([0; 100]);
        assert_eq!(stop(&torn), (2, Some(both.len() as u64)));
        *torn[..both.len()].last_mut().unwrap() ^= 1;
        assert_eq!(stop(&torn), (1, Some(at)));
        // A length of two gigabytes is not believed.
        torn[first.len() + 8] = 0x7f;
        assert_eq!(stop(&torn), (1, Some(at)));
        // Offset 1 is in the first batch.
        assert_eq!(stop(&[&first[..], &batch(1, 5)].concat()), (1, Some(at)));
    }

    #[test]
    fn an_offset_in_a_gap_finds_the_batch_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = [batch(0, 10), batch(5, 20_000), batch(10, 1)].concat();
        let file = file(&dir, &bytes);
        let base = |offset| {
            find_offset(&*file, 0, bytes.len() as u64, Offset(offset))
                .unwrap()
                .map(|f| f.header.base_offset.0)
        };
        assert_eq!((base(0), base(1), base(2)), (Some(0), Some(0), Some(5)));
        assert_eq!((base(6), base(7), base(12)), (Some(5), Some(10), None));
    }
}
