//! Reading: where slices start and end, and what it takes to find that out.

use std::sync::Arc;

use super::super::*;
use super::faulty_disk::FaultyDisk;
use super::support::*;
use crate::record::{BatchBuilder, BatchViews};
use crate::types::*;

#[test]
fn a_slice_starts_with_the_batch_that_holds_the_offset() {
    let fixture = Fixture::new(small());
    fixture.append_many(50);
    let log = fixture.log();
    for offset in 0..150 {
        let slice = log.read(Offset(offset), 1, Offset(150), true).unwrap();
        let batches = batches_of(&slice);
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].header.base_offset, Offset(offset / 3 * 3));
    }
    let end = log.read(Offset(150), 1000, Offset(150), true).unwrap();
    assert_eq!((end.len, end.available), (0, 0));
    assert!(end.file.is_none());
    for offset in [-1, 151] {
        let refused = log.read(Offset(offset), 1000, Offset(150), true);
        assert!(matches!(refused, Err(ReadError::OffsetOutOfRange { .. })));
    }
}

#[test]
fn a_slice_ends_where_it_must() {
    let fixture = Fixture::new(LogConfig::default());
    fixture.append_many(10);
    let log = fixture.log();
    let bytes = batch(3).size_bytes() as u32;
    let len = |from, max_bytes, up_to, whole| {
        let slice = log
            .read(Offset(from), max_bytes, Offset(up_to), whole)
            .unwrap();
        (slice.len, slice.available)
    };
    assert_eq!(len(0, u32::MAX, 30, true), (10 * bytes, 10 * bytes));
    // A first batch that does not fit is left out, unless it is asked for; later ones are cut.
    assert_eq!(len(0, 100, 30, false), (0, 10 * bytes));
    assert_eq!(len(0, 100, 30, true), (bytes, 10 * bytes));
    assert_eq!(len(0, bytes + 1, 30, true).0, bytes + 1);
    assert_eq!(len(0, 0, 30, false).0, 0);
    // The bound is never crossed, not even inside a batch.
    assert_eq!(len(0, u32::MAX, 6, true), (2 * bytes, 2 * bytes));
    assert_eq!(len(0, u32::MAX, 7, true), (2 * bytes, 2 * bytes));
    assert_eq!(len(6, u32::MAX, 6, true), (0, 0));
    assert_eq!(len(9, u32::MAX, 6, true), (0, 0));
    assert_eq!(len(0, 1, 0, true), (0, 0));
}

#[test]
fn reading_goes_on_in_the_next_segment_after_a_gap() {
    let fixture = Fixture::new(LogConfig {
        segment_bytes: 300,
        ..LogConfig::default()
    });
    let at = |base: i64| {
        let mut batch = batch(3);
        batch.header.base_offset = Offset(base);
        batch
    };
    // Two batches in a segment, and a gap behind the second.
    let batches: Vec<_> = [0, 3, 100, 103, 200].map(at).into();
    fixture.log().append_as_follower(&batches, NOW).unwrap();
    assert_eq!(fixture.log().segment_count(), 3);
    let first = |offset, up_to| {
        let slice = fixture
            .log()
            .read(Offset(offset), 1, Offset(up_to), true)
            .unwrap();
        let batches = batches_of(&slice);
        batches.first().map(|b| b.header.base_offset.0)
    };
    assert_eq!(first(6, 203), Some(100));
    assert_eq!(first(99, 203), Some(100));
    assert_eq!(first(150, 203), Some(200));
    assert_eq!(first(50, 100), None);
    assert_eq!(first(50, 60), None);
}

#[test]
fn every_offset_and_bound_gives_whole_batches_in_order() {
    let mut fixture = Fixture::new(small());
    fixture.append_many(45);
    // With the tail of new batches, and without.
    for _ in 0..2 {
        let log = fixture.log();
        for from in (0..135).step_by(4) {
            for up_to in (from..=135).step_by(5) {
                let slice = log
                    .read(Offset(from), u32::MAX, Offset(up_to), true)
                    .unwrap();
                let mut next = from / 3 * 3;
                for batch in batches_of(&slice) {
                    assert_eq!(batch.header.base_offset.0, next);
                    next = batch.header.next_offset().0;
                }
                assert!(next <= up_to || slice.len == 0, "{from} {up_to}");
            }
        }
        fixture.reopen_cleanly();
    }
}

