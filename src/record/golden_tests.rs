//! Batches that a real Kafka 4.4 wrote, and our own codecs against themselves.
//!
//! `testdata/<codec>.log` are its segment files: a batch of 3 records, and (but for `none`) one of
//! 100 records of about 1,000 bytes, which takes several blocks.

use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::*;

const LOGS: [(Compression, &[u8]); 5] = [
    (Compression::None, include_bytes!("testdata/none.log")),
    (Compression::Gzip, include_bytes!("testdata/gzip.log")),
    (Compression::Snappy, include_bytes!("testdata/snappy.log")),
    (Compression::Lz4, include_bytes!("testdata/lz4.log")),
    (Compression::Zstd, include_bytes!("testdata/zstd.log")),
];

fn bytes(text: &str) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(text.as_bytes())
}

fn from_hex(text: &str) -> bytes::Bytes {
    let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn batches(log: &'static [u8]) -> Vec<Batch> {
    let batches = Batches::new(bytes::Bytes::from_static(log));
    batches.collect::<Result<_, _>>().unwrap()
}

fn records(batch: &Batch) -> Vec<Record> {
    batch.records().collect::<Result<_, _>>().unwrap()
}

#[test]
fn segments_that_kafka_wrote_are_read() {
    for (codec, log) in LOGS {
        let batches = batches(log);
        let small = &batches[0];
        assert!(small.is_crc_right(), "{codec}");
        assert_eq!(small.header.attributes.compression(), Some(codec));
        assert_eq!(small.header.base_timestamp, TimestampMs(1_700_000_000_000));
        assert_eq!(small.header.max_timestamp, TimestampMs(1_700_000_000_005));
        assert_eq!(small.header.next_offset(), Offset(3));
        let header = |key, value| RecordHeader {
            key: bytes(key),
            value,
        };
        let record = |offset_delta, timestamp_delta, key, value, headers| Record {
            attributes: 0,
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        };
        let headers = vec![header("h", Some(bytes("x"))), header("null", None)];
        let expected = [
            record(0, 0, Some(bytes("key-0")), Some(bytes("value-0")), vec![]),
            record(1, 5, None, Some(bytes("value-1")), headers),
            record(2, 3, Some(bytes("")), None, vec![]),
        ];
        assert_eq!(records(small), expected, "{codec}");
        let written: Vec<u8> = batches.iter().flat_map(|b| b.to_bytes()).collect();
        assert!(written == log, "{codec}");
    }
}

#[test]
fn batches_of_several_blocks_hold_the_same_in_every_codec() {
    let large = |log| records(&batches(log)[1]);
    let expected = large(LOGS[1].1);
    assert_eq!(expected.len(), 100);
    assert_eq!(expected[7].key, Some(bytes("k7")));
    assert!(expected[7].value.as_ref().unwrap().starts_with(b"7 "));
    for (codec, log) in &LOGS[2..] {
        assert!(large(log) == expected, "{codec}");
        assert!(batches(log)[1].is_crc_right(), "{codec}");
    }
}

#[test]
fn the_builder_writes_what_kafka_writes() {
    let mut builder = BatchBuilder::new();
    builder.leader_epoch = LeaderEpoch(0);
    let at = |ms: i64| TimestampMs(1_700_000_000_000 + ms);
    builder.append(at(0), Some(b"key-0"), Some(b"value-0"));
    let headers: [(&[u8], Option<&[u8]>); 2] = [(b"h", Some(b"x")), (b"null", None)];
    builder.append_with_headers(at(5), None, Some(b"value-1"), &headers);
    builder.append(at(3), Some(b""), None);
    assert_eq!(builder.uncompressed_bytes(), LOGS[0].1.len());
    assert_eq!(builder.clone().build().unwrap().to_bytes(), LOGS[0].1);
    // The framing of the block codecs is fixed, and of three records snappy's blocks are too.
    for codec in Compression::ALL {
        builder.compression = codec;
        builder.level = codec.default_level();
        let batch = builder.clone().build().unwrap();
        assert!(batch.is_crc_right());
        let kafka = &batches(LOGS[codec as usize].1)[0];
        assert_eq!(records(&batch), records(kafka), "{codec}");
        let start = match codec {
            Compression::Snappy => 20,
            Compression::Lz4 => 7,
            _ => 0,
        };
        assert_eq!(batch.body[..start], kafka.body[..start], "{codec}");
    }
}

#[test]
fn markers_are_those_of_kafka() {
    let commit = concat!(
        "0000000000000001000000420000000002100ebe44003000000000000001a228861cf8",
        "000001a228861cf800000000000000000000ffffffff00000001",
        "2000000008000000010c00000000000000"
    );
    let abort = concat!(
        "0000000000000001000000420000000002b61122f7003000000000000001a2288621c0",
        "000001a2288621c000000000000000010000ffffffff00000001",
        "2000000008000000000c00000000000000"
    );
    let cases = [
        (commit, MarkerType::Commit, 0, 0x1a2_2886_1cf8),
        (abort, MarkerType::Abort, 1, 0x1a2_2886_21c0),
    ];
    for (golden, marker_type, producer_id, timestamp) in cases {
        let golden = from_hex(golden);
        let marker = Marker {
            marker_type,
            coordinator_epoch: 0,
        };
        let producer_id = ProducerId(producer_id);
        let timestamp = TimestampMs(timestamp);
        let mut builder = BatchBuilder::marker(producer_id, ProducerEpoch(0), marker, timestamp);
        builder.base_offset = Offset(1);
        builder.leader_epoch = LeaderEpoch(0);
        assert_eq!(builder.build().unwrap().to_bytes(), golden);
        let batch = Batch::parse(golden).unwrap();
        assert_eq!(Marker::read(&records(&batch)[0]), Some(marker));
    }
    let marker = Marker {
        marker_type: MarkerType::Commit,
        coordinator_epoch: 0x0102_0304,
    };
    assert_eq!(marker.value(), [0, 0, 1, 2, 3, 4]);
}

#[test]
fn torn_and_foreign_bytes_end_the_iteration() {
    let log = LOGS[1].1;
    let first = batches(log)[0].size_bytes();
    for end in [first + 1, first + 16, first + 17, first + 61, log.len() - 1] {
        let read: Vec<_> = BatchViews::new(&log[..end]).collect();
        assert_eq!(read.len(), 2, "{end}");
        assert!(read[0].is_ok());
        let available_bytes = end - first;
        let needed_bytes = if available_bytes < 17 {
            17
        } else {
            log.len() - first
        };
        let torn = BatchError::Torn {
            position: first,
            needed_bytes,
            available_bytes,
        };
        assert_eq!(read[1], Err(torn), "{end}");
    }
    let mut foreign = log.to_vec();
    foreign[first + 16] = 1;
    let read: Vec<_> = Batches::new(foreign.into()).collect();
    let source = HeaderError::Magic { magic: 1 };
    assert_eq!(
        read[1],
        Err(BatchError::Header {
            position: first,
            source
        })
    );
    assert_eq!(read.len(), 2);
    let whole = bytes::Bytes::from_static(log);
    let extra = BatchError::Extra {
        extra_bytes: log.len() - first,
    };
    assert_eq!(Batch::parse(whole), Err(extra));
}

#[test]
fn a_wrong_count_or_codec_is_an_error_of_the_records() {
    let mut batch = batches(LOGS[4].1).remove(0);
    let last = |batch: &Batch| batch.records().last().unwrap().unwrap_err().to_string();
    batch.header.records_count = 2;
    assert_eq!(last(&batch), "record 2 of the batch");
    batch.header.records_count = 4;
    assert_eq!(last(&batch), "record 3 of the batch");
    assert_eq!(batch.records().count(), 4);
    batch.header.attributes = Attributes(6);
    assert_eq!(last(&batch), "codec 6 is not known");
    batch.header.attributes = Attributes(1);
    assert_eq!(last(&batch), "record 0 of the batch");
    let small = batches(LOGS[4].1).remove(0);
    assert!(small.records_within(8).next().unwrap().is_err());
}
