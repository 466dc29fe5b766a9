//! Flushed segments that are gone when the log is opened, and gaps that are no loss.

use super::super::*;
use super::support::*;
use crate::host::OpenMode;
use crate::record::Batch;
use crate::types::*;

/// Five segments of two batches of three records, flushed; stopped, or killed.
fn five_segments(is_clean: bool) -> Fixture {
    let mut fixture = Fixture::new(LogConfig {
        segment_bytes: 2 * batch(3).size_bytes() as u32,
        index_interval_bytes: 100,
        ..LogConfig::default()
    });
    fixture.append_many(10);
    assert_eq!(fixture.log().segment_count(), 5);
    fixture.dir().checkpoint(0).unwrap();
    if is_clean {
        fixture.dir().close(3).unwrap();
    }
    fixture.kill();
    fixture
}

fn name(base_offset: i64, suffix: &str) -> String {
    format!("{base_offset:020}.{suffix}")
}

fn remove(fixture: &Fixture, base_offset: i64, suffixes: &[&str]) {
    for suffix in suffixes {
        let path = fixture.file(&name(base_offset, suffix));
        fixture.disk.remove_file(&path).unwrap();
    }
}

fn cut(fixture: &Fixture, base_offset: i64, suffix: &str, bytes: usize) {
    let path = fixture.file(&name(base_offset, suffix));
    let file = fixture.disk.open(&path, OpenMode::Write).unwrap();
    file.set_len(bytes as u64).unwrap();
}

/// From where to where the log was found to have nothing. Its files stay as they are.
fn gone(fixture: &mut Fixture) -> Option<(i64, i64)> {
    let names = fixture.names();
    let report = fixture.open();
    let gone = match &report.partitions[0].log {
        Ok(_) => None,
        Err(LogError::SegmentGone {
            path,
            from,
            last,
            to,
        }) => {
            assert_eq!((path, to.0 - 1), (&fixture.path.join("t-0"), last.0));
            assert_eq!(fixture.names(), names);
            assert_eq!(
                fixture.dir().missing_log(&partition("t", 0)),
                Some(Offset(30))
            );
            Some((from.0, to.0))
        }
        Err(error) => panic!("{error}"),
    };
    fixture.kill();
    gone
}

const FILES: &[&str] = &["log", "index", "timeindex"];

type Spoil = fn(&Fixture);

/// What is done to the third segment or others, and what is then missing.
const SPOILT: &[(&str, Spoil, (i64, i64))] = &[
    ("its log only", |f| remove(f, 12, &["log"]), (12, 18)),
    ("its log is empty", |f| cut(f, 12, "log", 0), (12, 18)),
    (
        "between batches",
        |f| cut(f, 12, "log", batch_bytes()),
        (15, 18),
    ),
    (
        "in a header",
        |f| cut(f, 12, "log", batch_bytes() + 7),
        (15, 18),
    ),
    (
        "in a batch",
        |f| cut(f, 12, "log", batch_bytes() + 70),
        (15, 18),
    ),
    ("all of it", |f| remove(f, 12, FILES), (12, 18)),
    ("the last but one", |f| remove(f, 18, FILES), (18, 24)),
    (
        "two of them",
        |f| [6, 12].into_iter().for_each(|b| remove(f, b, FILES)),
        (6, 18),
    ),
];
/// So many of them are seen in a compacted log too.
const SURE: usize = 5;

fn batch_bytes() -> usize {
    batch(3).size_bytes()
}

#[test]
fn a_flushed_segment_that_is_gone_is_missed_wherever_it_was() {
    for is_clean in [true, false] {
        for (what, spoil, expected) in SPOILT {
            let mut fixture = five_segments(is_clean);
            spoil(&fixture);
            assert_eq!(gone(&mut fixture), Some(*expected), "{what}, {is_clean}");
            // Nothing is different at the next start.
            assert_eq!(gone(&mut fixture), Some(*expected), "{what}, {is_clean}");
        }
    }
}

#[test]
fn of_a_compacted_log_what_its_files_show_is_missed() {
    for is_clean in [true, false] {
        for (at, (what, spoil, expected)) in SPOILT.iter().enumerate() {
            let mut fixture = five_segments(is_clean);
            fixture.config.compact = true;
            spoil(&fixture);
            let expected = (at < SURE).then_some(*expected);
            assert_eq!(gone(&mut fixture), expected, "{what}, {is_clean}");
        }
    }
}

/// After a crash the epochs may be older than what retention has removed.
#[test]
fn the_first_segment_is_missed_after_a_clean_stop() {
    for is_clean in [true, false] {
        let mut fixture = five_segments(is_clean);
        remove(&fixture, 0, FILES);
        assert_eq!(gone(&mut fixture), is_clean.then_some((0, 6)));
    }
}

/// As Kafka's cleaner leaves one in which it found nothing to keep.
#[test]
fn an_empty_first_segment_of_a_compacted_log_is_not_missed() {
    for is_clean in [true, false] {
        let mut fixture = five_segments(is_clean);
        fixture.config.compact = true;
        remove(&fixture, 0, &["index", "timeindex"]);
        cut(&fixture, 0, "log", 0);
        assert_eq!(gone(&mut fixture), None, "{is_clean}");
    }
}

