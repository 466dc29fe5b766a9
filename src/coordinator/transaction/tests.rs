//! The coordinator over a log in memory and partitions that can be told how to answer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::markers::{Written, judge};
use super::*;
use crate::coordinator::runtime::{CoordinatorLog, LogBatch, LogChunk, LogEntry};
use crate::host::{Clock, SystemClock};
use crate::machine::transaction::{
    AddPartitions, EndTxn, InitProducerId, ProducerIdAndEpoch, TransactionConfig,
    TransactionResult, TransactionState, TransactionVersion, TxnMarkers, VerifyPartitions,
};
use crate::types::{
    ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition,
};

/// Its high watermark follows its end, unless it is held.
#[derive(Default)]
struct MemoryLog {
    records: Mutex<Vec<LogEntry>>,
    coordinator: Mutex<Option<Arc<TransactionCoordinator<MemoryLog>>>>,
    held: Mutex<bool>,
    refuses: Mutex<Option<ErrorCode>>,
}

impl MemoryLog {
    fn hold(&self) {
        *self.held.lock() = true;
    }

    fn release(&self) {
        *self.held.lock() = false;
        self.tell(Offset(self.records.lock().len() as i64));
    }

    fn tell(&self, end: Offset) {
        let coordinator = self.coordinator.lock().clone();
        if let Some(coordinator) = coordinator {
            coordinator.on_high_watermark(0, end);
        }
    }
}

impl CoordinatorLog for MemoryLog {
    fn may_append(&self, _: i32) -> Result<(), ErrorCode> {
        Ok(())
    }

    fn append(&self, _: i32, _: LeaderEpoch, batch: LogBatch) -> Result<Offset, ErrorCode> {
        if let Some(error) = self.refuses.lock().take() {
            return Err(error);
        }
        let LogBatch::Records { records, .. } = batch else {
            panic!("no markers in __transaction_state");
        };
        let mut log = self.records.lock();
        log.extend(records.into_iter().map(|record| LogEntry::Record {
            record,
            producer_id: ProducerId::NONE,
        }));
        let end = Offset(log.len() as i64);
        drop(log);
        if !*self.held.lock() {
            self.tell(end);
        }
        Ok(end)
    }

    fn read(&self, _: i32, from: Option<Offset>) -> Result<LogChunk, ErrorCode> {
        let log = self.records.lock();
        let start = from.map_or(0, |o| o.0 as usize);
        Ok(LogChunk {
            entries: log[start..].to_vec(),
            next_offset: Offset(log.len() as i64),
        })
    }

    fn high_watermark(&self, _: i32) -> Offset {
        Offset(self.records.lock().len() as i64)
    }
}

/// Answers as told, else NONE; keeps what was written.
#[derive(Default)]
struct Targets {
    answers: Mutex<BTreeMap<TopicPartition, Vec<ErrorCode>>>,
    written: Mutex<Vec<(TopicPartition, TransactionResult, i16)>>,
}

impl MarkerTargets for Targets {
    fn write<'a>(
        &'a self,
        markers: &'a TxnMarkers,
        partitions: &'a BTreeSet<TopicPartition>,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        Box::pin(async move {
            let answer = |partition: &TopicPartition| {
                let mut answers = self.answers.lock();
                let answer = answers.get_mut(partition).and_then(Vec::pop);
                let answer = answer.unwrap_or(ErrorCode::None);
                if answer == ErrorCode::None {
                    let epoch = markers.producer.producer_epoch.0;
                    let entry = (partition.clone(), markers.result, epoch);
                    self.written.lock().push(entry);
                }
                (partition.clone(), answer)
            };
            partitions.iter().map(answer).collect()
        })
    }
}

/// The real clock, put forward.
struct Ahead {
    real: SystemClock,
    ahead_ms: AtomicI64,
}

impl Clock for Ahead {
    fn now_ms(&self) -> TimestampMs {
        let ahead_ms = self.ahead_ms.load(Ordering::SeqCst);
        TimestampMs(self.real.now_ms().0 + ahead_ms)
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic() + Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst) as u64)
    }
}

#[derive(Default)]
struct Counted(AtomicI64);

impl ProducerIdSource for Counted {
    fn draw(&self) -> Result<ProducerId, ErrorCode> {
        Ok(ProducerId(self.0.fetch_add(1, Ordering::SeqCst)))
    }
}

