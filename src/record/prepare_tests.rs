//! What a produced batch becomes: one row per statement about a running Kafka 4.4.

use bytes::Bytes;

use crate::types::{
    ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition,
};

use super::varint::{put_varint, put_varlong};
use super::*;

const NOW: TimestampMs = TimestampMs(1_795_975_686_000);
const HOUR_MS: i64 = 3_600_000;

/// A batch in pieces, to be broken before its length and CRC are computed.
#[derive(Clone)]
struct Raw {
    header: BatchHeader,
    body: Vec<u8>,
    magic: u8,
}

/// A record, before its length.
fn fields(offset_delta: i32, key: Option<&str>, timestamp_delta: i64) -> Vec<u8> {
    let mut out = vec![0];
    put_varlong(&mut out, timestamp_delta);
    put_varint(&mut out, offset_delta);
    match key {
        None => put_varint(&mut out, -1),
        Some(key) => {
            put_varint(&mut out, key.len() as i32);
            out.extend_from_slice(key.as_bytes());
        }
    }
    out.extend_from_slice(&[2, b'v', 0]);
    out
}

fn with_length(fields: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, fields.len() as i32);
    out.extend_from_slice(fields);
    out
}

fn record(offset_delta: i32, key: Option<&str>, timestamp_delta: i64) -> Vec<u8> {
    with_length(&fields(offset_delta, key, timestamp_delta))
}

/// Records of any bytes: a length and what follows.
fn raw(records: &[Vec<u8>]) -> Raw {
    let count = records.len() as i32;
    Raw {
        header: BatchHeader {
            base_offset: Offset::ZERO,
            batch_length: 0,
            leader_epoch: LeaderEpoch::NONE,
            crc: 0,
            attributes: Attributes(0),
            last_offset_delta: count - 1,
            base_timestamp: NOW,
            max_timestamp: NOW,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: NO_SEQUENCE,
            records_count: count,
        },
        body: records.concat(),
        magic: 2,
    }
}

fn three() -> Raw {
    raw(&[0, 1, 2].map(|i| record(i, Some("k"), 0)))
}

impl Raw {
    fn with(mut self, change: impl FnOnce(&mut BatchHeader)) -> Raw {
        change(&mut self.header);
        self
    }

    fn in_codec(mut self, codec: Compression) -> Raw {
        let mut body = Vec::new();
        codec
            .compress(codec.default_level(), &self.body, &mut body)
            .unwrap();
        self.body = body;
        self.header.attributes = self.header.attributes.with_compression(codec);
        self
    }

    fn with_magic(mut self, magic: u8) -> Raw {
        self.magic = magic;
        self
    }

    fn and_body(mut self, bytes: &[u8]) -> Raw {
        self.body.extend_from_slice(bytes);
        self
    }

    fn batch(&self) -> Batch {
        let mut header = self.header;
        header.batch_length = (49 + self.body.len()) as i32;
        let body = Bytes::from(self.body.clone());
        header.crc = Batch {
            header,
            body: body.clone(),
        }
        .compute_crc();
        Batch { header, body }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.batch().to_bytes().to_vec();
        bytes[16] = self.magic;
        bytes
    }

    fn bytes_with_length(&self, batch_length: i32) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
        bytes
    }

    fn bytes_with_wrong_crc(&self) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes[17] ^= 1;
        bytes
    }
}

fn topic_partition() -> TopicPartition {
    TopicPartition {
        topic: "topic".into(),
        partition: 3,
    }
}

/// Kafka's defaults.
fn rules(topic_partition: &TopicPartition) -> ProduceRules<'_> {
    ProduceRules {
        topic_partition,
        leader_epoch: LeaderEpoch(5),
        max_message_bytes: 1_048_588,
        max_decompressed_message_bytes: 2_147_483_639,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: HOUR_MS,
        is_compacted: false,
        compression: None,
        is_zstd_allowed: true,
    }
}

