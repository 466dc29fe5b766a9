//! From timestamps to offsets (ListOffsets).
//!
//! The time index says which segment, and roughly where in it; the batch's header, whether a record
//! in it can be meant; the records themselves, which one is.

use bytes::Bytes;

use crate::record::{Batch, TimestampType};
use crate::types::{Offset, TimestampMs};

use super::error::LogError;
use super::log::{Log, TimestampOffset};
use super::names::Kind;
use super::read::ATTEMPTS_MAX;
use super::scan::{BatchScan, Found, LOOKUP_BYTES};
use super::segment::Segment;
use super::slice::Hint;
use super::time_index::TimeIndex;

impl Log {
    /// The first record with a timestamp of at least `timestamp`.
    pub fn offset_for_timestamp(
        &self,
        timestamp: TimestampMs,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let mut attempt = 1;
        loop {
            let segments = self.view.lock().segments.clone();
            let found = self.first_in(&segments, timestamp);
            if self.is_settled(&segments, &found) || attempt == ATTEMPTS_MAX {
                return found;
            }
            // Compacted or deleted meanwhile: it may be in what took the place.
            self.wait_for_swap();
            attempt += 1;
        }
    }

    fn first_in(
        &self,
        segments: &[Segment],
        timestamp: TimestampMs,
    ) -> Result<Option<TimestampOffset>, LogError> {
        for segment in segments.iter().filter(|s| s.log_bytes > 0) {
            let found = self.find_timestamp(segment, timestamp)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The record with the largest timestamp; the first of equals. `None`: no record has one.
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampOffset>, LogError> {
        let mut attempt = 1;
        loop {
            let segments = self.view.lock().segments.clone();
            let found = self.largest_in(&segments);
            if self.is_settled(&segments, &found) || attempt == ATTEMPTS_MAX {
                return found;
            }
            self.wait_for_swap();
            attempt += 1;
        }
    }

    fn largest_in(&self, segments: &[Segment]) -> Result<Option<TimestampOffset>, LogError> {
        let mut largest: Option<(TimestampMs, &Segment)> = None;
        for segment in segments.iter().filter(|s| s.log_bytes > 0) {
            let max = self.max_timestamp(segment)?;
            if largest.is_none_or(|(timestamp, _)| max.timestamp > timestamp) {
                largest = Some((max.timestamp, segment));
            }
        }
        match largest {
            Some((timestamp, segment)) if timestamp.0 >= 0 => {
                self.find_timestamp(segment, timestamp)
            }
            _ => Ok(None),
        }
    }

    fn find_timestamp(
        &self,
        segment: &Segment,
        timestamp: TimestampMs,
    ) -> Result<Option<TimestampOffset>, LogError> {
        if self.max_timestamp(segment)?.timestamp < timestamp {
            return Ok(None);
        }
        let log_start = self.log_start_offset();
        let start = self.start_for(segment, timestamp)?.max(log_start);
        let hint = {
            let view = self.view.lock();
            let index = view.segments.iter().position(|s| s.key == segment.key);
            index.map_or(Hint::Unknown, |i| Hint::of(&view, i, start))
        };
        let position = self.dir.floor(segment, start, hint)?;
        let file = self.dir.open(segment, Kind::Log)?;
        let end = u64::from(segment.log_bytes);
        let position = u64::from(position);
        let mut scan = BatchScan::new(&*file, position, end, Offset::ZERO, LOOKUP_BYTES);
        while let Some(found) = self.dir.scanned(segment, scan.next_header())? {
            let header = &found.header;
            if header.max_timestamp < timestamp || header.last_offset() < log_start {
                continue;
            }
            let body = scan.body(&found).map(Bytes::copy_from_slice);
            let body = self.dir.scanned(segment, body)?;
            let record = self.first_record(segment, &found, body, (timestamp, log_start))?;
            if record.is_some() {
                return Ok(record);
            }
        }
        Ok(None)
    }

    /// An offset before which no record has the timestamp, from the time index.
    fn start_for(&self, segment: &Segment, timestamp: TimestampMs) -> Result<Offset, LogError> {
        let pending = {
            let view = self.view.lock();
            let times = view.pending.times.iter();
            let before = times
                .take_while(|e| e.timestamp < timestamp)
                .last()
                .copied();
            before.filter(|_| view.active().key == segment.key)
        };
        if let Some(entry) = pending {
            return Ok(segment.absolute(entry.relative_offset));
        }
        if segment.time_index_bytes == 0 {
            return Ok(segment.base_offset);
        }
        let file = self.dir.open(segment, Kind::TimeIndex)?;
        let before = TimeIndex::new(&*file, segment.time_index_bytes).before(timestamp);
        let before = self.dir.read(segment, Kind::TimeIndex, before)?;
        Ok(before.map_or(segment.base_offset, |e| segment.absolute(e.relative_offset)))
    }

    fn first_record(
        &self,
        segment: &Segment,
        found: &Found,
        body: Bytes,
        (timestamp, log_start): (TimestampMs, Offset),
    ) -> Result<Option<TimestampOffset>, LogError> {
        let header = found.header;
        let is_append_time = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        let batch = Batch { header, body };
        for record in batch.records() {
            let record = record.map_err(|_| LogError::Corrupt {
                path: self.dir.segment_file(segment.base_offset, Kind::Log),
                position: found.position,
                reason: "its records cannot be read",
            })?;
            let offset = header.base_offset.plus(i64::from(record.offset_delta));
            let at = if is_append_time {
                header.max_timestamp
            } else {
                TimestampMs(header.base_timestamp.0.wrapping_add(record.timestamp_delta))
            };
            if at >= timestamp && offset >= log_start {
                return Ok(Some(TimestampOffset {
                    timestamp: at,
                    offset,
                    leader_epoch: header.leader_epoch,
                }));
            }
        }
        Ok(None)
    }
}