struct Fixture {
    log: Arc<MemoryLog>,
    targets: Arc<Targets>,
    clock: Arc<Ahead>,
    coordinator: Arc<TransactionCoordinator<MemoryLog>>,
}

type Coordinator = Arc<TransactionCoordinator<MemoryLog>>;

async fn start(log: &Arc<MemoryLog>, targets: &Arc<Targets>, clock: &Arc<Ahead>) -> Coordinator {
    let settings = TransactionSettings {
        commit_timeout: Duration::from_secs(5),
        partition_count: 1,
        config: Box::new(|| TransactionConfig {
            transaction_max_timeout_ms: 900_000,
            transactional_id_expiration_ms: 604_800_000,
            transaction_version: TransactionVersion::V2,
        }),
    };
    let ids = Arc::new(Counted::default());
    let coordinator =
        TransactionCoordinator::new(log.clone(), clock.clone(), ids, targets.clone(), settings);
    *log.coordinator.lock() = Some(coordinator.clone());
    coordinator.elect(0, LeaderEpoch(3));
    loaded(&coordinator).await;
    coordinator
}

async fn loaded(coordinator: &Coordinator) {
    while coordinator.list(ListTransactions::default()).await.is_err() {
        tokio::task::yield_now().await;
    }
}

impl Fixture {
    async fn new() -> Self {
        let log = Arc::new(MemoryLog::default());
        let targets = Arc::new(Targets::default());
        let clock = Arc::new(Ahead {
            real: SystemClock::new(),
            ahead_ms: AtomicI64::new(0),
        });
        let coordinator = start(&log, &targets, &clock).await;
        Fixture {
            log,
            targets,
            clock,
            coordinator,
        }
    }

    async fn init(&self) -> ProducerIdAndEpoch {
        let command = InitProducerId {
            transactional_id: "t".into(),
            transaction_timeout_ms: 60_000,
            expected: None,
        };
        self.coordinator.init_producer_id(command).await.unwrap()
    }

    async fn add(&self, producer: ProducerIdAndEpoch, names: &[&str]) {
        let command = AddPartitions {
            transactional_id: "t".into(),
            producer,
            partitions: partitions(names),
            client_transaction_version: TransactionVersion::V2,
        };
        self.coordinator.add_partitions(command).await.unwrap();
    }

    async fn state(&self) -> TransactionState {
        self.coordinator.describe("t".into()).await.unwrap().state
    }

    async fn until(&self, state: TransactionState) {
        while self.state().await != state {
            tokio::task::yield_now().await;
        }
    }
}

fn end(producer: ProducerIdAndEpoch, result: TransactionResult) -> EndTxn {
    EndTxn {
        transactional_id: "t".into(),
        producer,
        result,
        client_transaction_version: TransactionVersion::V2,
    }
}

fn partitions(names: &[&str]) -> BTreeSet<TopicPartition> {
    let partition = |name: &&str| TopicPartition {
        topic: (*name).into(),
        partition: 0,
    };
    names.iter().map(partition).collect()
}

/// The result of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

use TransactionResult::{Abort, Commit};

#[tokio::test]
async fn a_transaction_is_complete_when_its_end_is_answered() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a", "b"]).await;
    assert_eq!(fixture.state().await, TransactionState::Ongoing);
    let ended = now(fixture.coordinator.end_txn(end(producer, Commit)));
    let next = ended.expect("nothing to wait for").unwrap();
    assert_eq!(next.producer_epoch, ProducerEpoch(1));
    assert_eq!(fixture.state().await, TransactionState::CompleteCommit);
    let written = fixture.targets.written.lock().clone();
    let at = |name| partitions(&[name]).pop_first().unwrap();
    assert_eq!(written, [(at("a"), Commit, 1), (at("b"), Commit, 1)]);
}

#[tokio::test]
async fn no_marker_before_the_decision_is_committed() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a"]).await;
    fixture.log.hold();
    let coordinator = fixture.coordinator.clone();
    {
        // The client goes away while it waits.
        let ending = coordinator.end_txn(end(producer, Abort));
        assert!(now(ending).is_none());
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(fixture.targets.written.lock().is_empty());
    fixture.log.release();
    fixture.until(TransactionState::CompleteAbort).await;
    assert_eq!(fixture.targets.written.lock().len(), 1);
}

