//! What the broker does with the `records` of one partition of a Produce request before it appends
//! them. Error codes, messages and the order of the checks are those of Apache Kafka 4.4, seen on a
//! running one:
//!
//! ```text
//! request   no whole batch, or magic 0/1: 87   length below 14, other magic: 2   old zstd: 76
//!           a second batch: 87; the start of one is ignored, what cannot be one: 2
//! log       base offset not 0: 87   too large: 10   shorter than a header, wrong CRC: 2
//! batch     codec 5-7: -1   count and deltas that do not fit, control, id without sequence: 87
//! records   unreadable: 87, or -1 where a codec fails   then per record: no key 87, timestamp 32
//!           deltas of a compressed batch not 0, 1, 2 ..: -1 (Kafka fails to rewrite it)
//! rewrite   what Kafka cannot write: -1   too large in the new codec: 10
//! ```
//!
//! 1. A batch that is accepted as it is costs one pass for the CRC and one over the records, and no
//!    allocation. A changed header does not need the body again: the CRC is linear.
//! 2. The base offset stays 0; the log sets it when it appends.

use bytes::Bytes;

use crate::types::{
    ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition,
};

use super::batch::{Batch, compute_crc};
use super::check::{RecordChecks, Rewritten, Summary, check_as_is, rewrite};
use super::compression::Compression;
use super::header::{
    Attributes, BatchHeader, BatchPrefix, CRC_START, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC,
    TimestampType,
};
use super::scan::{RecordFault, Scratch};

/// The settings of a topic, and of the request, that decide about a batch.
#[derive(Debug, Clone, Copy)]
pub struct ProduceRules<'a> {
    pub topic_partition: &'a TopicPartition,
    pub leader_epoch: LeaderEpoch,
    /// `max.message.bytes`
    pub max_message_bytes: usize,
    /// `max.decompressed.message.bytes`: of one record of a compressed batch.
    pub max_decompressed_message_bytes: usize,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub after_max_ms: i64,
    /// `cleanup.policy` names `compact`.
    pub is_compacted: bool,
    /// `compression.type` and the level of that codec; `None`: as the producer sent it.
    pub compression: Option<(Compression, i32)>,
    /// From Produce v7 on.
    pub is_zstd_allowed: bool,
}

/// A batch ready to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedBatch {
    pub batch: Batch,
    pub record_count: i32,
    pub max_timestamp: TimestampMs,
    /// The first record that has the maximum timestamp, relative to the base offset.
    pub max_timestamp_offset_delta: i32,
    /// What the answer says: the append time, or none when the producer's times count.
    pub log_append_time: TimestampMs,
}

/// Kafka's answer for a partition whose records it does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    pub error: ErrorCode,
    /// Index in the batch and message, at most [`Rejected::RECORD_ERRORS_MAX`] of them.
    pub record_errors: Vec<(i32, Option<String>)>,
    pub message: Option<String>,
    /// Whether the answer has the partition's log start offset; else -1.
    pub has_log_start_offset: bool,
}

impl Rejected {
    /// Kafka has no limit. A batch of a few kilobytes can hold millions of records.
    pub const RECORD_ERRORS_MAX: usize = 65_536;

    /// Found before the log looked at the records.
    fn early(error: ErrorCode) -> Rejected {
        Rejected {
            error,
            record_errors: Vec::new(),
            message: None,
            has_log_start_offset: false,
        }
    }

    /// Found by looking at the records.
    pub(super) fn by_log(error: ErrorCode) -> Rejected {
        Rejected {
            has_log_start_offset: true,
            ..Rejected::early(error)
        }
    }
}

