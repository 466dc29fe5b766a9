//! Log directories: what is found at a start, and what a stop leaves.

use std::sync::Arc;

use super::super::*;
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::host::{Disk, OpenMode};
use crate::types::*;

#[test]
fn a_clean_stop_is_kafkas() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(5);
    fixture.dir().close(42).unwrap();
    let read = |name: &str| {
        String::from_utf8(fixture.disk.read(&fixture.path.join(name)).unwrap()).unwrap()
    };
    assert_eq!(
        read(".kafka_cleanshutdown"),
        "{\"version\":0,\"brokerEpoch\":42}"
    );
    assert_eq!(read("recovery-point-offset-checkpoint"), "0\n1\nt 0 15\n");
    assert_eq!(read("log-start-offset-checkpoint"), "0\n0\n");
    assert_eq!(
        fixture.names(),
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000015.snapshot",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    );
    fixture.kill();
    let report = fixture.open();
    assert_eq!(report.clean_stop, Some(42));
    assert_eq!(fixture.log().topic_id(), topic_id());
    // The marker counts once.
    assert_eq!(fixture.reopen_after_kill().clean_stop, None);
}

#[test]
fn nothing_is_written_to_stop_a_log_that_was_not_touched() {
    let disk = FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, LogConfig::default());
    fixture.open();
    fixture.create();
    fixture.append_many(5);
    fixture.reopen_cleanly();
    let changes = disk.changes();
    fixture.log().close().unwrap();
    assert_eq!(disk.changes(), changes);
}

#[test]
fn an_empty_partition_costs_one_file() {
    let mut fixture = Fixture::new(LogConfig::default());
    assert_eq!(fixture.names(), ["partition.metadata"]);
    fixture.reopen_cleanly();
    assert_eq!(fixture.names(), ["partition.metadata"]);
    assert_eq!(fixture.log().log_end_offset(), Offset(0));
    assert!(
        std::mem::size_of::<Log>() < 700,
        "{}",
        std::mem::size_of::<Log>()
    );
}

#[test]
fn foreign_entries_do_not_stop_the_start() {
    let mut fixture = Fixture::new(LogConfig::default());
    let id = "0123456789abcdef0123456789abcdef";
    let deleted = format!("t-1.{id}-delete");
    let future = format!("not-a-partition.{id}-future");
    for dir in ["lost+found", "__cluster_metadata-0", &deleted, &future] {
        fixture
            .disk
            .create_dir_all(&fixture.path.join(dir))
            .unwrap();
    }
    fixture
        .disk
        .open(&fixture.path.join("notes"), OpenMode::Create)
        .unwrap();
    fixture
        .disk
        .open(&fixture.file("notes"), OpenMode::Create)
        .unwrap();
    let report = fixture.reopen_after_kill();
    assert_eq!(report.partitions.len(), 1);
    let future = future.as_str();
    assert_eq!(
        report.ignored,
        ["__cluster_metadata-0", "lost+found", future]
    );
    // A start does not wait for its removal.
    let deleted = fixture.path.join(deleted);
    assert!(fixture.disk.exists(&deleted));
    let [deletion] = &report.deletions[..] else {
        panic!("{} deletions", report.deletions.len());
    };
    assert_eq!(deletion.paths, std::slice::from_ref(&deleted));
    assert_eq!(deletion.due, TimestampMs(NOW.0 + 60_000));
    fixture.dir().remove(deletion).unwrap();
    assert!(!fixture.disk.exists(&deleted));
    assert!(fixture.names().contains(&"notes".to_owned()));
}

#[test]
fn a_directory_is_used_by_one() {
    let fixture = Fixture::new(LogConfig::default());
    let files = Arc::new(FileCache::new(10));
    let second = LogDir::open(Arc::clone(&fixture.disk), &fixture.path, files);
    assert!(matches!(second, Err(LogDirError::Locked { .. })));
}

