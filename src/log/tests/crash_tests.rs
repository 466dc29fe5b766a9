//! Every change to the disk fails once, in every way, and the log is opened again.
//!
//! The script below is run with the n-th change failing, for every n until nothing fails any more.
//! Up to the failure a model of plain vectors goes along. After it the disk crashes in each of
//! eight ways; what is then found must be what the model allows:
//!
//! 1. The log is a leading part of what was appended, byte for byte, no shorter than what was
//!    flushed; of a killed process nothing that was answered is missing.
//! 2. Offsets are dense, every batch is right, and the indexes find each one.
//! 3. Producers, epochs and aborted transactions are those that a replay of the batches gives.
//! 4. The log can be appended to, stopped cleanly, and opened again without reading it.
//! 5. After a failed change the directory has tried no other.

use std::sync::Arc;

use super::super::*;
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::record::{Batch, MarkerType};
use crate::types::*;

/// What the log holds, if all went well.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub batches: Vec<Batch>,
    /// The log start offset may be anywhere up to here: renames need not survive.
    pub start_max: i64,
    pub flushed: i64,
    /// What a killed process must still have.
    pub answered: i64,
}

impl Model {
    pub fn end(&self) -> i64 {
        self.batches.last().map_or(0, |b| b.header.next_offset().0)
    }
}

enum Step {
    Append(Batch, i32),
    Coordinator(Batch),
    Follow(Vec<Batch>),
    Flush,
    Checkpoint,
    /// As one of many logs.
    CheckpointMany,
    Truncate(i64),
    Retention,
    Advance(i64),
    HighWatermarks,
    RecoveryPoints,
}

pub fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 500,
        index_interval_bytes: 100,
        retention_bytes: 1500,
        ..LogConfig::default()
    }
}

fn later(ms: i64) -> TimestampMs {
    TimestampMs(NOW.0 + ms)
}

fn script() -> Vec<Step> {
    use Step::*;
    let follow = |base: i64, n: i64| {
        let batches = (0..n).map(|i| {
            let mut batch = idempotent(5, 1, (i * 2) as i32, 2);
            batch.header.base_offset = Offset(base + i * 2);
            batch.header.leader_epoch = LeaderEpoch(2);
            batch
        });
        Follow(batches.collect())
    };
    vec![
        Append(batch_at(3, later(1)), 0),     // 0-2
        Append(idempotent(1, 0, 0, 2), 0),    // 3-4
        Append(transactional(2, 0, 0, 2), 0), // 5-6
        Flush,
        Append(batch_at(3, later(2)), 0),  // 7-9
        Append(idempotent(1, 0, 2, 2), 1), // 10-11
        Checkpoint,
        Append(transactional(3, 0, 0, 1), 1),            // 12
        Coordinator(marker(2, 0, MarkerType::Abort, 0)), // 13
        Append(batch_at(3, later(3)), 1),                // 14-16
        HighWatermarks,
        Append(transactional(3, 0, 1, 1), 1), // 17
        CheckpointMany,
        Append(batch_at(3, later(4)), 1), // 18-20
        Flush,
        // Flushed after each one, so also just before and after a segment's end.
        Append(batch_at(3, later(90)), 1), // 21-23
        RecoveryPoints,
        Flush,
        Append(batch_at(3, later(91)), 1), // 24-26
        RecoveryPoints,
        Flush,
        Append(batch_at(3, later(92)), 1), // 27-29
        RecoveryPoints,
        Flush,
        Append(batch_at(3, later(93)), 1), // 30-32
        Flush,
        RecoveryPoints,
        HighWatermarks,
        // Below what is flushed and checkpointed; then something else is appended.
        Truncate(12),
        follow(12, 6),                    // 12-23
        Append(batch_at(2, later(5)), 3), // 24-25
        Flush,
        Append(batch_at(2, later(6)), 3), // 26-27
        Append(batch_at(3, later(7)), 3), // 28-30
        Append(batch_at(3, later(8)), 3), // 31-33
        Append(batch_at(3, later(9)), 3), // 34-36
        CheckpointMany,
        Advance(5),
        Retention,
        Append(idempotent(1, 0, 4, 2), 3), // 37-38
        Truncate(30),
        Append(batch_at(3, later(10)), 4),
        Append(batch_at(3, later(11)), 4),
        Append(batch_at(3, later(12)), 4),
        Checkpoint,
    ]
}

