//! Compaction against a model, and interrupted at every change to the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::record::{Batch, BatchBuilder, Compression, MarkerType};
use crate::types::*;

const DAY_MS: i64 = 24 * 3_600_000;

fn compacting() -> LogConfig {
    LogConfig {
        segment_bytes: 700,
        index_interval_bytes: 100,
        compact: true,
        delete: false,
        min_cleanable_dirty_ratio: 0.0,
        ..LogConfig::default()
    }
}

/// What is put into the log: keys from a few, so that most are superseded.
#[derive(Debug, Clone)]
enum Put {
    Plain(Vec<(u8, Option<u8>)>, Compression),
    Idempotent(i64, Vec<(u8, Option<u8>)>),
    /// A batch of a transaction of this producer.
    Txn(i64, Vec<(u8, Option<u8>)>),
    End(i64, MarkerType),
    Clean,
    /// So long after the last one that every delete horizon has passed.
    CleanLater,
    Reopen,
}

/// The records that a reader of committed records sees, and what must hold besides.
#[derive(Debug, Default, Clone)]
struct Model {
    /// Offset, key, value; in order. Committed ones only.
    records: Vec<(i64, u8, Option<u8>)>,
    open: BTreeMap<i64, Vec<(i64, u8, Option<u8>)>>,
    sequences: BTreeMap<i64, i32>,
}

impl Model {
    fn last_values(&self) -> BTreeMap<u8, (i64, u8)> {
        let mut last = BTreeMap::new();
        for (offset, key, value) in &self.records {
            match value {
                Some(value) => last.insert(*key, (*offset, *value)),
                None => last.remove(key),
            };
        }
        last
    }
}

fn builder(records: &[(u8, Option<u8>)], codec: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    builder.compression = codec;
    builder.level = codec.default_level();
    for (key, value) in records {
        let value = value.map(|v| [v; 20]);
        builder.append(NOW, Some(&[*key]), value.as_ref().map(|v| &v[..]));
    }
    builder
}

fn put(fixture: &Fixture, model: &mut Model, id: i64, mut batch: BatchBuilder, txn: bool) {
    let count = batch.records_count();
    let sequence = model.sequences.entry(id).or_default();
    batch.producer_id = ProducerId(id);
    batch.producer_epoch = ProducerEpoch(0);
    batch.base_sequence = *sequence;
    batch.is_transactional = txn;
    *sequence += count;
    fixture.append(batch.build().unwrap());
}

fn run(fixture: &mut Fixture, model: &mut Model, step: Put, now: &mut i64) {
    let base = fixture.log().log_end_offset().0;
    let at = |records: &[(u8, Option<u8>)]| {
        let numbered = records.iter().enumerate();
        numbered
            .map(|(n, (key, value))| (base + n as i64, *key, *value))
            .collect::<Vec<_>>()
    };
    match step {
        Put::Plain(records, codec) => {
            fixture.append(builder(&records, codec).build().unwrap());
            model.records.extend(at(&records));
        }
        Put::Idempotent(id, records) => {
            put(
                fixture,
                model,
                id,
                builder(&records, Compression::None),
                false,
            );
            model.records.extend(at(&records));
        }
        Put::Txn(id, records) => {
            let id = id + 10;
            put(
                fixture,
                model,
                id,
                builder(&records, Compression::Lz4),
                true,
            );
            model.open.entry(id).or_default().extend(at(&records));
        }
        Put::End(id, marker_type) => {
            let id = id + 10;
            let Some(records) = model.open.remove(&id) else {
                return;
            };
            let marker = marker(id, 0, marker_type, 0);
            let appended = fixture.log().append_as_leader(marker, &coordinator());
            appended.unwrap();
            if marker_type == MarkerType::Commit {
                model.records.extend(records);
                model.records.sort();
            }
        }
        Put::Clean => drop(clean(fixture, *now).unwrap()),
        Put::CleanLater => {
            *now += 2 * DAY_MS;
            clean(fixture, *now).unwrap();
        }
        Put::Reopen => {
            fixture.reopen_after_kill();
        }
    }
}

