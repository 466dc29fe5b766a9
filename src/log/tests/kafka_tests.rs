//! Partition directories that Apache Kafka 4.4 wrote (testdata/kafka-4.4), opened by us; and the
//! same batches appended by us, which must give the same files byte for byte.
//!
//! They were written by one broker with `index.interval.bytes=200`: `plain` by idempotent producers
//! with four codecs, `txn` by two transactional ones of which one stopped inside a transaction,
//! `empty` by nobody. Kafka's own dump tool reads our files in `compat/dump-log`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::*;
use super::support::*;
use crate::host::{Disk, OpenMode, RealDisk};
use crate::record::{Batch, Compression};
use crate::types::*;

const INDEX_INTERVAL_BYTES: u32 = 200;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/log/testdata/kafka-4.4")
}

fn copy(from: &Path, to: &Path) {
    RealDisk.create_dir_all(to).unwrap();
    for entry in RealDisk.list(from).unwrap() {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        if entry.is_dir {
            copy(&from, &to);
        } else {
            RealDisk
                .replace(&to, &RealDisk.read(&from).unwrap())
                .unwrap();
        }
    }
}

fn config() -> LogConfig {
    LogConfig {
        index_interval_bytes: INDEX_INTERVAL_BYTES,
        segment_bytes: 1 << 20,
        ..LogConfig::default()
    }
}

struct Copied {
    fixture: Fixture,
    dir: tempfile::TempDir,
}

/// A copy of what Kafka wrote, not opened yet.
fn copied() -> Copied {
    let dir = tempfile::tempdir().unwrap();
    copy(&testdata(), dir.path());
    let fixture = Fixture::on(Arc::new(RealDisk), dir.path(), config());
    Copied { fixture, dir }
}

impl Copied {
    /// As a Kafka that was killed leaves it: no marker, nothing of the last stop's snapshots, the
    /// active segments' indexes at full size.
    fn crashed() -> Copied {
        let copied = copied();
        let remove = |name: &str| RealDisk.remove_file(&copied.dir.path().join(name)).unwrap();
        remove(".kafka_cleanshutdown");
        remove("recovery-point-offset-checkpoint");
        remove("plain-0/00000000000000000240.snapshot");
        remove("txn-0/00000000000000000049.snapshot");
        let active = ["plain-0/00000000000000000000", "txn-0/00000000000000000006"];
        for (name, len) in active.iter().flat_map(|a| {
            [
                (format!("{a}.index"), 10_485_760),
                (format!("{a}.timeindex"), 10_485_756),
            ]
        }) {
            let path = copied.dir.path().join(name);
            RealDisk
                .open(&path, OpenMode::Write)
                .unwrap()
                .set_len(len)
                .unwrap();
        }
        copied
    }

    fn log(&self, topic: &str) -> Arc<Log> {
        self.fixture.dir().log(&partition(topic, 0)).unwrap()
    }
}

/// Every file of both directories has the same bytes.
fn assert_same_files(ours: &Path, kafkas: &Path) {
    let names = |dir: &Path| {
        let entries = RealDisk.list(dir).unwrap();
        entries.into_iter().map(|e| e.name).collect::<Vec<_>>()
    };
    assert_eq!(names(ours), names(kafkas));
    for name in names(kafkas) {
        let read = |dir: &Path| RealDisk.read(&dir.join(&name)).unwrap();
        assert_eq!(read(ours), read(kafkas), "{name}");
    }
}

fn check_content(copied: &Copied) {
    let plain = copied.log("plain");
    assert_eq!(plain.log_end_offset(), Offset(240));
    let batches = all_batches(&plain);
    assert!(batches.iter().all(|b| b.is_crc_right()));
    let codecs = [
        Compression::None,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Zstd,
    ];
    for codec in codecs {
        let has = |b: &Batch| b.header.attributes.compression() == Some(codec);
        assert_eq!(batches.iter().filter(|b| has(b)).count(), 12);
    }
    assert_eq!(plain.active_producers().len(), 4);
    let found = plain
        .offset_for_timestamp(TimestampMs(1_700_000_003_002))
        .unwrap();
    assert_eq!(found.unwrap().offset, Offset(17));
    let max = plain.offset_of_max_timestamp().unwrap().unwrap();
    assert_eq!((max.timestamp.0, max.offset.0), (1_700_000_011_004, 59));
    let txn = copied.log("txn");
    assert_eq!((txn.log_end_offset(), txn.segment_count()), (Offset(49), 2));
    assert_eq!(txn.last_stable_offset(Offset(49)), Offset(48));
    let slice = txn.read(Offset(0), u32::MAX, Offset(49), true).unwrap();
    let aborted = |from| {
        let aborted = txn
            .aborted_transactions(Offset(from), &slice, Offset(48))
            .unwrap();
        aborted
            .into_iter()
            .map(|a| a.last_offset.0)
            .collect::<Vec<_>>()
    };
    // All that could matter to a reader of the first segment, and of a later offset.
    assert_eq!(aborted(0)[..2], [6, 7]);
    let open = txn.active_producers()[0];
    assert_eq!(open.current_txn_start_offset, Some(Offset(48)));
    assert_eq!(
        (open.producer_epoch, open.last_sequence),
        (ProducerEpoch(6), 0)
    );
    assert_eq!(
        txn.end_offset_for_epoch(LeaderEpoch(0)),
        Some((LeaderEpoch(0), Offset(49)))
    );
    assert_eq!(copied.log("empty").log_end_offset(), Offset(0));
}