fn prepare_with(
    change: impl FnOnce(&mut ProduceRules<'_>),
    bytes: &[u8],
) -> Result<PreparedBatch, Rejected> {
    let topic_partition = topic_partition();
    let mut rules = rules(&topic_partition);
    change(&mut rules);
    let result = prepare(
        Bytes::copy_from_slice(bytes),
        &rules,
        NOW,
        &mut Scratch::new(),
    );
    if let Ok(prepared) = &result {
        let (batch, header) = (&prepared.batch, &prepared.batch.header);
        assert!(batch.is_crc_right());
        assert_eq!(batch.size_bytes(), header.size_bytes());
        assert_eq!(header.leader_epoch, LeaderEpoch(5));
        assert_eq!(header.base_offset, Offset::ZERO);
        assert_eq!(prepared.record_count, header.records_count);
        assert_eq!(prepared.max_timestamp, header.max_timestamp);
    }
    result
}

fn prepare_default(bytes: &[u8]) -> Result<PreparedBatch, Rejected> {
    prepare_with(|_| (), bytes)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    /// The log looked at the records: the answer has the log start offset.
    ByLog,
    Early,
}
use Found::{ByLog, Early};

fn assert_rejected(name: &str, bytes: &[u8], error: ErrorCode, found: Found) {
    let expected = Rejected {
        error,
        record_errors: vec![],
        message: None,
        has_log_start_offset: found == ByLog,
    };
    let mut rejected = prepare_default(bytes).expect_err(name);
    rejected.message = rejected.message.filter(|_| found == ByLog);
    assert_eq!(rejected, expected, "{name}");
}

#[test]
fn what_is_no_single_batch() {
    use ErrorCode::{CorruptMessage as Corrupt, InvalidRecord as Invalid};
    let good = three().bytes();
    let and = |more: &[u8]| [&good[..], more].concat();
    let length = good.len() as i32 - 12;
    let old = |magic| three().with_magic(magic).bytes();
    let rows: &[(&str, Vec<u8>, ErrorCode)] = &[
        ("no records", vec![], Invalid),
        (
            "a cut batch as the only one, 5 bytes",
            good[..5].to_vec(),
            Invalid,
        ),
        (
            "a cut batch as the only one, 16 bytes",
            good[..16].to_vec(),
            Invalid,
        ),
        (
            "a cut batch as the only one, 60 bytes",
            good[..60].to_vec(),
            Invalid,
        ),
        (
            "a cut batch as the only one",
            good[..good.len() - 1].to_vec(),
            Invalid,
        ),
        (
            "a length one too large",
            three().bytes_with_length(length + 1),
            Invalid,
        ),
        (
            "a length one too small",
            three().bytes_with_length(length - 1),
            Corrupt,
        ),
        ("length -1", three().bytes_with_length(-1), Corrupt),
        ("length 0", three().bytes_with_length(0), Corrupt),
        ("length 14", three().bytes_with_length(14), Corrupt),
        ("length 49", three().bytes_with_length(49), Corrupt),
        (
            "less than a header",
            three().bytes_with_length(48)[..60].to_vec(),
            Corrupt,
        ),
        ("zeros after a whole batch", and(&[0; 12]), Corrupt),
        ("many zeros after a whole batch", and(&[0; 100]), Corrupt),
        ("magic 0", old(0), Invalid),
        ("magic 1", old(1), Invalid),
        ("magic 3", old(3), Corrupt),
        ("magic -1", old(0xff), Corrupt),
        ("magic 1 as the second", and(&old(1)), Invalid),
        ("magic 3 as the second", and(&old(3)), Corrupt),
        ("two batches", and(&good), Invalid),
        ("wrong crc", three().bytes_with_wrong_crc(), Corrupt),
    ];
    for (name, bytes, error) in rows {
        assert_rejected(name, bytes, *error, Early);
    }
    let message = |bytes: &[u8]| prepare_default(bytes).unwrap_err().message;
    let short = "Record size 13 is less than the minimum record overhead (14)";
    assert_eq!(
        message(&three().bytes_with_length(13)).as_deref(),
        Some(short)
    );
    let magic = "Invalid magic found in record: -1";
    assert_eq!(message(&old(0xff)).as_deref(), Some(magic));
    assert_eq!(message(&and(&old(3))), None);
}

#[test]
fn what_the_header_gives_away() {
    use ErrorCode::{InvalidRecord as Invalid, UnknownServerError as Unknown};
    let count = |n| three().with(|h| h.records_count = n);
    let delta = |n| three().with(|h| h.last_offset_delta = n);
    let codec = |n| three().with(|h| h.attributes = Attributes(n));
    let id = |id, sequence| {
        three().with(|h| (h.producer_id, h.base_sequence) = (ProducerId(id), sequence))
    };
    let rows: &[(&str, Raw, ErrorCode)] = &[
        ("count too small", count(2), Invalid),
        ("count too large", count(4), Invalid),
        ("count 0", count(0), Invalid),
        ("count -1", count(-1), Invalid),
        ("last delta too small", delta(1), Invalid),
        ("last delta too large", delta(3), Invalid),
        ("last delta -5", delta(-5), Invalid),
        (
            "last delta at the limit",
            count(i32::MIN).with(|h| h.last_offset_delta = i32::MAX),
            Invalid,
        ),
        (
            "base offset 1",
            three().with(|h| h.base_offset = Offset(1)),
            Invalid,
        ),
        (
            "base offset -1",
            three().with(|h| h.base_offset = Offset(-1)),
            Invalid,
        ),
        ("control bit", codec(0x20), Invalid),
        ("empty batch", raw(&[]), Invalid),
        (
            "empty batch that counts 1",
            raw(&[]).with(|h| h.records_count = 1),
            Invalid,
        ),
        ("producer id and sequence -1", id(1, -1), Invalid),
        ("producer id and sequence -2", id(1, -2), Invalid),
        ("codec 5", codec(5), Unknown),
        ("codec 6", codec(6), Unknown),
        ("codec 7", codec(7), Unknown),
        ("codec 5 and control", codec(0x25), Unknown),
    ];
    for (name, raw, error) in rows {
        assert_rejected(name, &raw.bytes(), *error, ByLog);
    }
}

#[test]
fn the_order_of_the_checks() {
    let base = three().with(|h| h.base_offset = Offset(1));
    let large = |h: &mut BatchHeader| h.base_offset = Offset(0);
    let small = |rules: &mut ProduceRules<'_>| rules.max_message_bytes = 80;
    let code = |result: Result<PreparedBatch, Rejected>| {
        result
            .map_err(|r| (r.error, r.has_log_start_offset))
            .unwrap_err()
    };
    let exact = |bytes| move |rules: &mut ProduceRules<'_>| rules.max_message_bytes = bytes;
    let size = three().bytes().len();
    use ErrorCode::*;
    let control = three().with(|h| h.attributes = Attributes(0x20));
    let codec = |n| three().with(|h| h.attributes = Attributes(n));
    let rows = [
        (
            "too large",
            code(prepare_with(exact(size - 1), &three().bytes())),
            (MessageTooLarge, false),
        ),
        (
            "size before crc",
            code(prepare_with(
                small,
                &three().with(large).bytes_with_wrong_crc(),
            )),
            (MessageTooLarge, false),
        ),
        (
            "offset before size",
            code(prepare_with(small, &base.bytes())),
            (InvalidRecord, true),
        ),
        (
            "offset before crc",
            code(prepare_default(&base.bytes_with_wrong_crc())),
            (InvalidRecord, true),
        ),
        (
            "two before size",
            code(prepare_with(small, &three().bytes().repeat(2))),
            (InvalidRecord, false),
        ),
        (
            "crc before control",
            code(prepare_default(&control.bytes_with_wrong_crc())),
            (CorruptMessage, false),
        ),
        (
            "crc before codec",
            code(prepare_default(&codec(5).bytes_with_wrong_crc())),
            (CorruptMessage, false),
        ),
    ];
    for (name, found, expected) in rows {
        assert_eq!(found, expected, "{name}");
    }
    assert!(prepare_with(exact(size), &three().bytes()).is_ok());
    let old = |raw: Raw, times| {
        let bytes = raw.bytes().repeat(times);
        code(prepare_with(|rules| rules.is_zstd_allowed = false, &bytes))
    };
    assert_eq!(old(codec(4), 1), (UnsupportedCompressionType, false));
    assert_eq!(old(codec(4), 2), (UnsupportedCompressionType, false));
    assert_eq!(old(codec(4).with_magic(1), 1), (InvalidRecord, false));
    assert_eq!(old(codec(5), 1), (UnknownServerError, false));
    assert_eq!(
        code(prepare_default(&codec(4).bytes())),
        (UnknownServerError, true)
    );
}

#[test]
fn records_that_cannot_be_read() {
    use ErrorCode::{InvalidRecord as Invalid, UnknownServerError as Unknown};
    let good = || record(0, Some("k"), 0);
    let one = |fields: &[u8]| raw(&[with_length(fields)]);
    let long_varint = [0x80; 6];
    // Fields up to the key, a key "k", a value "v".
    let start = [0, 0, 0, 2, b'k', 2, b'v'];
    let rows: &[(&str, Raw, ErrorCode)] = &[
        ("a byte after the records", three().and_body(&[0]), Invalid),
        (
            "bytes after the records",
            three().and_body(b"\x06abc"),
            Invalid,
        ),
        ("fewer records", raw(&[good(), vec![]]), Invalid),
        ("length -1", raw(&[[&[1], &good()[1..]].concat()]), Invalid),
        ("length 0", raw(&[[&[0], &good()[1..]].concat()]), Invalid),
        (
            "length one too small",
            raw(&[[&[14], &good()[1..]].concat()]),
            Invalid,
        ),
        (
            "length one too large",
            raw(&[[&[18], &good()[1..]].concat()]),
            Invalid,
        ),
        ("headers -1", one(&[&start[..], &[1]].concat()), Invalid),
        (
            "a header that is missing",
            one(&[&start[..], &[2]].concat()),
            Invalid,
        ),
        (
            "a billion headers",
            one(&[&start[..], &[0xfe, 0xff, 0xff, 0xff, 0x0f]].concat()),
            Invalid,
        ),
        (
            "a header without key",
            one(&[&start[..], &[2, 1, 1]].concat()),
            Invalid,
        ),
        (
            "a key longer than the record",
            one(&[0, 0, 0, 100, b'k', 2, b'v', 0]),
            Invalid,
        ),
        (
            "a field that is no varint",
            one(&[&[0, 0], &long_varint[..], &[0; 12]].concat()),
            Invalid,
        ),
    ];
    for (name, raw, error) in rows {
        assert_rejected(name, &raw.bytes(), *error, ByLog);
        for codec in Compression::ALL {
            let bytes = raw.clone().in_codec(codec).bytes();
            assert_rejected(&format!("{name}, {codec}"), &bytes, *error, ByLog);
        }
    }
    let length = raw(&[[&long_varint[..], &good()[1..]].concat()]);
    assert_rejected(
        "a length that is no varint",
        &length.bytes(),
        Unknown,
        ByLog,
    );
    let length = length.in_codec(Compression::Gzip);
    assert_rejected(
        "a compressed length that is no varint",
        &length.bytes(),
        Invalid,
        ByLog,
    );
    for (codec, empty) in [(1, Unknown), (2, Unknown), (3, Unknown), (4, Invalid)] {
        let other = three().with(|h| h.attributes = Attributes(codec));
        assert_rejected("not what the codec says", &other.bytes(), Unknown, ByLog);
        let none = raw(&[vec![]]).with(|h| h.attributes = Attributes(codec));
        assert_rejected("an empty body", &none.bytes(), empty, ByLog);
    }
}

#[test]
fn what_is_taken_as_it_is() {
    let attributes = |n| three().with(|h| h.attributes = Attributes(n));
    let id = |id, epoch, sequence| {
        three().with(|h| {
            h.producer_id = ProducerId(id);
            h.producer_epoch = ProducerEpoch(epoch);
            h.base_sequence = sequence;
        })
    };
    let at = |ms, max| {
        three().with(|h| (h.base_timestamp, h.max_timestamp) = (TimestampMs(ms), TimestampMs(max)))
    };
    let deltas = |deltas: [i32; 3]| raw(&deltas.map(|d| record(d, Some("k"), 0)));
    let mut marked = fields(0, Some("k"), 0);
    marked[0] = 0xff;
    let headers = [0, 0, 0, 2, b'k', 2, b'v', 4, 2, b'h', 2, b'x', 0, 1];
    let long = [&[0x90, 0x80, 0x80, 0][..], &fields(0, Some("k"), 0)].concat();
    let rows: &[(&str, Raw)] = &[
        ("a batch", three()),
        ("delete horizon", attributes(0x40)),
        ("unknown attribute bits", attributes(0x7f80)),
        ("the sign bit", attributes(i16::MIN)),
        ("transactional", attributes(0x10)),
        ("first delta 1", deltas([1, 2, 3])),
        ("a gap in the deltas", deltas([0, 2, 3])),
        ("a delta twice", deltas([0, 0, 2])),
        ("a negative delta", deltas([-1, 0, 1])),
        ("deltas out of order", deltas([0, 2, 1])),
        ("epoch without producer id", id(-1, 5, -1)),
        ("sequence without producer id", id(-1, -1, 5)),
        ("producer id -2", id(-2, -1, -1)),
        ("producer id without epoch", id(1, -1, 0)),
        ("an idempotent batch", id(1, 0, i32::MAX)),
        ("timestamp -1", at(-1, -1)),
        ("timestamp -2", at(-2, -1)),
        ("timestamp 0", at(0, 0)),
        (
            "59 minutes ahead",
            at(NOW.0 + HOUR_MS - 60_000, NOW.0 + HOUR_MS - 60_000),
        ),
        ("an hour ahead", at(NOW.0 + HOUR_MS, NOW.0 + HOUR_MS)),
        ("record attributes", raw(&[with_length(&marked)])),
        (
            "headers, one without a value",
            raw(&[with_length(&headers)]),
        ),
        ("key length -2", raw(&[with_length(&[0, 0, 0, 3, 0, 0])])),
        ("no key, no value", raw(&[with_length(&[0, 0, 0, 1, 1, 0])])),
        ("a length in more bytes than needed", raw(&[long])),
        ("gzip", three().in_codec(Compression::Gzip)),
        ("snappy", three().in_codec(Compression::Snappy)),
        ("lz4", three().in_codec(Compression::Lz4)),
        ("zstd", three().in_codec(Compression::Zstd)),
        (
            "gzip and bits",
            attributes(0x7f80).in_codec(Compression::Gzip),
        ),
    ];
    for (name, raw) in rows {
        let mut expected = raw.batch();
        expected.header.leader_epoch = LeaderEpoch(5);
        let sent = raw
            .clone()
            .with(|h| h.leader_epoch = LeaderEpoch(7))
            .bytes();
        let prepared = prepare_default(&sent).expect(name);
        assert_eq!(prepared.batch, expected, "{name}");
        assert_eq!(prepared.log_append_time, TimestampMs::NONE);
        // What only begins after it is ignored.
        for end in [5, 11, sent.len() - 1] {
            let bytes = [&sent[..], &sent[..end]].concat();
            assert_eq!(prepare_default(&bytes).expect(name), prepared, "{name}");
        }
    }
}

#[test]
fn snappy_without_its_framing_is_taken() {
    let mut unframed = three().with(|h| h.attributes = Attributes(2));
    unframed.body = snap::raw::Encoder::new()
        .compress_vec(&unframed.body)
        .unwrap();
    assert_eq!(
        prepare_default(&unframed.bytes()).unwrap().batch.body,
        unframed.body
    );
}

#[test]
fn an_accepted_body_is_not_copied() {
    let topic_partition = topic_partition();
    let rules = rules(&topic_partition);
    for codec in Compression::ALL {
        let bytes = Bytes::from(three().in_codec(codec).bytes());
        let prepared = prepare(bytes.clone(), &rules, NOW, &mut Scratch::new()).unwrap();
        assert_eq!(prepared.batch.body.as_ptr(), bytes[61..].as_ptr());
    }
}

#[test]
fn a_limit_ends_the_decompression() {
    let topic_partition = topic_partition();
    let rules = rules(&topic_partition);
    let records: Vec<_> = (0..5000).map(|i| record(i, Some("k"), 0)).collect();
    for codec in Compression::ALL
        .into_iter()
        .filter(|codec| *codec != Compression::None)
    {
        let bytes = Bytes::from(raw(&records).in_codec(codec).bytes());
        let mut scratch = Scratch::new();
        scratch.limit(20_000);
        assert!(prepare(bytes.clone(), &rules, NOW, &mut scratch).is_err());
        assert_eq!(scratch.room(), None);
        scratch.limit(100_000);
        assert!(prepare(bytes, &rules, NOW, &mut scratch).is_ok());
        assert!(scratch.room().is_some_and(|room| room > 0 && room < 80_000));
    }
}

#[test]
fn the_maximum_timestamp_is_corrected() {
    let records: Vec<_> = [(0, 2), (1, 9), (2, 9)]
        .map(|(i, ms)| record(i, Some("k"), ms))
        .into();
    for wrong in [-1, 5, NOW.0 + 100 * HOUR_MS] {
        for codec in Compression::ALL {
            let sent = raw(&records).with(|h| h.max_timestamp = TimestampMs(wrong));
            let prepared = prepare_default(&sent.in_codec(codec).bytes()).unwrap();
            let right = TimestampMs(NOW.0 + 9);
            assert_eq!(prepared.max_timestamp, right);
            assert_eq!(prepared.max_timestamp_offset_delta, 1);
            let expected = raw(&records)
                .with(|h| h.max_timestamp = right)
                .in_codec(codec);
            assert_eq!(prepared.batch.header.crc, expected.batch().header.crc);
        }
    }
}

#[test]
fn the_log_append_bit_is_cleared_and_fixes_the_times() {
    let bit = |h: &mut BatchHeader| h.attributes = Attributes(8);
    let prepared = prepare_default(&three().with(bit).bytes()).unwrap();
    assert_eq!(prepared.batch.header.attributes, Attributes(0));
    let ahead = TimestampMs(NOW.0 + 2 * HOUR_MS);
    let own = three().with(bit).with(|h| h.base_timestamp = ahead);
    let prepared = prepare_default(&own.bytes()).unwrap();
    assert_eq!(prepared.max_timestamp, NOW);
    assert_eq!(prepared.batch.header.base_timestamp, ahead);
    let max = three().with(bit).with(|h| h.max_timestamp = ahead);
    assert_eq!(
        prepare_default(&max.bytes())
            .unwrap_err()
            .record_errors
            .len(),
        3
    );
    let none = three()
        .with(bit)
        .with(|h| h.max_timestamp = TimestampMs::NONE);
    let rejected = prepare_default(&none.bytes()).unwrap_err();
    assert_eq!(rejected.error, ErrorCode::InvalidTimestamp);
    assert_eq!(
        rejected.record_errors[2],
        (2, Some("Invalid timestamp type in message DefaultRecord(offset=2, timestamp=-1, key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime.".into()))
    );
}

#[test]
fn unknown_attribute_bits_do_not_survive_a_new_maximum_or_type() {
    let bits = |n| three().with(|h| h.attributes = Attributes(n));
    let prepared = prepare_default(&bits(0x7fc8).bytes()).unwrap();
    assert_eq!(prepared.batch.header.attributes, Attributes(0x40));
    let wrong = bits(i16::MIN | 0x40).with(|h| h.max_timestamp = TimestampMs(1));
    let prepared = prepare_default(&wrong.bytes()).unwrap();
    assert_eq!(prepared.batch.header.attributes, Attributes(0x40));
}

#[test]
fn a_record_that_cannot_be_read_goes_before_a_wrong_checksum() {
    let fields = [0, 0, 0, 2, b'k', 2, b'v'];
    let rows = [
        (three(), ErrorCode::UnknownServerError),
        (
            raw(&[with_length(&[&fields[..], &[1]].concat())]),
            ErrorCode::InvalidRecord,
        ),
        (raw(&[with_length(&fields)]), ErrorCode::InvalidRecord),
    ];
    for (raw, error) in rows {
        let mut raw = raw.in_codec(Compression::Gzip);
        let end = raw.body.len();
        raw.body[end - 1] ^= 1;
        assert_rejected("gzip", &raw.bytes(), error, ByLog);
    }
}

#[test]
fn log_append_time() {
    let append_time = |rules: &mut ProduceRules<'_>| {
        rules.timestamp_type = TimestampType::LogAppendTime;
    };
    for (first, codec) in [(NOW.0 + 5 * HOUR_MS, 0), (-1, 1), (NOW.0 - 1, 4)] {
        let codec = Compression::from_id(codec).unwrap();
        let sent = three()
            .with(|h| h.base_timestamp = TimestampMs(first))
            .in_codec(codec);
        let prepared = prepare_with(append_time, &sent.bytes()).unwrap();
        let header = prepared.batch.header;
        assert_eq!(
            header.attributes.timestamp_type(),
            TimestampType::LogAppendTime
        );
        assert_eq!(header.base_timestamp, TimestampMs(first));
        assert_eq!((header.max_timestamp, prepared.log_append_time), (NOW, NOW));
    }
    let flagged = raw(&[with_length(&[0, 0, 0, 1, 1, 0])]).with(|h| h.attributes = Attributes(8));
    let print = |raw: Raw| {
        let rejected = prepare_with(append_time, &raw.bytes()).unwrap_err();
        assert_eq!(rejected.error, ErrorCode::InvalidTimestamp);
        rejected.record_errors[0].1.clone().unwrap()
    };
    let whole = format!("DefaultRecord(offset=0, timestamp={NOW}, key=0 bytes, value=0 bytes)");
    let rest = "Producer should not set timestamp type to LogAppendTime.";
    let expected = format!("Invalid timestamp type in message {whole}. {rest}");
    assert_eq!(print(flagged.clone()), expected);
    let partial = "PartialDefaultRecord(offset=0, ";
    let found = print(flagged.in_codec(Compression::Gzip));
    assert!(
        found.contains(partial) && found.contains("key=-1 bytes, value=-1 bytes"),
        "{found}"
    );
}

