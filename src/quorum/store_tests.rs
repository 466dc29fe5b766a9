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

#[test]
fn the_stores_do_what_openraft_expects() {
    Suite::test_all(Builder).unwrap();
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

    put(&Parts::Log.key(3, 0), b"\xc1 no entry");
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