#[test]
fn a_checkpoint_may_be_written_by_several_at_once() {
    let fixture = Fixture::new(LogConfig::default());
    let offsets = [(partition("t", 0), Offset(7))];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..30 {
                    fixture.dir().write_high_watermarks(&offsets).unwrap();
                }
            });
        }
    });
    assert_eq!(fixture.dir().offline_reason(), None);
    let text = fixture
        .disk
        .read(&fixture.path.join("replication-offset-checkpoint"));
    assert_eq!(text.unwrap(), b"0\n1\nt 0 7\n");
}

#[test]
fn meta_properties_are_written_and_read() {
    let fixture = Fixture::new(LogConfig::default());
    assert_eq!(fixture.dir().meta_properties().unwrap(), None);
    let meta = MetaProperties {
        cluster_id: "c".to_owned(),
        node_id: BrokerId(3),
        directory_id: Some(uuid::Uuid::from_u128(9)),
    };
    fixture.dir().format(&meta).unwrap();
    assert_eq!(fixture.dir().meta_properties().unwrap(), Some(meta));
}

#[test]
fn a_deleted_partition_is_gone_and_its_name_is_free() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(20);
    fixture.log().advance_log_start_offset(Offset(50)).unwrap();
    fixture.dir().checkpoint(0).unwrap();
    let log = fixture.log.take().unwrap();
    let deletion = fixture
        .dir()
        .delete_log(&partition("t", 0), NOW)
        .unwrap()
        .unwrap();
    assert!(fixture.dir().log(&partition("t", 0)).is_none());
    assert!(
        fixture
            .dir()
            .delete_log(&partition("t", 0), NOW)
            .unwrap()
            .is_none()
    );
    let late = log.append_as_leader(batch(1), &client(0));
    assert!(matches!(
        late,
        Err(AppendError::Storage(LogError::Closed { .. }))
    ));
    // Its old recovery point and start must not count for the new one.
    fixture.create();
    fixture.append_many(1);
    fixture.dir().remove(&deletion).unwrap();
    assert!(deletion.paths.iter().all(|p| !fixture.disk.exists(p)));
    let report = fixture.reopen_after_kill();
    assert_eq!(
        report.partitions[0].recovered_bytes,
        batch(3).size_bytes() as u64
    );
    let log = fixture.log();
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (Offset(0), Offset(3))
    );
}