#[test]
fn timestamps_out_of_range() {
    let ahead = |deltas: [i64; 3]| {
        let records = [0, 1, 2].map(|i| record(i, Some("k"), deltas[i as usize]));
        raw(&records)
    };
    let text = |timestamp: i64, offset: i32, low: i64, high: i64| {
        let place = format!("Timestamp {timestamp} of message with offset {offset}");
        Some(format!(
            "{place} is out of range. The timestamp should be within [{low}, {high}]"
        ))
    };
    let message = "One or more records have been rejected due to invalid timestamp";
    let (low, high) = (NOW.0.wrapping_sub(i64::MAX), NOW.0 + HOUR_MS);
    for codec in Compression::ALL {
        let sent = ahead([0, HOUR_MS + 1, HOUR_MS]).in_codec(codec);
        let rejected = prepare_default(&sent.bytes()).unwrap_err();
        let expected = Rejected {
            error: ErrorCode::InvalidTimestamp,
            record_errors: vec![(1, text(NOW.0 + HOUR_MS + 1, 1, low, high))],
            message: Some(message.into()),
            has_log_start_offset: true,
        };
        assert_eq!(rejected, expected, "{codec}");
    }
    let near =
        |rules: &mut ProduceRules<'_>| (rules.before_max_ms, rules.after_max_ms) = (1000, 1000);
    let rejected = prepare_with(near, &ahead([-1001, -1000, 1001]).bytes()).unwrap_err();
    let (low, high) = (NOW.0 - 1000, NOW.0 + 1000);
    let expected = [
        (0, text(NOW.0 - 1001, 0, low, high)),
        (2, text(NOW.0 + 1001, 2, low, high)),
    ];
    assert_eq!(rejected.record_errors, expected);
    // -1 is no time; -2 is one, long ago. Sums wrap.
    let at = |ms| three().with(|h| h.base_timestamp = TimestampMs(ms)).bytes();
    assert!(prepare_with(near, &at(-1)).is_ok());
    assert!(prepare_with(near, &at(-2)).is_err());
    assert!(prepare_default(&at(i64::MIN)).is_err());
    assert!(prepare_default(&at(i64::MAX)).is_err());
}

