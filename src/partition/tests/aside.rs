//! Directories beside those of the partitions that have a partition's records.

use uuid::Uuid;

use super::lost::{BOTH, change_topic, copy, end, kinds, led, path, written};
use super::places::{OTHER, Said, Started, dir};
use crate::host::{Clock, Disk};
use crate::log::tests::faulty_disk::FaultyDisk;
use crate::metadata::DirectoryId;
use crate::types::{BrokerId, Offset};

fn named(number: u128, kind: &str) -> String {
    format!("t-0.{}-{kind}", Uuid::from_u128(number).simple())
}

fn rename(disk: &FaultyDisk, from: &str, to: &str) {
    disk.rename(&path(disk, from), &path(disk, to)).unwrap();
}

/// Two records, whose directory is in `in_dir` by another name. No line tells of the log.
fn set_aside(in_dir: &str, kind: &str) -> (FaultyDisk, String) {
    let disk = written(2);
    let to = format!("{in_dir}/{}", named(1, kind));
    rename(&disk, "b/t-0", &to);
    let lines = path(&disk, "b/recovery-point-offset-checkpoint");
    disk.replace(&lines, b"0\n0\n").unwrap();
    (disk, to)
}

fn run_deletions(started: &Started) {
    started.clock.add_ms(1_000_000);
    let now = started.clock.now_ms();
    started.partitions.run_deletions(now);
}

/// What the metadata says once the controller has heard of it.
fn lost() -> Said {
    let mut said = led();
    (said.directory, said.leader) = (DirectoryId::LOST, BrokerId::NONE);
    (said.leader_epoch, said.partition_epoch) = (4, 2);
    said
}

#[test]
fn records_that_were_set_aside_are_no_reason_to_begin_empty() {
    for (in_dir, kind) in [
        ("b", "stray"),
        ("a", "stray"),
        ("b", "delete"),
        ("a", "delete"),
    ] {
        let (disk, at) = set_aside(in_dir, kind);
        let mut unassigned = led();
        unassigned.directory = DirectoryId::UNASSIGNED;
        for said in [&unassigned, &led()] {
            let started = Started::new(&disk, BOTH, said, BOTH);
            assert_eq!(started.place(), None, "{at}");
            assert_eq!(started.told(), Some(DirectoryId::LOST), "{at}");
            started.hear(&lost(), BOTH);
            assert_eq!((started.place(), started.told()), (None, None), "{at}");
            run_deletions(&started);
            assert_eq!(kinds(&disk, in_dir), [kind]);
        }
        rename(&disk, &at, &format!("{in_dir}/t-0"));
        let started = Started::new(&disk, BOTH, &lost(), BOTH);
        assert_eq!(end(&started), Some(Offset(2)), "{at}");
        assert_eq!(started.told(), Some(dir(in_dir)), "{at}");
    }
}

#[test]
fn records_that_were_set_aside_can_be_given_up() {
    for kind in ["stray", "delete"] {
        let (disk, _) = set_aside("b", kind);
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(started.place(), None);
        let mut given_up = led();
        given_up.directory = DirectoryId::UNASSIGNED;
        (given_up.leader_epoch, given_up.partition_epoch) = (5, 3);
        started.hear(&given_up, BOTH);
        let place = started.place().unwrap();
        assert_eq!(end(&started), Some(Offset(0)));
        run_deletions(&started);
        let is_there = kinds(&disk, "b").contains(&kind.to_owned());
        assert_eq!(is_there, kind == "stray");
        drop(started);
        given_up.directory = dir(&place);
        let started = Started::new(&disk, BOTH, &given_up, BOTH);
        assert_eq!(started.place(), Some(place));
    }
}

