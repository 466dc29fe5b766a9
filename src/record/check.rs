//! The checks of single records of a produced batch, and their rewriting into another codec.
//!
//! 1. A record that breaks a rule does not stop the walk: the answer names them all, and a record
//!    that cannot be read at all goes before.
//! 2. Rewriting copies the bytes from the key on as they are. As with Kafka, the offset deltas
//!    become 0, 1, 2 .., the times relative to the first record, the unused record attributes 0.
//! 3. No more than `max_message_bytes` of output are kept, so that a bomb stays small.

use crate::types::{ErrorCode, TimestampMs};

use super::batch::Batch;
use super::compression::{Compression, CompressionError, Compressor};
use super::header::{BatchHeader, HEADER_BYTES, TimestampType};
use super::prepare::{ProduceRules, Rejected, rejected_by_fault};
use super::scan::{
    Bounded, Decompressed, Input, Mirror, RecordFault, RecordHead, RecordRest, Scratch, read_head,
    read_rest,
};
use super::varint::{put_varint, put_varlong, varint_bytes, varlong_bytes};

/// What the records are held against.
pub(super) struct RecordChecks<'a> {
    pub rules: &'a ProduceRules<'a>,
    pub header: &'a BatchHeader,
    pub now: TimestampMs,
}

/// What a walk over the records found.
pub(super) struct Summary {
    pub first_timestamp: TimestampMs,
    /// Of the producer's times; -1 if all are below.
    pub max_timestamp: TimestampMs,
    pub max_timestamp_offset_delta: i32,
    /// Whether the offset deltas are 0, 1, 2 ..
    pub are_deltas_consecutive: bool,
    /// Whether a time lies before 1970; -1, which is none, does not.
    pub has_negative_timestamp: bool,
}

/// A batch's records in another codec.
pub(super) struct Rewritten {
    /// `None`: larger than `max_message_bytes`.
    pub body: Option<Vec<u8>>,
    pub summary: Summary,
}

/// Checks the records of a batch that stays as it is.
pub(super) fn check_as_is(
    batch: &Batch,
    codec: Compression,
    checks: &RecordChecks<'_>,
    scratch: &mut Scratch,
) -> Result<Summary, Rejected> {
    let mut errors = RecordErrors::new();
    let walked = if codec == Compression::None {
        let mut walk = Walk::new(checks, &mut errors, usize::MAX, RecordName::Whole);
        walk.run(&mut &batch.body[..], read_rest_as_is)
    } else {
        let bytes_max = checks.rules.max_decompressed_message_bytes;
        Decompressed::new(codec, &batch.body, scratch).and_then(|mut input| {
            let mut walk = Walk::new(checks, &mut errors, bytes_max, RecordName::Partial);
            walk.run(&mut input, read_rest_as_is)
        })
    };
    let summary = walked.map_err(|fault| rejected_by_fault(&fault, codec))?;
    errors.into_result()?;
    Ok(summary)
}

/// Checks the records of a batch, and writes them anew in the codec `to`.
pub(super) fn rewrite(
    batch: &Batch,
    from: Compression,
    to: (Compression, i32),
    checks: &RecordChecks<'_>,
    scratch: &mut Scratch,
) -> Result<Rewritten, Rejected> {
    let mut errors = RecordErrors::new();
    let rewritten = if from == Compression::None {
        let walk = Walk::new(checks, &mut errors, usize::MAX, RecordName::Whole);
        rewrite_input(walk, &mut &batch.body[..], to)
    } else {
        let bytes_max = checks.rules.max_decompressed_message_bytes;
        Decompressed::new(from, &batch.body, scratch).and_then(|mut input| {
            let walk = Walk::new(checks, &mut errors, bytes_max, RecordName::Whole);
            rewrite_input(walk, &mut input, to)
        })
    };
    let rewritten = rewritten.map_err(|fault| rejected_by_fault(&fault, from))?;
    errors.into_result()?;
    Ok(rewritten)
}