/// Compacts everything that can be.
fn clean(fixture: &Fixture, now: i64) -> Result<Cleaned, LogError> {
    let log = fixture.log();
    let now = TimestampMs(now);
    let Some(cleanable) = log.cleanable(now, log.log_end_offset())? else {
        return Ok(Cleaned::default());
    };
    let cleaned = log.clean(&cleanable, now, 1 << 20, &|_| true)?;
    for deletion in &cleaned.deletions {
        fixture.dir().remove(deletion)?;
    }
    Ok(cleaned)
}

/// What a reader of committed records gets.
fn read_committed(log: &Log) -> Vec<(i64, u8, Option<u8>)> {
    let mut records = Vec::new();
    let end = log.last_stable_offset(log.log_end_offset());
    let mut at = log.log_start_offset();
    let mut aborting: Vec<ProducerId> = Vec::new();
    while at < end {
        let slice = log.read(at, u32::MAX, end, true).unwrap();
        let mut aborted = log.aborted_transactions(at, &slice, end).unwrap();
        let batches = batches_of(&slice);
        let Some(last) = batches.last() else { break };
        at = last.header.next_offset();
        for batch in &batches {
            let header = &batch.header;
            aborted.retain(|txn| {
                let begins = txn.first_offset <= header.last_offset();
                if begins {
                    aborting.push(txn.producer_id);
                }
                !begins
            });
            if header.attributes.is_control() {
                aborting.retain(|id| *id != header.producer_id);
                continue;
            }
            let is_aborted = aborting.contains(&header.producer_id);
            if header.attributes.is_transactional() && is_aborted {
                continue;
            }
            for record in batch.records() {
                let record = record.unwrap();
                let offset = header.base_offset.0 + i64::from(record.offset_delta);
                let value = record.value.map(|v| v[0]);
                records.push((offset, record.key.unwrap()[0], value));
            }
        }
    }
    records
}

fn check(fixture: &Fixture, model: &Model, at: &str) {
    let log = fixture.log();
    let found = read_committed(log);
    let stable = log.last_stable_offset(log.log_end_offset()).0;
    let mut last = BTreeMap::new();
    for (offset, key, value) in &found {
        // Nothing is made up, nothing moves.
        assert!(
            model.records.contains(&(*offset, *key, *value)),
            "{at}: {offset}"
        );
        match value {
            Some(value) => last.insert(*key, (*offset, *value)),
            None => last.remove(key),
        };
    }
    let visible = Model {
        records: model
            .records
            .iter()
            .filter(|r| r.0 < stable)
            .copied()
            .collect(),
        ..Model::default()
    };
    assert_eq!(last, visible.last_values(), "{at}");
    let mut end = Offset(-1);
    for batch in all_batches(log) {
        assert!(
            batch.is_crc_right() && batch.header.base_offset > end,
            "{at}"
        );
        end = batch.header.last_offset();
        let slice = log.read(end, 1, log.log_end_offset(), true).unwrap();
        assert_eq!(batches_of(&slice)[0], batch, "{at}");
    }
    assert_eq!(end.next(), log.log_end_offset(), "{at}");
    for producer in log.active_producers() {
        let sequence = model.sequences.get(&producer.producer_id.0).unwrap();
        assert_eq!(producer.last_sequence, sequence - 1, "{at}: producer");
        let open = model.open.get(&producer.producer_id.0);
        let first = open.map(|records| Offset(records[0].0));
        assert_eq!(producer.current_txn_start_offset, first, "{at}");
    }
    assert_eq!(log.active_producers().len(), model.sequences.len(), "{at}");
    let leftover = |name: &&String| name.ends_with(".swap") || name.ends_with(".cleaned");
    assert_eq!(fixture.names().iter().find(leftover), None, "{at}");
}

