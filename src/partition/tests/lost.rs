//! Directories of partitions that are copied, gone, exchanged or spoiled at a start.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::places::{OTHER, Said, Started, THIS, dir};
use crate::host::{Disk, OpenMode};
use crate::log::tests::faulty_disk::FaultyDisk;
use crate::metadata::{DirectoryId, MetadataImage};
use crate::types::{LeaderEpoch, Offset, TopicId};

pub(super) const BOTH: &[&str] = &["a", "b"];

pub(super) fn led() -> Said {
    let mut said = Said::of(dir("b"));
    said.leader = THIS;
    said
}

/// So many records were acknowledged by a replica in directory b; then a clean stop.
pub(super) fn written(records: usize) -> FaultyDisk {
    let disk = FaultyDisk::new();
    let started = Started::new(&disk, BOTH, &led(), &[]);
    for _ in 0..records {
        started.produce();
    }
    started.stop();
    disk
}

pub(super) fn path(disk: &FaultyDisk, name: &str) -> PathBuf {
    disk.root().join(name)
}

fn write(disk: &FaultyDisk, path: &Path, content: &[u8]) {
    let file = disk.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_at(&mut [IoSlice::new(content)], 0).unwrap();
}

pub(super) fn copy(from: (&FaultyDisk, &str), to: (&FaultyDisk, &str)) {
    let (source, target) = (path(from.0, from.1), path(to.0, to.1));
    to.0.create_dir_all(&target).unwrap();
    for entry in from.0.list(&source).unwrap() {
        let content = from.0.read(&source.join(&entry.name)).unwrap();
        write(to.0, &target.join(&entry.name), &content);
    }
}

pub(super) fn change_topic(disk: &FaultyDisk, name: &str) {
    let id = TopicId(Uuid::from_u128(77));
    let text = format!("version: 0\ntopic_id: {id}");
    let file = path(disk, name).join("partition.metadata");
    write(disk, &file, text.as_bytes());
}

/// The kinds of directories of partitions in a directory: plain, `delete`, `stray`.
pub(super) fn kinds(disk: &FaultyDisk, dir: &str) -> Vec<String> {
    let entries = disk.list(&path(disk, dir)).unwrap();
    let dirs = entries.into_iter().filter(|entry| entry.is_dir);
    let kind = |name: String| name.rsplit_once('-').unwrap().1.to_owned();
    dirs.map(|entry| kind(entry.name)).collect()
}

pub(super) fn end(started: &Started) -> Option<Offset> {
    Some(started.partition()?.log().log_end_offset())
}

#[test]
fn a_copy_does_not_take_the_place_of_the_log_that_the_metadata_names() {
    let disk = written(2);
    copy((&disk, "b/t-0"), (&disk, "a/t-0"));
    for names in [BOTH, &["b", "a"]] {
        let started = Started::new(&disk, names, &led(), BOTH);
        assert_eq!(started.place().as_deref(), Some("b"));
        assert_eq!(started.told(), None);
    }
    assert_eq!(kinds(&disk, "a"), ["delete"]);
    // One that has records of its own is kept.
    for records in [1, 3] {
        let disk = written(2);
        let other = written(records);
        copy((&other, "b/t-0"), (&disk, "a/t-0"));
        let log = "00000000000000000000.log";
        let spoiled = path(&disk, "a/t-0").join(log);
        let mut content = disk.read(&spoiled).unwrap();
        // The leader epoch of the first batch, which its checksum does not cover.
        content[15] = 2;
        write(&disk, &spoiled, &content);
        let checkpoint = path(&disk, "a/t-0").join("leader-epoch-checkpoint");
        write(&disk, &checkpoint, b"0\n1\n2 0\n");
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(started.place().as_deref(), Some("b"));
        assert_eq!(end(&started), Some(Offset(2)));
        assert_eq!(kinds(&disk, "a"), ["stray"]);
    }
}

#[test]
fn of_two_logs_none_is_chosen_by_metadata_that_may_be_old() {
    let disk = written(2);
    copy((&disk, "b/t-0"), (&disk, "a/t-0"));
    let old = Said::of(dir("a")).image(BOTH);
    let started = Started::after(&disk, BOTH, &old, &led());
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(kinds(&disk, "a"), ["delete"]);
}