#[test]
fn one_damaged_partition_keeps_no_other_from_being_served() {
    let mut fixture = Fixture::new(LogConfig::default());
    let config = Arc::new(LogConfig::default());
    for n in 1..20 {
        let created = fixture
            .dir()
            .create_log(partition("t", n), topic_id(), config.clone(), NOW);
        created
            .unwrap()
            .append_as_leader(batch(n), &client(0))
            .unwrap();
    }
    fixture.kill();
    let path = fixture.path.join("t-7/leader-epoch-checkpoint");
    let file = fixture.disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(&mut [std::io::IoSlice::new(b"nonsense")], 0)
        .unwrap();
    let report = fixture.open();
    assert_eq!(report.partitions.len(), 20);
    for loaded in report.partitions {
        let partition = loaded.topic_partition.partition;
        match loaded.log {
            Ok(log) => assert_eq!(log.log_end_offset().0, i64::from(partition)),
            Err(LogError::Corrupt { .. }) => assert_eq!(partition, 7),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn high_watermarks_come_back() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(3);
    let line = (partition("t", 0), Offset(6));
    fixture.dir().write_high_watermarks(&[line]).unwrap();
    let report = fixture.reopen_after_kill();
    assert_eq!(report.partitions[0].high_watermark, Some(Offset(6)));
}

#[test]
fn damaged_checkpoints_only_cost_time() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(3);
    fixture.dir().checkpoint(0).unwrap();
    for name in [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ] {
        let file = fixture
            .disk
            .open(&fixture.path.join(name), OpenMode::Write)
            .unwrap();
        file.set_len(3).unwrap();
    }
    let report = fixture.reopen_after_kill();
    assert!(report.partitions[0].recovered_bytes > 0);
    assert_eq!(fixture.log().log_end_offset(), Offset(9));
}

#[test]
fn old_snapshots_go_when_newer_ones_are_safe() {
    let mut fixture = Fixture::new(LogConfig::default());
    let snapshots = |fixture: &Fixture| {
        let names = fixture.names();
        let snapshots = names.into_iter().filter(|n| n.ends_with(".snapshot"));
        snapshots.map(|n| n[18..20].to_owned()).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        fixture.append_many(1);
        fixture.dir().checkpoint(0).unwrap();
    }
    assert_eq!(snapshots(&fixture), ["09"]);
    fixture.dir().checkpoint(0).unwrap();
    fixture.append_many(1);
    fixture.reopen_cleanly();
    assert_eq!(snapshots(&fixture), ["12"]);
}

#[test]
fn a_log_that_was_never_flushed_may_be_lost_by_a_power_cut_only() {
    let disk = FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, LogConfig::default());
    fixture.open();
    fixture.create();
    fixture.append_many(2);
    let logs = |crash| {
        let disk = Arc::new(disk.crash(crash));
        let mut fixture = Fixture::on(disk, &path, LogConfig::default());
        fixture.open();
        fixture.log.map(|l| l.log_end_offset().0)
    };
    assert_eq!(logs(Crash::Kill), Some(6));
    assert_eq!(logs(Crash::PowerCut), None);
    assert_eq!(logs(Crash::PowerCutLeavesZeros), Some(0));
    fixture.log().flush().unwrap();
    assert_eq!(logs(Crash::PowerCut), Some(6));
    // The topic's id with it.
    let found = disk
        .crash(Crash::PowerCut)
        .read(&path.join("t-0/partition.metadata"));
    assert!(!found.unwrap().is_empty());
}

#[test]
fn below_the_reserve_producers_are_refused_and_nothing_else_is() {
    let disk = super::faulty_disk::FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small());
    fixture.open();
    fixture.create();
    fixture.append(batch(1));
    // The disk says that 500 bytes are there.
    fixture.dir().set_reserve_bytes(450);
    let refused = fixture.log().append_as_leader(batch(3), &client(0));
    assert!(matches!(
        refused,
        Err(AppendError::Storage(LogError::Full { .. }))
    ));
    assert_eq!(fixture.dir().offline_reason(), None);
    assert_eq!(all_batches(fixture.log()).len(), 1);
    let coordinators = fixture.log().append_as_leader(batch(3), &coordinator());
    assert_eq!(coordinators.unwrap().base_offset, Offset(1));
    fixture.log().flush().unwrap();
    fixture.dir().set_reserve_bytes(100);
    assert_eq!(fixture.append(batch(3)).base_offset, Offset(4));
    fixture.reopen_after_kill();
    assert_eq!(fixture.log().log_end_offset(), Offset(7));
}

#[test]
fn an_append_without_space_is_taken_back() {
    let disk = super::faulty_disk::FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small());
    fixture.open();
    fixture.create();
    fixture.append(idempotent(1, 0, 0, 2));
    disk.fill_at(1);
    let next = idempotent(1, 0, 2, 3);
    let refused = fixture.log().append_as_leader(next.clone(), &client(0));
    assert!(matches!(
        refused,
        Err(AppendError::Storage(LogError::Full { .. }))
    ));
    assert_eq!(fixture.dir().offline_reason(), None);
    assert_eq!(fixture.log().log_end_offset(), Offset(2));
    // The same batch again, as a producer does.
    let appended = fixture.append(next);
    assert_eq!(
        (appended.base_offset, appended.is_duplicate),
        (Offset(2), false)
    );
    let report = fixture.reopen_after_kill();
    assert_eq!(report.partitions[0].truncated_bytes, 0);
    assert_eq!(all_batches(fixture.log()).len(), 2);
}

