//! The coordinator runtime: drives one pure machine per partition of an internal topic.
//!
//! ```text
//!   submit -> [lock: handle (decides, applies) -> append -> queue replies] -> committed -> reply
//!
//!   elect: Loading --(log read to its end)--> Active --(append fails)--> Loading
//!   resign: gone; everything that waits is answered NOT_COORDINATOR
//! ```
//!
//! 1. One event at a time per partition, on the task that brings it: a hop to another thread costs
//!    more than the work.
//! 2. The machine applies what it decides at once, before it is committed, as Kafka's runtime does.
//!    So the next command of the same group sees it and neither waits for the other's replication
//!    or fsync. What is not committed is never shown: every reply, also of a command that appended
//!    nothing, waits until all records appended before it are committed.
//! 3. Records are in the log in the order in which they were applied: append happens under the
//!    partition's lock.
//! 4. There is no undo: when an append fails, the machine holds what the log does not. It is
//!    dropped, its parked requests are answered, and it is loaded again.
//! 5. A request is answered exactly once: its sender is in `parked`, in `waiting`, or used.
//! 6. Nothing is polled. A partition without deadlines and requests costs its memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use super::runtime_timer::Timer;
use super::runtime_waiting::{Sender, WaitingReplies};
use crate::host::{Clock, tasks};
use crate::types::{ErrorCode, LeaderEpoch, Offset};

pub use super::runtime_log::{
    CoordinatorLog, EndTransaction, LogBatch, LogChunk, LogEntry, LogRecord, Machine, Moment, Step,
};

/// The reply to come.
pub type Pending<R> = oneshot::Receiver<Result<R, ErrorCode>>;

enum State<M> {
    Loading,
    Active(Box<M>),
    /// It could not be loaded; the next election tries again.
    Failed,
    Resigned,
}

/// How many coordinators of this broker are in which state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Coordinators {
    pub active: usize,
    pub loading: usize,
    pub failed: usize,
}

struct Partition<M: Machine> {
    index: i32,
    leader_epoch: LeaderEpoch,
    inner: Mutex<Inner<M>>,
    waiting: WaitingReplies<M::Reply>,
}

struct Inner<M: Machine> {
    state: State<M>,
    /// Requests that the machine has not answered yet.
    parked: HashMap<u64, Sender<M::Reply>>,
    /// The offset after everything this coordinator has read or appended.
    end_offset: Offset,
}

/// Drives the machines of one internal topic.
pub struct Runtime<M: Machine, L> {
    log: Arc<L>,
    clock: Arc<dyn Clock>,
    /// Makes the machine of a partition, empty.
    make: Box<dyn Fn(i32, LeaderEpoch) -> M + Send + Sync>,
    partitions: RwLock<BTreeMap<i32, Arc<Partition<M>>>>,
    timer: Arc<Timer>,
    next_token: AtomicU64,
    commit_timeout: Duration,
}

impl<M: Machine, L: CoordinatorLog> Runtime<M, L> {
    /// `commit_timeout`: how long a reply waits for its records (`offsets.commit.timeout.ms`).
    pub fn new(
        log: Arc<L>,
        clock: Arc<dyn Clock>,
        commit_timeout: Duration,
        make: impl Fn(i32, LeaderEpoch) -> M + Send + Sync + 'static,
    ) -> Arc<Self> {
        let runtime = Arc::new(Runtime {
            log,
            clock,
            make: Box::new(make),
            partitions: RwLock::default(),
            timer: Arc::default(),
            next_token: AtomicU64::new(1),
            commit_timeout,
        });
        drop(tasks::spawn(run_timer(
            runtime.timer.clone(),
            runtime.clock.clone(),
            Arc::downgrade(&runtime),
        )));
        runtime
    }

    /// This broker leads the partition: loads its coordinator. An older epoch is ignored.
    pub fn elect(self: &Arc<Self>, partition: i32, leader_epoch: LeaderEpoch) {
        let slot = Arc::new(Partition {
            index: partition,
            leader_epoch,
            inner: Mutex::new(Inner {
                state: State::Loading,
                parked: HashMap::new(),
                end_offset: Offset::ZERO,
            }),
            waiting: WaitingReplies::new(),
        });
        {
            let mut partitions = self.partitions.write();
            if let Some(old) = partitions.get(&partition) {
                if old.leader_epoch >= leader_epoch {
                    return;
                }
                old.resign();
            }
            partitions.insert(partition, slot.clone());
        }
        self.start_loading(slot);
    }

    /// This broker does not lead the partition any more.
    pub fn resign(&self, partition: i32) {
        if let Some(slot) = self.partitions.write().remove(&partition) {
            slot.resign();
        }
    }