#[test]
fn a_log_that_is_gone_is_lost_until_it_is_back() {
    let spoil: [fn(&FaultyDisk); 8] = [
        |_| {},
        |disk| disk.create_dir_all(&path(disk, "b/t-0")).unwrap(),
        |disk| {
            copy((disk, "away"), (disk, "b/t-0"));
            let file = path(disk, "b/t-0").join("partition.metadata");
            disk.remove_file(&file).unwrap();
        },
        |disk| {
            copy((disk, "away"), (disk, "b/t-0"));
            let file = path(disk, "b/t-0").join("partition.metadata");
            write(disk, &file, b"version");
        },
        |disk| {
            copy((disk, "away"), (disk, "b/t-0"));
            change_topic(disk, "b/t-0");
        },
        |disk| cut_log(disk, |_| 0),
        |disk| cut_log(disk, |log_bytes| log_bytes / 2),
        |disk| cut_log(disk, |log_bytes| log_bytes - 1),
    ];
    for (case, spoil) in spoil.into_iter().enumerate() {
        let disk = written(2);
        let at = path(&disk, "b/t-0");
        disk.rename(&at, &path(&disk, "away")).unwrap();
        spoil(&disk);
        // The first of these after a clean stop, the second after a crash.
        for _ in 0..2 {
            let started = Started::new(&disk, BOTH, &led(), BOTH);
            assert_eq!(started.place(), None, "case {case}");
            assert_eq!(started.told(), Some(DirectoryId::LOST), "case {case}");
            let mut said = led();
            (said.directory, said.leader) = (DirectoryId::LOST, crate::types::BrokerId::NONE);
            (said.leader_epoch, said.partition_epoch) = (4, 2);
            started.hear(&said, BOTH);
            assert_eq!((started.place(), started.told()), (None, None));
            let dir = &started.partitions.log_dirs()[1];
            dir.write_recovery_points().unwrap();
        }
        let _ = disk.remove_dir_all(&at);
        disk.rename(&path(&disk, "away"), &at).unwrap();
        let mut said = led();
        said.directory = DirectoryId::LOST;
        let started = Started::new(&disk, BOTH, &said, BOTH);
        assert_eq!(started.place().as_deref(), Some("b"), "case {case}");
        assert_eq!(started.told(), Some(dir("b")), "case {case}");
        assert_eq!(end(&started), Some(Offset(2)), "case {case}");
    }
}

/// The log of the partition that was taken away, and less of it.
fn cut_log(disk: &FaultyDisk, keep_bytes: impl Fn(u64) -> u64) {
    copy((disk, "away"), (disk, "b/t-0"));
    let log = path(disk, "b/t-0").join("00000000000000000000.log");
    let file = disk.open(&log, OpenMode::Write).unwrap();
    file.set_len(keep_bytes(file.len().unwrap())).unwrap();
}

#[test]
fn a_directory_without_its_checkpoint_has_forgotten_its_logs_until_all_is_told() {
    let checkpoint = "b/recovery-point-offset-checkpoint";
    for damaged in [None, Some(&b"0\nx"[..]), Some(b"")] {
        let disk = written(2);
        disk.rename(&path(&disk, "b/t-0"), &path(&disk, "away"))
            .unwrap();
        disk.rename(&path(&disk, checkpoint), &path(&disk, "kept"))
            .unwrap();
        if let Some(content) = damaged {
            write(&disk, &path(&disk, checkpoint), content);
        }
        // Nobody has told the controller before the crash, or the clean stop.
        for is_clean in [false, true, false] {
            let started = Started::new(&disk, BOTH, &led(), BOTH);
            assert_eq!(started.place(), None);
            assert_eq!(started.told(), Some(DirectoryId::LOST));
            // The broker's registration brings an election before the controller has heard.
            let mut elected = led();
            (elected.leader_epoch, elected.partition_epoch) = (4, 2);
            started.hear(&elected, BOTH);
            assert_eq!(started.place(), None);
            assert_eq!(started.told(), Some(DirectoryId::LOST));
            // As the background does, whatever the controller has heard.
            started.partitions.log_dirs()[1].checkpoint(0).unwrap();
            if is_clean {
                started.stop();
            }
        }
        disk.rename(&path(&disk, "kept"), &path(&disk, checkpoint))
            .unwrap();
        disk.rename(&path(&disk, "away"), &path(&disk, "b/t-0"))
            .unwrap();
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(end(&started), Some(Offset(2)));
    }
}