fn records() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
    prop::collection::vec((0..8_u8, prop::option::weighted(0.8, any::<u8>())), 1..6)
}

fn step() -> impl Strategy<Value = Put> {
    let end = prop_oneof![Just(MarkerType::Abort), Just(MarkerType::Commit)];
    prop_oneof![
        6 => (records(), prop::sample::select(&Compression::ALL[..]))
            .prop_map(|(r, codec)| Put::Plain(r, codec)),
        3 => (0..3_i64, records()).prop_map(|(id, r)| Put::Idempotent(id, r)),
        4 => (0..3_i64, records()).prop_map(|(id, r)| Put::Txn(id, r)),
        4 => (0..3_i64, end).prop_map(|(id, end)| Put::End(id, end)),
        2 => Just(Put::Clean),
        1 => Just(Put::CleanLater),
        1 => Just(Put::Reopen),
    ]
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn what_survives_is_what_the_model_says(steps in prop::collection::vec(step(), 1..60)) {
        let disk = FaultyDisk::new();
        let path = disk.root();
        let mut fixture = Fixture::on(Arc::new(disk), &path, compacting());
        fixture.open();
        fixture.create();
        let mut model = Model::default();
        let mut now = NOW.0;
        for (n, step) in steps.into_iter().enumerate() {
            run(&mut fixture, &mut model, step, &mut now);
            check(&fixture, &model, &format!("step {n}"));
        }
        fixture.reopen_after_kill();
        check(&fixture, &model, "after a kill");
        fixture.reopen_cleanly();
        check(&fixture, &model, "after a stop");
    }
}

fn fill(fixture: &mut Fixture, model: &mut Model) {
    let mut now = NOW.0;
    for round in 0..3_u8 {
        let keys: Vec<_> = (0..5).map(|k| (k, Some(round))).collect();
        for step in [
            Put::Plain(keys.clone(), Compression::None),
            Put::Txn(0, vec![(1, Some(100 + round)), (6, None)]),
            Put::Idempotent(1, vec![(round % 3, None)]),
            Put::Txn(1, vec![(2, Some(200)), (7, Some(round))]),
            Put::Idempotent(i64::from(round) + 2, vec![(6, Some(round))]),
            Put::End(1, MarkerType::Abort),
            Put::End(0, MarkerType::Commit),
            Put::Plain(keys, Compression::Zstd),
        ] {
            run(fixture, model, step, &mut now);
        }
    }
}

/// Compacted twice, the second time with every delete horizon passed; every change fails once.
#[test]
fn a_compaction_can_be_interrupted_anywhere() {
    let mut failures = 0;
    for n in 1.. {
        let disk = FaultyDisk::new();
        let path = disk.root();
        let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, compacting());
        let mut model = Model::default();
        fixture.open();
        fixture.create();
        fill(&mut fixture, &mut model);
        fixture.log().flush().unwrap();
        disk.fail_at(n);
        let first = clean(&fixture, NOW.0);
        let second = first.and_then(|_| {
            fixture.log().set_clean_point(Offset(0));
            clean(&fixture, NOW.0 + 2 * DAY_MS)
        });
        assert_eq!(second.is_err(), disk.has_failed(), "change {n}: swallowed");
        assert_eq!(disk.changes_after_failure(), 0, "change {n}");
        for crash in Crash::ALL {
            let at = format!("change {n}, {crash:?}");
            let after = Arc::new(disk.crash(crash));
            let mut fixture = Fixture::on(after, &path, compacting());
            let report = fixture.open();
            assert!(report.partitions[0].log.is_ok(), "{at}");
            check(&fixture, &model, &at);
            clean(&fixture, NOW.0 + 2 * DAY_MS).unwrap();
            check(&fixture, &model, &at);
            fixture.reopen_cleanly();
            check(&fixture, &model, &at);
        }
        if !disk.has_failed() {
            break;
        }
        failures += 1;
    }
    println!("two compactions: {failures} changes to the disk");
    assert!(failures > 40, "{failures}");
}