/// Runs a step. On failure the model holds every batch that may be found.
fn run(fixture: &Fixture, model: &mut Model, step: Step) -> Result<(), ()> {
    let log = fixture.log();
    match step {
        Step::Append(batch, epoch) => append(log, model, batch, client(epoch))?,
        Step::Coordinator(batch) => {
            let context = AppendContext {
                origin: Origin::Coordinator,
                ..client(1)
            };
            append(log, model, batch, context)?;
        }
        Step::Follow(batches) => {
            let appended = log.append_as_follower(&batches, NOW);
            model.batches.extend(batches);
            appended.map_err(drop)?;
            model.answered = model.end();
        }
        Step::Flush => {
            log.flush().map_err(drop)?;
            model.flushed = model.end();
        }
        Step::Checkpoint => {
            fixture.dir().checkpoint(0).map_err(drop)?;
            model.flushed = model.end();
        }
        Step::CheckpointMany => {
            fixture.dir().checkpoint_as(0, 1).map_err(drop)?;
            model.flushed = model.end();
        }
        Step::Truncate(offset) => {
            let cut = model
                .batches
                .iter()
                .find(|b| b.header.last_offset().0 >= offset);
            let end = cut.map_or(offset, |b| b.header.base_offset.0);
            model.flushed = model.flushed.min(end);
            model.answered = model.answered.min(end);
            log.truncate_to(Offset(offset), NOW).map_err(drop)?;
            model.batches.retain(|b| b.header.base_offset.0 < end);
            assert_eq!(log.log_end_offset().0, model.end());
            for deletion in fixture.dir().take_deletions() {
                fixture.dir().remove(&deletion).map_err(drop)?;
            }
        }
        Step::Retention => {
            model.start_max = model.end();
            let deletion = log
                .apply_retention(NOW, Offset(model.end()))
                .map_err(drop)?;
            model.start_max = log.log_start_offset().0;
            // Renames are not synced: a power cut may bring segments back.
            if let Some(deletion) = deletion {
                fixture.dir().remove(&deletion).map_err(drop)?;
            }
        }
        Step::Advance(offset) => {
            log.advance_log_start_offset(Offset(offset)).map_err(drop)?;
            model.start_max = offset;
            fixture.dir().write_log_start_offsets().map_err(drop)?;
        }
        Step::RecoveryPoints => {
            fixture.dir().write_recovery_points().map_err(drop)?;
        }
        Step::HighWatermarks => {
            let line = (partition("t", 0), Offset(9));
            fixture.dir().write_high_watermarks(&[line]).map_err(drop)?;
        }
    }
    Ok(())
}

pub fn append(
    log: &Log,
    model: &mut Model,
    mut batch: Batch,
    context: AppendContext,
) -> Result<(), ()> {
    batch.header.base_offset = Offset(model.end());
    batch.header.leader_epoch = context.leader_epoch;
    model.batches.push(batch.clone());
    log.append_as_leader(batch, &context).map_err(drop)?;
    model.answered = model.end();
    Ok(())
}

/// Runs the script on a disk whose `n`-th change fails, with a clean stop as one of `many` logs.
/// `false`: nothing failed.
fn run_until_failure(n: u64, many: usize) -> (FaultyDisk, Model, bool) {
    let disk = FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small_segments());
    fixture.open();
    fixture.create();
    disk.fail_at(n);
    let mut model = Model::default();
    let mut failed = false;
    for step in script() {
        if run(&fixture, &mut model, step).is_err() {
            failed = true;
            break;
        }
    }
    if !failed {
        failed = fixture.dir().close_as(1, many).is_err();
        if !failed {
            model.flushed = model.end();
        }
    }
    assert_eq!(
        failed,
        disk.has_failed(),
        "an error was swallowed, or made up"
    );
    if failed {
        assert!(fixture.dir().offline_reason().is_some());
        // Whatever is tried now is refused before it reaches the disk.
        assert!(
            fixture
                .log()
                .append_as_leader(batch(1), &client(9))
                .is_err()
        );
        assert!(fixture.log().flush().is_err());
        assert!(fixture.log().truncate_to(Offset(0), NOW).is_err());
        assert!(fixture.dir().checkpoint(0).is_err());
        assert!(fixture.dir().close(1).is_err());
        assert_eq!(disk.changes_after_failure(), 0, "change {n}");
    }
    (disk, model, failed)
}

