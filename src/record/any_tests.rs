//! Any records survive any codec; no bytes make anything panic.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::types::{LeaderEpoch, TimestampMs, TopicPartition};

use super::decompress::Decompressor;
use super::*;

type Fields = (
    i64,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Vec<(Vec<u8>, Option<Vec<u8>>)>,
);

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(Just(7), 0..4_000)]
}

fn any_fields() -> impl Strategy<Value = Fields> {
    let headers = vec((any_bytes(), option::of(any_bytes())), 0..3);
    let timestamp = prop_oneof![any::<i64>(), 0..2_000_000_000_000_i64];
    (
        timestamp,
        option::of(any_bytes()),
        option::of(any_bytes()),
        headers,
    )
}

fn any_codec() -> impl Strategy<Value = Compression> {
    (0..5_u8).prop_map(|id| Compression::from_id(id).unwrap())
}

fn build(records: &[Fields], compression: Compression) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.compression = compression;
    builder.level = compression.default_level();
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = headers
            .iter()
            .map(|(k, v)| (&k[..], v.as_deref()))
            .collect();
        let (key, value) = (key.as_deref(), value.as_deref());
        builder.append_with_headers(TimestampMs(*timestamp), key, value, &headers);
    }
    builder.build().unwrap()
}

fn read(batch: &Batch) -> Vec<Fields> {
    let field = |bytes: Option<Bytes>| bytes.map(|b| b.to_vec());
    let records = batch.records().map(|record| {
        let record = record.unwrap();
        let headers = record.headers.into_iter();
        let headers = headers.map(|h| (h.key.to_vec(), field(h.value))).collect();
        let timestamp = batch
            .header
            .base_timestamp
            .0
            .wrapping_add(record.timestamp_delta);
        (timestamp, field(record.key), field(record.value), headers)
    });
    records.collect()
}

fn rules(topic_partition: &TopicPartition, compression: Option<Compression>) -> ProduceRules<'_> {
    ProduceRules {
        topic_partition,
        leader_epoch: LeaderEpoch(0),
        max_message_bytes: 1 << 20,
        max_decompressed_message_bytes: 1 << 20,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        is_compacted: false,
        compression: compression.map(|codec| (codec, codec.default_level())),
        is_zstd_allowed: true,
    }
}

/// Everything that reads bytes, on `bytes`.
fn read_everything(bytes: &[u8], scratch: &mut Scratch) {
    let topic_partition = TopicPartition {
        topic: "t".into(),
        partition: 0,
    };
    for compression in [None, Some(Compression::None), Some(Compression::Lz4)] {
        let rules = rules(&topic_partition, compression);
        let bytes = Bytes::copy_from_slice(bytes);
        let now = TimestampMs(1_700_000_000_000);
        if let Ok(prepared) = prepare(bytes, &rules, now, scratch) {
            assert!(prepared.batch.is_crc_right());
            // What is accepted can be read.
            let count = prepared.batch.records().map(Result::unwrap).count();
            assert_eq!(count, prepared.record_count as usize);
        }
    }
    for batch in Batches::new(Bytes::copy_from_slice(bytes)).flatten() {
        let _ = batch.compute_crc();
        let _ = (batch.header.last_offset(), batch.header.last_sequence());
        batch.records_within(1 << 20).for_each(drop);
    }
}

/// A CRC that fits, so that what follows it is looked at.
fn fix_crc(bytes: &mut [u8]) {
    if let Ok(batch) = Batch::parse(Bytes::copy_from_slice(bytes)) {
        bytes[17..21].copy_from_slice(&batch.compute_crc().to_be_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_records_survive(records in vec(any_fields(), 1..20), codec in any_codec()) {
        let batch = build(&records, codec);
        prop_assert_eq!(&read(&batch), &records);
        prop_assert_eq!(&Batch::parse(batch.to_bytes()).unwrap(), &batch);
    }

    #[test]
    fn any_records_survive_prepare(
        records in vec(any_fields(), 1..20),
        from in any_codec(),
        to in option::of(any_codec()),
    ) {
        let topic_partition = TopicPartition { topic: "t".into(), partition: 0 };
        let rules = rules(&topic_partition, to);
        // So that no timestamp is out of range by wrapping.
        let mut records = records;
        records.iter_mut().for_each(|r| r.0 = r.0.rem_euclid(1 << 40));
        let bytes = build(&records, from).to_bytes();
        let prepared = prepare(bytes, &rules, TimestampMs(0), &mut Scratch::new()).unwrap();
        prop_assert_eq!(prepared.batch.header.attributes.compression(), Some(to.unwrap_or(from)));
        prop_assert!(prepared.batch.is_crc_right());
        prop_assert_eq!(&read(&prepared.batch), &records);
        let latest = records.iter().map(|r| r.0).max().unwrap();
        let first = records.iter().position(|r| r.0 == latest).unwrap();
        prop_assert_eq!(prepared.max_timestamp, TimestampMs(latest));
        prop_assert_eq!(prepared.max_timestamp_offset_delta, first as i32);
    }

    #[test]
    fn random_bytes_do_not_panic(mut bytes in vec(any::<u8>(), 0..300), codec in any_codec()) {
        let mut scratch = Scratch::new();
        read_everything(&bytes, &mut scratch);
        let (mut input, mut out) = (&bytes[..], [0; 64]);
        let mut decompressor = Decompressor::new();
        if decompressor.start(codec, &mut input).is_ok() {
            while decompressor.read(&mut input, &mut out).is_ok_and(|bytes| bytes > 0) {}
        }
        // As the records of a batch.
        if bytes.len() >= HEADER_BYTES {
            let length = bytes.len() as i32 - 12;
            bytes[..8].fill(0);
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[16] = 2;
            bytes[21..23].copy_from_slice(&i16::from(codec.id()).to_be_bytes());
            bytes[23..27].copy_from_slice(&1_i32.to_be_bytes());
            bytes[43..51].fill(0xff);
            bytes[57..61].copy_from_slice(&2_i32.to_be_bytes());
            fix_crc(&mut bytes);
            read_everything(&bytes, &mut scratch);
        }
    }

    #[test]
    fn mutated_batches_do_not_panic(
        records in vec(any_fields(), 1..5),
        codec in any_codec(),
        mutations in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        is_crc_fixed in any::<bool>(),
    ) {
        let mut bytes = build(&records, codec).to_bytes().to_vec();
        for (at, byte) in mutations {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_crc_fixed {
            fix_crc(&mut bytes);
        }
        read_everything(&bytes, &mut Scratch::new());
    }
}