fn rewrite_input(
    mut walk: Walk<'_>,
    input: &mut impl Input,
    (codec, level): (Compression, i32),
) -> Result<Rewritten, RecordFault> {
    let library = |source| CompressionError::Library { codec, source };
    let bytes_max = walk
        .checks
        .rules
        .max_message_bytes
        .saturating_sub(HEADER_BYTES);
    let compressor = Compressor::new(codec, level, Vec::new()).map_err(library)?;
    let mut out = Bounded {
        compressor: Some(compressor),
        bytes_max,
    };
    let mut first_timestamp = None;
    let summary = walk.run(input, |input, head, place| {
        let first = *first_timestamp.get_or_insert(place.timestamp);
        let timestamp_delta = place.timestamp.0.wrapping_sub(first.0);
        let length =
            1 + varlong_bytes(timestamp_delta) + varint_bytes(place.index) + head.rest_bytes;
        let mut start = [0_u8; 24];
        let mut room = &mut start[..];
        let length = i32::try_from(length).map_err(|_| RecordFault::Length { length: i32::MAX })?;
        put_varint(&mut room, length);
        put_varint(&mut room, 0);
        put_varlong(&mut room, timestamp_delta);
        put_varint(&mut room, place.index);
        let unused = room.len();
        out.write(&start[..start.len() - unused])?;
        read_rest(
            &mut Mirror {
                input,
                out: &mut out,
            },
            head,
        )
    })?;
    let body = out
        .compressor
        .map(|c| c.finish().map_err(library))
        .transpose()?;
    Ok(Rewritten { body, summary })
}

fn read_rest_as_is(
    input: &mut impl Input,
    head: RecordHead,
    _place: Place,
) -> Result<RecordRest, RecordFault> {
    read_rest(input, head)
}

/// Which record of the batch, and when.
#[derive(Clone, Copy)]
struct Place {
    index: i32,
    timestamp: TimestampMs,
}

/// How Kafka prints a record: it names the class, which depends on how it was read.
#[derive(Clone, Copy)]
enum RecordName {
    Whole,
    Partial,
}

struct Walk<'a> {
    checks: &'a RecordChecks<'a>,
    errors: &'a mut RecordErrors,
    record_bytes_max: usize,
    name: RecordName,
    /// With the log-append bit the records have the batch's maximum as their time.
    fixed_timestamp: Option<TimestampMs>,
    /// The timestamps that need no closer look.
    low: i64,
    high: i64,
}