    /// Everything before `high_watermark` is committed. Takes no lock that an append is under.
    pub fn on_high_watermark(&self, partition: i32, high_watermark: Offset) {
        if let Some(slot) = self.find(partition) {
            slot.waiting.on_high_watermark(high_watermark);
        }
    }

    /// Hands a command to a partition's machine. By the time this returns the command has its place
    /// in the order of things.
    pub fn submit(self: &Arc<Self>, partition: i32, command: M::Command) -> Pending<M::Reply> {
        let (sender, receiver) = oneshot::channel();
        let Some(slot) = self.find(partition) else {
            let _ = sender.send(Err(ErrorCode::NotCoordinator));
            return receiver;
        };
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let may_append = M::may_append(&command);
        self.run(&slot, Some((token, sender, may_append)), |machine, now| {
            machine.handle(now, token, command)
        });
        receiver
    }

    /// `submit`, and waits for the reply.
    pub async fn call(
        self: &Arc<Self>,
        partition: i32,
        command: M::Command,
    ) -> Result<M::Reply, ErrorCode> {
        let pending = self.submit(partition, command);
        pending.await.unwrap_or(Err(ErrorCode::NotCoordinator))
    }

    /// The partitions whose coordinators are here and loaded.
    pub fn active_partitions(&self) -> Vec<i32> {
        let partitions = self.partitions.read();
        let active = partitions.values().filter(|slot| {
            let inner = slot.inner.lock();
            matches!(inner.state, State::Active(_))
        });
        active.map(|slot| slot.index).collect()
    }

    /// The partitions whose coordinators are here, loaded or not.
    pub fn led_partitions(&self) -> Vec<i32> {
        self.partitions.read().keys().copied().collect()
    }

    /// Shows `look` the machine of every partition that is loaded, each under its lock.
    pub fn survey(&self, mut look: impl FnMut(&M)) -> Coordinators {
        let slots: Vec<_> = self.partitions.read().values().cloned().collect();
        let mut seen = Coordinators::default();
        for slot in slots {
            match &slot.inner.lock().state {
                State::Active(machine) => {
                    seen.active += 1;
                    look(machine);
                }
                State::Loading => seen.loading += 1,
                State::Failed => seen.failed += 1,
                State::Resigned => {}
            }
        }
        seen
    }

    fn find(&self, partition: i32) -> Option<Arc<Partition<M>>> {
        self.partitions.read().get(&partition).cloned()
    }

    fn now(&self) -> Moment {
        Moment {
            wall: self.clock.now_ms(),
            monotonic: self.clock.monotonic(),
        }
    }

    /// One event of a partition: the machine's step, its appends, its replies.
    fn run(
        self: &Arc<Self>,
        slot: &Arc<Partition<M>>,
        request: Option<(u64, Sender<M::Reply>, bool)>,
        event: impl FnOnce(&mut M, Moment) -> Step<M::Reply>,
    ) {
        let now = self.now();
        let mut guard = slot.inner.lock();
        let inner = &mut *guard;
        let refused = match &inner.state {
            State::Loading => Some(ErrorCode::CoordinatorLoadInProgress),
            State::Failed | State::Resigned => Some(ErrorCode::NotCoordinator),
            State::Active(_) => match &request {
                Some((_, _, true)) => self.log.may_append(slot.index).err(),
                _ => None,
            },
        };
        if let Some((token, sender, _)) = request {
            match refused {
                Some(error) => {
                    let _ = sender.send(Err(error));
                }
                None => {
                    inner.parked.insert(token, sender);
                }
            }
        }
        let State::Active(machine) = &mut inner.state else {
            return;
        };
        if refused.is_some() {
            return;
        }
        let step = event(machine, now);
        match self.append_all(slot, step.batches, &mut inner.end_offset) {
            Ok(()) => {
                let replies = step.replies.into_iter();
                let replies = replies
                    .filter_map(|(token, reply)| Some((inner.parked.remove(&token)?, reply)));
                let deadline = now.monotonic + self.commit_timeout;
                slot.waiting.push(inner.end_offset, deadline, replies);
                let machine_deadline = machine.deadline();
                let commit_deadline = slot.waiting.deadline();
                drop(guard);
                self.timer.wake_by(slot.index, machine_deadline);
                self.timer.wake_by(slot.index, commit_deadline);
            }
            Err(error) => {
                inner.state = State::Loading;
                let answered = step.replies.iter().map(|(token, _)| *token);
                for sender in answered.filter_map(|token| inner.parked.remove(&token)) {
                    let _ = sender.send(Err(error));
                }
                inner.fail_parked(ErrorCode::CoordinatorLoadInProgress);
                drop(guard);
                tracing::warn!(partition = slot.index, %error, "an append failed: loading again");
                self.start_loading(slot.clone());
            }
        }
    }