/// Checks `records` and makes them the batch to append.
pub fn prepare(
    records: Bytes,
    rules: &ProduceRules<'_>,
    now: TimestampMs,
    scratch: &mut Scratch,
) -> Result<PreparedBatch, Rejected> {
    let batch = only_batch(records, rules)?;
    let header = &batch.header;
    if header.base_offset != Offset::ZERO {
        return Err(Rejected::by_log(ErrorCode::InvalidRecord));
    }
    if batch.size_bytes() > rules.max_message_bytes {
        return Err(Rejected::early(ErrorCode::MessageTooLarge));
    }
    if !batch.is_crc_right() {
        return Err(Rejected::early(ErrorCode::CorruptMessage));
    }
    let codec = check_header(header)?;
    let checks = RecordChecks { rules, header, now };
    match rules.compression {
        Some(target) if target.0 != codec => {
            let rewritten = rewrite(&batch, codec, target, &checks, scratch)?;
            prepare_rewritten(header, target.0, rewritten, rules, now)
        }
        _ => {
            let summary = check_as_is(&batch, codec, &checks, scratch)?;
            if codec != Compression::None && !summary.are_deltas_consecutive {
                return Err(Rejected::by_log(ErrorCode::UnknownServerError));
            }
            let mut header = batch.header;
            set_timestamps(&mut header, &summary, rules, now);
            header.crc = crc_of_changed(&batch, &header);
            let body = batch.body;
            Ok(prepared(Batch { header, body }, &summary, rules))
        }
    }
}

/// The batch under its new header. What Kafka takes as it is, but fails to write itself, it answers
/// with -1: times before 1970, a producer id without an epoch or (if negative) a sequence.
fn prepare_rewritten(
    header: &BatchHeader,
    codec: Compression,
    rewritten: Rewritten,
    rules: &ProduceRules<'_>,
    now: TimestampMs,
) -> Result<PreparedBatch, Rejected> {
    let Rewritten { body, summary } = rewritten;
    let is_producer_whole = header.producer_id == ProducerId::NONE
        || (header.producer_epoch != ProducerEpoch::NONE && header.base_sequence >= 0);
    if summary.has_negative_timestamp || !is_producer_whole {
        return Err(Rejected::by_log(ErrorCode::UnknownServerError));
    }
    let body = body.filter(|body| HEADER_BYTES + body.len() <= rules.max_message_bytes);
    let body = Bytes::from(body.ok_or(Rejected::early(ErrorCode::MessageTooLarge))?);
    let mut header = rewritten_header(header, codec, &summary, body.len());
    set_timestamps(&mut header, &summary, rules, now);
    header.crc = compute_crc(&header, &body);
    Ok(prepared(Batch { header, body }, &summary, rules))
}

/// The batch that `records` start with, if the request may hold it.
fn only_batch(records: Bytes, rules: &ProduceRules<'_>) -> Result<Batch, Rejected> {
    let size_bytes = match next_batch(&records) {
        Ok(Some((prefix, size_bytes))) if prefix.magic == MAGIC => size_bytes,
        Ok(_) => return Err(Rejected::early(ErrorCode::InvalidRecord)),
        Err(message) => {
            return Err(Rejected {
                message: Some(message),
                ..Rejected::early(ErrorCode::CorruptMessage)
            });
        }
    };
    if !rules.is_zstd_allowed {
        // The low byte of the attributes; a batch that ends before it is corrupt anyway.
        let attributes = records[..size_bytes].get(CRC_START + 1).copied();
        let attributes = Attributes(i16::from(attributes.unwrap_or(0)));
        match attributes.compression() {
            Some(Compression::Zstd) => {
                return Err(Rejected::early(ErrorCode::UnsupportedCompressionType));
            }
            None => return Err(Rejected::early(ErrorCode::UnknownServerError)),
            _ => {}
        }
    }
    match next_batch(&records[size_bytes..]) {
        Ok(None) => {}
        Ok(Some(_)) => return Err(Rejected::early(ErrorCode::InvalidRecord)),
        Err(_) => return Err(Rejected::early(ErrorCode::CorruptMessage)),
    }
    let parsed = Batch::parse(records.slice(..size_bytes));
    parsed.map_err(|_| Rejected::early(ErrorCode::CorruptMessage))
}

/// As Kafka's `ByteBufferLogInputStream` steps: `None` where the bytes end inside a batch. Magics 0
/// and 1 count as batches; an error is what cannot be one, with Kafka's message.
fn next_batch(bytes: &[u8]) -> Result<Option<(BatchPrefix, usize)>, String> {
    const LENGTH_MIN: i32 = 14;
    let Some(length) = bytes.get(8..LENGTH_OVERHEAD_BYTES) else {
        return Ok(None);
    };
    let batch_length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if batch_length < LENGTH_MIN {
        return Err(format!(
            "Record size {batch_length} is less than the minimum record overhead ({LENGTH_MIN})"
        ));
    }
    let Ok(prefix) = BatchPrefix::read(bytes) else {
        return Ok(None);
    };
    if !(0..=MAGIC).contains(&prefix.magic) {
        return Err(format!("Invalid magic found in record: {}", prefix.magic));
    }
    let size_bytes = batch_length as usize + LENGTH_OVERHEAD_BYTES;
    Ok((size_bytes <= bytes.len()).then_some((prefix, size_bytes)))
}