fn reopen(disk: &FaultyDisk) -> Option<Fixture> {
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small_segments());
    let report = fixture.open();
    for loaded in &report.partitions {
        if let Err(e) = &loaded.log {
            panic!("{}: {e}", loaded.topic_partition);
        }
    }
    fixture.log.is_some().then_some(fixture)
}

/// The first record of each timestamp is found, and the largest one.
fn check_timestamps(log: &Log, found: &[Batch], at: &str) {
    let start = log.log_start_offset();
    let mut largest: Option<&Batch> = None;
    for batch in found {
        let timestamp = batch.header.max_timestamp;
        let first = found
            .iter()
            .find(|b| b.header.max_timestamp >= timestamp)
            .unwrap();
        let expected = first.header.base_offset.max(start);
        let answer = log.offset_for_timestamp(timestamp).unwrap();
        assert_eq!(
            answer.map(|a| a.offset),
            Some(expected),
            "{at}: {timestamp}"
        );
        if largest.is_none_or(|l| timestamp > l.header.max_timestamp) {
            largest = Some(batch);
        }
    }
    let answer = log.offset_of_max_timestamp().unwrap();
    let expected = largest.map(|b| b.header.base_offset.max(start));
    assert_eq!(
        answer.map(|a| a.offset),
        expected,
        "{at}: largest timestamp"
    );
}

/// The producers that a replay of everything gives.
fn replayed(batches: &[Batch]) -> (Vec<ActiveProducer>, Vec<AbortedTxn>) {
    let fixture = Fixture::new(LogConfig::default());
    fixture.log().append_as_follower(batches, NOW).unwrap();
    let end = fixture.log().log_end_offset();
    let aborted = aborted(fixture.log(), end);
    (fixture.log().active_producers(), aborted)
}

fn aborted(log: &Log, end: Offset) -> Vec<AbortedTxn> {
    let start = log.log_start_offset();
    let slice = log.read(start, u32::MAX, end, true).unwrap();
    let mut slice = slice;
    slice.available = slice.len;
    // All of the log, not only the first segment: entries are found from the start offset on.
    let mut all = Vec::new();
    let mut at = start;
    while at < end {
        let slice = log.read(at, u32::MAX, end, true).unwrap();
        for txn in log.aborted_transactions(at, &slice, end).unwrap() {
            if !all.contains(&txn) {
                all.push(txn);
            }
        }
        at = batches_of(&slice).last().unwrap().header.next_offset();
    }
    all
}

pub fn check(fixture: &mut Fixture, model: &Model, crash: Crash, at: &str) {
    let log = fixture.log();
    let (start, end) = (log.log_start_offset().0, log.log_end_offset().0);
    assert!(start <= model.start_max, "{at}: start {start}");
    let (least, why) = match crash {
        Crash::Kill => (model.answered, "answered"),
        _ => (model.flushed, "flushed"),
    };
    assert!(
        end >= least,
        "{at}: {end} is below {least}, which was {why}"
    );
    assert!(end <= model.end(), "{at}: {end}");
    let found = all_batches(log);
    let expected: Vec<_> = model
        .batches
        .iter()
        .filter(|b| b.header.last_offset().0 >= start && b.header.base_offset.0 < end)
        .cloned()
        .collect();
    let bases = |b: &[Batch]| b.iter().map(|b| b.header.base_offset.0).collect::<Vec<_>>();
    assert_eq!(bases(&found), bases(&expected), "{at}");
    assert_eq!(found, expected, "{at}");
    assert_eq!(
        found.last().map_or(start, |b| b.header.next_offset().0),
        end,
        "{at}"
    );
    for batch in &found {
        assert!(batch.is_crc_right());
        let last = batch.header.last_offset();
        let slice = log.read(last, 1, Offset(end), true).unwrap();
        assert_eq!(batches_of(&slice)[0], *batch, "{at}");
        let epoch = log.epoch_at(last);
        assert_eq!(epoch, Some(batch.header.leader_epoch), "{at}: {last}");
    }
    check_timestamps(log, &found, at);
    let kept: Vec<_> = model
        .batches
        .iter()
        .filter(|b| b.header.base_offset.0 < end)
        .cloned()
        .collect();
    let (producers, txns) = replayed(&kept);
    assert_eq!(log.active_producers(), producers, "{at}");
    let txns: Vec<_> = txns
        .into_iter()
        .filter(|t| t.last_offset.0 >= start)
        .collect();
    assert_eq!(aborted(log, Offset(end)), txns, "{at}");
    // And on it goes, unless its topic is lost with its first flush: then it is set aside.
    if log.topic_id() == TopicId::NONE {
        return;
    }
    fixture.append_many(8);
    let report = fixture.reopen_cleanly();
    assert_eq!(report.partitions[0].recovered_bytes, 0, "{at}");
    let after = all_batches(fixture.log());
    assert_eq!(after[..found.len()], found, "{at}");
    assert_eq!(after.len(), found.len() + 8, "{at}");
}

