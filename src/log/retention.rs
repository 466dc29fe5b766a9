//! Which old segments go, and when.
//!
//! 1. Segments go from the start of the log only, and only below the high watermark.
//! 2. A segment goes if its largest timestamp is older than `retention.ms`, or the log without it
//!    is still larger than `retention.bytes`, or it lies below the log start offset. A topic that
//!    is only compacted loses segments for the last reason alone.
//! 3. If the active segment goes too, a new one is begun, so that the log's end is not forgotten.
//!
//! A crash after some of the renames leaves the rest in the log: they go next time.

use crate::types::{Offset, TimestampMs};

use super::config::LogConfig;
use super::error::LogError;
use super::log::{Deletion, Log, Writer};
use super::names::Kind;
use super::segment::Segment;

impl Log {
    /// Takes segments out that `retention.ms`, `retention.bytes` or the log start offset allow.
    pub fn apply_retention(
        &self,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<Option<Deletion>, LogError> {
        let _flushing = self.flushing.lock();
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        let config = self.config();
        let segments = self.view.lock().segments.clone();
        let count = self.deletable(&config, &segments, now, high_watermark)?;
        if count == 0 {
            return Ok(None);
        }
        if count == segments.len() {
            self.begin_empty(&mut writer, now)?;
        }
        let start = {
            let mut view = self.view.lock();
            view.segments.drain(..count);
            view.segments[0].base_offset
        };
        if start > self.log_start_offset() {
            self.set_log_start(start);
        }
        let mut paths = Vec::new();
        for segment in &segments[..count] {
            paths.extend(self.dir.take_out(segment)?);
        }
        writer.is_dir_dirty = true;
        writer.snapshots.retain(|s| *s >= start);
        let due = TimestampMs(now.0.saturating_add(config.file_delete_delay_ms));
        Ok(Some(Deletion { due, paths }))
    }

    /// How many segments at the start may go.
    fn deletable(
        &self,
        config: &LogConfig,
        segments: &[Segment],
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<usize, LogError> {
        let log_start = self.log_start_offset();
        let log_end = self.log_end_offset();
        let mut rest_bytes: i64 = segments.iter().map(|s| i64::from(s.log_bytes)).sum();
        for (at, segment) in segments.iter().enumerate() {
            let is_last = at + 1 == segments.len();
            let next = segments.get(at + 1).map_or(log_end, |s| s.base_offset);
            if next > high_watermark || (is_last && segment.log_bytes == 0) {
                return Ok(at);
            }
            rest_bytes -= i64::from(segment.log_bytes);
            let is_below_start = !is_last && next <= log_start;
            let is_too_much = config.retention_bytes >= 0 && rest_bytes >= config.retention_bytes;
            let goes = is_below_start
                || (config.delete && is_too_much)
                || (config.delete && self.is_too_old(config, segment, now)?);
            if !goes {
                return Ok(at);
            }
        }
        Ok(segments.len())
    }

    fn is_too_old(
        &self,
        config: &LogConfig,
        segment: &Segment,
        now: TimestampMs,
    ) -> Result<bool, LogError> {
        if config.retention_ms < 0 {
            return Ok(false);
        }
        let max = self.max_timestamp(segment)?.timestamp;
        let newest = if max.0 >= 0 { max } else { segment.opened };
        Ok(now.0.saturating_sub(newest.0) > config.retention_ms)
    }

    /// Begins a segment at the log's end whose file is made at once: its name is all that will say
    /// where the log ends.
    fn begin_empty(&self, writer: &mut Writer, now: TimestampMs) -> Result<(), LogError> {
        self.roll(writer, self.log_end_offset(), now)?;
        let segment = *self.view.lock().active();
        self.dir.create(&segment, Kind::Log)?;
        self.dir.core.sync_dir(&self.dir.path())
    }
}
