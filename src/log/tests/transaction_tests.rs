//! Verified transactions (KIP-890) and markers that come again.

use crate::host::{Disk, OpenMode, RealDisk};
use crate::record::MarkerType;
use crate::types::{Offset, ProducerEpoch, ProducerId};

use super::super::{
    AppendContext, AppendError, Log, LogConfig, Origin, VerificationGuard, Verified,
};
use super::support::*;

fn verified(guard: VerificationGuard, starts_at_zero: bool) -> AppendContext {
    AppendContext {
        origin: Origin::Transaction(Verified {
            guard,
            starts_at_zero,
        }),
        ..client(0)
    }
}

fn marker_by(origin: Origin) -> AppendContext {
    AppendContext {
        origin,
        ..client(0)
    }
}

#[test]
fn a_verification_ends_with_the_next_marker() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    let end = || marker(1, 3, MarkerType::Commit, 0);
    let before = log.producer_txn(ProducerId(1));
    assert_eq!(before.producer_epoch, ProducerEpoch::NONE);
    assert!(!before.is_open);
    // The marker overtakes the records of its transaction.
    log.append_as_leader(end(), &coordinator()).unwrap();
    let late = log.append_as_leader(transactional(1, 3, 0, 1), &verified(before.guard, false));
    assert!(matches!(late, Err(AppendError::InvalidTxnState { .. })));

    let again = log.producer_txn(ProducerId(1)).guard;
    let context = verified(again, false);
    log.append_as_leader(transactional(1, 3, 0, 1), &context)
        .unwrap();
    let open = log.producer_txn(ProducerId(1));
    assert!(open.is_open && open.guard == again);
    // While it is open an old verification does as well.
    let context = verified(before.guard, false);
    log.append_as_leader(transactional(1, 3, 1, 1), &context)
        .unwrap();
    log.append_as_leader(end(), &coordinator()).unwrap();
    let late = log.append_as_leader(transactional(1, 3, 2, 1), &verified(again, false));
    assert!(matches!(late, Err(AppendError::InvalidTxnState { .. })));
    // A repeat of what stands there is one, whatever became of its transaction.
    let repeat = log.append_as_leader(transactional(1, 3, 1, 1), &verified(again, false));
    assert!(repeat.unwrap().is_duplicate);
}

#[test]
fn aborted_transactions_outlive_a_kill_where_the_segment_has_no_index_entries() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append(transactional(1, 3, 0, 1));
    let abort = marker(1, 3, MarkerType::Abort, 0);
    let log = fixture.log();
    log.append_as_leader(abort, &coordinator()).unwrap();
    let aborted = |log: &Log| {
        let end = log.log_end_offset();
        let slice = log.read(Offset(0), u32::MAX, end, true).unwrap();
        log.aborted_transactions(Offset(0), &slice, end).unwrap()
    };
    let before = aborted(log);
    assert_eq!(before.len(), 1);
    // The snapshot is at the end; a small segment of Kafka's has no entries then.
    fixture.reopen_cleanly();
    fixture.kill();
    for kind in ["index", "timeindex"] {
        let name = format!("00000000000000000000.{kind}");
        let file = RealDisk.open(&fixture.file(&name), OpenMode::Write);
        file.unwrap().set_len(0).unwrap();
    }
    fixture.open();
    assert_eq!(aborted(fixture.log()), before);
}

#[test]
fn a_producer_of_version_2_that_is_not_known_starts_at_zero() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    let guard = log.producer_txn(ProducerId(1)).guard;
    let gap = log.append_as_leader(transactional(1, 0, 5, 1), &verified(guard, true));
    assert!(matches!(gap, Err(AppendError::OutOfOrderSequence { .. })));
    let old = verified(guard, false);
    log.append_as_leader(transactional(1, 0, 5, 1), &old)
        .unwrap();
    let first = transactional(2, 0, 0, 1);
    log.append_as_leader(first, &verified(guard, true)).unwrap();
}

#[test]
fn in_version_2_the_marker_before_may_come_after_the_guard() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    fixture.append(transactional(1, 3, 0, 1));
    let guard = log.producer_txn(ProducerId(1)).guard;
    let end = marker(1, 4, MarkerType::Commit, 0);
    log.append_as_leader(end, &marker_by(Origin::MarkerV2))
        .unwrap();
    let next = || transactional(1, 4, 0, 1);
    let old = log.append_as_leader(next(), &verified(guard, false));
    assert!(matches!(old, Err(AppendError::InvalidTxnState { .. })));
    log.append_as_leader(next(), &verified(guard, true))
        .unwrap();
    let late = log.append_as_leader(transactional(1, 3, 1, 1), &verified(guard, true));
    assert!(matches!(
        late,
        Err(AppendError::InvalidProducerEpoch { .. })
    ));
}

#[test]
fn a_marker_of_version_2_may_come_again_until_the_next_transaction_begins() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.log();
    fixture.append(transactional(1, 3, 0, 1));
    let end = || {
        let batch = marker(1, 4, MarkerType::Commit, 0);
        log.append_as_leader(batch, &marker_by(Origin::MarkerV2))
    };
    end().unwrap();
    let known = log.producer_txn(ProducerId(1));
    assert!(known.ends_with_marker && !known.is_open);
    assert_eq!(known.producer_epoch, ProducerEpoch(4));
    end().unwrap();
    fixture.append(transactional(1, 4, 0, 1));
    assert!(!log.producer_txn(ProducerId(1)).ends_with_marker);
    assert!(matches!(
        end(),
        Err(AppendError::InvalidProducerEpoch { .. })
    ));
}
