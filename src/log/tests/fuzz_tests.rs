//! A partition's files as no writer leaves them. A run from a seed spoils one to four files of a
//! sound directory (bits, numbers, lengths, ranges, a file in the place of another, none) and opens
//! it. Whatever was done:
//!
//! 1. Nobody panics. A directory or a log may be refused.
//! 2. A batch that is read and whose checksum is right was written, and they come in order.
//! 3. If only what can be made anew was spoiled (indexes, producer snapshots), every record is
//!    there, or the read fails: none is passed over in silence.
//! 4. A log that was opened takes a batch and gives it back, also after a stop and a start.
//!
//! `KLAMM_SEEDS=n cargo test --release --lib fuzz_tests` runs that many, `KLAMM_FIRST_SEED=n` from
//! there on, `KLAMM_SEED=n` one alone.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::*;
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::host::{Disk, OpenMode, RealDisk};
use crate::record::{Batch, Batches, MarkerType};
use crate::types::seeded::Random;
use crate::types::*;

const SEEDS: u64 = 400;

fn below(random: &mut Random, limit: usize) -> usize {
    random.below(limit.max(1) as u64) as usize
}

/// A directory without fault, and what is in its log.
struct Sound {
    disk: FaultyDisk,
    written: BTreeSet<Vec<u8>>,
    records: i64,
    topic_id: TopicId,
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 500,
        index_interval_bytes: 100,
        ..LogConfig::default()
    }
}

/// What a checksum is over: the offset and the leader epoch may be spoiled without anyone seeing.
fn checked(batch: &Batch) -> Vec<u8> {
    batch.to_bytes()[21..].to_vec()
}

/// With all kinds of batches; stopped or killed.
fn own(is_stopped: bool) -> Sound {
    let disk = FaultyDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut fixture = Fixture::on(shared, &disk.root(), config());
    fixture.open();
    fixture.create();
    let log = fixture.log.clone().unwrap();
    let as_client = |batch: Batch, epoch: i32| {
        log.append_as_leader(batch, &client(epoch)).unwrap();
    };
    for n in 0..5 {
        as_client(batch(3), 0);
        as_client(idempotent(1, 0, 2 * n, 2), 0);
    }
    as_client(transactional(2, 0, 0, 2), 1);
    as_client(batch(4), 1);
    let abort = marker(2, 0, MarkerType::Abort, 0);
    log.append_as_leader(abort, &coordinator()).unwrap();
    fixture.dir().checkpoint(1000).unwrap();
    for n in 5..9 {
        as_client(idempotent(1, 0, 2 * n, 2), 2);
        as_client(transactional(3, 0, n - 5, 1), 2);
    }
    as_client(batch(3), 3);
    let written = all_batches(&log);
    let sound = Sound {
        written: written.iter().map(checked).collect(),
        records: log.log_end_offset().0,
        topic_id: log.topic_id(),
        disk: disk.clone(),
    };
    if is_stopped {
        fixture.dir().close(3).unwrap();
    }
    sound
}

fn copy(from: &Path, to: &FaultyDisk, at: &Path) {
    to.create_dir_all(at).unwrap();
    for entry in RealDisk.list(from).unwrap() {
        let (from, at) = (from.join(&entry.name), at.join(&entry.name));
        match entry.is_dir {
            true => copy(&from, to, &at),
            false => write(to, &at, &RealDisk.read(&from).unwrap()),
        }
    }
}

/// Of Apache Kafka, with every codec; `t-0` is its `plain-0` or `txn-0`.
fn of_kafka(topic: &str) -> Sound {
    let disk = FaultyDisk::new();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/log/testdata/kafka-4.4");
    let at = disk.root().join("t-0");
    copy(&testdata.join(format!("{topic}-0")), &disk, &at);
    let meta = RealDisk.read(&testdata.join("meta.properties")).unwrap();
    write(&disk, &disk.root().join("meta.properties"), &meta);
    let shared: Arc<dyn Disk> = Arc::new(disk.crash(Crash::Kill));
    let mut fixture = Fixture::on(shared, &disk.root(), config());
    fixture.open();
    let written = all_batches(fixture.log());
    Sound {
        written: written.iter().map(checked).collect(),
        records: fixture.log().log_end_offset().0,
        topic_id: fixture.log().topic_id(),
        disk,
    }
}

fn write(disk: &FaultyDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_at(&mut [std::io::IoSlice::new(bytes)], 0)
        .unwrap();
}

fn files_in(disk: &FaultyDisk, dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => files_in(disk, &path, found),
            false => found.push(path),
        }
    }
}

const ODD: [i64; 10] = [
    0,
    1,
    -1,
    i64::MAX,
    i64::MIN,
    i32::MAX as i64,
    i32::MIN as i64,
    0x7fff,
    60,
    1 << 40,
];

/// Spoils the content of a file; `None`: there is no such file any more.
fn spoil(random: &mut Random, mut bytes: Vec<u8>, other: Vec<u8>) -> Option<Vec<u8>> {
    let len = bytes.len();
    let at = below(random, len);
    match below(random, 12) {
        0..=2 if len > 0 => bytes[at] ^= 1 << below(random, 8),
        3 if len > 0 => bytes[at] = [0, 0xff, 0x7f, 0x80][below(random, 4)],
        // A number of four or eight bytes, as lengths and offsets are.
        4 | 5 if len >= 8 => {
            let width = [4, 8][below(random, 2)];
            let at = below(random, len - 7) & !3;
            let number = ODD[below(random, ODD.len())].to_be_bytes();
            bytes[at..at + width].copy_from_slice(&number[8 - width..]);
        }
        6 => bytes.truncate(at),
        7 => bytes.resize(len + below(random, 300), [0, 0xff, 0x31][below(random, 3)]),
        8 if len > 0 => {
            let end = at + below(random, len - at + 1);
            bytes[at..end].fill(0);
        }
        9 if len > 0 => {
            let end = at + below(random, len - at + 1);
            let part = bytes[at..end].to_vec();
            let to = below(random, len);
            bytes.splice(to..to, part);
        }
        10 => bytes = other,
        11 => return None,
        _ => bytes.clear(),
    }
    Some(bytes)
}