#[test]
fn a_checkpoint_without_space_changes_nothing() {
    let disk = FaultyDisk::new();
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, small());
    fixture.open();
    fixture.create();
    fixture.append_many(3);
    let write = |fixture: &Fixture, offset: i64| {
        let line = (partition("t", 0), Offset(offset));
        fixture.dir().write_high_watermarks(&[line])
    };
    write(&fixture, 1).unwrap();
    disk.fill_at(2);
    assert!(matches!(write(&fixture, 2), Err(LogError::Io { .. })));
    assert_eq!(fixture.dir().offline_reason(), None);
    fixture.append_many(1);
    let report = fixture.reopen_after_kill();
    assert_eq!(report.partitions[0].high_watermark, Some(Offset(1)));
}

#[test]
fn records_whose_topic_cannot_be_told_are_kept() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(5);
    fixture.dir().checkpoint(0).unwrap();
    fixture.kill();
    let path = fixture.path.join("t-0/partition.metadata");
    let whole = fixture.disk.read(&path).unwrap();
    let file = fixture.disk.open(&path, OpenMode::Write).unwrap();
    file.write_at(&mut [std::io::IoSlice::new(b"versiom")], 0)
        .unwrap();
    let is_refused = |fixture: &mut Fixture| {
        let report = fixture.open();
        let Err(LogError::Corrupt { path: named, .. }) = &report.partitions[0].log else {
            panic!("a log without its topic was opened");
        };
        assert_eq!(*named, path);
        let flushed = fixture.dir().missing_log(&partition("t", 0));
        assert_eq!(flushed, Some(Offset(15)));
    };
    is_refused(&mut fixture);
    fixture.disk.remove_file(&path).unwrap();
    fixture.kill();
    is_refused(&mut fixture);
    // What was flushed is known after every start, and its log is opened when it is whole.
    fixture.dir().checkpoint(0).unwrap();
    fixture.kill();
    is_refused(&mut fixture);
    let aside = fixture
        .dir()
        .set_aside_unopened(&partition("t", 0))
        .unwrap();
    let aside = aside.unwrap();
    // Not looked at again, and not removed by the next start.
    fixture.kill();
    let report = fixture.open();
    assert!(report.partitions.is_empty());
    assert_eq!(report.ignored.len(), 1);
    let flushed = fixture.dir().missing_log(&partition("t", 0));
    assert_eq!(flushed, Some(Offset(15)));
    fixture.kill();
    fixture
        .disk
        .rename(&aside, &fixture.path.join("t-0"))
        .unwrap();
    let file = fixture.disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(&mut [std::io::IoSlice::new(&whole)], 0)
        .unwrap();
    let report = fixture.open();
    let log = report.partitions[0].log.as_ref().unwrap();
    assert_eq!(log.log_end_offset(), Offset(15));
    assert_eq!(fixture.dir().missing_log(&partition("t", 0)), None);
}

#[test]
fn a_line_of_a_log_that_is_gone_stays_until_one_of_that_name_is_made() {
    let mut fixture = Fixture::new(LogConfig::default());
    fixture.append_many(5);
    fixture.dir().checkpoint(0).unwrap();
    fixture.kill();
    let path = fixture.path.join("t-0");
    fixture.disk.rename(&path, &fixture.path.join("x")).unwrap();
    for _ in 0..2 {
        fixture.open();
        let flushed = fixture.dir().missing_log(&partition("t", 0));
        assert_eq!(flushed, Some(Offset(15)));
        fixture.dir().write_recovery_points().unwrap();
        fixture.kill();
    }
    fixture.open();
    fixture.create();
    fixture.kill();
    fixture.disk.remove_dir_all(&path).unwrap();
    fixture.open();
    assert_eq!(fixture.dir().missing_log(&partition("t", 0)), None);
}