#[test]
fn what_the_metadata_calls_lost_is_said_to_be_lost_at_every_start() {
    let disk = written(2);
    for name in ["b/t-0", "b/recovery-point-offset-checkpoint"] {
        let away = name.replace('/', "-");
        disk.rename(&path(&disk, name), &path(&disk, &away))
            .unwrap();
    }
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    let mut lost = led();
    lost.directory = DirectoryId::LOST;
    (lost.leader_epoch, lost.partition_epoch) = (4, 2);
    started.hear(&lost, BOTH);
    let forgot = |started: &Started| started.partitions.log_dirs()[1].forgot_its_logs();
    assert!(!forgot(&started), "the metadata knows all");
    drop(started);
    let started = Started::new(&disk, BOTH, &lost, BOTH);
    assert_eq!(started.partitions.count_without_log(), (0, 1));
    assert!(!forgot(&started));
    assert!(started.partitions.what_waits(&lost.image(BOTH)).is_empty());
    drop(started);
    // It may be in the one that is away.
    let started = Started::new(&disk, &["a"], &lost, BOTH);
    assert_eq!(started.partitions.count_without_log(), (1, 0));
}

/// A log directory as it was before the partition was made.
fn older_copy(disk: &FaultyDisk) {
    disk.remove_dir_all(&path(disk, "b/t-0")).unwrap();
    let checkpoint = path(disk, "b/recovery-point-offset-checkpoint");
    write(disk, &checkpoint, b"0\n0\n");
}

#[test]
fn of_several_directories_the_one_that_is_named_has_the_log() {
    let disk = written(2);
    older_copy(&disk);
    // The second time nobody has told the controller before the crash.
    for _ in 0..2 {
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(started.place(), None);
        assert_eq!(started.told(), Some(DirectoryId::LOST));
        started.partitions.log_dirs()[1].checkpoint(0).unwrap();
    }
    // What others have is not lost.
    let mut said = led();
    (said.isr, said.leader) = (vec![OTHER], OTHER);
    let started = Started::new(&disk, BOTH, &said, BOTH);
    assert_eq!(end(&started), Some(Offset(0)));
}

#[test]
fn a_named_directory_without_the_log_is_no_sign_where_a_crash_leaves_that() {
    // One that was the only one is named before the log is made.
    let single: [(&[&str], &[&str]); 3] = [(&["b"], &["b"]), (BOTH, &["b"]), (&["b"], BOTH)];
    for (names, before) in single {
        let disk = written(2);
        older_copy(&disk);
        let started = Started::new(&disk, names, &led(), before);
        assert_eq!(end(&started), Some(Offset(0)), "{names:?} after {before:?}");
    }
    // Nobody had heard of it.
    let disk = written(2);
    older_copy(&disk);
    let mut said = led();
    said.directory = DirectoryId::UNASSIGNED;
    let started = Started::new(&disk, BOTH, &said, BOTH);
    assert_eq!(end(&started), Some(Offset(0)));
    // A move was told, and has not come so far.
    let disk = written(2);
    copy((&disk, "b/t-0"), (&disk, "a/t-0"));
    older_copy(&disk);
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(end(&started), Some(Offset(2)));
}

#[test]
fn a_log_of_another_topic_does_not_change_what_is_known_of_the_one_in_whose_place_it_is() {
    let (disk, longer) = (written(1), written(3));
    let at = path(&disk, "b/t-0");
    disk.rename(&at, &path(&disk, "away")).unwrap();
    copy((&longer, "b/t-0"), (&disk, "b/t-0"));
    change_topic(&disk, "b/t-0");
    for _ in 0..2 {
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(started.told(), Some(DirectoryId::LOST));
        started.stop();
    }
    disk.remove_dir_all(&at).unwrap();
    disk.rename(&path(&disk, "away"), &at).unwrap();
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    assert_eq!(end(&started), Some(Offset(1)));
}

#[test]
fn an_older_copy_is_not_enough_for_what_was_flushed() {
    let disk = written(1);
    copy((&disk, "b/t-0"), (&disk, "away"));
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    started.produce();
    started.stop();
    disk.remove_dir_all(&path(&disk, "b/t-0")).unwrap();
    copy((&disk, "away"), (&disk, "a/t-0"));
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    assert_eq!(started.told(), Some(DirectoryId::LOST));
    drop(started);
    let mut lost = led();
    lost.directory = DirectoryId::LOST;
    let started = Started::new(&disk, BOTH, &lost, BOTH);
    assert_eq!((started.place(), started.told()), (None, None));
    // Whoever gives up what is lost has what there is.
    let mut given_up = led();
    given_up.directory = DirectoryId::UNASSIGNED;
    (given_up.leader_epoch, given_up.partition_epoch) = (5, 2);
    started.hear(&given_up, BOTH);
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(end(&started), Some(Offset(1)));
}

