//! A log moves to another directory: as a whole, while it is cut and appended to, and with a disk
//! whose n-th change fails, for every n. After each failure the disk crashes in each of eight ways;
//! then one of the two logs is the one to go on with (`partition::found` takes the newer), and it
//! is what the other crash tests want of a log.

use std::sync::Arc;

use super::super::*;
use super::crash_tests::{Model, check, small_segments};
use super::faulty_disk::{Crash, FaultyDisk};
use super::support::*;
use crate::host::Disk;
use crate::record::{Batch, MarkerType};
use crate::types::*;

/// The two directories of a disk, and the logs of `t-0` in them.
struct Two {
    disk: FaultyDisk,
    dirs: [LogDir; 2],
}

impl Two {
    fn open(disk: &FaultyDisk) -> Two {
        let files = Arc::new(FileCache::new(100));
        let dirs = ["a", "b"].map(|name| {
            let shared: Arc<dyn Disk> = Arc::new(disk.clone());
            let dir = LogDir::open(shared, &disk.root().join(name), files.clone()).unwrap();
            let config = Arc::new(small_segments());
            let options = LoadOptions {
                shared_links: &crate::log::SharedLinks::default(),
                now: NOW,
                file_delete_delay_ms: 0,
                threads: 1,
                config_of: &|_| Arc::clone(&config),
                is_known: &|_| true,
            };
            for loaded in dir.load(&options).unwrap().partitions {
                loaded.log.unwrap();
            }
            dir
        });
        // As directories that have been there for long.
        disk.sync_dir(&disk.root()).unwrap();
        let disk = disk.clone();
        Two { disk, dirs }
    }

    fn create(&self) -> Arc<Log> {
        let config = Arc::new(small_segments());
        let created = self.dirs[0].create_log(partition("t", 0), topic_id(), config, NOW);
        created.unwrap()
    }

    fn create_future(&self) -> Result<Arc<Log>, LogError> {
        let config = Arc::new(small_segments());
        self.dirs[1].create_future_log(partition("t", 0), topic_id(), config, NOW)
    }

    fn current(&self, at: usize) -> Option<Arc<Log>> {
        self.dirs[at].log(&partition("t", 0))
    }

    /// The newer of the logs that have the name.
    fn winner(&self) -> Option<usize> {
        let newness = |at: &usize| {
            let log = self.current(*at)?;
            let is_own = log.topic_id() == topic_id();
            is_own.then(|| (log.latest_epoch(), log.log_end_offset()))
        };
        (0..2)
            .filter(|at| newness(at).is_some())
            .max_by_key(newness)
    }

    /// Copies until the future log has the place.
    fn move_over(&self, current: &Log, future: &Arc<Log>) -> Result<(), MoveError> {
        loop {
            let copied = future.copy_from(current, 400, NOW)?;
            if copied.is_close && self.put_in_place(current, future)? {
                return Ok(());
            }
        }
    }

    fn put_in_place(&self, current: &Log, future: &Arc<Log>) -> Result<bool, MoveError> {
        future.checkpoint()?;
        self.dirs[1].write_recovery_points()?;
        self.dirs[1].write_log_start_offsets()?;
        let replacing = future.replacing(current).expect("nobody flushes");
        replacing.finish(NOW, || ())
    }

    /// What comes after the move.
    fn clear(&self, moved: &Log) -> Result<(), LogError> {
        moved.checkpoint()?;
        self.dirs[1].write_recovery_points()?;
        if let Some(deletion) = self.dirs[0].delete_log(&partition("t", 0), NOW)? {
            self.dirs[0].remove(&deletion)?;
        }
        Ok(())
    }
}

fn append(log: &Log, model: &mut Model, batch: Batch, epoch: i32) -> Result<(), ()> {
    let is_marker = batch.header.attributes.is_control();
    let context = match is_marker {
        true => AppendContext {
            leader_epoch: LeaderEpoch(epoch),
            ..coordinator()
        },
        false => client(epoch),
    };
    super::crash_tests::append(log, model, batch, context)
}

/// A log of some segments with all that a log can hold, of which a part is flushed.
fn fill(log: &Log, model: &mut Model) -> Result<(), ()> {
    for n in 0..4 {
        append(log, model, batch(3), 0)?;
        append(log, model, idempotent(1, 0, 2 * n, 2), 0)?;
    }
    append(log, model, transactional(2, 0, 0, 2), 0)?;
    append(log, model, batch(3), 1)?;
    append(log, model, marker(2, 0, MarkerType::Abort, 0), 1)?;
    log.flush().map_err(drop)?;
    model.flushed = model.end();
    append(log, model, transactional(3, 0, 0, 1), 1)
}