/// Whether all of it can be made anew.
fn is_derived(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("index" | "timeindex" | "snapshot"))
}

fn run(seed: u64, sound: &[Sound], shows: bool) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let sound = &sound[below(&mut random, sound.len())];
    let disk = sound.disk.crash(Crash::Kill);
    let mut files = Vec::new();
    files_in(&disk, &disk.root(), &mut files);
    let only_derived = below(&mut random, 3) == 0;
    if only_derived {
        files.retain(|path| is_derived(path));
    }
    let mut are_derived = true;
    for _ in 0..=below(&mut random, 4) {
        let path = &files[below(&mut random, files.len())];
        let other = disk.read(&files[below(&mut random, files.len())]);
        let Ok(bytes) = disk.read(path) else { continue };
        are_derived &= is_derived(path);
        let before = bytes.clone();
        let spoiled = spoil(&mut random, bytes, other.unwrap_or_default());
        if shows {
            println!("{}: {before:x?}\nis now {spoiled:x?}", path.display());
        }
        match spoiled {
            Some(bytes) => write(&disk, path, &bytes),
            None => disk.remove_file(path).unwrap(),
        }
    }
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut fixture = Fixture::on(shared, &disk.root(), config());
    check(&mut fixture, sound, are_derived);
}

fn check(fixture: &mut Fixture, sound: &Sound, are_derived: bool) {
    let report = fixture.try_open();
    assert!(report.is_ok() || !are_derived, "{:?}", report.err());
    let Some(log) = fixture.log.clone() else {
        let mut logs = report.into_iter().flat_map(|report| report.partitions);
        let error = logs.find_map(|loaded| loaded.log.err());
        assert!(!are_derived, "not opened: {error:?}");
        return;
    };
    let (found, is_whole) = readable(&log);
    for batch in &found {
        let is_known = sound.written.contains(&checked(batch));
        assert!(
            is_known,
            "nobody wrote the batch at {}",
            batch.header.base_offset
        );
    }
    if are_derived && is_whole {
        let records: i64 = found
            .iter()
            .map(|batch| batch.header.next_offset().0 - batch.header.base_offset.0)
            .sum();
        assert_eq!(records, sound.records, "records are passed over");
    }
    // Of no topic that is known: it is set aside (`partition::found`).
    if log.topic_id() != sound.topic_id {
        return;
    }
    let before = log.log_end_offset();
    let Ok(appended) = log.append_as_leader(batch(2), &client(9)) else {
        return;
    };
    assert_eq!(appended.base_offset, before);
    let last = checked(&readable_from(&log, before).expect("what was appended"));
    assert_eq!(last, checked(&batch(2)));
    let end = log.log_end_offset();
    if fixture.dir().close(3).is_err() {
        return;
    }
    drop(log);
    fixture.kill();
    let report = fixture.try_open().expect("what was stopped cleanly");
    let mut again = report.partitions.into_iter();
    let error = again.find_map(|loaded| loaded.log.err());
    assert!(error.is_none(), "not opened again: {error:?}");
    let log = fixture.log();
    assert_eq!(log.log_end_offset(), end);
    assert!(readable_from(log, before).is_some());
}

fn readable_from(log: &Log, from: Offset) -> Option<Batch> {
    let slice = log.read(from, 1 << 20, log.log_end_offset(), true).ok()?;
    Batches::new(bytes_of(&slice).into()).next()?.ok()
}

/// The sound batches from the start on, and whether the end was reached.
fn readable(log: &Log) -> (Vec<Batch>, bool) {
    let mut found: Vec<Batch> = Vec::new();
    let mut at = log.log_start_offset();
    let end = log.log_end_offset();
    while at < end {
        let Ok(slice) = log.read(at, 1 << 20, end, true) else {
            return (found, false);
        };
        let before = at;
        for batch in Batches::new(bytes_of(&slice).into()) {
            let Ok(batch) = batch else {
                return (found, false);
            };
            if !batch.is_crc_right() {
                return (found, false);
            }
            // The offset is not under the checksum.
            if batch.header.next_offset() <= at {
                return (found, false);
            }
            at = batch.header.next_offset();
            found.push(batch);
        }
        if at == before {
            return (found, false);
        }
    }
    (found, true)
}

fn environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

#[test]
fn spoiled_files_hurt_nobody() {
    let sound = [own(true), own(false), of_kafka("plain"), of_kafka("txn")];
    if let Some(seed) = environment("KLAMM_SEED") {
        return run(seed, &sound, true);
    }
    let first = environment("KLAMM_FIRST_SEED").unwrap_or(0);
    let seeds = first..first + environment("KLAMM_SEEDS").unwrap_or(SEEDS);
    let broken: Vec<u64> = seeds
        .filter(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, &sound, false))).is_err())
        .collect();
    assert!(broken.is_empty(), "again with KLAMM_SEED: {broken:?}");
}
