//! How `kafka-dump-log` shows a batch and its records.

use super::exit::{Done, Exit};
use super::io::Io;
use crate::record::{Batch, Compression, Marker, MarkerType, Record, TimestampType, sequence_plus};

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    pub records: bool,
    pub content: bool,
    pub metadata: bool,
}

pub fn print_batch(io: &mut Io, position: u64, batch: &Batch, detail: Detail) -> Done {
    let header = &batch.header;
    let attributes = header.attributes;
    let codec = attributes
        .compression()
        .map_or("unknown", Compression::name);
    let horizon = match attributes.has_delete_horizon() {
        true => format!("OptionalLong[{}]", header.base_timestamp),
        false => "OptionalLong.empty".to_owned(),
    };
    let base = header.base_offset.0;
    let last = base.saturating_add(header.last_offset_delta.into());
    let last_sequence = match header.base_sequence {
        -1 => -1,
        base => sequence_plus(base, header.last_offset_delta),
    };
    io.line(format!(
        "baseOffset: {base} lastOffset: {last} count: {} baseSequence: {} lastSequence: \
         {last_sequence} producerId: {} producerEpoch: {} partitionLeaderEpoch: {} \
         isTransactional: {} isControl: {} deleteHorizonMs: {horizon} position: {position} {}: {} \
         size: {} magic: 2 compresscodec: {codec} crc: {} isvalid: {}",
        header.records_count,
        header.base_sequence,
        header.producer_id,
        header.producer_epoch,
        header.leader_epoch,
        attributes.is_transactional(),
        attributes.is_control(),
        timestamp_name(batch),
        header.max_timestamp,
        batch.size_bytes(),
        header.crc,
        batch.is_crc_right(),
    ));
    if !detail.records {
        return Ok(());
    }
    for record in batch.records() {
        let record = record.map_err(|error| {
            let class = "org.apache.kafka.common.InvalidRecordException";
            Exit::uncaught(class, &error.to_string())
        })?;
        if let Some(line) = record_line(batch, &record, detail) {
            io.line(line);
        }
    }
    Ok(())
}

fn timestamp_name(batch: &Batch) -> &'static str {
    match batch.header.attributes.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn record_line(batch: &Batch, record: &Record, detail: Detail) -> Option<String> {
    let header = &batch.header;
    let is_control = header.attributes.is_control();
    if !detail.metadata && is_control {
        return None;
    }
    let mut parts = vec!["|".to_owned()];
    if detail.metadata {
        let size = |field: &Option<bytes::Bytes>| {
            field
                .as_ref()
                .map_or(-1, |f| i64::try_from(f.len()).unwrap_or(i64::MAX))
        };
        let timestamp = match header.attributes.timestamp_type() {
            TimestampType::CreateTime => {
                header.base_timestamp.0.wrapping_add(record.timestamp_delta)
            }
            TimestampType::LogAppendTime => header.max_timestamp.0,
        };
        let sequence = match header.base_sequence {
            -1 => -1,
            base => sequence_plus(base, record.offset_delta),
        };
        let keys: Vec<_> = record
            .headers
            .iter()
            .map(|h| String::from_utf8_lossy(&h.key))
            .collect();
        parts.push(format!(
            "offset: {} {}: {timestamp} keySize: {} valueSize: {} sequence: {sequence} headerKeys: \
             [{}]",
            header
                .base_offset
                .0
                .saturating_add(record.offset_delta.into()),
            timestamp_name(batch),
            size(&record.key),
            size(&record.value),
            keys.join(","),
        ));
        if is_control && let Some(marker) = Marker::read(record) {
            let kind = match marker.marker_type {
                MarkerType::Abort => "ABORT",
                MarkerType::Commit => "COMMIT",
            };
            let epoch = marker.coordinator_epoch;
            parts.push(format!("endTxnMarker: {kind} coordinatorEpoch: {epoch}"));
        }
    }
    if detail.content && !is_control {
        let show = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        if let Some(key) = &record.key {
            parts.push(format!("key: {}", show(key)));
        }
        if let Some(value) = &record.value {
            parts.push(format!("payload: {}", show(value)));
        }
    }
    Some(parts.join(" "))
}