/// What the header alone gives away. The codec, if it is all right.
fn check_header(header: &BatchHeader) -> Result<Compression, Rejected> {
    let Some(codec) = header.attributes.compression() else {
        return Err(Rejected::by_log(ErrorCode::UnknownServerError));
    };
    let is_count_right = header.records_count > 0
        && i64::from(header.records_count) == i64::from(header.last_offset_delta) + 1;
    let has_sequence = !header.has_producer_id() || header.base_sequence >= 0;
    if !is_count_right || header.attributes.is_control() || !has_sequence {
        return Err(Rejected::by_log(ErrorCode::InvalidRecord));
    }
    Ok(codec)
}

/// Kafka's answer to records that cannot be read. In an uncompressed batch it stumbles over a
/// length that is no varint, in a compressed one over whatever the codec does not like.
pub(super) fn rejected_by_fault(fault: &RecordFault, codec: Compression) -> Rejected {
    Rejected::by_log(match fault {
        RecordFault::Compression(_) => ErrorCode::UnknownServerError,
        RecordFault::LengthVarint if codec == Compression::None => ErrorCode::UnknownServerError,
        _ => ErrorCode::InvalidRecord,
    })
}

/// The header of a batch whose records were written anew: unknown attribute bits and the delete
/// horizon do not survive that.
fn rewritten_header(
    header: &BatchHeader,
    codec: Compression,
    summary: &Summary,
    body_bytes: usize,
) -> BatchHeader {
    BatchHeader {
        batch_length: (HEADER_BYTES - LENGTH_OVERHEAD_BYTES + body_bytes) as i32,
        attributes: Attributes(0)
            .with_compression(codec)
            .with_transactional(header.attributes.is_transactional()),
        base_timestamp: summary.first_timestamp,
        ..*header
    }
}

/// The first timestamp stays what the producer sent, whatever the type. Unknown attribute bits stay
/// too, unless Kafka writes the maximum or the type anew.
fn set_timestamps(
    header: &mut BatchHeader,
    summary: &Summary,
    rules: &ProduceRules<'_>,
    now: TimestampMs,
) {
    header.leader_epoch = rules.leader_epoch;
    let max_timestamp = match rules.timestamp_type {
        TimestampType::CreateTime => summary.max_timestamp,
        TimestampType::LogAppendTime => now,
    };
    let timestamp_type = header.attributes.timestamp_type();
    if (header.max_timestamp, timestamp_type) != (max_timestamp, rules.timestamp_type) {
        header.max_timestamp = max_timestamp;
        header.attributes = header
            .attributes
            .known()
            .with_timestamp_type(rules.timestamp_type);
    }
}

/// The CRC of the batch under `header`, without reading the body: two CRCs of messages of one
/// length differ by the difference of their beginnings, shifted past the common rest.
fn crc_of_changed(batch: &Batch, header: &BatchHeader) -> u32 {
    let (old, new) = (batch.header.to_bytes(), header.to_bytes());
    if old[CRC_START..] == new[CRC_START..] {
        return batch.header.crc;
    }
    let difference = crc32c::crc32c(&old[CRC_START..]) ^ crc32c::crc32c(&new[CRC_START..]);
    crc32c::crc32c_combine(difference, batch.header.crc, batch.body.len())
}

fn prepared(batch: Batch, summary: &Summary, rules: &ProduceRules<'_>) -> PreparedBatch {
    let max_timestamp = batch.header.max_timestamp;
    let (max_timestamp_offset_delta, log_append_time) = match rules.timestamp_type {
        TimestampType::CreateTime => (summary.max_timestamp_offset_delta, TimestampMs::NONE),
        TimestampType::LogAppendTime => (0, max_timestamp),
    };
    PreparedBatch {
        record_count: batch.header.records_count,
        max_timestamp,
        max_timestamp_offset_delta,
        log_append_time,
        batch,
    }
}
