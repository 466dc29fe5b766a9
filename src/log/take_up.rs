//! Takes an active segment up where its indexes end: after a clean stop, and after a truncation.
//! Reads the headers from the last index entry on, which are those of one index interval.

use crate::types::{Offset, TimestampMs};

use super::error::LogError;
use super::names::Kind;
use super::offset_index::{self, OffsetIndex};
use super::partition_dir::PartitionDir;
use super::scan::{BatchScan, LOOKUP_BYTES};
use super::segment::{MaxTimestamp, PendingIndex, Segment};
use super::time_index::{self, TimeIndex};

pub(super) struct TakenUp {
    pub segment: Segment,
    pub pending: PendingIndex,
    /// `None`: no batch in it.
    pub end: Option<Offset>,
}

impl PartitionDir {
    /// Fails with [`LogError::Corrupt`] when the end is not one that a clean stop leaves.
    pub fn take_up(&self, segment: &Segment) -> Result<TakenUp, LogError> {
        let mut segment = *segment;
        let mut position = 0;
        if segment.offset_index_bytes > 0 {
            let file = self.open(&segment, Kind::OffsetIndex)?;
            let end = OffsetIndex::new(&*file, segment.offset_index_bytes).end();
            let (count, entry) = self.read(&segment, Kind::OffsetIndex, end)?;
            let bytes = count * offset_index::ENTRY_BYTES;
            self.cut_padding(&mut segment, Kind::OffsetIndex, bytes)?;
            position = entry.map_or(0, |e| e.position);
        }
        let (max_timestamp, last_timestamp) = self.indexed_max(&mut segment)?;
        segment.max_timestamp = Some(max_timestamp);
        let mut pending = PendingIndex {
            last_timestamp,
            ..PendingIndex::default()
        };
        let mut end = None;
        if position > 0 && position >= segment.log_bytes {
            return Err(LogError::Corrupt {
                path: self.segment_file(segment.base_offset, Kind::OffsetIndex),
                position: u64::from(segment.offset_index_bytes),
                reason: "it goes beyond the log",
            });
        }
        if segment.log_bytes > 0 {
            let file = self.open(&segment, Kind::Log)?;
            let file_end = u64::from(segment.log_bytes);
            let start = u64::from(position);
            let mut scan =
                BatchScan::new(&*file, start, file_end, segment.base_offset, LOOKUP_BYTES);
            while let Some(found) = self.scanned(&segment, scan.next_header())? {
                // No new entries here: the ones that belong are in the file.
                pending.add(&mut segment, &found.header, found.position as u32, u32::MAX);
                end = Some(found.header.next_offset());
            }
        }
        Ok(TakenUp {
            segment,
            pending,
            end,
        })
    }

    /// The last entry of the time index: as the segment's largest, and as it stands.
    fn indexed_max(
        &self,
        segment: &mut Segment,
    ) -> Result<(MaxTimestamp, Option<TimestampMs>), LogError> {
        let none = MaxTimestamp {
            timestamp: TimestampMs::NONE,
            offset: segment.base_offset,
        };
        if segment.time_index_bytes == 0 {
            return Ok((none, None));
        }
        let file = self.open(segment, Kind::TimeIndex)?;
        let end = TimeIndex::new(&*file, segment.time_index_bytes).end();
        let (count, entry) = self.read(segment, Kind::TimeIndex, end)?;
        self.cut_padding(segment, Kind::TimeIndex, count * time_index::ENTRY_BYTES)?;
        Ok(entry.map_or((none, None), |e| {
            let max = MaxTimestamp {
                timestamp: e.timestamp,
                offset: segment.absolute(e.relative_offset),
            };
            (max, Some(e.timestamp))
        }))
    }

    /// The largest timestamp of a segment that is done: the last entry of its time index.
    pub fn sealed_max(&self, segment: &Segment) -> Result<MaxTimestamp, LogError> {
        Ok(self.indexed_max(&mut segment.clone())?.0)
    }

    /// New entries go behind the last one, and no zeros of Kafka's may stay behind those.
    fn cut_padding(&self, segment: &mut Segment, kind: Kind, bytes: u32) -> Result<(), LogError> {
        if *segment.bytes_mut(kind) == bytes {
            return Ok(());
        }
        let file = self.open(segment, kind)?;
        self.change("truncate", segment, kind, || file.set_len(u64::from(bytes)))?;
        *segment.bytes_mut(kind) = bytes;
        Ok(())
    }
}
