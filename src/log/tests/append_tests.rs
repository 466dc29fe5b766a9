//! Appending: offsets, rolling, the rules for producers and transactions.

use super::super::*;
use super::support::*;
use crate::record::{BatchBuilder, MarkerType, TimestampType};
use crate::types::*;

#[test]
fn a_leader_gives_dense_offsets_and_its_epoch() {
    let fixture = Fixture::new(small());
    let first = fixture
        .log()
        .append_as_leader(batch(3), &client(4))
        .unwrap();
    let second = fixture
        .log()
        .append_as_leader(batch(2), &client(5))
        .unwrap();
    assert_eq!(
        (first.base_offset, first.last_offset),
        (Offset(0), Offset(2))
    );
    assert_eq!(
        (second.base_offset, second.last_offset),
        (Offset(3), Offset(4))
    );
    assert_eq!(second.unflushed_records, 5);
    let log = fixture.log();
    assert_eq!(log.log_end_offset(), Offset(5));
    let batches = all_batches(log);
    assert!(batches.iter().all(|b| b.is_crc_right()));
    let epochs: Vec<_> = batches.iter().map(|b| b.header.leader_epoch.0).collect();
    assert_eq!(epochs, [4, 5]);
    let end = |epoch| log.end_offset_for_epoch(LeaderEpoch(epoch));
    assert_eq!(end(4), Some((LeaderEpoch(4), Offset(3))));
    assert_eq!(end(5), Some((LeaderEpoch(5), Offset(5))));
    assert_eq!(end(6), None);
    assert_eq!(log.epoch_at(Offset(2)), Some(LeaderEpoch(4)));
    log.assign_epoch_at_end(LeaderEpoch(9));
    assert_eq!(
        log.end_offset_for_epoch(LeaderEpoch(9)),
        Some((LeaderEpoch(9), Offset(5)))
    );
}

#[test]
fn segments_roll_by_size_and_names_say_where_they_start() {
    let fixture = Fixture::new(small());
    let bytes = batch(3).size_bytes();
    let per_segment = 2000 / bytes;
    for n in 0..per_segment * 3 {
        let appended = fixture.append(batch(3));
        assert_eq!(appended.rolled, n > 0 && n % per_segment == 0);
    }
    assert_eq!(fixture.log().segment_count(), 3);
    assert_eq!(fixture.log().size_bytes(), (per_segment * 3 * bytes) as u64);
    let second = format!("{:020}.log", per_segment * 3);
    assert!(fixture.names().contains(&second), "{:?}", fixture.names());
    let too_large = fixture.log().append_as_leader(batch(100), &client(0));
    assert!(matches!(too_large, Err(AppendError::BatchTooLarge { .. })));
}

#[test]
fn segments_roll_by_time_since_their_first_batch() {
    let fixture = Fixture::new(LogConfig {
        segment_ms: 1000,
        ..LogConfig::default()
    });
    let at = |ms: i64| fixture.append(batch_at(1, TimestampMs(ms))).rolled;
    assert!(!at(5000));
    assert!(!at(6000));
    assert!(at(6001));
    assert!(!at(7001));
    // Without a timestamp the segment's age counts.
    let late = AppendContext {
        now: TimestampMs(NOW.0 + 1001),
        ..client(0)
    };
    let log = fixture.log();
    let append = || {
        log.append_as_leader(batch_at(1, TimestampMs(-1)), &late)
            .unwrap()
            .rolled
    };
    assert!(!append());
    fixture
        .log()
        .truncate_fully_and_start_at(Offset(0), NOW)
        .unwrap();
    assert!(!append());
    assert!(append());
}