/// `Err`: a change has failed.
fn run(two: &Two, current: &Log, model: &mut Model) -> Result<(), ()> {
    let future = two.create_future().map_err(drop)?;
    for _ in 0..3 {
        future.copy_from(current, 400, NOW).map_err(drop)?;
    }
    append(current, model, batch(3), 1)?;
    current.advance_log_start_offset(Offset(7)).map_err(drop)?;
    model.start_max = 7;
    two.dirs[0].write_log_start_offsets().map_err(drop)?;
    // Another leader had something else there; the future log has a part of what is cut.
    while future.log_end_offset() < current.log_end_offset() {
        future.copy_from(current, 400, NOW).map_err(drop)?;
    }
    let cut = model.batches[8].header.base_offset;
    model.flushed = model.flushed.min(cut.0);
    model.answered = model.answered.min(cut.0);
    current.truncate_to(cut, NOW).map_err(drop)?;
    model.batches.retain(|b| b.header.base_offset < cut);
    for n in 4..9 {
        append(current, model, idempotent(1, 0, 2 * n, 2), 2)?;
    }
    append(current, model, transactional(2, 0, 0, 2), 2)?;
    current.flush().map_err(drop)?;
    model.flushed = model.end();
    append(current, model, marker(2, 0, MarkerType::Abort, 0), 2)?;
    append(current, model, transactional(3, 0, 0, 1), 2)?;
    two.move_over(current, &future).map_err(drop)?;
    append(&future, model, transactional(3, 0, 1, 1), 2)?;
    append(&future, model, batch(3), 3)?;
    future.flush().map_err(drop)?;
    model.flushed = model.end();
    append(&future, model, batch(3), 3)?;
    two.clear(&future).map_err(drop)?;
    model.flushed = model.end();
    append(&future, model, idempotent(1, 0, 18, 2), 3)?;
    two.dirs[1].checkpoint(0).map_err(drop)?;
    model.flushed = model.end();
    Ok(())
}

fn check_after(disk: &FaultyDisk, model: &Model, crash: Crash, at: &str) -> Option<usize> {
    let two = Two::open(&disk.crash(crash));
    let Some(winner) = two.winner() else {
        assert_eq!(model.flushed, 0, "{at}: the log is gone");
        return None;
    };
    if winner == 0 {
        // The move goes on, and brings the same.
        let current = two.current(0).unwrap();
        let before = all_batches(&current);
        if two.current(1).is_some() {
            let deletion = two.dirs[1].delete_log(&partition("t", 0), NOW).unwrap();
            two.dirs[1].remove(&deletion.unwrap()).unwrap();
        }
        let future = two.create_future().unwrap();
        two.move_over(&current, &future).unwrap();
        // A start that only the new directory has kept holds too.
        let start = future.log_start_offset();
        assert!(start >= current.log_start_offset(), "{at}");
        let kept = before.iter().filter(|b| b.header.last_offset() >= start);
        assert!(kept.eq(&all_batches(&future)), "{at}");
        assert_eq!(future.active_producers(), current.active_producers());
        assert!(current.append_as_leader(batch(1), &client(9)).is_err());
    }
    // As it was found, and not as it is after another move.
    let shared: Arc<dyn Disk> = Arc::new(disk.crash(crash));
    let path = disk.root().join(["a", "b"][winner]);
    let mut fixture = Fixture::on(shared, &path, small_segments());
    fixture.open();
    check(&mut fixture, model, crash, at);
    Some(winner)
}

#[test]
fn a_move_can_be_interrupted_anywhere() {
    let mut failures = 0;
    let mut found = [0, 0];
    for n in 1.. {
        let disk = FaultyDisk::new();
        let two = Two::open(&disk);
        let current = two.create();
        let mut model = Model::default();
        fill(&current, &mut model).unwrap();
        two.dirs[0].checkpoint(0).unwrap();
        model.flushed = model.end();
        disk.fail_at(n);
        let done = run(&two, &current, &mut model);
        assert_eq!(done.is_err(), disk.has_failed(), "change {n}: swallowed");
        drop(two);
        for crash in Crash::ALL {
            let at = format!("change {n}, {crash:?}");
            if let Some(winner) = check_after(&disk, &model, crash, &at) {
                found[winner] += 1;
            }
        }
        if done.is_ok() {
            break;
        }
        failures += 1;
    }
    println!("move: {failures} changes to the disk; found in the old place and the new {found:?}");
    assert!(
        failures > 60 && found[0] > 60 && found[1] > 60,
        "{failures} {found:?}"
    );
}