fn fail_at_each_change(many: usize) -> u64 {
    for n in 1.. {
        let (disk, model, failed) = run_until_failure(n, many);
        for crash in Crash::ALL {
            let at = format!("change {n}, {crash:?}");
            let after = disk.crash(crash);
            match reopen(&after) {
                Some(mut fixture) => check(&mut fixture, &model, crash, &at),
                None => assert_eq!(model.flushed, 0, "{at}: the log is gone"),
            }
        }
        if !failed {
            return n - 1;
        }
    }
    unreachable!()
}

#[test]
fn whatever_fails_what_was_flushed_is_there() {
    let steps = script().len() + 1;
    let (alone, of_many) = (fail_at_each_change(2), fail_at_each_change(1));
    let crashes = (alone + of_many) * Crash::ALL.len() as u64;
    println!(
        "{steps} operations: {alone} changes to the disk, {of_many} with a stop of many logs; \
         {crashes} crashes"
    );
    assert!(alone > 100 && of_many > 100, "{alone} {of_many}");
}

/// A partition is deleted, and one of its name and of another topic comes. `Err`: a change failed.
fn delete_and_make_anew(fixture: &Fixture) -> Result<(), ()> {
    let dir = fixture.dir();
    let name = partition("t", 0);
    let deletion = dir.delete_log(&name, NOW).map_err(drop)?.unwrap();
    dir.remove(&deletion).map_err(drop)?;
    let config = Arc::new(small_segments());
    let new = dir.create_log(name, other_topic_id(), config, NOW);
    let new = new.map_err(drop)?;
    for _ in 0..2 {
        let appended = new.append_as_leader(batch(1), &client(0));
        appended.map_err(drop)?;
    }
    dir.checkpoint(0).map_err(drop)
}

fn other_topic_id() -> TopicId {
    TopicId(uuid::Uuid::from_u128(8))
}

#[test]
fn a_deletion_can_be_interrupted_anywhere() {
    let mut failures = 0;
    for n in 1.. {
        let disk = FaultyDisk::new();
        let path = disk.root();
        let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small_segments());
        fixture.open();
        fixture.create();
        fixture.append_many(5);
        fixture.dir().checkpoint(0).unwrap();
        disk.fail_at(n);
        let done = delete_and_make_anew(&fixture);
        assert_eq!(done.is_err(), disk.has_failed(), "change {n}: swallowed");
        assert_eq!(disk.changes_after_failure(), 0, "change {n}");
        for crash in Crash::ALL {
            let at = format!("change {n}, {crash:?}");
            let found = reopen(&disk.crash(crash));
            let (id, end) = found.as_ref().map_or((TopicId::NONE, 0), |fixture| {
                let log = fixture.log();
                (log.topic_id(), log.log_end_offset().0)
            });
            // Either whole or gone, and nothing of the one in the other.
            match id {
                id if id == topic_id() => assert_eq!(end, 15, "{at}"),
                id if id == other_topic_id() => assert!((0..=2).contains(&end), "{at}: {end}"),
                _ => assert_eq!(end, 0, "{at}"),
            }
            if done.is_ok() {
                assert_eq!((id, end), (other_topic_id(), 2), "{at}");
            }
        }
        if done.is_ok() {
            break;
        }
        failures += 1;
    }
    println!("deletion: {failures} changes to the disk");
    assert!(failures > 10, "{failures}");
}