    fn append_all(
        &self,
        slot: &Partition<M>,
        batches: Vec<LogBatch>,
        end_offset: &mut Offset,
    ) -> Result<(), ErrorCode> {
        for batch in batches {
            let end = self.log.append(slot.index, slot.leader_epoch, batch)?;
            assert!(end > *end_offset, "an append went backwards in the log");
            *end_offset = end;
        }
        Ok(())
    }

    fn start_loading(self: &Arc<Self>, slot: Arc<Partition<M>>) {
        let runtime = self.clone();
        drop(tasks::spawn_blocking(move || runtime.load(&slot)));
    }

    /// Reads the partition to its end and starts the machine. Runs where it may block.
    fn load(self: &Arc<Self>, slot: &Arc<Partition<M>>) {
        let loaded = self.load_machine(slot);
        let mut inner = slot.inner.lock();
        if !matches!(inner.state, State::Loading) {
            return;
        }
        match loaded {
            Ok((machine, end_offset)) => {
                inner.state = State::Active(Box::new(machine));
                inner.end_offset = end_offset;
                drop(inner);
                slot.waiting
                    .on_high_watermark(self.log.high_watermark(slot.index));
                self.run(slot, None, |machine, now| machine.on_loaded(now));
            }
            Err(error) => {
                inner.state = State::Failed;
                tracing::error!(partition = slot.index, %error, "a coordinator was not loaded");
            }
        }
    }

    fn load_machine(&self, slot: &Partition<M>) -> Result<(M, Offset), LoadFailed> {
        let mut machine = (self.make)(slot.index, slot.leader_epoch);
        let mut from = None;
        loop {
            let chunk = self.log.read(slot.index, from).map_err(LoadFailed::Read)?;
            for entry in &chunk.entries {
                machine
                    .load(entry)
                    .map_err(|error| LoadFailed::Record(error.to_string()))?;
            }
            let stopped = slot.is_resigned();
            if from == Some(chunk.next_offset) || stopped {
                return Ok((machine, chunk.next_offset));
            }
            from = Some(chunk.next_offset);
        }
    }

    /// Does what is due in every partition.
    fn expire(self: &Arc<Self>) {
        let now = self.clock.monotonic();
        for partition in self.timer.take_due(now) {
            if let Some(slot) = self.find(partition) {
                slot.waiting.expire(now);
                self.run(&slot, None, |machine, now| machine.expire(now));
            }
        }
    }
}

impl<M: Machine, L> Drop for Runtime<M, L> {
    fn drop(&mut self) {
        self.timer.wake();
    }
}

/// Sleeps until the earliest deadline, again and again, for as long as the runtime lives.
async fn run_timer<M: Machine, L: CoordinatorLog>(
    timer: Arc<Timer>,
    clock: Arc<dyn Clock>,
    runtime: Weak<Runtime<M, L>>,
) {
    loop {
        let now = clock.monotonic();
        match timer.next() {
            Some(at) if at <= now => {}
            Some(at) => {
                // Rounded up to the timer's millisecond, so that it is due when the wait is over.
                let wait = tokio::time::sleep(at - now + Duration::from_millis(1));
                tokio::select! {
                    () = wait => {}
                    () = timer.woken() => {}
                }
            }
            None => timer.woken().await,
        }
        match runtime.upgrade() {
            Some(runtime) => runtime.expire(),
            None => return,
        }
    }
}

/// Why a coordinator could not be loaded.
#[derive(Debug, thiserror::Error)]
enum LoadFailed {
    #[error("the log could not be read: {0}")]
    Read(ErrorCode),
    #[error("a record could not be read: {0}")]
    Record(String),
}

impl<M: Machine> Inner<M> {
    fn fail_parked(&mut self, error: ErrorCode) {
        for (_, sender) in self.parked.drain() {
            let _ = sender.send(Err(error));
        }
    }
}

impl<M: Machine> Partition<M> {
    fn resign(&self) {
        let mut inner = self.inner.lock();
        inner.state = State::Resigned;
        inner.fail_parked(ErrorCode::NotCoordinator);
        drop(inner);
        self.waiting.fail_all(ErrorCode::NotCoordinator);
    }

    fn is_resigned(&self) -> bool {
        matches!(self.inner.lock().state, State::Resigned)
    }
}