#[test]
fn the_jitter_is_less_than_asked_for_and_always_the_same() {
    let config = LogConfig {
        segment_ms: 1000,
        segment_jitter_ms: 500,
        ..LogConfig::default()
    };
    let roll_at = || {
        let fixture = Fixture::new(config.clone());
        fixture.append(batch_at(1, TimestampMs(0)));
        (1..).find(|ms| fixture.append(batch_at(1, TimestampMs(*ms))).rolled)
    };
    let first = roll_at().unwrap();
    assert!((501..=1001).contains(&first), "{first}");
    assert_eq!(roll_at(), Some(first));
}

#[test]
fn segments_roll_when_an_index_is_full_or_offsets_grow_too_far() {
    let fixture = Fixture::new(LogConfig {
        index_interval_bytes: 1,
        segment_index_bytes: 80,
        ..LogConfig::default()
    });
    let rolled = (0..30).filter(|_| fixture.append(batch(1)).rolled).count();
    assert!(rolled >= 2, "{rolled}");
    let mut far = batch(1);
    far.header.base_offset = Offset(i64::from(i32::MAX) * 2);
    let appended = fixture.log().append_as_follower(&[far], NOW).unwrap();
    assert!(appended.rolled);
    assert_eq!(all_batches(fixture.log()).len(), 31);
}

#[test]
fn a_follower_takes_offsets_as_they_are() {
    let fixture = Fixture::new(small());
    let at = |base: i64, records| {
        let mut batch = batch(records);
        batch.header.base_offset = Offset(base);
        batch.header.leader_epoch = LeaderEpoch(2);
        batch
    };
    // A gap, as compaction leaves it.
    let many: Vec<_> = (0..600).map(|n| at(n * 10, 3)).collect();
    let appended = fixture.log().append_as_follower(&many, NOW).unwrap();
    assert_eq!(
        (appended.base_offset, appended.last_offset),
        (Offset(0), Offset(5992))
    );
    assert!(appended.rolled);
    assert_eq!(all_batches(fixture.log()), many);
    let again = fixture.log().append_as_follower(&[at(5992, 1)], NOW);
    assert!(matches!(again, Err(AppendError::UnexpectedOffset { .. })));
    // All or nothing.
    let wrong = fixture
        .log()
        .append_as_follower(&[at(6000, 3), at(6001, 3)], NOW);
    assert!(matches!(wrong, Err(AppendError::UnexpectedOffset { .. })));
    assert_eq!(fixture.log().log_end_offset(), Offset(5993));
    assert_eq!(
        fixture
            .log()
            .append_as_follower(&[], NOW)
            .unwrap()
            .base_offset,
        Offset(5993)
    );
}