#[test]
fn a_compacted_topic_wants_keys() {
    let compacted = |rules: &mut ProduceRules<'_>| rules.is_compacted = true;
    assert!(prepare_with(compacted, &three().bytes()).is_ok());
    let records = [None, Some("k"), None, None, None];
    let records: Vec<_> = (0..)
        .zip(records)
        .map(|(i, key)| record(i, key, 0))
        .collect();
    let text = "Compacted topic cannot accept message without key in topic partition topic-3";
    let shown = |i: i32| format!("RecordError(batchIndex={i}, message='{text}')");
    for codec in [Compression::None, Compression::Gzip] {
        let sent = raw(&records).in_codec(codec);
        let rejected = prepare_with(compacted, &sent.bytes()).unwrap_err();
        let message = format!(
            "One or more records have been rejected due to 4 record errors in total, and only \
             showing the first three errors at most: [{}, {}, {}]",
            shown(0),
            shown(2),
            shown(3)
        );
        let expected = Rejected {
            error: ErrorCode::InvalidRecord,
            record_errors: [0, 2, 3, 4].map(|i| (i, Some(text.into()))).into(),
            message: Some(message),
            has_log_start_offset: true,
        };
        assert_eq!(rejected, expected);
    }
    // A timestamp error decides the code; a record that cannot be read comes before both.
    let late = record(1, None, 2 * HOUR_MS);
    let mixed = raw(&[record(0, None, 0), late, record(2, Some("k"), 2 * HOUR_MS)]);
    let rejected = prepare_with(compacted, &mixed.bytes()).unwrap_err();
    assert_eq!(rejected.error, ErrorCode::InvalidTimestamp);
    assert_eq!(rejected.record_errors[1], (1, Some(text.into())));
    assert_eq!(rejected.record_errors.len(), 3);
    let broken = mixed.and_body(&[0]);
    let rejected = prepare_with(compacted, &broken.bytes()).unwrap_err();
    assert_eq!(
        (rejected.error, rejected.message),
        (ErrorCode::InvalidRecord, None)
    );
    assert!(rejected.record_errors.is_empty());
    let negative = raw(&[with_length(&[0, 0, 0, 3, 0, 0])]);
    assert!(prepare_with(compacted, &negative.bytes()).is_err());
}

