//! Truncation, step by step and against what is appended next.

use super::super::*;
use super::support::*;
use crate::record::MarkerType;
use crate::types::*;

#[test]
fn the_end_is_cut_to_whole_batches() {
    for offset in 0..=60 {
        let fixture = Fixture::new(small());
        fixture.append_many(20);
        let log = fixture.log();
        let kept = offset / 3 * 3;
        assert_eq!(log.truncate_to(Offset(offset), NOW).unwrap(), offset < 60);
        assert_eq!(log.log_end_offset().0, kept);
        assert_eq!(all_batches(log).len() as i64, kept / 3);
        assert_eq!(fixture.append(batch(2)).base_offset.0, kept);
        let last = log
            .read(Offset(kept + 1), 1, Offset(kept + 2), true)
            .unwrap();
        assert_eq!(batches_of(&last)[0].header.base_offset.0, kept);
        let max = log.offset_of_max_timestamp().unwrap().unwrap();
        assert_eq!(max.offset, Offset(0));
    }
}

#[test]
fn the_epoch_of_a_leader_that_appended_nothing_is_cut() {
    let fixture = Fixture::new(small());
    fixture.append_many(20);
    let log = fixture.log();
    let end = log.assign_epoch_at_end(LeaderEpoch(4));
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(4)));
    assert!(!log.truncate_to(end, NOW).unwrap());
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
    assert_eq!(log.log_end_offset(), end);
}

#[test]
fn the_epoch_of_the_last_record_outlives_it() {
    let mut fixture = Fixture::new(small());
    assert_eq!(fixture.log().last_record_epoch(), None);
    fixture.log().assign_epoch_at_end(LeaderEpoch(4));
    assert_eq!(fixture.log().last_record_epoch(), None, "no record has it");
    let context = client(4);
    fixture.log().append_as_leader(batch(3), &context).unwrap();
    let end = fixture.log().log_end_offset();
    let last = Some(LeaderEpoch(4));
    assert_eq!(fixture.log().last_record_epoch(), last);
    fixture.log().advance_log_start_offset(end).unwrap();
    assert_eq!(fixture.log().last_record_epoch(), last);
    fixture.reopen_cleanly();
    assert_eq!(fixture.log().last_record_epoch(), last);
    fixture.log().assign_epoch_at_end(LeaderEpoch(5));
    fixture
        .log()
        .append_as_leader(batch(1), &client(5))
        .unwrap();
    assert_eq!(fixture.log().last_record_epoch(), Some(LeaderEpoch(5)));
}

#[test]
fn the_epoch_of_the_last_record_outlives_retention_and_a_kill() {
    let mut fixture = Fixture::new(LogConfig {
        retention_ms: 1000,
        ..LogConfig::default()
    });
    fixture.append_many(10);
    fixture.log().assign_epoch_at_end(LeaderEpoch(4));
    fixture
        .log()
        .append_as_leader(batch(3), &client(4))
        .unwrap();
    fixture.dir().checkpoint(0).unwrap();
    // What is not flushed goes as well.
    fixture
        .log()
        .append_as_leader(batch(3), &client(4))
        .unwrap();
    let end = fixture.log().log_end_offset();
    let later = TimestampMs(NOW.0 + 1_000_000);
    fixture.log().apply_retention(later, end).unwrap();
    assert_eq!(fixture.log().log_start_offset(), end);
    let last = Some(LeaderEpoch(4));
    assert_eq!(fixture.log().last_record_epoch(), last);
    fixture.kill();
    // The only snapshot is newer than the recovery point.
    let older = fixture.file(&format!("{:020}.snapshot", 33));
    fixture.disk.remove_file(&older).unwrap();
    fixture.open();
    assert_eq!(fixture.log().log_start_offset(), end);
    assert_eq!(fixture.log().last_record_epoch(), last);
}

