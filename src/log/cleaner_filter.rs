//! What compaction leaves of a batch, PURE.
//!
//! ```text
//! record                                                  stays
//! ------------------------------------------------------- ------------------------------------
//! above the map's latest offset                           yes
//! without a key                                           no
//! its key comes again                                     no
//! tombstone, the last of its key                          until the batch's delete horizon
//! of an aborted transaction                               no
//! marker whose transaction's data are gone                until the batch's delete horizon
//! all else                                                yes
//! ```
//!
//! 1. Offsets, timestamps and the batch's last offset stay as they are: gaps are left.
//! 2. The delete horizon (KIP-534) is set when a batch with a tombstone, or with a marker that may
//!    go, is first kept: now + `delete.retention.ms`. Whoever reads from the start in that time
//!    sees the deletion.
//! 3. A batch without records stays, as a header, if it is the last one of its producer (its
//!    sequence must be known after a restart) or the last one of what becomes one segment: between
//!    segments there is never a gap, which recovery could not tell from a loss. (Kafka keeps only
//!    the last one of the round.)

use crate::record::{
    Batch, BatchBuilder, Compression, CompressionError, Record, RecordsError, TimestampType,
};
use crate::types::{Offset, TimestampMs};

use super::cleaner_map::OffsetMap;

/// What is decided of a batch before its records are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchRule {
    /// No record of it stays.
    pub drop_records: bool,
    /// The header stays even without records.
    pub keep_empty: bool,
    /// It is a marker that goes when its delete horizon has come.
    pub is_doomed_marker: bool,
}

/// What is left of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    /// Byte for byte.
    Same,
    Changed(Batch),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    Compression(#[from] CompressionError),
}

/// What holds for a whole round.
pub(super) struct Filter<'a> {
    pub map: &'a OffsetMap,
    pub now: TimestampMs,
    pub delete_retention_ms: i64,
}

impl Filter<'_> {
    pub fn batch(&self, batch: &Batch, rule: BatchRule) -> Result<Kept, FilterError> {
        let header = &batch.header;
        let mut kept = Vec::new();
        if !rule.drop_records {
            for record in batch.records() {
                let record = record?;
                if header.attributes.is_control() || self.stays(batch, &record) {
                    kept.push(record);
                }
            }
        }
        if kept.is_empty() {
            return match rule.keep_empty {
                true if header.records_count == 0 => Ok(Kept::Same),
                true => Ok(Kept::Changed(header_only(batch)?)),
                false => Ok(Kept::Nothing),
            };
        }
        let has_tombstone =
            !header.attributes.is_control() && kept.iter().any(|r| r.value.is_none());
        let horizon = delete_horizon(batch);
        let sets_horizon = horizon.is_none() && (has_tombstone || rule.is_doomed_marker);
        if kept.len() == header.records_count as usize && !sets_horizon {
            return Ok(Kept::Same);
        }
        let horizon = match sets_horizon {
            true => Some(TimestampMs(
                self.now.0.saturating_add(self.delete_retention_ms),
            )),
            false => horizon,
        };
        Ok(Kept::Changed(rebuild(batch, &kept, horizon)?))
    }

    fn stays(&self, batch: &Batch, record: &Record) -> bool {
        let offset = offset_of(batch, record);
        if offset > self.map.latest_offset() {
            return true;
        }
        let Some(key) = &record.key else {
            return false;
        };
        let is_last = self.map.last_offset(key).is_none_or(|last| offset >= last);
        let is_held = delete_horizon(batch).is_none_or(|horizon| self.now < horizon);
        is_last && (record.value.is_some() || is_held)
    }
}

pub(super) fn offset_of(batch: &Batch, record: &Record) -> Offset {
    batch
        .header
        .base_offset
        .plus(i64::from(record.offset_delta))
}

/// When the batch's tombstones or marker may go; `None`: not decided yet.
pub(super) fn delete_horizon(batch: &Batch) -> Option<TimestampMs> {
    let header = &batch.header;
    let has_one = header.attributes.has_delete_horizon();
    has_one.then_some(header.base_timestamp)
}

/// The batch without its records.
pub(super) fn header_only(batch: &Batch) -> Result<Batch, CompressionError> {
    rebuild(batch, &[], None)
}

fn rebuild(
    batch: &Batch,
    kept: &[Record],
    delete_horizon: Option<TimestampMs>,
) -> Result<Batch, CompressionError> {
    let header = &batch.header;
    let attributes = header.attributes;
    let mut builder = BatchBuilder::new();
    builder.base_offset = header.base_offset;
    builder.leader_epoch = header.leader_epoch;
    builder.timestamp_type = attributes.timestamp_type();
    builder.producer_id = header.producer_id;
    builder.producer_epoch = header.producer_epoch;
    builder.base_sequence = header.base_sequence;
    builder.is_transactional = attributes.is_transactional();
    builder.is_control = attributes.is_control();
    builder.set_delete_horizon(delete_horizon);
    builder.set_last_offset_delta(header.last_offset_delta);
    if !kept.is_empty() {
        builder.compression = attributes.compression().unwrap_or(Compression::None);
        builder.level = builder.compression.default_level();
    }
    for record in kept {
        let timestamp = header.base_timestamp.0.wrapping_add(record.timestamp_delta);
        let headers: Vec<(&[u8], Option<&[u8]>)> = record
            .headers
            .iter()
            .map(|h| (&h.key[..], h.value.as_deref()))
            .collect();
        let fields = (record.key.as_deref(), record.value.as_deref());
        let delta = record.offset_delta;
        builder.append_at(delta, TimestampMs(timestamp), fields, &headers);
    }
    if kept.is_empty() || attributes.timestamp_type() == TimestampType::LogAppendTime {
        builder.set_max_timestamp(header.max_timestamp);
    }
    builder.build()
}
