//! What is done for each request or batch, without sockets: `cargo bench`, or a part by its name
//! (`cargo bench -- append`). `cargo test --benches` runs each once.
//!
//! The files are in a temporary folder; where that is a disk, its page cache is measured.

use std::hint::black_box;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use klamm::host::RealDisk;
use klamm::log::{
    AppendContext, FileCache, LoadOptions, Log, LogConfig, LogDir, Origin, SharedLinks,
};
use klamm::record::{
    Batch, BatchBuilder, Compression, ProduceRules, Scratch, TimestampType, prepare,
};
use klamm::types::{LeaderEpoch, Offset, TimestampMs, TopicId, TopicPartition};
use klamm::wire::{RequestHeader, conform};

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const CONTEXT: AppendContext = AppendContext {
    leader_epoch: LeaderEpoch(0),
    origin: Origin::Client,
    now: NOW,
};

fn topic_partition(partition: i32) -> TopicPartition {
    TopicPartition {
        topic: "hot-paths".into(),
        partition,
    }
}

fn batch(records: usize, value_bytes: usize, compression: Compression) -> Batch {
    let value: Vec<u8> = (0..value_bytes).map(|at| b'A' + (at % 26) as u8).collect();
    let mut builder = BatchBuilder::new();
    builder.compression = compression;
    for _ in 0..records {
        builder.append(NOW, None, Some(&value));
    }
    builder.build().unwrap()
}

/// A Produce v9 frame, without its length, with one batch for one partition.
fn produce_frame(records: &Bytes) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_slice(&[0, 0, 0, 9, 0, 0, 0, 1]); // api key, version, correlation id
    frame.put_slice(&[0, 1, b'c', 0]); // client id, tags
    frame.put_slice(&[0, 0xff, 0xff, 0, 0, 0x75, 0x30]); // no transaction, acks=all, 30 s
    frame.put_slice(&[2, 10]); // one topic; nine bytes of name
    frame.put_slice(b"hot-paths");
    frame.put_slice(&[2, 0, 0, 0, 0]); // one partition, of index 0
    let mut len = records.len() as u32 + 1;
    while len >= 0x80 {
        frame.put_u8(len as u8 | 0x80);
        len >>= 7;
    }
    frame.put_u8(len as u8);
    frame.put_slice(records);
    frame.put_slice(&[0, 0, 0]); // tags of partition, topic and request
    frame.freeze()
}

fn frame_decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame decode");
    for (name, records) in [("1 record of 1 KiB", 1), ("1,000 records of 1 KiB", 1000)] {
        let frame = produce_frame(&batch(records, 1024, Compression::None).to_bytes());
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let bytes = conform(black_box(&frame)).unwrap();
                RequestHeader::read(&bytes).unwrap()
            });
        });
    }
    group.finish();
}

fn batch_validation(criterion: &mut Criterion) {
    let topic_partition = topic_partition(0);
    let rules = ProduceRules {
        topic_partition: &topic_partition,
        leader_epoch: LeaderEpoch(0),
        max_message_bytes: 2 << 20,
        max_decompressed_message_bytes: 2 << 20,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        is_compacted: false,
        compression: None,
        is_zstd_allowed: true,
    };
    let mut group = criterion.benchmark_group("batch validation");
    for (name, records, value_bytes, compression) in [
        ("1 x 1 KiB", 1, 1024, Compression::None),
        ("1,000 x 1 KiB", 1000, 1024, Compression::None),
        ("1,000 x 1 KiB, lz4", 1000, 1024, Compression::Lz4),
        ("10,000 x 100 B", 10_000, 100, Compression::None),
    ] {
        let bytes = batch(records, value_bytes, compression).to_bytes();
        let mut scratch = Scratch::default();
        group.throughput(Throughput::Elements(records as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| prepare(bytes.clone(), &rules, NOW, &mut scratch).unwrap());
        });
    }
    group.finish();
}

struct Fixture {
    _folder: tempfile::TempDir,
    _dir: LogDir,
    logs: Vec<Arc<Log>>,
}

/// Logs in a folder of their own.
fn logs(count: i32) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let files = Arc::new(FileCache::new(1000));
    let dir = LogDir::open(Arc::new(RealDisk), folder.path(), files).unwrap();
    let config = Arc::new(LogConfig {
        segment_bytes: 64 << 20,
        ..LogConfig::default()
    });
    let options = LoadOptions {
        now: NOW,
        file_delete_delay_ms: 0,
        threads: 1,
        shared_links: &SharedLinks::default(),
        config_of: &|_| config.clone(),
        is_known: &|_| true,
    };
    dir.load(&options).unwrap();
    let made = (0..count).map(|partition| {
        let topic_id = TopicId(uuid::Uuid::from_u128(1));
        dir.create_log(topic_partition(partition), topic_id, config.clone(), NOW)
            .unwrap()
    });
    let logs = made.collect();
    Fixture {
        _folder: folder,
        _dir: dir,
        logs,
    }
}

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    for (name, records) in [("1 x 1 KiB", 1), ("100 x 1 KiB", 100)] {
        let fixture = logs(1);
        let (log, mut appended) = (fixture.logs[0].clone(), 0);
        let batch = batch(records, 1024, Compression::None);
        group.throughput(Throughput::Bytes(batch.size_bytes() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || batch.clone(),
                |batch| {
                    appended += 1;
                    // What was written is given up now and then, or it would fill the disk.
                    if appended % 1000 == 0 {
                        log.advance_log_start_offset(log.log_end_offset()).unwrap();
                    }
                    log.append_as_leader(batch, &CONTEXT).unwrap()
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn read(criterion: &mut Criterion) {
    let fixture = logs(100);
    for log in &fixture.logs {
        for _ in 0..200 {
            let one = batch(1, 1024, Compression::None);
            log.append_as_leader(one, &CONTEXT).unwrap();
        }
    }
    let log = &fixture.logs[0];
    let end = log.log_end_offset();
    let mut group = criterion.benchmark_group("index look-up");
    for (name, from) in [
        ("the last batch", end.plus(-1)),
        ("in the middle", Offset(70)),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| log.read(black_box(from), 1 << 20, end, true).unwrap());
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("fetch assembly");
    for count in [1, 12, 100] {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(
            format!("places of {count} partitions' records"),
            |bencher| {
                bencher.iter(|| {
                    let logs = fixture.logs[..count].iter();
                    logs.map(|log| log.read(end.plus(-1), 1 << 20, end, true).unwrap().len)
                        .sum::<u32>()
                });
            },
        );
    }
    group.finish();
}

criterion_group!(hot_paths, frame_decode, batch_validation, append, read);
criterion_main!(hot_paths);