fn keys_of(log: &Log) -> Vec<(i64, u8, Option<u8>)> {
    let records = |batch: Batch| {
        let base = batch.header.base_offset.0;
        let records = batch.records().map(move |record| {
            let record = record.unwrap();
            let offset = base + i64::from(record.offset_delta);
            (offset, record.key.unwrap()[0], record.value.map(|v| v[0]))
        });
        records.collect::<Vec<_>>()
    };
    all_batches(log).into_iter().flat_map(records).collect()
}

#[test]
fn a_tombstone_goes_after_its_delete_horizon() {
    let mut fixture = Fixture::new(compacting());
    let mut model = Model::default();
    let mut now = NOW.0;
    for records in [vec![(1, Some(1)), (2, Some(2))], vec![(1, None)]] {
        run(
            &mut fixture,
            &mut model,
            Put::Plain(records, Compression::None),
            &mut now,
        );
    }
    for n in 0..8 {
        let filler = vec![(9, Some(n)); 6];
        run(
            &mut fixture,
            &mut model,
            Put::Plain(filler, Compression::None),
            &mut now,
        );
    }
    let ours = |fixture: &Fixture| {
        let mut keys = keys_of(fixture.log());
        keys.retain(|(_, key, _)| *key < 9);
        keys
    };
    clean(&fixture, now).unwrap();
    assert_eq!(ours(&fixture), [(1, 2, Some(2)), (2, 1, None)]);
    // Not yet; and looking does not put it off.
    fixture.log().set_clean_point(Offset(0));
    clean(&fixture, now + DAY_MS - 1).unwrap();
    assert_eq!(ours(&fixture), [(1, 2, Some(2)), (2, 1, None)]);
    fixture.log().set_clean_point(Offset(0));
    clean(&fixture, now + DAY_MS).unwrap();
    assert_eq!(ours(&fixture), [(1, 2, Some(2))]);
}

#[test]
fn a_failing_log_is_left_alone_for_a_while_and_the_others_are_not() {
    let mut fixture = Fixture::new(compacting());
    let mut model = Model::default();
    fill(&mut fixture, &mut model);
    fixture.log().flush().unwrap();
    let log = Arc::clone(fixture.log.as_ref().unwrap());
    let end = log.log_end_offset();
    let path = fixture.file("00000000000000000000.log");
    let sound = fixture.disk.read(&path).unwrap();
    let mut torn = sound.clone();
    torn[70] ^= 1;
    let write = |bytes: &[u8]| {
        let file = fixture
            .disk
            .open(&path, crate::host::OpenMode::Write)
            .unwrap();
        file.write_at(&mut [std::io::IoSlice::new(bytes)], 0)
            .unwrap();
    };
    write(&torn);
    let cleaner = Cleaner::default();
    let next = |now: i64| {
        let limits = CleanerLimits {
            now: TimestampMs(now),
            map_bytes_max: 1 << 20,
            pace: &|_| true,
        };
        let logs = [(Arc::clone(&log), end)];
        cleaner
            .clean_next(logs.into_iter(), &limits)
            .map(|(_, result)| result)
    };
    assert!(matches!(next(NOW.0), Some(Err(LogError::Corrupt { .. }))));
    assert_eq!(cleaner.failed_count(), 1);
    assert_eq!((cleaner.runs.get(), cleaner.failures.get()), (0, 1));
    assert!(next(NOW.0 + 14_999).is_none());
    assert!(matches!(next(NOW.0 + 15_000), Some(Err(_))));
    // Twice as long now.
    assert!(next(NOW.0 + 15_000 + 29_999).is_none());
    write(&sound);
    let cleaned = next(NOW.0 + 45_000).unwrap().unwrap();
    assert!(cleaned.written_bytes < cleaned.read_bytes / 2);
    assert_eq!(cleaner.failed_count(), 0);
    assert_eq!((cleaner.runs.get(), cleaner.failures.get()), (1, 2));
    let bytes = (cleaner.read_bytes.get(), cleaner.written_bytes.get());
    assert_eq!(bytes, (cleaned.read_bytes, cleaned.written_bytes));
    assert!(next(NOW.0 + 45_000).is_none(), "it is clean");
    check(&fixture, &model, "compacted at last");
    // The clean point outlives a stop.
    drop(log);
    fixture.reopen_cleanly();
    let found = fixture.log().cleanable(NOW, end).unwrap();
    assert_eq!(found, None);
}

