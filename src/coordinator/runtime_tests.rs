//! The runtime over a log in memory, with commits when the test says so, and a machine that counts.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::runtime::*;
use crate::host::{Clock, SystemClock};
use crate::types::{ErrorCode, LeaderEpoch, Offset, ProducerId, TimestampMs};

/// What the log of a test is told to do.
#[derive(Default)]
pub(super) struct LogState {
    pub(super) batches: BTreeMap<i32, Vec<LogBatch>>,
    /// Refuses appends.
    pub(super) refuses: Option<ErrorCode>,
    /// Fails appends that `may_append` let through.
    pub(super) fails: Option<ErrorCode>,
    pub(super) high_watermarks: BTreeMap<i32, Offset>,
    /// Held by the test to keep loading from going on.
    pub(super) gate: Arc<Mutex<()>>,
    pub(super) reads: usize,
}

#[derive(Default)]
pub(super) struct MemoryLog {
    pub(super) state: Mutex<LogState>,
}

fn len(batches: &[LogBatch]) -> i64 {
    let records = batches.iter().map(|batch| match batch {
        LogBatch::Records { records, .. } => records.len() as i64,
        LogBatch::EndTransaction(_) => 1,
    });
    records.sum()
}

impl CoordinatorLog for MemoryLog {
    fn may_append(&self, _: i32) -> Result<(), ErrorCode> {
        self.state.lock().refuses.map_or(Ok(()), Err)
    }

    fn append(&self, p: i32, _: LeaderEpoch, batch: LogBatch) -> Result<Offset, ErrorCode> {
        let mut state = self.state.lock();
        if let Some(error) = state.fails {
            return Err(error);
        }
        let batches = state.batches.entry(p).or_default();
        batches.push(batch);
        Ok(Offset(len(batches)))
    }

    fn read(&self, p: i32, from: Option<Offset>) -> Result<LogChunk, ErrorCode> {
        let gate = self.state.lock().gate.clone();
        let _open = gate.lock();
        let mut state = self.state.lock();
        state.reads += 1;
        let batches = state.batches.get(&p).cloned().unwrap_or_default();
        let all: Vec<LogEntry> = batches.iter().flat_map(entries).collect();
        // Two entries at a time, so that there are several chunks.
        let start = from.map_or(0, |o| o.0 as usize);
        let end = (start + 2).min(all.len());
        Ok(LogChunk {
            entries: all[start..end].to_vec(),
            next_offset: Offset(end as i64),
        })
    }

    fn high_watermark(&self, p: i32) -> Offset {
        let state = self.state.lock();
        state
            .high_watermarks
            .get(&p)
            .copied()
            .unwrap_or(Offset::ZERO)
    }
}

fn entries(batch: &LogBatch) -> Vec<LogEntry> {
    match batch {
        LogBatch::Records {
            records, producer, ..
        } => records
            .iter()
            .map(|record| LogEntry::Record {
                record: record.clone(),
                producer_id: producer.map_or(ProducerId::NONE, |(id, _)| id),
            })
            .collect(),
        LogBatch::EndTransaction(end) => vec![LogEntry::EndTransaction {
            producer_id: end.producer_id,
            commit: end.commit,
        }],
    }
}

/// Counts. `Park` is answered by the next `Add`, or when its time is up.
#[derive(Default)]
struct Counter {
    count: u64,
    parked: Vec<u64>,
    deadline: Option<Duration>,
}

enum Command {
    Add,
    Get,
    Park(Duration),
}

fn record() -> LogBatch {
    LogBatch::Records {
        records: vec![LogRecord {
            key: Bytes::from_static(b"k"),
            value: None,
        }],
        producer: None,
        timestamp: TimestampMs(0),
    }
}

impl Machine for Counter {
    type Command = Command;
    type Reply = u64;
    type LoadError = Infallible;

    fn may_append(command: &Command) -> bool {
        matches!(command, Command::Add)
    }

    fn load(&mut self, _: &LogEntry) -> Result<(), Infallible> {
        self.count += 1;
        Ok(())
    }

    fn on_loaded(&mut self, _: Moment) -> Step<u64> {
        Step::default()
    }

    fn handle(&mut self, now: Moment, token: u64, command: Command) -> Step<u64> {
        let mut step = Step::default();
        match command {
            Command::Add => {
                self.count += 1;
                step.batches.push(record());
                self.parked.push(token);
                let answered = std::mem::take(&mut self.parked);
                step.replies = answered.into_iter().map(|t| (t, self.count)).collect();
            }
            Command::Get => step.replies.push((token, self.count)),
            Command::Park(wait) => {
                self.parked.push(token);
                self.deadline = Some(now.monotonic + wait);
            }
        }
        step
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn expire(&mut self, now: Moment) -> Step<u64> {
        let mut step = Step::default();
        if self.deadline.is_some_and(|at| at <= now.monotonic) {
            self.deadline = None;
            let answered = std::mem::take(&mut self.parked);
            step.replies = answered.into_iter().map(|t| (t, 0)).collect();
        }
        step
    }
}

struct Fixture {
    log: Arc<MemoryLog>,
    runtime: Arc<Runtime<Counter, MemoryLog>>,
}

impl Fixture {
    async fn new() -> Self {
        Fixture::with_commit_timeout(Duration::from_secs(60)).await
    }