#[test]
fn a_whole_copy_in_another_directory_serves() {
    let disk = written(2);
    let (from, to) = (path(&disk, "b/t-0"), path(&disk, "a/t-0"));
    disk.rename(&from, &to).unwrap();
    let started = Started::new(&disk, BOTH, &led(), BOTH);
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(started.told(), Some(dir("a")));
}

#[test]
fn what_other_replicas_have_is_filled_anew() {
    let disk = written(2);
    disk.remove_dir_all(&path(&disk, "b/t-0")).unwrap();
    let mut said = Said::of(dir("b"));
    (said.isr, said.leader) = (vec![OTHER, THIS], OTHER);
    let started = Started::new(&disk, BOTH, &said, BOTH);
    assert_eq!(started.place(), None);
    assert_eq!(started.told(), Some(DirectoryId::LOST));
    (said.isr, said.directory) = (vec![OTHER], DirectoryId::LOST);
    said.partition_epoch = 2;
    started.hear(&said, BOTH);
    assert_eq!(end(&started), Some(Offset(0)));
    assert_eq!(started.told(), started.place().map(|place| dir(&place)));
}

#[test]
fn records_that_were_given_up_do_not_come_back() {
    for is_told in [true, false] {
        let disk = written(2);
        let (at, away) = (path(&disk, "b/t-0"), path(&disk, "away"));
        disk.rename(&at, &away).unwrap();
        let started = Started::new(&disk, BOTH, &led(), BOTH);
        assert_eq!(started.place(), None);
        let mut said = led();
        said.directory = DirectoryId::UNASSIGNED;
        (said.leader_epoch, said.partition_epoch) = (5, 3);
        started.hear(&said, BOTH);
        let place = started.place().unwrap();
        assert_eq!(end(&started), Some(Offset(0)));
        // A crash, and the old directory comes back in the other place.
        drop(started);
        let other = if place == "a" { "b" } else { "a" };
        disk.rename(&away, &path(&disk, other).join("t-0")).unwrap();
        if is_told {
            said.directory = dir(&place);
        }
        let started = Started::new(&disk, BOTH, &said, BOTH);
        assert_eq!(started.place().as_ref(), Some(&place), "told: {is_told}");
        assert_eq!(end(&started), Some(Offset(0)));
        let epoch = started.partition().unwrap().log().latest_epoch();
        assert_eq!(epoch, Some(LeaderEpoch(5)));
        assert_eq!(kinds(&disk, other), ["stray"]);
    }
}

/// The topic was deleted and made again, and has had leaders since.
fn made_again() -> Said {
    let mut said = led();
    said.topic_id = TopicId(Uuid::from_u128(6));
    (said.leader_epoch, said.partition_epoch) = (2, 3);
    said
}

#[test]
fn a_topic_that_was_deleted_and_made_again_around_a_crash_begins_empty() {
    let nothing = MetadataImage::empty();
    for (names, directory) in [
        (&["b"][..], dir("b")),
        (BOTH, dir("b")),
        (BOTH, DirectoryId::UNASSIGNED),
    ] {
        let disk = written(2);
        let mut said = made_again();
        said.directory = directory;
        // The second crash comes before the first record.
        for _ in 0..2 {
            let started = Started::after(&disk, names, &nothing, &said);
            assert_eq!(end(&started), Some(Offset(0)), "{names:?} {directory:?}");
            said.partition_epoch += 1;
        }
        assert!(kinds(&disk, "b").contains(&"stray".to_owned()));
        let started = Started::after(&disk, names, &nothing, &said);
        started.produce();
        drop(started);
        let started = Started::after(&disk, names, &nothing, &said);
        assert_eq!(end(&started), Some(Offset(1)), "{names:?} {directory:?}");
    }
}

#[test]
fn of_several_directories_the_one_that_is_named_had_the_log() {
    // An older copy of the whole directory says nothing of it.
    let disk = written(2);
    let started = Started::new(&disk, BOTH, &made_again(), BOTH);
    assert_eq!(started.told(), Some(DirectoryId::LOST));
}

