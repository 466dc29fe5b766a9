//! The stores by themselves: openraft's own suite, long values, leftovers of a crash.

use std::sync::Arc;

use openraft::testing::{StoreBuilder, Suite};

use super::keys::{self, Parts};
use super::log_store::LogStore;
use super::raft_types::{SnapshotMeta, StorageError, Types};
use super::snapshot_store::SnapshotStore;
use super::state_machine::StateMachine;
use super::tests::{Memory, sled};
use crate::host::KeyValue;
use crate::host::key_value::Change;

struct Builder;

impl StoreBuilder<Types, LogStore, StateMachine> for Builder {
    async fn build(&self) -> Result<((), LogStore, StateMachine), StorageError> {
        let store: Arc<dyn KeyValue> = Arc::new(Memory::default());
        let log = LogStore::open(store.clone()).unwrap();
        let snapshots = SnapshotStore::open(store).unwrap();
        let (machine, _) = StateMachine::open(snapshots, log.appended_bytes().clone()).unwrap();
        Ok(((), log, machine))
    }
}

type Expected = Suite<Types, LogStore, StateMachine, Builder, ()>;

/// Runs cases of the suite beside each other, because many of them sleep.
macro_rules! run {
    ($($case:ident)*) => {
        tokio::join!($(async {
            let ((), log, machine) = Builder.build().await.unwrap();
            Expected::$case(log, machine).await.expect(stringify!($case));
        }),*)
    };
}

#[tokio::test]
async fn the_stores_do_what_openraft_expects() {
    run! {
        last_membership_in_log_initial last_membership_in_log last_membership_in_log_multi_step
        get_membership_initial get_membership_from_log_and_empty_sm
        get_membership_from_empty_log_and_sm get_membership_from_log_le_sm_last_applied
        get_membership_from_log_gt_sm_last_applied_1 get_membership_from_log_gt_sm_last_applied_2
        get_initial_state_without_init get_initial_state_membership_from_log_and_sm
        get_initial_state_with_state get_initial_state_last_log_gt_sm
        get_initial_state_last_log_lt_sm get_initial_state_log_ids
        get_initial_state_re_apply_committed save_vote get_log_entries limited_get_log_entries
        try_get_log_entry initial_logs get_log_state get_log_id last_id_in_log last_applied_state
        purge_logs_upto_0 purge_logs_upto_5 purge_logs_upto_20 delete_logs_since_11
        delete_logs_since_0 append_to_log snapshot_meta apply_single apply_multiple
    };
    Expected::transfer_snapshot(&Builder).await.unwrap();
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

#[test]
fn values_of_any_length_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let lengths = [1, keys::PART_BYTES, keys::PART_BYTES + 1, 3_000_000, 5];
    for (number, len) in (7..).zip(lengths) {
        let value = bytes(len, number as u8);
        store.commit(Parts::Log.put(number, 0, &value)).unwrap();
    }
    let mut read = Vec::new();
    let each = |number, value: &[u8]| {
        read.push((number, value.to_vec()));
        Ok(())
    };
    Parts::Log
        .read(&*store, 8, &Parts::Log.end(10), each)
        .unwrap();
    let expected: Vec<_> = (8..11)
        .map(|n| (n, bytes(lengths[n as usize - 7], n as u8)))
        .collect();
    assert!(
        read == expected,
        "{:?}",
        read.iter().map(|r| (r.0, r.1.len())).collect::<Vec<_>>()
    );
}

#[test]
fn a_snapshot_counts_from_its_header_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let meta = |id: &str| SnapshotMeta {
        snapshot_id: id.into(),
        ..SnapshotMeta::default()
    };
    let snapshots = SnapshotStore::open(store.clone()).unwrap();
    assert!(snapshots.load().unwrap().is_none());
    snapshots.save(&meta("a"), &bytes(100_000, 1)).unwrap();
    // A crash left parts of the next generation, more than it will have.
    let leftover = Parts::Snapshot.put(2, 0, &bytes(50_000, 9));
    store.commit(leftover).unwrap();
    let snapshots = SnapshotStore::open(store.clone()).unwrap();
    assert_eq!(
        snapshots.load().unwrap(),
        Some((meta("a"), bytes(100_000, 1)))
    );
    snapshots.save(&meta("b"), &bytes(9_000, 2)).unwrap();
    assert_eq!(
        snapshots.load().unwrap(),
        Some((meta("b"), bytes(9_000, 2)))
    );
    let all = Parts::Snapshot.end(u64::MAX);
    let parts = Parts::Snapshot.keys(&*store, 0, &all).unwrap();
    assert_eq!(
        parts.len(),
        3,
        "only the parts of the last snapshot are left"
    );
}

#[test]
fn damage_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn KeyValue> = sled(dir.path());
    let put = |key: &[u8], value: &[u8]| {
        let change = Change::Put {
            key: key.to_vec(),
            value: value.to_vec(),
        };
        store.commit(vec![change]).unwrap();
    };
    let snapshots = SnapshotStore::open(store.clone()).unwrap();
    snapshots
        .save(&SnapshotMeta::default(), &bytes(9_000, 1))
        .unwrap();
    put(&Parts::Snapshot.key(1, 2), b"short");
    let error = snapshots.load().unwrap_err().to_string();
    assert_eq!(
        error,
        "the metadata store is damaged at the snapshot: 8197 of 9000 bytes are there"
    );

    put(&Parts::Log.key(3, 0), b"\0\xc1 no entry");
    let error = LogStore::open(store.clone()).err().unwrap().to_string();
    assert!(
        error.starts_with("the metadata store is damaged at a log entry: "),
        "{error}"
    );
    put(keys::PURGED, b"\xc1");
    let error = LogStore::open(store.clone()).err().unwrap().to_string();
    assert!(
        error.starts_with("the metadata store is damaged at the purged log id: "),
        "{error}"
    );
}