/// What one produce of `(epoch, sequence, records)` gives: its offset, or an error's number.
fn produce(fixture: &Fixture, epoch: i16, sequence: i32, records: i32) -> Result<i64, i16> {
    let batch = idempotent(9, epoch, sequence, records);
    match fixture.log().append_as_leader(batch, &client(0)) {
        Ok(appended) => Ok(appended.base_offset.0),
        Err(AppendError::OutOfOrderSequence { .. }) => Err(45),
        Err(AppendError::InvalidProducerEpoch { .. }) => Err(47),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn sequences_are_checked_as_kafka_does() {
    let fixture = Fixture::new(LogConfig::default());
    let steps = [
        // Unknown: anything goes.
        ((3, 100, 5), Ok(0)),
        ((3, 105, 5), Ok(5)),
        // A gap, an overlap, something old.
        ((3, 111, 5), Err(45)),
        ((3, 109, 5), Err(45)),
        ((3, 95, 5), Err(45)),
        // Repeats of what is known.
        ((3, 100, 5), Ok(0)),
        ((3, 105, 5), Ok(5)),
        // Not the same batch.
        ((3, 105, 4), Err(45)),
        ((2, 110, 5), Err(47)),
        // A new epoch starts over.
        ((4, 110, 5), Err(45)),
        ((4, 0, 5), Ok(10)),
        ((3, 105, 5), Err(47)),
        ((4, 5, 1), Ok(15)),
    ];
    for ((epoch, sequence, records), answer) in steps {
        assert_eq!(
            produce(&fixture, epoch, sequence, records),
            answer,
            "{sequence}"
        );
    }
    assert_eq!(fixture.log().log_end_offset(), Offset(16));
}

#[test]
fn the_last_five_batches_are_known() {
    let fixture = Fixture::new(LogConfig::default());
    for n in 0..6 {
        assert_eq!(produce(&fixture, 0, n * 2, 2), Ok(i64::from(n) * 2));
    }
    assert_eq!(produce(&fixture, 0, 0, 2), Err(45));
    assert_eq!(produce(&fixture, 0, 2, 2), Ok(2));
    let repeat = fixture
        .log()
        .append_as_leader(idempotent(9, 0, 10, 2), &client(0))
        .unwrap();
    assert!(repeat.is_duplicate);
    assert_eq!(repeat.log_append_time, NOW);
    assert_eq!(repeat.last_offset, Offset(11));
}

#[test]
fn sequences_wrap() {
    let fixture = Fixture::new(LogConfig::default());
    assert_eq!(produce(&fixture, 0, i32::MAX - 1, 2), Ok(0));
    assert_eq!(produce(&fixture, 0, 0, 1), Ok(2));
    let fixture = Fixture::new(LogConfig::default());
    assert_eq!(produce(&fixture, 0, i32::MAX - 1, 4), Ok(0));
    assert_eq!(produce(&fixture, 0, 2, 1), Ok(4));
    assert_eq!(produce(&fixture, 0, i32::MAX - 1, 4), Ok(0));
}

#[test]
fn quiet_producers_are_forgotten_but_not_in_a_transaction() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append(idempotent(1, 0, 0, 1));
    fixture.append(transactional(2, 0, 0, 1));
    let ms = fixture.config.producer_id_expiration_ms;
    assert_eq!(
        fixture.log().expire_producers(TimestampMs(NOW.0 + ms - 1)),
        0
    );
    assert_eq!(fixture.log().expire_producers(TimestampMs(NOW.0 + ms)), 1);
    let left = fixture.log().active_producers();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].producer_id, ProducerId(2));
    assert_eq!(left[0].current_txn_start_offset, Some(Offset(1)));
    fixture.append(idempotent(1, 0, 77, 1));
}

#[test]
fn transactions_hold_the_last_stable_offset_back() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    let end = |id, marker_type| {
        log.append_as_leader(marker(id, 0, marker_type, 0), &coordinator())
            .unwrap()
    };
    fixture.append(batch(2)); // 0, 1
    fixture.append(transactional(1, 0, 0, 2)); // 2, 3
    fixture.append(transactional(2, 0, 0, 2)); // 4, 5
    let stable = |high_watermark| log.last_stable_offset(Offset(high_watermark)).0;
    assert_eq!((stable(1), stable(6)), (1, 2));
    end(1, MarkerType::Commit); // 6
    // The marker is not replicated yet.
    assert_eq!((stable(6), stable(7)), (2, 4));
    end(2, MarkerType::Abort); // 7
    assert_eq!((stable(7), stable(8)), (4, 8));
    let slice = log.read(Offset(0), u32::MAX, Offset(8), true).unwrap();
    let aborted = log
        .aborted_transactions(Offset(0), &slice, Offset(8))
        .unwrap();
    let expected = AbortedTxn {
        producer_id: ProducerId(2),
        first_offset: Offset(4),
        last_offset: Offset(7),
        last_stable_offset: Offset(8),
    };
    assert_eq!(aborted, [expected]);
    let none = log
        .aborted_transactions(Offset(8), &slice, Offset(8))
        .unwrap();
    assert_eq!(none, []);
    let none = log
        .aborted_transactions(Offset(0), &slice, Offset(4))
        .unwrap();
    assert_eq!(none, []);
}