#[test]
fn deltas_of_a_compressed_batch_must_be_consecutive() {
    for deltas in [[1, 2, 3], [0, 2, 3], [0, 2, 1]] {
        let records = deltas.map(|d| record(d, Some("k"), 0));
        let sent = raw(&records).in_codec(Compression::Gzip);
        assert_rejected(
            "deltas",
            &sent.bytes(),
            ErrorCode::UnknownServerError,
            ByLog,
        );
        let late = sent
            .clone()
            .with(|h| h.base_timestamp = TimestampMs(i64::MAX));
        let rejected = prepare_default(&late.bytes()).unwrap_err();
        assert_eq!(rejected.error, ErrorCode::InvalidTimestamp);
    }
}

#[test]
fn a_record_may_not_decompress_to_too_much() {
    let large = raw(&[record(0, Some(&"k".repeat(600)), 0)]);
    let many: Vec<_> = (0..20)
        .map(|i| record(i, Some(&"k".repeat(60)), 0))
        .collect();
    let limit =
        |bytes| move |rules: &mut ProduceRules<'_>| rules.max_decompressed_message_bytes = bytes;
    let fields_bytes = fields(0, Some(&"k".repeat(600)), 0).len();
    assert!(prepare_with(limit(500), &large.bytes()).is_ok());
    let gzip = large.in_codec(Compression::Gzip).bytes();
    assert!(prepare_with(limit(fields_bytes), &gzip).is_ok());
    let rejected = prepare_with(limit(fields_bytes - 1), &gzip).unwrap_err();
    assert_eq!(
        (rejected.error, rejected.has_log_start_offset),
        (ErrorCode::InvalidRecord, true)
    );
    assert!(prepare_with(limit(500), &raw(&many).in_codec(Compression::Gzip).bytes()).is_ok());
}