#[test]
fn what_is_not_missed_is_set_aside_as_ever() {
    for kind in ["stray", "delete"] {
        let is_kept = |disk: &FaultyDisk| kinds(disk, "b").contains(&kind.to_owned());
        let at = format!("b/{}", named(1, kind));
        // The log has moved to another directory.
        let disk = written(2);
        copy((&disk, "b/t-0"), (&disk, "a/t-0"));
        rename(&disk, "b/t-0", &at);
        let mut moved = led();
        moved.directory = dir("a");
        let started = Started::new(&disk, BOTH, &moved, BOTH);
        assert_eq!(started.place().as_deref(), Some("a"));
        assert_eq!(end(&started), Some(Offset(2)));
        run_deletions(&started);
        assert_eq!(is_kept(&disk), kind == "stray");
        // The directory that has the log is away.
        let (disk, _) = set_aside("b", kind);
        moved.directory = dir("c");
        let started = Started::new(&disk, BOTH, &moved, &["a", "b", "c"]);
        assert_eq!((started.place(), started.told()), (None, None));
        run_deletions(&started);
        assert!(is_kept(&disk));
        // The replica was reassigned, and has come back.
        let (disk, _) = set_aside("b", kind);
        let mut come_back = led();
        (come_back.isr, come_back.leader) = (vec![OTHER], OTHER);
        let started = Started::new(&disk, BOTH, &come_back, BOTH);
        assert_eq!(end(&started), Some(Offset(0)));
        run_deletions(&started);
        assert_eq!(is_kept(&disk), kind == "stray");
        // Of another topic of that name, in the only directory: of several it would be missed.
        let (disk, at) = set_aside("b", kind);
        change_topic(&disk, &at);
        let started = Started::new(&disk, &["b"], &led(), &["b"]);
        assert_eq!(end(&started), Some(Offset(0)));
        run_deletions(&started);
        assert_eq!(is_kept(&disk), kind == "stray");
        // Without records.
        let (disk, at) = set_aside("b", kind);
        let file = path(&disk, &at).join("00000000000000000000.log");
        disk.remove_file(&file).unwrap();
        let started = Started::new(&disk, &["b"], &led(), &["b"]);
        assert_eq!(end(&started), Some(Offset(0)));
    }
}

#[test]
fn nothing_is_removed_before_the_metadata_is_that_of_this_run() {
    let (disk, _) = set_aside("b", "delete");
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    let epoch = crate::metadata::BrokerEpoch::NONE;
    started.partitions.surroundings().set_broker_epoch(epoch);
    started.apply(&crate::metadata::MetadataImage::empty());
    run_deletions(&started);
    assert_eq!(kinds(&disk, "b"), ["delete"]);
}

#[test]
fn what_a_move_has_copied_is_no_log_to_wait_with() {
    for (in_dir, directory) in [
        ("b", dir("b")),
        ("a", dir("b")),
        ("a", DirectoryId::UNASSIGNED),
    ] {
        let (disk, at) = set_aside(in_dir, "future");
        let mut said = led();
        said.directory = directory;
        let started = Started::new(&disk, BOTH, &said, BOTH);
        assert_eq!(started.place(), None, "{at}");
        assert_eq!(started.told(), Some(DirectoryId::LOST), "{at}");
        started.hear(&lost(), BOTH);
        assert_eq!((started.place(), started.told()), (None, None), "{at}");
        let mut given_up = led();
        given_up.directory = DirectoryId::UNASSIGNED;
        (given_up.leader_epoch, given_up.partition_epoch) = (5, 3);
        started.hear(&given_up, BOTH);
        assert_eq!(end(&started), Some(Offset(0)), "{at}");
        assert!(kinds(&disk, in_dir).contains(&"stray".to_owned()), "{at}");
    }
    // The log may be in the directory that is away.
    let (disk, _) = set_aside("b", "future");
    let mut away = led();
    away.directory = dir("c");
    let started = Started::new(&disk, BOTH, &away, &["a", "b", "c"]);
    assert_eq!((started.place(), started.told()), (None, None));
}

#[test]
fn a_replica_of_a_new_topic_begins_in_a_directory_that_works() {
    let disk = FaultyDisk::new();
    let mut of_others = led();
    (of_others.replicas, of_others.isr) = (vec![OTHER], vec![OTHER]);
    of_others.leader = OTHER;
    let started = Started::new(&disk, BOTH, &of_others, BOTH);
    disk.fail_at(1);
    let mut said = led();
    said.directory = DirectoryId::UNASSIGNED;
    (said.leader_epoch, said.partition_epoch) = (0, 2);
    started.hear(&said, BOTH);
    assert!(disk.has_failed());
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(started.told(), Some(dir("b")));
}