#[test]
fn a_reader_at_the_end_reads_nothing_to_find_its_place() {
    let disk = Arc::new(FaultyDisk::new());
    let path = disk.root();
    let mut fixture = Fixture::on(disk.clone(), &path, LogConfig::default());
    fixture.open();
    fixture.create();
    for n in 1..200 {
        fixture.append(batch(3));
        let reads = disk.reads();
        let end = Offset(n * 3);
        let slice = fixture
            .log()
            .read(end.plus(-3), 1 << 20, end, true)
            .unwrap();
        assert_eq!(slice.len, batch(3).size_bytes() as u32);
        assert_eq!(disk.reads(), reads, "after {n} batches");
    }
    // One that is behind reads one page of the index or less, and one window of the log.
    let reads = disk.reads();
    fixture
        .log()
        .read(Offset(10), 100, Offset(500), true)
        .unwrap();
    assert!(disk.reads() - reads <= 3, "{}", disk.reads() - reads);
}

#[test]
fn timestamps_are_found_record_by_record() {
    let mut fixture = Fixture::new(small());
    let mut all = Vec::new();
    for n in 0..60_i64 {
        // Not in order within a batch, nor from batch to batch.
        let mut builder = BatchBuilder::new();
        for ms in [n * 10 + 5, n * 10 - 20, n * 10] {
            all.push(1000 + ms);
            builder.append(TimestampMs(1000 + ms), None, Some(b"some bytes of a value"));
        }
        fixture.append(builder.build().unwrap());
    }
    for _ in 0..2 {
        let log = fixture.log();
        for timestamp in (900..1700).step_by(3) {
            let found = log.offset_for_timestamp(TimestampMs(timestamp)).unwrap();
            let expected = all.iter().position(|t| *t >= timestamp);
            assert_eq!(found.map(|f| f.offset.0 as usize), expected, "{timestamp}");
            assert_eq!(found.map(|f| f.timestamp.0), expected.map(|i| all[i]));
        }
        let max = log.offset_of_max_timestamp().unwrap().unwrap();
        assert_eq!((max.timestamp.0, max.offset.0), (1595, 177));
        fixture.reopen_cleanly();
    }
    assert!(fixture.log().advance_log_start_offset(Offset(61)).unwrap());
    let first = fixture
        .log()
        .offset_for_timestamp(TimestampMs(0))
        .unwrap()
        .unwrap();
    assert_eq!(first.offset, Offset(61));
}

#[test]
fn the_first_of_equal_timestamps_is_the_largest() {
    let fixture = Fixture::new(small());
    assert_eq!(fixture.log().offset_of_max_timestamp().unwrap(), None);
    fixture.append(batch_at(2, TimestampMs(-1)));
    assert_eq!(fixture.log().offset_of_max_timestamp().unwrap(), None);
    fixture.append(batch_at(2, TimestampMs(5)));
    fixture.append_many(40);
    let max = fixture.log().offset_of_max_timestamp().unwrap().unwrap();
    assert_eq!((max.timestamp, max.offset), (NOW, Offset(4)));
}

#[test]
fn a_reader_keeps_its_file_when_the_segment_goes() {
    let fixture = Fixture::new(LogConfig {
        retention_bytes: 0,
        ..small()
    });
    fixture.append_many(40);
    let log = fixture.log();
    let slice = log.read(Offset(0), u32::MAX, Offset(120), true).unwrap();
    let deletion = log.apply_retention(NOW, Offset(120)).unwrap().unwrap();
    fixture.dir().remove(&deletion).unwrap();
    let bytes = bytes_of(&slice);
    assert!(BatchViews::new(&bytes).all(|b| b.unwrap().is_crc_right()));
    let gone = log.read(Offset(0), 100, Offset(120), true);
    assert!(matches!(gone, Err(ReadError::OffsetOutOfRange { .. })));
}