#[test]
fn compression_type_rewrites_other_codecs() {
    let records = [(0, 5), (2, 3), (7, 9)].map(|(d, ms)| {
        let mut fields = fields(d, Some("k"), ms);
        fields[0] = 0x7f;
        with_length(&fields)
    });
    let sent = raw(&records).with(|h| {
        h.attributes = Attributes(0x7fd0);
        h.producer_id = ProducerId(9);
        h.producer_epoch = ProducerEpoch(4);
        h.base_sequence = 8;
        h.max_timestamp = TimestampMs(1);
    });
    let expected = raw(&[(0, 0), (1, -2), (2, 4)].map(|(i, ms)| record(i, Some("k"), ms)));
    let expected: Vec<Record> = expected.batch().records().map(Result::unwrap).collect();
    for from in Compression::ALL {
        for to in Compression::ALL.into_iter().filter(|to| *to != from) {
            let target = |rules: &mut ProduceRules<'_>| {
                rules.compression = Some((to, to.default_level()));
            };
            let bytes = sent.clone().in_codec(from).bytes();
            let prepared = prepare_with(target, &bytes).unwrap();
            let header = prepared.batch.header;
            assert_eq!(header.attributes, Attributes(0x10 | i16::from(to.id())));
            assert_eq!(header.base_timestamp, TimestampMs(NOW.0 + 5));
            assert_eq!(header.max_timestamp, TimestampMs(NOW.0 + 9));
            let producer = (
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
            );
            assert_eq!(producer, (ProducerId(9), ProducerEpoch(4), 8));
            let records: Vec<_> = prepared.batch.records().map(Result::unwrap).collect();
            assert_eq!(records, expected, "{from} to {to}");
        }
        // The codec is already right: the batch stays, with its gaps and bits if it may have them.
        let same = |rules: &mut ProduceRules<'_>| rules.compression = Some((from, 1));
        let bytes = three().in_codec(from).bytes();
        assert_eq!(prepare_with(same, &bytes).unwrap().batch.body, &bytes[61..]);
    }
}