#[test]
fn a_stopped_kafkas_directory_is_opened_without_reading_it() {
    let mut copied = copied();
    let report = copied.fixture.open();
    assert_eq!(report.clean_stop, Some(13));
    assert!(report.partitions.iter().all(|p| p.recovered_bytes == 0));
    let watermarks: Vec<_> = report
        .partitions
        .iter()
        .map(|p| p.high_watermark.unwrap().0)
        .collect();
    assert_eq!(watermarks, [0, 240, 49]);
    let meta = copied.fixture.dir().meta_properties().unwrap().unwrap();
    assert_eq!(meta.node_id, BrokerId(1));
    assert_ne!(copied.log("txn").topic_id(), TopicId::NONE);
    check_content(&copied);
    // Stopping it again changes nothing.
    copied.fixture.dir().close(13).unwrap();
    for dir in ["plain-0", "txn-0"] {
        assert_same_files(&copied.dir.path().join(dir), &testdata().join(dir));
    }
}

#[test]
fn a_killed_kafkas_directory_is_recovered_to_what_a_stop_would_have_left() {
    let mut copied = Copied::crashed();
    let report = copied.fixture.open();
    assert_eq!(report.clean_stop, None);
    assert!(report.partitions.iter().all(|p| p.truncated_bytes == 0));
    check_content(&copied);
    copied.fixture.dir().close(13).unwrap();
    for dir in ["plain-0", "txn-0"] {
        assert_same_files(&copied.dir.path().join(dir), &testdata().join(dir));
    }
}

#[test]
fn lost_indexes_are_made_again_as_they_were() {
    let mut copied = copied();
    for name in ["txn-0/00000000000000000000", "txn-0/00000000000000000006"] {
        for suffix in ["index", "timeindex", "txnindex"] {
            let path = copied.dir.path().join(format!("{name}.{suffix}"));
            let _ = RealDisk.remove_file(&path);
        }
    }
    copied.fixture.open();
    check_content(&copied);
    copied.fixture.dir().close(13).unwrap();
    assert_same_files(&copied.dir.path().join("txn-0"), &testdata().join("txn-0"));
}

#[test]
fn an_open_active_index_with_padding_is_cut_and_continued() {
    let mut copied = Copied::crashed();
    // As if the marker had been there: the padding is met without a recovery.
    let marker = RealDisk
        .read(&testdata().join(".kafka_cleanshutdown"))
        .unwrap();
    RealDisk
        .replace(&copied.dir.path().join(".kafka_cleanshutdown"), &marker)
        .unwrap();
    copied.fixture.open();
    check_content(&copied);
    let entries = RealDisk.list(&copied.dir.path().join("plain-0")).unwrap();
    let index = entries
        .iter()
        .find(|e| e.name.ends_with("0.index"))
        .unwrap();
    assert_eq!(index.len, 232);
}

/// Appends Kafka's batches to a log of our own, one by one.
fn append_kafkas(fixture: &Fixture, topic: &str, from: &Log) {
    let config = Arc::new(config());
    let log = fixture
        .dir()
        .create_log(partition(topic, 0), from.topic_id(), config, NOW);
    let log = log.unwrap();
    for batch in all_batches(from) {
        let now = batch.header.max_timestamp;
        let appended = log.append_as_follower(std::slice::from_ref(&batch), now);
        assert_eq!(appended.unwrap().base_offset, batch.header.base_offset);
    }
}

#[test]
fn the_same_batches_give_the_same_files() {
    let mut copied = copied();
    copied.fixture.open();
    let mut ours = Fixture::new(config());
    for topic in ["plain", "txn"] {
        append_kafkas(&ours, topic, &copied.log(topic));
    }
    ours.dir().close(1).unwrap();
    for dir in ["plain-0", "txn-0"] {
        assert_same_files(&ours.path.join(dir), &testdata().join(dir));
    }
    ours.kill();
}
