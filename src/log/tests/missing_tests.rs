//! Directories that do not know what was in them, and what a clean stop says all the same.

use std::io::IoSlice;
use std::sync::Arc;

use super::super::*;
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::host::{Disk, OpenMode};
use crate::types::*;

const CHECKPOINT: &str = "recovery-point-offset-checkpoint";

/// A log with 15 flushed records, after a kill and without the checkpoint.
fn forgetful() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let mut fixture = open(&disk);
    fixture.create();
    fixture.append_many(5);
    fixture.dir().remembers_its_logs().unwrap();
    fixture.dir().checkpoint(0).unwrap();
    fixture.kill();
    disk.remove_file(&disk.root().join(CHECKPOINT)).unwrap();
    disk.sync_dir(&disk.root()).unwrap();
    disk
}

fn open(disk: &FaultyDisk) -> Fixture {
    let path = disk.root();
    let mut fixture = Fixture::on(Arc::new(disk.clone()), &path, LogConfig::default());
    fixture.open();
    fixture
}

#[test]
fn a_directory_has_forgotten_its_logs_until_it_remembers() {
    let disk = forgetful();
    let mut fixture = open(&disk);
    assert!(fixture.dir().forgot_its_logs());
    fixture.dir().checkpoint(0).unwrap();
    fixture.reopen_after_kill();
    assert!(fixture.dir().forgot_its_logs());
    // What is there is not read from the start again.
    let points = disk.read(&disk.root().join(CHECKPOINT)).unwrap();
    assert_eq!(points, b"0\n1\nt 0 15\n");
    fixture.reopen_cleanly();
    assert!(fixture.dir().forgot_its_logs());
    fixture.dir().remembers_its_logs().unwrap();
    fixture.reopen_after_kill();
    assert!(!fixture.dir().forgot_its_logs());
    let names = disk.list(&disk.root()).unwrap();
    assert!(!names.iter().any(|entry| entry.name == ".klamm_forgot_logs"));
}

#[test]
fn no_crash_makes_it_remember() {
    for n in 1.. {
        let disk = forgetful();
        let fixture = open(&disk);
        disk.fail_at(n);
        let written = fixture.dir().checkpoint(0);
        for crash in Crash::ALL {
            let fixture = open(&disk.crash(crash));
            assert!(fixture.dir().forgot_its_logs(), "{n} {crash:?}");
        }
        if written.is_ok() {
            assert!(n > 5, "{n} changes");
            break;
        }
    }
}

/// Kafka makes one before it writes the first.
#[test]
fn an_empty_checkpoint_is_as_none() {
    let disk = forgetful();
    let path = disk.root().join(CHECKPOINT);
    disk.replace(&path, b"").unwrap();
    assert!(open(&disk).dir().forgot_its_logs());
}

#[test]
fn what_was_stopped_cleanly_is_whole_whatever_the_checkpoint_says() {
    let cuts: [fn(u64) -> u64; 3] = [|bytes| bytes - 1, |bytes| bytes / 2, |_| 0];
    for (cut, checkpoint) in cuts.iter().flat_map(|cut| [(cut, "0\nt"), (cut, "")]) {
        let mut fixture = Fixture::new(LogConfig::default());
        fixture.append_many(5);
        fixture.reopen_cleanly();
        fixture.dir().close(3).unwrap();
        fixture.kill();
        let path = fixture.path.join(CHECKPOINT);
        fixture.disk.replace(&path, checkpoint.as_bytes()).unwrap();
        let log = fixture.file("00000000000000000000.log");
        let file = fixture.disk.open(&log, OpenMode::Write).unwrap();
        let whole_bytes = file.len().unwrap();
        let kept_bytes = cut(whole_bytes);
        let mut last = vec![0; (whole_bytes - kept_bytes) as usize];
        file.read_at(&mut last, kept_bytes).unwrap();
        file.set_len(kept_bytes).unwrap();
        // The second time after a crash.
        for clean_stop in [Some(3), None] {
            let report = fixture.open();
            assert_eq!(report.clean_stop, clean_stop);
            assert!(report.partitions[0].log.is_err());
            assert_eq!(
                fixture.dir().missing_log(&partition("t", 0)),
                Some(Offset(15))
            );
            assert_eq!(file.len().unwrap(), kept_bytes, "nothing is cut");
            fixture.kill();
        }
        file.write_at(&mut [IoSlice::new(&last)], kept_bytes)
            .unwrap();
        fixture.open();
        assert_eq!(fixture.log().log_end_offset(), Offset(15));
    }
}