#[test]
fn rewriting_judges_records_as_before() {
    let lz4 = |rules: &mut ProduceRules<'_>| {
        rules.compression = Some((Compression::Lz4, 9));
        rules.is_compacted = true;
    };
    let broken = three().and_body(&[0]).bytes();
    assert_eq!(
        prepare_with(lz4, &broken).unwrap_err().error,
        ErrorCode::InvalidRecord
    );
    let keyless = raw(&[record(0, None, 0)]).bytes();
    assert_eq!(
        prepare_with(lz4, &keyless).unwrap_err().record_errors.len(),
        1
    );
    for ms in [-2, -5] {
        let early = three().with(|h| h.base_timestamp = TimestampMs(ms)).bytes();
        assert_eq!(
            prepare_with(lz4, &early).unwrap_err().error,
            ErrorCode::UnknownServerError
        );
        assert!(prepare_default(&early).is_ok());
    }
    let none = three().with(|h| h.base_timestamp = TimestampMs(-1)).bytes();
    assert!(prepare_with(lz4, &none).is_ok());
    for (id, epoch, sequence, is_ok) in [
        (-1, -1, -1, true),
        (-1, 4, 8, true),
        (-2, 4, 8, true),
        (1, -1, 0, false),
        (-2, 0, -1, false),
    ] {
        let sent = three().with(|h| {
            h.producer_id = ProducerId(id);
            h.producer_epoch = ProducerEpoch(epoch);
            h.base_sequence = sequence;
        });
        let result = prepare_with(lz4, &sent.bytes()).map_err(|r| r.error);
        let error = result.map(|_| ()).err();
        assert_eq!(
            error,
            (!is_ok).then_some(ErrorCode::UnknownServerError),
            "{id} {epoch}"
        );
    }
    let append_time = |rules: &mut ProduceRules<'_>| {
        rules.compression = Some((Compression::Gzip, 9));
        rules.timestamp_type = TimestampType::LogAppendTime;
    };
    let sent = raw(&[record(0, Some("k"), 7), record(1, Some("k"), 3)]);
    let header = prepare_with(append_time, &sent.bytes())
        .unwrap()
        .batch
        .header;
    assert_eq!(header.attributes, Attributes(9));
    assert_eq!(header.base_timestamp, TimestampMs(NOW.0 + 7));
    assert_eq!(header.max_timestamp, NOW);
}

#[test]
fn what_grows_too_large_by_rewriting_is_refused_and_not_kept() {
    let small = |rules: &mut ProduceRules<'_>| {
        rules.compression = Some((Compression::None, 0));
        rules.max_message_bytes = 3_000;
    };
    let large = raw(&[record(0, Some(&"k".repeat(1 << 20)), 0)]).in_codec(Compression::Gzip);
    let rejected = prepare_with(small, &large.bytes()).unwrap_err();
    assert_eq!(
        (rejected.error, rejected.has_log_start_offset),
        (ErrorCode::MessageTooLarge, false)
    );
    // Its records are judged all the same.
    let late = large.with(|h| h.base_timestamp = TimestampMs(i64::MAX));
    assert_eq!(
        prepare_with(small, &late.bytes()).unwrap_err().error,
        ErrorCode::InvalidTimestamp
    );
}