#[test]
fn a_moved_log_is_what_the_old_one_was() {
    let disk = FaultyDisk::new();
    let two = Two::open(&disk);
    let current = two.create();
    let mut model = Model::default();
    fill(&current, &mut model).unwrap();
    current.advance_log_start_offset(Offset(7)).unwrap();
    current.assign_epoch_at_end(LeaderEpoch(4));
    let future = two.create_future().unwrap();
    two.move_over(&current, &future).unwrap();
    assert_eq!(future.log_start_offset(), Offset(7));
    assert_eq!(future.log_end_offset(), current.log_end_offset());
    assert_eq!(future.latest_epoch(), Some(LeaderEpoch(4)));
    assert_eq!(all_batches(&future), all_batches(&current));
    assert_eq!(future.active_producers(), current.active_producers());
    let high_watermark = current.log_end_offset();
    assert_eq!(
        future.last_stable_offset(high_watermark),
        current.last_stable_offset(high_watermark)
    );
    // A repeated batch is known, a leader that is over is not.
    let again = future.append_as_leader(idempotent(1, 0, 6, 2), &client(4));
    assert!(again.unwrap().is_duplicate);
    let fenced = future.append_as_leader(batch(1), &client(3));
    assert!(matches!(fenced, Err(AppendError::Fenced { .. })));
    let closed = current.append_as_leader(batch(1), &client(4));
    assert!(matches!(
        closed,
        Err(AppendError::Storage(LogError::Closed { .. }))
    ));
    let entries = |dir: &str| {
        let entries = two.disk.list(&two.disk.root().join(dir)).unwrap();
        let dirs = entries.into_iter().filter(|entry| entry.is_dir);
        dirs.map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(entries("b"), ["t-0"]);
    two.clear(&future).unwrap();
    assert_eq!(
        (entries("a"), entries("b")),
        (vec![], vec!["t-0".to_owned()])
    );
}

#[test]
fn nothing_takes_the_place_before_it_has_everything() {
    let two = Two::open(&FaultyDisk::new());
    let current = two.create();
    let mut model = Model::default();
    fill(&current, &mut model).unwrap();
    let future = two.create_future().unwrap();
    while !future.copy_from(&current, 400, NOW).unwrap().is_close {}
    // Its start has moved meanwhile, and would not be on disk in the new place.
    current.advance_log_start_offset(Offset(5)).unwrap();
    assert!(!two.put_in_place(&current, &future).unwrap());
    future.copy_from(&current, 400, NOW).unwrap();
    // More has come than may be copied while nobody can append.
    for _ in 0..3000 {
        append(&current, &mut model, batch(3), 1).unwrap();
    }
    assert!(!two.put_in_place(&current, &future).unwrap());
    // It was cut, and goes on with something else.
    while !future.copy_from(&current, 100_000, NOW).unwrap().is_close {}
    current.truncate_to(Offset(100), NOW).unwrap();
    current.append_as_leader(batch(1), &client(2)).unwrap();
    assert!(!two.put_in_place(&current, &future).unwrap());
    two.move_over(&current, &future).unwrap();
    assert_eq!(all_batches(&future), all_batches(&current));
}

#[test]
fn a_log_that_starts_inside_a_batch_is_moved_whole() {
    let two = Two::open(&FaultyDisk::new());
    let current = two.create();
    for _ in 0..20 {
        current.append_as_leader(batch(3), &client(0)).unwrap();
    }
    let future = two.create_future().unwrap();
    future.copy_from(&current, 100, NOW).unwrap();
    // What was copied is not wanted any more.
    current.advance_log_start_offset(Offset(31)).unwrap();
    two.move_over(&current, &future).unwrap();
    assert_eq!(future.log_start_offset(), Offset(31));
    assert_eq!(all_batches(&future), all_batches(&current));
    assert_eq!(future.first_segment_offset(), Offset(30));
}