/// Recovery itself is interrupted at every change, and goes through the next time.
#[test]
fn recovery_can_be_interrupted_anywhere() {
    let mut failures = 0;
    for stop in [20, 60, 100, 140, 180] {
        let (disk, model, failed) = run_until_failure(stop, 2);
        assert!(failed);
        for first in [Crash::Kill, Crash::PowerCut, Crash::PowerCutLeavesZeros] {
            for n in 1.. {
                let recovering = disk.crash(first);
                recovering.fail_at(n);
                let path = recovering.root();
                let shared = Arc::new(recovering.clone());
                let mut fixture = Fixture::on(shared, &path, small_segments());
                let _ = fixture.try_open();
                if !recovering.has_failed() {
                    break;
                }
                failures += 1;
                for second in Crash::ALL {
                    let at = format!("change {stop}, {first:?}, change {n}, {second:?}");
                    // One power cut is enough for what was not flushed to be gone.
                    let worst = if first == Crash::Kill { second } else { first };
                    match reopen(&recovering.crash(second)) {
                        Some(mut fixture) => check(&mut fixture, &model, worst, &at),
                        None => assert_eq!(model.flushed, 0, "{at}: the log is gone"),
                    }
                }
            }
        }
    }
    println!("recovery: {failures} changes to the disk");
    assert!(failures > 20, "{failures}");
}

/// A short log has no entry in its offset index, so recovery begins in front of the snapshot.
#[test]
fn after_a_kill_aborted_transactions_of_a_short_log_are_known() {
    let mut fixture = Fixture::new(LogConfig::default());
    for (sequence, is_flushed) in [(0, true), (2, true), (4, false)] {
        fixture.append(transactional(2, 0, sequence, 2));
        let marker = marker(2, 0, MarkerType::Abort, 0);
        let appended = fixture.log().append_as_leader(marker, &coordinator());
        appended.unwrap();
        if is_flushed {
            fixture.dir().checkpoint(0).unwrap();
        }
        let before = aborted(fixture.log(), fixture.log().log_end_offset());
        fixture.reopen_after_kill();
        let after = aborted(fixture.log(), fixture.log().log_end_offset());
        assert_eq!(after, before);
    }
    assert_eq!(aborted(fixture.log(), Offset(9)).len(), 3);
}

#[test]
fn after_a_kill_only_the_tail_is_read() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(1000);
    fixture.dir().checkpoint(0).unwrap();
    fixture.append_many(10);
    let report = fixture.reopen_after_kill();
    assert_eq!(report.clean_stop, None);
    let recovered_bytes = report.partitions[0].recovered_bytes;
    let tail_bytes = 10 * batch(3).size_bytes() as u64;
    assert!(recovered_bytes >= tail_bytes);
    assert!(
        recovered_bytes <= tail_bytes + 4096 + 300,
        "{recovered_bytes}"
    );
    assert_eq!(fixture.log().log_end_offset(), Offset(3030));
}

#[test]
fn a_torn_tail_is_cut_and_damage_ends_the_log() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(20);
    fixture.kill();
    let path = fixture.file("00000000000000000000.log");
    let file = fixture
        .disk
        .open(&path, crate::host::OpenMode::Write)
        .unwrap();
    let bytes = file.len().unwrap();
    file.set_len(bytes - 1).unwrap();
    let report = fixture.open();
    assert_eq!(
        report.partitions[0].truncated_bytes,
        batch(3).size_bytes() as u64 - 1
    );
    assert_eq!(fixture.log().log_end_offset(), Offset(57));
    fixture.kill();
    file.write_at(&mut [std::io::IoSlice::new(&[0xff])], bytes / 2)
        .unwrap();
    fixture.open();
    let end = fixture.log().log_end_offset().0;
    assert_eq!(end, 30);
    assert_eq!(fixture.append(batch(1)).base_offset, Offset(30));
}
