//! Replicas that are moved from, or to, a directory that fails.

use super::ends;
use super::moves::Alone;
use super::simulation::broker::entries;
use crate::host::Clock;
use crate::log::tests::faulty_disk::Crash;
use crate::log::{Log, LogError};
use crate::metadata::{ImageDelta, MetadataImage};
use crate::partition::*;
use crate::types::Offset;

/// Ten records, some of which are in the future log in directory 1, when directory 0 fails.
fn with_a_failed_source() -> Alone {
    let alone = Alone::new();
    alone.produce(10);
    alone.broker.move_replica(0, 1);
    alone.broker.move_on();
    alone.broker.disk.fail_at(1);
    assert!(alone.try_produce(3).is_err());
    let dirs = alone.partitions().log_dirs();
    assert!(dirs[0].offline_reason().is_some() && dirs[1].offline_reason().is_none());
    alone
}

#[test]
fn a_source_that_fails_ends_the_move_and_the_next_start_goes_on() {
    let mut alone = with_a_failed_source();
    alone.finish();
    let partition = alone.partition();
    assert_eq!(alone.broker.place(0), Some(0), "half a log has the place");
    assert_eq!(alone.kinds(), [vec!["current"], vec!["future"], vec![]]);
    assert!(alone.try_produce(1).is_err());
    let elsewhere = alone.partitions().log_dirs()[2].clone();
    let refused = alone.partitions().move_replica(&partition, &elsewhere);
    let offline = MoveRefused::Storage(LogError::Offline {
        dir: partition.log_dir().path().to_owned(),
    });
    assert_eq!(refused.unwrap_err().to_string(), offline.to_string());
    // What is in other directories goes on.
    let other = alone.broker.partition(1).unwrap();
    assert_ne!(alone.broker.place(1), Some(0));
    other.on_log(Log::flush).unwrap();
    // The directory is repaired.
    alone.broker.crash(Crash::Kill);
    alone.start();
    alone.produce(2);
    alone.finish();
    assert_eq!(alone.broker.place(0), Some(1));
    assert_eq!(ends(&alone.partition()), (0, 12, 12));
    assert_eq!(alone.kinds(), [vec!["deleted"], vec!["current"], vec![]]);
}

#[test]
fn what_was_copied_from_a_source_that_failed_goes_with_the_topic() {
    let mut alone = with_a_failed_source();
    alone.finish();
    let mut empty = MetadataImage::empty();
    empty.begin_entry(Offset(1000), 1);
    alone.broker.apply(&empty, &ImageDelta::everything());
    assert_eq!(alone.kinds()[1..], [vec!["deleted"], vec![]]);
    alone.delete_old();
    let nothing: Vec<&str> = Vec::new();
    assert_eq!(alone.kinds()[1..], [nothing.clone(), nothing]);
}

/// Writes and moves; how many records were acknowledged, each of them flushed.
fn write_and_move(alone: &Alone) -> u64 {
    let mut acknowledged = 0;
    let mut write = || {
        if alone.try_produce(1).is_ok() && alone.partition().on_log(Log::flush).is_ok() {
            acknowledged += 1;
        }
    };
    write();
    let partition = alone.partition();
    let to = alone.partitions().log_dirs()[1].clone();
    let _ = alone.partitions().move_replica(&partition, &to);
    write();
    while alone.broker.move_on().is_some() {
        write();
        alone.clock.add_ms(1000);
    }
    write();
    alone.clock.add_ms(100_000);
    alone.partitions().run_deletions(alone.clock.now_ms());
    write();
    acknowledged
}

#[test]
fn whichever_call_fails_no_acknowledged_record_is_lost() {
    let mut calls = 0;
    for n in 1.. {
        let mut has_failed = true;
        for crash in Crash::ALL {
            let mut alone = Alone::new();
            alone.broker.disk.fail_at(n);
            let acknowledged = write_and_move(&alone);
            has_failed = alone.broker.disk.has_failed();
            alone.broker.crash(crash);
            alone.start();
            let partition = alone.broker.partition(0);
            let partition = partition.unwrap_or_else(|| panic!("call {n}, {crash:?}: no log"));
            let found = |partition: &Partition| {
                let (start, _, end) = ends(partition);
                entries(&partition.log(), Offset(start), Offset(end)).len() as u64
            };
            let there = found(&partition);
            assert!(
                there >= acknowledged,
                "call {n}, {crash:?}: {there} of {acknowledged}"
            );
            alone.produce(1);
            alone.finish();
            assert_eq!(found(&alone.partition()), there + 1, "call {n}, {crash:?}");
        }
        if !has_failed {
            break;
        }
        calls = n;
    }
    println!(
        "{calls} calls of a move under writes, each with {} crashes",
        Crash::ALL.len()
    );
    assert!(calls > 50, "{calls}");
}