impl<'a> Walk<'a> {
    fn new(
        checks: &'a RecordChecks<'a>,
        errors: &'a mut RecordErrors,
        record_bytes_max: usize,
        name: RecordName,
    ) -> Walk<'a> {
        let is_fixed = checks.header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        Walk {
            checks,
            errors,
            record_bytes_max,
            name,
            fixed_timestamp: is_fixed.then_some(checks.header.max_timestamp),
            // Kafka's sums wrap, and the message shows it; with its defaults this one does not.
            low: checks.now.0.wrapping_sub(checks.rules.before_max_ms),
            high: checks.now.0.wrapping_add(checks.rules.after_max_ms),
        }
    }

    /// Every record of the batch; then the input must be at its end.
    fn run<I: Input>(
        &mut self,
        input: &mut I,
        mut read_rest: impl FnMut(&mut I, RecordHead, Place) -> Result<RecordRest, RecordFault>,
    ) -> Result<Summary, RecordFault> {
        let base = self.checks.header.base_timestamp.0;
        let mut summary = Summary {
            first_timestamp: TimestampMs::NONE,
            max_timestamp: TimestampMs::NONE,
            max_timestamp_offset_delta: 0,
            are_deltas_consecutive: true,
            has_negative_timestamp: false,
        };
        for index in 0..self.checks.header.records_count {
            let head = read_head(input, self.record_bytes_max)?;
            let own = TimestampMs(base.wrapping_add(head.timestamp_delta));
            let timestamp = self.fixed_timestamp.unwrap_or(own);
            let rest = read_rest(input, head, Place { index, timestamp })?;
            if index == 0 {
                summary.first_timestamp = timestamp;
            }
            if timestamp > summary.max_timestamp {
                summary.max_timestamp = timestamp;
                summary.max_timestamp_offset_delta = head.offset_delta;
            }
            summary.are_deltas_consecutive &= head.offset_delta == index;
            summary.has_negative_timestamp |= timestamp < TimestampMs::NONE;
            self.check(index, timestamp, head, rest);
        }
        match input.is_at_end()? {
            true => Ok(summary),
            false => Err(RecordFault::Trailing),
        }
    }

    #[inline]
    fn check(&mut self, index: i32, timestamp: TimestampMs, head: RecordHead, rest: RecordRest) {
        let rules = self.checks.rules;
        if rules.is_compacted && rest.key_length < 0 {
            self.errors.add(index, ErrorCode::InvalidRecord, || {
                let place = rules.topic_partition;
                format!(
                    "Compacted topic cannot accept message without key in topic partition {place}"
                )
            });
        } else if rules.timestamp_type == TimestampType::CreateTime
            && timestamp != TimestampMs::NONE
        {
            if self.is_out_of_range(timestamp.0) {
                let (low, high, offset) = (self.low, self.high, head.offset_delta);
                self.errors.add(index, ErrorCode::InvalidTimestamp, || {
                    format!(
                        "Timestamp {timestamp} of message with offset {offset} is out of range. \
                         The timestamp should be within [{low}, {high}]"
                    )
                });
            }
        } else if self.fixed_timestamp.is_some() {
            let name = self.name;
            self.errors.add(index, ErrorCode::InvalidTimestamp, || {
                let record = print_record(name, head.offset_delta, timestamp, rest);
                format!(
                    "Invalid timestamp type in message {record}. Producer should not set \
                     timestamp type to LogAppendTime."
                )
            });
        }
    }

    #[inline]
    fn is_out_of_range(&self, timestamp: i64) -> bool {
        let rules = self.checks.rules;
        let ahead_ms = timestamp.wrapping_sub(self.checks.now.0);
        let behind_ms = self.checks.now.0.wrapping_sub(timestamp);
        behind_ms > rules.before_max_ms || ahead_ms > rules.after_max_ms
    }
}

fn print_record(name: RecordName, offset: i32, timestamp: TimestampMs, rest: RecordRest) -> String {
    let (key, value) = (rest.key_length, rest.value_length);
    match name {
        RecordName::Whole => format!(
            "DefaultRecord(offset={offset}, timestamp={timestamp}, key={} bytes, value={} bytes)",
            key.max(0),
            value.max(0)
        ),
        RecordName::Partial => format!(
            "PartialDefaultRecord(offset={offset}, timestamp={timestamp}, key={key} bytes, \
             value={value} bytes)"
        ),
    }
}

/// The records that break a rule.
struct RecordErrors {
    errors: Vec<(i32, Option<String>)>,
    count: usize,
    has_timestamp_error: bool,
}

impl RecordErrors {
    fn new() -> RecordErrors {
        RecordErrors {
            errors: Vec::new(),
            count: 0,
            has_timestamp_error: false,
        }
    }

    #[cold]
    fn add(&mut self, index: i32, error: ErrorCode, message: impl FnOnce() -> String) {
        self.count += 1;
        self.has_timestamp_error |= error == ErrorCode::InvalidTimestamp;
        if self.errors.len() < Rejected::RECORD_ERRORS_MAX {
            self.errors.push((index, Some(message())));
        }
    }

    fn into_result(self) -> Result<(), Rejected> {
        if self.count == 0 {
            return Ok(());
        }
        let (error, message) = if self.has_timestamp_error {
            let message = "One or more records have been rejected due to invalid timestamp";
            (ErrorCode::InvalidTimestamp, message.to_owned())
        } else {
            let shown = self.errors.iter().take(3).map(|(index, message)| {
                let message = message.as_deref().unwrap_or("null");
                format!("RecordError(batchIndex={index}, message='{message}')")
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            let message = format!(
                "One or more records have been rejected due to {} record errors in total, and only \
                 showing the first three errors at most: [{shown}]",
                self.count
            );
            (ErrorCode::InvalidRecord, message)
        };
        Err(Rejected {
            record_errors: self.errors,
            message: Some(message),
            ..Rejected::by_log(error)
        })
    }
}