#[test]
fn a_line_of_a_topic_that_has_made_way_is_no_sign_of_a_lost_log() {
    let disk = written(2);
    let stray = format!("b/t-0.{}-stray", Uuid::from_u128(1).simple());
    let (from, to) = (path(&disk, "b/t-0"), path(&disk, &stray));
    disk.rename(&from, &to).unwrap();
    let nothing = MetadataImage::empty();
    let started = Started::after(&disk, &["b"], &nothing, &made_again());
    assert_eq!(end(&started), Some(Offset(0)));
}

#[test]
fn a_directory_of_a_deleted_topic_does_not_take_the_place_of_a_log_that_was_made() {
    let disk = written(2);
    copy((&disk, "b/t-0"), (&disk, "kept"));
    let mut said = made_again();
    said.leader_epoch = 0;
    let older = led().image(&["b"]);
    let started = Started::after(&disk, &["b"], &older, &said);
    started.produce();
    drop(started);
    disk.rename(&path(&disk, "b/t-0"), &path(&disk, "away"))
        .unwrap();
    disk.rename(&path(&disk, "kept"), &path(&disk, "b/t-0"))
        .unwrap();
    // What the broker knew before makes no difference, nor how often it has been started since.
    for before in [&said.image(&["b"]), &MetadataImage::empty()] {
        let started = Started::after(&disk, &["b"], before, &said);
        assert_eq!(started.place(), None);
        assert_eq!(started.told(), Some(DirectoryId::LOST));
        started.stop();
    }
    disk.remove_dir_all(&path(&disk, "b/t-0")).unwrap();
    disk.rename(&path(&disk, "away"), &path(&disk, "b/t-0"))
        .unwrap();
    let started = Started::after(&disk, &["b"], &older, &said);
    assert_eq!(end(&started), Some(Offset(1)));
}

#[test]
fn without_the_list_of_made_logs_every_log_may_have_been_here() {
    for damaged in [None, Some(&b"t 0\n"[..])] {
        let disk = written(2);
        let list = path(&disk, "b/klamm-made-logs");
        disk.remove_file(&list).unwrap();
        if let Some(content) = damaged {
            write(&disk, &list, content);
        }
        // As long as it is lost, the list is not written anew.
        for _ in 0..2 {
            let started = Started::new(&disk, BOTH, &made_again(), BOTH);
            assert_eq!(started.told(), Some(DirectoryId::LOST));
        }
        drop(Started::new(&disk, BOTH, &led(), BOTH));
        let nothing = MetadataImage::empty();
        let started = Started::after(&disk, BOTH, &nothing, &made_again());
        assert_eq!(end(&started), Some(Offset(0)));
    }
}

#[test]
fn a_line_of_a_deleted_log_is_no_sign_of_a_lost_one() {
    let disk = written(2);
    change_topic(&disk, "b/t-0");
    let gone = format!("b/t-0.{}-delete", Uuid::from_u128(1).simple());
    let (from, to) = (path(&disk, "b/t-0"), path(&disk, &gone));
    disk.rename(&from, &to).unwrap();
    let started = Started::new(&disk, &["b"], &led(), &["b"]);
    assert_eq!(end(&started), Some(Offset(0)));
}

#[test]
fn logs_of_topics_that_nobody_knows_are_set_aside() {
    let disk = written(2);
    copy((&disk, "b/t-0"), (&disk, "a/gone-0"));
    change_topic(&disk, "a/gone-0");
    // Somebody has renamed this one.
    copy((&disk, "b/t-0"), (&disk, "a/renamed-0"));
    let old = Said::of(dir("b")).image(BOTH);
    let nothing = MetadataImage::empty();
    let started = Started::after(&disk, BOTH, &nothing, &led());
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(kinds(&disk, "a"), ["stray", "0"]);
    drop((started, old));
    // By metadata that knows nothing of what is here, nothing is touched.
    let disk = written(2);
    change_topic(&disk, "b/t-0");
    disk.rename(&path(&disk, "b/t-0"), &path(&disk, "b/gone-0"))
        .unwrap();
    let mut said = led();
    said.directory = DirectoryId::UNASSIGNED;
    let started = Started::new(&disk, BOTH, &said, BOTH);
    assert!(kinds(&disk, "b").contains(&"0".to_owned()));
    assert!(!kinds(&disk, "b").contains(&"stray".to_owned()));
    drop(started);
}