#[test]
fn transactions_are_fenced() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    fixture.append(transactional(1, 3, 0, 1));
    let plain = log.append_as_leader(idempotent(1, 3, 1, 1), &client(0));
    assert!(matches!(plain, Err(AppendError::InvalidTxnState { .. })));
    let end = |epoch, coordinator_epoch, origin| {
        let context = AppendContext {
            origin,
            ..client(0)
        };
        let batch = marker(1, epoch, MarkerType::Commit, coordinator_epoch);
        log.append_as_leader(batch, &context)
    };
    let old = end(2, 5, Origin::Coordinator);
    assert!(matches!(old, Err(AppendError::InvalidProducerEpoch { .. })));
    let same = end(3, 5, Origin::MarkerV2);
    assert!(matches!(
        same,
        Err(AppendError::InvalidProducerEpoch { .. })
    ));
    end(3, 5, Origin::Coordinator).unwrap();
    let zombie = end(3, 4, Origin::Coordinator);
    assert!(matches!(
        zombie,
        Err(AppendError::TransactionCoordinatorFenced { .. })
    ));
    end(4, 5, Origin::MarkerV2).unwrap();
    // After a marker of a new epoch its first batch starts at 0.
    let gap = log.append_as_leader(transactional(1, 4, 1, 1), &client(0));
    assert!(matches!(gap, Err(AppendError::OutOfOrderSequence { .. })));
    fixture.append(transactional(1, 4, 0, 1));
}

#[test]
fn append_time_is_told() {
    let fixture = Fixture::new(LogConfig::default());
    assert_eq!(fixture.append(batch(1)).log_append_time, TimestampMs::NONE);
    let mut builder = BatchBuilder::new();
    builder.timestamp_type = TimestampType::LogAppendTime;
    builder.append(TimestampMs(42), None, None);
    let appended = fixture.append(builder.build().unwrap());
    assert_eq!(appended.log_append_time, TimestampMs(42));
}

#[test]
fn nothing_is_appended_after_a_stop() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append(batch(1));
    fixture.log().close().unwrap();
    let late = fixture.log().append_as_leader(batch(1), &client(0));
    assert!(matches!(
        late,
        Err(AppendError::Storage(LogError::Closed { .. }))
    ));
}

#[test]
fn a_leader_whose_epoch_is_over_appends_nothing() {
    let fixture = Fixture::new(small());
    let log = fixture.log();
    log.append_as_leader(batch(1), &client(7)).unwrap();
    log.fence(LeaderEpoch(8));
    let refused = log.append_as_leader(batch(1), &client(7));
    assert!(matches!(refused, Err(AppendError::Fenced { .. })));
    assert_eq!(log.assign_epoch_at_end(LeaderEpoch(8)), Offset(1));
    log.append_as_leader(batch(1), &client(8)).unwrap();
    let refused = log.append_as_leader(batch(1), &client(7));
    assert!(matches!(refused, Err(AppendError::Fenced { .. })));
    assert_eq!(log.log_end_offset(), Offset(2));
}

/// Somebody removes the directory of a partition that is in use.
#[test]
fn files_that_are_gone_are_noticed_by_the_next_flush() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append_many(3);
    fixture.log().flush().unwrap();
    fixture
        .disk
        .remove_dir_all(&fixture.path.join("t-0"))
        .unwrap();
    // The open file still takes it.
    fixture.append_many(1);
    assert!(fixture.log().flush().is_err());
    let reason = fixture.dir().offline_reason().unwrap();
    assert!(reason.contains("cannot find"), "{reason}");
}

#[test]
fn no_file_is_made_in_the_place_of_one_that_is_gone() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append_many(3);
    let path = fixture.file("00000000000000000000.log");
    fixture.disk.remove_file(&path).unwrap();
    fixture.log().forget_files();
    let appended = fixture.log().append_as_leader(batch(1), &client(0));
    assert!(appended.is_err());
    assert!(!fixture.disk.exists(&path));
    assert!(fixture.dir().offline_reason().is_some());
}