#[tokio::test]
async fn markers_are_tried_again_where_they_are_missing() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a", "b"]).await;
    let errors = vec![ErrorCode::NotEnoughReplicas, ErrorCode::NotLeaderOrFollower];
    let at = |name| partitions(&[name]).pop_first().unwrap();
    fixture.targets.answers.lock().insert(at("a"), errors);
    let ended = fixture.coordinator.end_txn(end(producer, Commit)).await;
    assert!(ended.is_ok());
    let described = fixture.coordinator.describe("t".into()).await.unwrap();
    assert_eq!(described.state, TransactionState::PrepareCommit);
    assert_eq!(described.partitions, partitions(&["a"]));
    fixture.until(TransactionState::CompleteCommit).await;
    let written = fixture.targets.written.lock().clone();
    assert_eq!(written, [(at("b"), Commit, 1), (at("a"), Commit, 1)]);
}

#[tokio::test]
async fn what_was_prepared_before_a_reload_is_completed_after_it() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a"]).await;
    let at = partitions(&["a"]).pop_first().unwrap();
    let fenced = vec![ErrorCode::TransactionCoordinatorFenced];
    fixture.targets.answers.lock().insert(at.clone(), fenced);
    let next = fixture.coordinator.end_txn(end(producer, Commit)).await;
    assert_eq!(fixture.state().await, TransactionState::PrepareCommit);
    let again = start(&fixture.log, &fixture.targets, &fixture.clock).await;
    while again.describe("t".into()).await.unwrap().state != TransactionState::CompleteCommit {
        tokio::task::yield_now().await;
    }
    assert_eq!(*fixture.targets.written.lock(), [(at, Commit, 1)]);
    let repeat = again.end_txn(end(producer, Commit)).await;
    assert_eq!(repeat, next);
}

#[tokio::test]
async fn a_failed_append_loses_the_decision_and_nothing_else() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a"]).await;
    *fixture.log.refuses.lock() = Some(ErrorCode::KafkaStorageError);
    let ended = fixture.coordinator.end_txn(end(producer, Commit)).await;
    assert_eq!(ended, Err(ErrorCode::NotCoordinator));
    loaded(&fixture.coordinator).await;
    assert_eq!(fixture.state().await, TransactionState::Ongoing);
    assert!(fixture.targets.written.lock().is_empty());
    let ended = fixture.coordinator.end_txn(end(producer, Abort)).await;
    assert!(ended.is_ok());
    assert_eq!(fixture.state().await, TransactionState::CompleteAbort);
}

#[tokio::test]
async fn an_open_transaction_is_aborted_when_its_time_is_up() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    fixture.add(producer, &["a"]).await;
    fixture.clock.ahead_ms.store(60_001, Ordering::SeqCst);
    // Any event makes the timer look at the clock.
    let verify = VerifyPartitions {
        transactional_id: "t".into(),
        producer,
        partitions: partitions(&["a", "b"]),
    };
    let verified = fixture.coordinator.verify(verify).await;
    let codes: Vec<ErrorCode> = verified.into_values().collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::TransactionAbortable]);
    fixture.until(TransactionState::CompleteAbort).await;
    let written = fixture.targets.written.lock().clone();
    let at = partitions(&["a"]).pop_first().unwrap();
    assert_eq!(written, [(at, Abort, 1)]);
}

#[tokio::test]
async fn an_abort_of_nothing_completes_at_once() {
    let fixture = Fixture::new().await;
    let producer = fixture.init().await;
    let ended = now(fixture.coordinator.end_txn(end(producer, Abort)));
    let next = ended.expect("nothing to wait for").unwrap();
    assert_eq!(next.producer_epoch, ProducerEpoch(1));
    assert_eq!(fixture.state().await, TransactionState::CompleteAbort);
}

#[test]
fn answers_to_markers_are_judged() {
    let at = |name| partitions(&[name]).pop_first().unwrap();
    let answers = [
        ("a", ErrorCode::None),
        ("b", ErrorCode::UnsupportedForMessageFormat),
        ("c", ErrorCode::KafkaStorageError),
    ];
    let round = judge(answers.into_iter().map(|(n, e)| (at(n), e)).collect());
    assert_eq!(round.written, partitions(&["a", "b"]));
    assert_eq!(round.left, partitions(&["c"]));
    assert_eq!(round.fenced, None);
    let fenced = (at("d"), ErrorCode::InvalidProducerEpoch);
    assert_eq!(judge([fenced.clone()].into()).fenced, Some(fenced));
}
