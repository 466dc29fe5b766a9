//! Many threads on one log: one appends, others read, flush, checkpoint and delete old segments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::*;
use super::support::*;
use crate::types::*;

/// Reads from the start to the end over and over; how many batches it saw.
fn read_until(log: &Log, is_done: &AtomicBool) -> usize {
    let mut seen = 0;
    let mut at = log.log_start_offset();
    loop {
        let was_done = is_done.load(Ordering::SeqCst);
        let end = log.log_end_offset();
        match log.read(at, 700, end, true) {
            Ok(slice) => {
                let bytes = bytes_of(&slice);
                let whole = crate::record::BatchViews::new(&bytes).filter_map(Result::ok);
                for batch in whole {
                    assert!(batch.is_crc_right());
                    assert!(batch.header.last_offset() >= at);
                    assert!(batch.header.last_offset() < end);
                    at = batch.header.next_offset();
                    seen += 1;
                }
                if was_done && at == end {
                    return seen;
                }
            }
            // Retention was faster.
            Err(ReadError::OffsetOutOfRange { .. }) => at = log.log_start_offset(),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn readers_and_upkeep_go_on_beside_appends() {
    let mut fixture = Fixture::new(LogConfig {
        retention_bytes: 8000,
        ..small()
    });
    let log = Arc::clone(fixture.log.as_ref().unwrap());
    let is_done = AtomicBool::new(false);
    let dir = fixture.dir();
    let seen: Vec<usize> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| read_until(&log, &is_done)))
            .collect();
        let upkeep = scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                log.flush().unwrap();
                dir.checkpoint(0).unwrap();
                let end = log.log_end_offset();
                if let Some(deletion) = log.apply_retention(NOW, end).unwrap() {
                    dir.remove(&deletion).unwrap();
                }
                log.offset_for_timestamp(NOW).unwrap();
                log.last_stable_offset(end);
            }
        });
        for n in 0..1500 {
            let sequence = n * 2;
            log.append_as_leader(idempotent(1, 0, sequence, 2), &client(0))
                .unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
        upkeep.join().unwrap();
        readers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert!(seen.iter().all(|n| *n > 0));
    assert_eq!(log.log_end_offset(), Offset(3000));
    let before = all_batches(&log);
    drop(log);
    fixture.reopen_after_kill();
    assert_eq!(all_batches(fixture.log()), before);
    assert_eq!(fixture.log().active_producers()[0].last_sequence, 2999);
}