/// Whoever goes on without what is gone says so with the log start offset.
#[test]
fn what_lies_below_the_log_start_is_not_missed() {
    for (base_offset, start) in [(0, 6), (12, 18), (12, 20)] {
        let mut fixture = five_segments(true);
        remove(&fixture, base_offset, FILES);
        assert!(gone(&mut fixture).is_some());
        let path = fixture.path.join("log-start-offset-checkpoint");
        let line = format!("0\n1\nt 0 {start}\n");
        fixture.disk.replace(&path, line.as_bytes()).unwrap();
        for _ in 0..2 {
            fixture.open();
            assert_eq!(fixture.log().log_start_offset(), Offset(start));
            assert_eq!(fixture.log().log_end_offset(), Offset(30));
            fixture.dir().close(5).unwrap();
            fixture.kill();
        }
    }
}

#[test]
fn retention_and_deleted_records_leave_nothing_to_miss() {
    for is_clean in [true, false] {
        let mut fixture = Fixture::new(LogConfig {
            retention_bytes: 1000,
            ..small()
        });
        fixture.append_many(60);
        fixture.dir().checkpoint(0).unwrap();
        fixture.log().advance_log_start_offset(Offset(20)).unwrap();
        fixture.dir().write_log_start_offsets().unwrap();
        fixture.log().apply_retention(NOW, Offset(180)).unwrap();
        let start = fixture.log().log_start_offset();
        assert!(start > Offset(20));
        match is_clean {
            true => fixture.reopen_cleanly(),
            false => fixture.reopen_after_kill(),
        };
        assert_eq!(fixture.log().log_start_offset(), start);
    }
}

/// As Kafka's follower copies what was compacted: gaps, in segments and between them.
#[test]
fn gaps_of_a_compacted_log_say_nothing() {
    let batches = |bases: &[i64]| -> Vec<Batch> {
        let at = |base: &i64| {
            let mut batch = batch(3);
            batch.header.base_offset = Offset(*base);
            batch.header.leader_epoch = LeaderEpoch(0);
            batch
        };
        bases.iter().map(at).collect()
    };
    let dense: &[i64] = &[0, 3, 6, 9, 12, 15, 18];
    let with_a_gap: &[i64] = &[0, 3, 6, 9, 12, 18, 21];
    let cases: &[(&[i64], bool, bool)] = &[
        (dense, false, true),
        (dense, true, false),
        (with_a_gap, false, false),
        (with_a_gap, true, false),
    ];
    for (bases, compact, is_gone) in cases {
        let mut fixture = Fixture::new(LogConfig {
            segment_bytes: 2 * batch(3).size_bytes() as u32,
            compact: *compact,
            ..LogConfig::default()
        });
        fixture
            .log()
            .append_as_follower(&batches(bases), NOW)
            .unwrap();
        fixture.dir().close(3).unwrap();
        fixture.kill();
        remove(&fixture, 6, FILES);
        let opened = fixture.open().partitions.remove(0).log;
        assert_eq!(opened.is_err(), *is_gone, "{bases:?} {compact}");
    }
}

/// A log that was compacted before its topic's policy was another.
#[test]
fn a_line_of_the_cleaner_says_that_there_may_be_gaps() {
    let mut fixture = five_segments(true);
    remove(&fixture, 12, FILES);
    let path = fixture.path.join("cleaner-offset-checkpoint");
    fixture.disk.replace(&path, b"0\n1\nt 0 6\n").unwrap();
    assert_eq!(gone(&mut fixture), None);
}

/// What a crash in a compaction, a truncation or a deletion leaves.
#[test]
fn indexes_without_a_log_are_leftovers_where_a_crash_leaves_them() {
    // Below the first segment, inside one, above the recovery point.
    for base_offset in [0, 15, 30] {
        let mut fixture = five_segments(false);
        if base_offset == 0 {
            remove(&fixture, 0, &["log"]);
        }
        let index = fixture.disk.read(&fixture.file(&name(6, "index"))).unwrap();
        assert!(!index.is_empty());
        let path = fixture.file(&name(base_offset, "index"));
        fixture.disk.replace(&path, &index).unwrap();
        assert_eq!(gone(&mut fixture), None, "{base_offset}");
        assert!(!fixture.disk.exists(&path));
    }
}

/// Kafka's cleaner leaves such ones, of the size that it gives to indexes that grow.
#[test]
fn an_empty_segment_whose_indexes_have_no_entries_was_always_empty() {
    let mut fixture = five_segments(true);
    fixture.config.compact = true;
    for (suffix, bytes) in [("log", 0), ("index", 4096), ("timeindex", 6000)] {
        cut(&fixture, 12, suffix, 0);
        cut(&fixture, 12, suffix, bytes);
    }
    assert_eq!(gone(&mut fixture), None);
}

#[test]
fn a_wrong_index_is_not_taken_for_a_loss() {
    let mut fixture = five_segments(true);
    let path = fixture.file(&name(12, "index"));
    let file = fixture.disk.open(&path, OpenMode::Write).unwrap();
    let entry = [0, 0, 0, 5, 0, 0, 0, 99];
    file.write_at(&mut [std::io::IoSlice::new(&entry)], 0)
        .unwrap();
    assert_eq!(gone(&mut fixture), None);
}
