//! Retention: which segments go, and what their files are called meanwhile.

use super::super::*;
use super::support::*;
use crate::types::*;

fn later(ms: i64) -> TimestampMs {
    TimestampMs(NOW.0 + ms)
}

/// Five segments of two batches of three records.
fn five_segments(config: LogConfig) -> Fixture {
    let fixture = Fixture::new(LogConfig {
        segment_bytes: 2 * batch(3).size_bytes() as u32,
        ..config
    });
    for n in 0..10 {
        fixture.append(batch_at(3, later(n * 100)));
    }
    assert_eq!(fixture.log().segment_count(), 5);
    fixture
}

fn start_after(fixture: &Fixture, now: TimestampMs, high_watermark: i64) -> i64 {
    fixture
        .log()
        .apply_retention(now, Offset(high_watermark))
        .unwrap();
    fixture.log().log_start_offset().0
}

#[test]
fn by_size() {
    let two_segments = 4 * batch(3).size_bytes() as i64;
    let fixture = five_segments(LogConfig {
        retention_bytes: two_segments,
        ..LogConfig::default()
    });
    assert_eq!(start_after(&fixture, NOW, 5), 0);
    assert_eq!(start_after(&fixture, NOW, 6), 6);
    assert_eq!(start_after(&fixture, NOW, 30), 18);
    assert_eq!(start_after(&fixture, NOW, 30), 18);
}

#[test]
fn by_time_up_to_the_active_segment() {
    let fixture = five_segments(LogConfig {
        retention_ms: 1000,
        ..LogConfig::default()
    });
    assert_eq!(start_after(&fixture, later(1100), 30), 0);
    assert_eq!(start_after(&fixture, later(1101), 30), 6);
    assert_eq!(start_after(&fixture, later(100_000), 29), 24);
    assert_eq!(start_after(&fixture, later(100_000), 30), 30);
    assert_eq!(fixture.log().segment_count(), 1);
    // The end is not forgotten.
    let mut fixture = fixture;
    fixture.reopen_after_kill();
    assert_eq!(fixture.log().log_end_offset(), Offset(30));
    assert_eq!(fixture.append(batch(1)).base_offset, Offset(30));
}

#[test]
fn by_start_offset_also_when_only_compacted() {
    let fixture = five_segments(LogConfig {
        delete: false,
        compact: true,
        retention_ms: 1,
        retention_bytes: 1,
        ..LogConfig::default()
    });
    assert_eq!(start_after(&fixture, later(100_000), 30), 0);
    let log = fixture.log();
    assert!(log.advance_log_start_offset(Offset(13)).unwrap());
    assert!(!log.advance_log_start_offset(Offset(13)).unwrap());
    assert!(!log.advance_log_start_offset(Offset(31)).unwrap());
    let deletion = log.apply_retention(NOW, Offset(30)).unwrap().unwrap();
    assert_eq!(deletion.due, later(60_000));
    assert_eq!(
        (log.log_start_offset(), log.segment_count()),
        (Offset(13), 3)
    );
    let deleted = |fixture: &Fixture| {
        let names = fixture.names();
        names.iter().filter(|n| n.ends_with(".deleted")).count()
    };
    // Two segments, three files each, and a snapshot of the second.
    assert_eq!(deleted(&fixture), 7);
    fixture.dir().remove(&deletion).unwrap();
    fixture.dir().remove(&deletion).unwrap();
    assert_eq!(deleted(&fixture), 0);
    // The start inside a segment survives, if the checkpoint was written.
    let mut fixture = fixture;
    fixture.dir().write_log_start_offsets().unwrap();
    fixture.reopen_after_kill();
    assert_eq!(fixture.log().log_start_offset(), Offset(13));
    let below = fixture.log().read(Offset(12), 1, Offset(30), true);
    assert!(matches!(below, Err(ReadError::OffsetOutOfRange { .. })));
}

#[test]
fn nothing_goes_without_a_limit() {
    let fixture = five_segments(LogConfig {
        retention_ms: -1,
        retention_bytes: -1,
        ..LogConfig::default()
    });
    let none = fixture
        .log()
        .apply_retention(later(i64::MAX / 2), Offset(30));
    assert_eq!(none.unwrap(), None);
}