#[test]
fn what_was_cut_is_forgotten_everywhere() {
    let mut fixture = Fixture::new(small());
    fixture.append(idempotent(1, 0, 0, 3)); // 0-2
    fixture.append(transactional(2, 0, 0, 3)); // 3-5
    fixture.append_many(20);
    let commit = marker(2, 0, MarkerType::Abort, 0);
    let log = fixture.log();
    log.append_as_leader(commit, &coordinator()).unwrap();
    log.append_as_leader(idempotent(1, 0, 3, 3), &client(7))
        .unwrap();
    let end = log.log_end_offset();
    assert_eq!(log.last_stable_offset(end), end);
    log.truncate_to(Offset(60), NOW).unwrap();
    for _ in 0..2 {
        let log = fixture.log();
        assert_eq!(log.log_end_offset(), Offset(60));
        assert_eq!(log.last_stable_offset(Offset(60)), Offset(3));
        assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
        let producers = log.active_producers();
        assert_eq!(producers[0].last_sequence, 2);
        assert_eq!(producers[1].current_txn_start_offset, Some(Offset(3)));
        let slice = log.read(Offset(0), 1, Offset(60), true).unwrap();
        let aborted = log.aborted_transactions(Offset(0), &slice, Offset(60));
        assert_eq!(aborted.unwrap(), []);
        fixture.reopen_after_kill();
    }
    let deletions = fixture.dir().take_deletions();
    assert_eq!(deletions, []);
}

#[test]
fn all_of_it_goes_and_the_start_is_remembered() {
    let mut fixture = Fixture::new(small());
    fixture.append_many(20);
    let log = fixture.log();
    log.truncate_fully_and_start_at(Offset(1000), NOW).unwrap();
    let range = |log: &Log| (log.log_start_offset().0, log.log_end_offset().0);
    assert_eq!(range(log), (1000, 1000));
    let deletions = fixture.dir().take_deletions();
    assert!(!deletions.is_empty());
    for deletion in &deletions {
        fixture.dir().remove(deletion).unwrap();
    }
    fixture.reopen_after_kill();
    assert_eq!(range(fixture.log()), (1000, 1000));
    assert_eq!(fixture.append(batch(3)).base_offset, Offset(1000));
    // Below the first segment: as above.
    assert!(fixture.log().truncate_to(Offset(500), NOW).unwrap());
    assert_eq!(range(fixture.log()), (500, 500));
    fixture.append_many(1);
    fixture.reopen_cleanly();
    assert_eq!(range(fixture.log()), (500, 503));
}

#[test]
fn a_start_above_the_cut_comes_down_on_disk_too() {
    let mut fixture = Fixture::new(small());
    fixture.append_many(20);
    fixture.log().advance_log_start_offset(Offset(50)).unwrap();
    fixture.dir().write_log_start_offsets().unwrap();
    fixture
        .log()
        .truncate_fully_and_start_at(Offset(10), NOW)
        .unwrap();
    fixture.append_many(2);
    fixture.reopen_after_kill();
    let log = fixture.log();
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (Offset(10), Offset(16))
    );
}

/// Or a log that was cut would be taken for one that lost flushed records, and an append after it
/// for flushed.
#[test]
fn a_cut_below_the_recovery_point_on_disk_lowers_it_first() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append_many(20);
    fixture.dir().checkpoint(0).unwrap();
    let on_disk = || {
        let path = fixture.path.join("recovery-point-offset-checkpoint");
        String::from_utf8(fixture.disk.read(&path).unwrap()).unwrap()
    };
    assert_eq!(on_disk(), "0\n1\nt 0 60\n");
    fixture.log().truncate_to(Offset(30), NOW).unwrap();
    assert_eq!(on_disk(), "0\n1\nt 0 0\n");
    fixture.append_many(1);
    assert_eq!(on_disk(), "0\n1\nt 0 0\n");
}

#[test]
fn an_index_entry_that_waits_is_not_lost_by_a_cut() {
    let fixture = Fixture::new(LogConfig {
        index_interval_bytes: 200,
        ..LogConfig::default()
    });
    fixture.append_many(100);
    fixture.log().truncate_to(Offset(150), NOW).unwrap();
    fixture.append_many(50);
    for offset in 0..300 {
        let slice = fixture
            .log()
            .read(Offset(offset), 1, Offset(300), true)
            .unwrap();
        assert_eq!(batches_of(&slice)[0].header.base_offset.0, offset / 3 * 3);
    }
}
