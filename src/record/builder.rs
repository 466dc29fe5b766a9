//! Builds batches: for internal topics, transaction markers and tests.
//!
//! A transaction marker (`EndTransactionMarker`) is a control batch of one record:
//!
//! ```text
//! key:   version i16 = 0, type i16: 0 abort, 1 commit
//! value: version i16 = 0, coordinator_epoch i32
//! ```

use bytes::Bytes;

use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::batch::{Batch, compute_crc};
use super::compression::{Compression, CompressionError};
use super::header::{
    Attributes, BatchHeader, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, NO_SEQUENCE, TimestampType,
};
use super::records::Record;
use super::varint::{put_varint, put_varlong, varint_bytes, varlong_bytes};

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkerType {
    Abort,
    Commit,
}

/// A transaction marker, as it stands in a control batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    pub marker_type: MarkerType,
    pub coordinator_epoch: i32,
}

impl Marker {
    pub fn key(self) -> [u8; 4] {
        [0, 0, 0, self.marker_type as u8]
    }

    pub fn value(self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.to_be_bytes();
        [0, 0, a, b, c, d]
    }

    /// `None`: a control record of another kind, or none at all. Newer versions may be longer.
    pub fn read(record: &Record) -> Option<Marker> {
        let key = record.key.as_ref()?.first_chunk::<4>()?;
        let value = record.value.as_ref()?.first_chunk::<6>()?;
        let marker_type = match i16::from_be_bytes([key[2], key[3]]) {
            0 => MarkerType::Abort,
            1 => MarkerType::Commit,
            _ => return None,
        };
        let version = |bytes: &[u8]| i16::from_be_bytes([bytes[0], bytes[1]]);
        let coordinator_epoch = i32::from_be_bytes([value[2], value[3], value[4], value[5]]);
        (version(key) >= 0 && version(value) >= 0).then_some(Marker {
            marker_type,
            coordinator_epoch,
        })
    }
}

/// A batch in the making. The settings may be changed until [`BatchBuilder::build`].
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    pub base_offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub compression: Compression,
    pub level: i32,
    pub timestamp_type: TimestampType,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub is_transactional: bool,
    pub is_control: bool,
    base_timestamp: TimestampMs,
    max_timestamp: TimestampMs,
    delete_horizon: Option<TimestampMs>,
    records_count: i32,
    /// Of the next record.
    offset_delta: i32,
    /// `None`: that of the last record.
    last_offset_delta: Option<i32>,
    records: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    /// An empty batch at offset 0, uncompressed, of no producer.
    pub fn new() -> BatchBuilder {
        BatchBuilder {
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::NONE,
            compression: Compression::None,
            level: 0,
            timestamp_type: TimestampType::CreateTime,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: NO_SEQUENCE,
            is_transactional: false,
            is_control: false,
            base_timestamp: TimestampMs::NONE,
            max_timestamp: TimestampMs::NONE,
            delete_horizon: None,
            records_count: 0,
            offset_delta: 0,
            last_offset_delta: None,
            records: Vec::new(),
        }
    }

    /// The marker that ends a transaction of `producer_id` in a partition.
    pub fn marker(
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        marker: Marker,
        timestamp: TimestampMs,
    ) -> BatchBuilder {
        let mut batch = BatchBuilder::new();
        batch.producer_id = producer_id;
        batch.producer_epoch = producer_epoch;
        batch.is_transactional = true;
        batch.is_control = true;
        batch.append(timestamp, Some(&marker.key()), Some(&marker.value()));
        batch
    }

    pub fn append(&mut self, timestamp: TimestampMs, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.append_with_headers(timestamp, key, value, &[]);
    }

    pub fn append_with_headers(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        if self.records_count == 0 {
            // With a delete horizon this field has that, and the deltas count from it (KIP-534).
            self.base_timestamp = self.delete_horizon.unwrap_or(timestamp);
            self.max_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.0.wrapping_sub(self.base_timestamp.0);
        let fields = headers.iter().flat_map(|&(key, value)| [Some(key), value]);
        let fields_bytes: usize = [key, value]
            .into_iter()
            .chain(fields.clone())
            .map(field_bytes)
            .sum();
        let length = 1
            + varlong_bytes(timestamp_delta)
            + varint_bytes(self.offset_delta)
            + fields_bytes
            + varint_bytes(headers.len() as i32);
        let out = &mut self.records;
        put_varint(out, length as i32);
        out.push(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, self.offset_delta);
        put_field(out, key);
        put_field(out, value);
        put_varint(out, headers.len() as i32);
        fields.for_each(|field| put_field(out, field));
        self.records_count += 1;
        self.offset_delta += 1;
    }

    /// As [`BatchBuilder::append_with_headers`], at an offset of its own: compaction leaves gaps.
    /// Deltas must ascend.
    pub fn append_at(
        &mut self,
        offset_delta: i32,
        timestamp: TimestampMs,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        debug_assert!(offset_delta >= self.offset_delta, "offsets ascend");
        self.offset_delta = offset_delta;
        self.append_with_headers(timestamp, key, value, headers);
    }

    /// The last offset of the batch, whether or not a record is there.
    pub fn set_last_offset_delta(&mut self, last_offset_delta: i32) {
        self.last_offset_delta = Some(last_offset_delta);
    }

    /// When compaction may drop the tombstones, or the marker, in this batch. To be set before the
    /// first record.
    pub fn set_delete_horizon(&mut self, delete_horizon: Option<TimestampMs>) {
        debug_assert_eq!(self.records_count, 0);
        self.delete_horizon = delete_horizon;
    }

    /// A batch without records takes its largest timestamp from here.
    pub fn set_max_timestamp(&mut self, max_timestamp: TimestampMs) {
        self.max_timestamp = max_timestamp;
    }

    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// The size of the batch if it is not compressed.
    pub fn uncompressed_bytes(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// Fails only where a codec does, e.g. at a level it does not have.
    pub fn build(self) -> Result<Batch, CompressionError> {
        let body = match self.compression {
            Compression::None => self.records,
            codec => {
                let mut body = Vec::with_capacity(self.records.len() / 2);
                codec.compress(self.level, &self.records, &mut body)?;
                body
            }
        };
        let attributes = Attributes(0)
            .with_compression(self.compression)
            .with_timestamp_type(self.timestamp_type)
            .with_transactional(self.is_transactional)
            .with_control(self.is_control)
            .with_delete_horizon(self.delete_horizon.is_some());
        let mut header = BatchHeader {
            base_offset: self.base_offset,
            batch_length: (HEADER_BYTES - LENGTH_OVERHEAD_BYTES + body.len()) as i32,
            leader_epoch: self.leader_epoch,
            crc: 0,
            attributes,
            last_offset_delta: self.last_offset_delta.unwrap_or(self.offset_delta - 1),
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            records_count: self.records_count,
        };
        header.crc = compute_crc(&header, &body);
        Ok(Batch {
            header,
            body: Bytes::from(body),
        })
    }
}

fn field_bytes(field: Option<&[u8]>) -> usize {
    field.map_or(1, |f| varint_bytes(f.len() as i32) + f.len())
}

fn put_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => put_varint(out, -1),
        Some(field) => {
            put_varint(out, field.len() as i32);
            out.extend_from_slice(field);
        }
    }
}
