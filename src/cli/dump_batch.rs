//! How `kafka-dump-log` shows a batch and its records.

use bytes::Bytes;

use super::exit::{Done, Exit};
use super::internal_records::{
    Decoded, control_json, decode, json, metadata_json, with_consumer_protocol, with_state_name,
};
use super::io::Io;
use crate::record::{Batch, Compression, Marker, MarkerType, Record, TimestampType, sequence_plus};
use crate::wire::RecordHome;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    pub records: bool,
    pub content: bool,
    pub metadata: bool,
    /// Whose records they are, where they are not just text.
    pub home: Option<RecordHome>,
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
        let line = record_line(batch, &record, detail);
        let content = match detail.content && !header.attributes.is_control() {
            true => content(batch, &record, detail.home),
            false => Ok(Vec::new()),
        };
        let (content, failure) = match content {
            Ok(content) => (content, None),
            Err(exit) => (Vec::new(), Some(exit)),
        };
        let parts: Vec<String> = line.into_iter().chain(content).collect();
        let bar = if parts.is_empty() { "" } else { "| " };
        let text = format!("{bar}{}", parts.join(" "));
        if let Some(mut exit) = failure {
            // Kafka's tool has printed this much of the line.
            exit.out = text;
            return Err(exit);
        }
        io.line(text);
    }
    Ok(())
}

fn timestamp_name(batch: &Batch) -> &'static str {
    match batch.header.attributes.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

/// What is known of a record beside its content.
fn record_line(batch: &Batch, record: &Record, detail: Detail) -> Option<String> {
    let header = &batch.header;
    if !detail.metadata {
        return None;
    }
    let size = |field: &Option<Bytes>| {
        field
            .as_ref()
            .map_or(-1, |f| i64::try_from(f.len()).unwrap_or(i64::MAX))
    };
    let timestamp = match header.attributes.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp.0.wrapping_add(record.timestamp_delta),
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
    let mut line = format!(
        "offset: {} {}: {timestamp} keySize: {} valueSize: {} sequence: {sequence} headerKeys: \
         [{}]",
        offset(batch, record),
        timestamp_name(batch),
        size(&record.key),
        size(&record.value),
        keys.join(","),
    );
    if header.attributes.is_control()
        && let Some(control) = control(record)
    {
        line.push(' ');
        line.push_str(&control);
    }
    Some(line)
}

fn offset(batch: &Batch, record: &Record) -> i64 {
    let base = batch.header.base_offset.0;
    base.saturating_add(record.offset_delta.into())
}

/// A control record: the end of a transaction, or one of a Raft log.
fn control(record: &Record) -> Option<String> {
    if let Some(marker) = Marker::read(record) {
        let kind = match marker.marker_type {
            MarkerType::Abort => "ABORT",
            MarkerType::Commit => "COMMIT",
        };
        let epoch = marker.coordinator_epoch;
        return Some(format!("endTxnMarker: {kind} coordinatorEpoch: {epoch}"));
    }
    let key = record.key.as_ref()?;
    let number = i16::from_be_bytes(*key.get(2..)?.first_chunk()?);
    let (shown, name) = match number {
        2 => ("LeaderChange:", "LeaderChangeMessage"),
        3 => ("SnapshotHeader", "SnapshotHeaderRecord"),
        4 => ("SnapshotFooter", "SnapshotFooterRecord"),
        5 => ("KRaftVersion", "KRaftVersionRecord"),
        6 => ("KRaftVoters", "VotersRecord"),
        _ => return Some(format!("controlType: UNKNOWN({number})")),
    };
    let fields = control_json(name, record.value.as_ref()?)?;
    Some(format!("{shown} {fields}"))
}

/// Key and value, each with its name.
fn content(batch: &Batch, record: &Record, home: Option<RecordHome>) -> Result<Vec<String>, Exit> {
    let offset = offset(batch, record);
    let (key, payload) = match home {
        None => {
            let show = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
            (
                record.key.as_ref().map(show),
                record.value.as_ref().map(show),
            )
        }
        Some(RecordHome::Metadata) => {
            let value = record.value.clone().unwrap_or_default();
            let payload = metadata_json(&value)
                .unwrap_or_else(|why| format!("Error at {offset}, skipping. {why}"));
            (None, Some(payload))
        }
        Some(home) => coordinator_content(home, offset, record)?,
    };
    let mut parts = Vec::new();
    parts.extend(key.map(|key| format!("key: {key}")));
    parts.extend(payload.map(|payload| format!("payload: {payload}")));
    Ok(parts)
}

type KeyAndPayload = (Option<String>, Option<String>);

fn coordinator_content(
    home: RecordHome,
    offset: i64,
    record: &Record,
) -> Result<KeyAndPayload, Exit> {
    let Some(key) = &record.key else {
        let text = format!(
            "Failed to decode message at offset {offset} using the specified decoder (message had \
             a missing key)"
        );
        return Err(Exit::uncaught("java.lang.RuntimeException", &text));
    };
    Ok(match decode(home, key, record.value.as_ref()) {
        Decoded::Record {
            api_key,
            key,
            value,
        } => {
            let shown = format!("{{\"type\":\"{api_key}\",\"data\":{}}}", json(&key));
            let payload = value.map_or("<DELETE>".to_owned(), |(version, fields)| {
                let fields = match home {
                    RecordHome::Groups => with_consumer_protocol(fields),
                    RecordHome::Transactions => with_state_name(fields),
                    _ => fields,
                };
                format!("{{\"version\":\"{version}\",\"data\":{}}}", json(&fields))
            });
            (Some(shown), Some(payload))
        }
        Decoded::UnknownType(api_key) => {
            let text = format!("Unknown record type {api_key} at offset {offset}, skipping.");
            (Some(text), None)
        }
        Decoded::Failed(why) => (
            Some(format!("Error at offset {offset}, skipping. {why}")),
            None,
        ),
    })
}