    async fn with_commit_timeout(commit_timeout: Duration) -> Self {
        let log = Arc::new(MemoryLog::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let make = |_, _| Counter::default();
        let runtime = Runtime::new(log.clone(), clock, commit_timeout, make);
        runtime.elect(0, LeaderEpoch(1));
        let fixture = Fixture { log, runtime };
        fixture.loaded().await;
        fixture
    }

    /// Asks until the coordinator is loaded: loading happens on another thread.
    async fn loaded(&self) {
        while self.runtime.active_partitions().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn commit(&self, offset: i64) {
        let mut state = self.log.state.lock();
        state.high_watermarks.insert(0, Offset(offset));
        drop(state);
        self.runtime.on_high_watermark(0, Offset(offset));
    }
}

#[tokio::test]
async fn a_reply_leaves_when_its_records_are_committed() {
    let fixture = Fixture::new().await;
    let mut first = fixture.runtime.submit(0, Command::Add);
    let mut second = fixture.runtime.submit(0, Command::Add);
    // It sees what is not committed, so it waits too.
    let mut read = fixture.runtime.submit(0, Command::Get);
    assert!(first.try_recv().is_err());
    fixture.commit(1);
    assert_eq!(first.try_recv().unwrap(), Ok(1));
    assert!(second.try_recv().is_err());
    assert!(read.try_recv().is_err());
    fixture.commit(2);
    assert_eq!(second.try_recv().unwrap(), Ok(2));
    assert_eq!(read.try_recv().unwrap(), Ok(2));
    let mut after = fixture.runtime.submit(0, Command::Get);
    assert_eq!(after.try_recv().unwrap(), Ok(2));
}

#[tokio::test]
async fn an_append_that_fails_drops_the_machine() {
    let fixture = Fixture::new().await;
    let mut kept = fixture.runtime.submit(0, Command::Add);
    let mut parked = fixture
        .runtime
        .submit(0, Command::Park(Duration::from_secs(60)));
    let gate = fixture.log.state.lock().gate.clone();
    let closed = gate.lock();
    fixture.log.state.lock().fails = Some(ErrorCode::NotLeaderOrFollower);
    let mut failed = fixture.runtime.submit(0, Command::Add);
    let error = Err(ErrorCode::NotLeaderOrFollower);
    assert_eq!(failed.try_recv().unwrap(), error);
    // The failed step answered the parked request as well; nothing says that it happened.
    assert_eq!(parked.try_recv().unwrap(), error);
    let mut meanwhile = fixture.runtime.submit(0, Command::Get);
    let loading = Err(ErrorCode::CoordinatorLoadInProgress);
    assert_eq!(meanwhile.try_recv().unwrap(), loading);
    fixture.log.state.lock().fails = None;
    drop(closed);
    fixture.loaded().await;
    // What was appended before is still on its way, and the count is what the log says.
    fixture.commit(1);
    assert_eq!(kept.try_recv().unwrap(), Ok(1));
    assert_eq!(fixture.runtime.call(0, Command::Get).await, Ok(1));
}

#[tokio::test]
async fn a_log_that_takes_nothing_leaves_the_machine_alone() {
    let fixture = Fixture::new().await;
    fixture.log.state.lock().refuses = Some(ErrorCode::NotEnoughReplicas);
    let refused = fixture.runtime.call(0, Command::Add).await;
    assert_eq!(refused, Err(ErrorCode::NotEnoughReplicas));
    assert_eq!(fixture.runtime.call(0, Command::Get).await, Ok(0));
    let reads = fixture.log.state.lock().reads;
    assert_eq!(reads, 2, "nothing was loaded again");
}

#[tokio::test]
async fn resigning_answers_everything() {
    let fixture = Fixture::new().await;
    let mut waiting = fixture.runtime.submit(0, Command::Add);
    let mut parked = fixture
        .runtime
        .submit(0, Command::Park(Duration::from_secs(60)));
    fixture.runtime.resign(0);
    let gone = Err(ErrorCode::NotCoordinator);
    assert_eq!(waiting.try_recv().unwrap(), gone);
    assert_eq!(parked.try_recv().unwrap(), gone);
    assert_eq!(fixture.runtime.call(0, Command::Get).await, gone);
    assert_eq!(fixture.runtime.call(7, Command::Get).await, gone);
    // Elected again: what is in the log counts, an older epoch does not.
    fixture.runtime.elect(0, LeaderEpoch(3));
    fixture.runtime.elect(0, LeaderEpoch(2));
    fixture.loaded().await;
    fixture.commit(1);
    assert_eq!(fixture.runtime.call(0, Command::Get).await, Ok(1));
}

#[tokio::test]
async fn deadlines_wake_the_machine() {
    let fixture = Fixture::new().await;
    let late = fixture
        .runtime
        .submit(0, Command::Park(Duration::from_secs(60)));
    let early = fixture
        .runtime
        .submit(0, Command::Park(Duration::from_millis(5)));
    assert_eq!(early.await.unwrap(), Ok(0));
    assert_eq!(late.await.unwrap(), Ok(0));
}

#[tokio::test]
async fn a_commit_that_takes_too_long_is_a_time_out() {
    let fixture = Fixture::with_commit_timeout(Duration::from_millis(5)).await;
    let reply = fixture.runtime.call(0, Command::Add).await;
    assert_eq!(reply, Err(ErrorCode::RequestTimedOut));
    fixture.commit(1);
    assert_eq!(fixture.runtime.call(0, Command::Get).await, Ok(1));
}

#[tokio::test]
async fn the_timer_ends_with_the_runtime() {
    let fixture = Fixture::new().await;
    let runtime = Arc::downgrade(&fixture.runtime);
    drop(fixture);
    // The thread that loaded may take a moment to let go.
    let gone = async {
        while runtime.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    assert!(gone.is_ok(), "the timer keeps the runtime alive");
}
