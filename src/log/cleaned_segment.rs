//! Writes one compacted segment, under names that end with `.cleaned`.
//!
//! What a crash leaves has no meaning and is removed at the next start. `finish` makes the files
//! durable; only then may they get other names (`replace`).

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

use crate::host::{File, OpenMode};
use crate::record::Batch;
use crate::types::{Offset, TimestampMs};

use super::error::LogError;
use super::names::{self, Kind};
use super::partition_dir::PartitionDir;
use super::segment::{PendingIndex, Segment};
use super::txn_index::AbortedTxn;

/// So much is written at a time.
const WRITE_BYTES: usize = 1 << 20;

pub(super) struct CleanedSegment<'a> {
    dir: &'a PartitionDir,
    index_interval_bytes: u32,
    segment: Segment,
    log: Arc<dyn File>,
    /// Not written yet; `segment.log_bytes` counts it.
    buffer: Vec<u8>,
    pending: PendingIndex,
    aborted: Vec<u8>,
}

impl<'a> CleanedSegment<'a> {
    pub fn create(
        dir: &'a PartitionDir,
        base_offset: Offset,
        index_interval_bytes: u32,
        now: TimestampMs,
    ) -> Result<CleanedSegment<'a>, LogError> {
        remove(dir, base_offset)?;
        let path = path(dir, base_offset, Kind::Log);
        let log = dir.core.change("make", &path, || {
            dir.core.disk.open(&path, OpenMode::Create)
        })?;
        Ok(CleanedSegment {
            dir,
            index_interval_bytes,
            segment: Segment::new(base_offset, dir.core.files.new_key(), now),
            log,
            buffer: Vec::new(),
            pending: PendingIndex::default(),
            aborted: Vec::new(),
        })
    }

    pub fn append(&mut self, batch: &Batch) -> Result<(), LogError> {
        let base_offset = self.segment.base_offset;
        let position = self.segment.log_bytes;
        let end = position as usize + batch.size_bytes();
        if end > i32::MAX as usize || self.segment.relative(batch.header.last_offset()).is_none() {
            return Err(LogError::Corrupt {
                path: path(self.dir, base_offset, Kind::Log),
                position: u64::from(position),
                reason: "the compacted segment is too large",
            });
        }
        let segment = &mut self.segment;
        self.pending
            .add(segment, &batch.header, position, self.index_interval_bytes);
        segment.log_bytes = end as u32;
        self.buffer.extend_from_slice(&batch.header.to_bytes());
        self.buffer.extend_from_slice(&batch.body);
        if self.buffer.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    pub fn log_bytes(&self) -> u64 {
        u64::from(self.segment.log_bytes)
    }

    pub fn add_aborted(&mut self, txn: AbortedTxn) {
        self.aborted.extend(txn.to_bytes());
    }

    fn write(&mut self) -> Result<(), LogError> {
        let position = u64::from(self.segment.log_bytes) - self.buffer.len() as u64;
        let path = path(self.dir, self.segment.base_offset, Kind::Log);
        self.dir.core.change("write", &path, || {
            self.log
                .write_at(&mut [IoSlice::new(&self.buffer)], position)
        })?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left, and makes everything durable but the names.
    pub fn finish(mut self) -> Result<Segment, LogError> {
        if !self.buffer.is_empty() {
            self.write()?;
        }
        let base_offset = self.segment.base_offset;
        let path_of = |kind| path(self.dir, base_offset, kind);
        self.dir
            .core
            .change("sync", &path_of(Kind::Log), || self.log.sync())?;
        self.pending.add_time(&self.segment);
        let offsets: Vec<u8> = self
            .pending
            .offsets
            .iter()
            .flat_map(|e| e.to_bytes())
            .collect();
        let times: Vec<u8> = self
            .pending
            .times
            .iter()
            .flat_map(|e| e.to_bytes())
            .collect();
        for (kind, bytes) in [
            (Kind::OffsetIndex, &offsets),
            (Kind::TimeIndex, &times),
            (Kind::TxnIndex, &self.aborted),
        ] {
            if kind == Kind::TxnIndex && bytes.is_empty() {
                continue;
            }
            let path = path_of(kind);
            self.dir.core.change("write", &path, || {
                let file = self.dir.core.disk.open(&path, OpenMode::Create)?;
                file.write_at(&mut [IoSlice::new(bytes)], 0)?;
                file.sync()
            })?;
            *self.segment.bytes_mut(kind) = bytes.len() as u32;
        }
        Ok(self.segment)
    }
}

/// Removes what an earlier, broken off compaction has left.
pub(super) fn remove(dir: &PartitionDir, base_offset: Offset) -> Result<(), LogError> {
    for kind in Kind::ALL {
        dir.core.remove_if_there(&path(dir, base_offset, kind))?;
    }
    Ok(())
}

pub(super) fn path(dir: &PartitionDir, base_offset: Offset, kind: Kind) -> PathBuf {
    let name = names::segment_file(base_offset, kind);
    dir.file(&format!("{name}{}", names::CLEANED_SUFFIX))
}