/// Readers go on while segments are replaced under them.
#[test]
fn readers_see_nothing_of_the_exchange() {
    let mut fixture = Fixture::new(compacting());
    let mut model = Model::default();
    fill(&mut fixture, &mut model);
    fixture.log().flush().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let expected = model.last_values();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let mut last = BTreeMap::new();
                    for (offset, key, value) in read_committed(fixture.log()) {
                        match value {
                            Some(value) => last.insert(key, (offset, value)),
                            None => last.remove(&key),
                        };
                    }
                    assert_eq!(last, expected);
                    fixture.log().offset_for_timestamp(NOW).unwrap();
                    fixture.log().offset_of_max_timestamp().unwrap();
                }
            });
        }
        for _ in 0..30 {
            fixture.log().set_clean_point(Offset(0));
            clean(&fixture, NOW.0).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// What was read before a truncation does not come back after it.
#[test]
fn a_truncation_meanwhile_wins() {
    let mut fixture = Fixture::new(compacting());
    let mut model = Model::default();
    fill(&mut fixture, &mut model);
    let log = fixture.log();
    let cleanable = log.cleanable(NOW, log.log_end_offset()).unwrap().unwrap();
    let cut = std::sync::atomic::AtomicBool::new(false);
    let cleaned = log.clean(&cleanable, NOW, 1 << 20, &|_| {
        if !cut.swap(true, std::sync::atomic::Ordering::Relaxed) {
            log.truncate_to(Offset(10), NOW).unwrap();
        }
        true
    });
    assert_eq!(cleaned.unwrap().clean_point, None);
    assert!(log.clean_point() <= Offset(10));
    assert_eq!(log.log_end_offset(), Offset(10));
    assert!(
        all_batches(log)
            .iter()
            .all(|b| b.header.last_offset() < Offset(10))
    );
}

#[test]
fn a_failed_log_that_is_gone_is_not_counted_any_more() {
    let mut fixture = Fixture::new(compacting());
    fill(&mut fixture, &mut Model::default());
    fixture.log().flush().unwrap();
    let log = Arc::clone(fixture.log.as_ref().unwrap());
    let path = fixture.file("00000000000000000000.log");
    let mut torn = fixture.disk.read(&path).unwrap();
    torn[70] ^= 1;
    let file = fixture.disk.open(&path, crate::host::OpenMode::Write);
    let file = file.unwrap();
    file.write_at(&mut [std::io::IoSlice::new(&torn)], 0)
        .unwrap();
    let cleaner = Cleaner::default();
    let next = |logs: &[Arc<Log>]| {
        let limits = CleanerLimits {
            now: NOW,
            map_bytes_max: 1 << 20,
            pace: &|_| true,
        };
        let logs = logs.iter().map(|log| (log.clone(), log.log_end_offset()));
        cleaner.clean_next(logs, &limits).is_some()
    };
    assert!(next(std::slice::from_ref(&log)));
    assert!(!next(&[log]));
    assert_eq!(cleaner.failed_count(), 1, "it waits");
    assert!(!next(&[]));
    assert_eq!(cleaner.failed_count(), 0);
}
