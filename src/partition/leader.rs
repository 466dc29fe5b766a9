//! A replica of a partition on this broker: what leader and follower have in common, and the
//! leader's appends and reads. `replication` has the leader's dealings with followers, `follower`
//! the other side.
//!
//! 1. log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, on a leader.
//! 2. The high watermark never goes back while this broker leads. What lies below it is on every
//!    in-sync replica (`machine::replica_set`); alone, that is this broker's own log.
//! 3. Whoever waits is woken after the high watermark has moved, never before.
//! 4. `role` says what this broker is for the partition. A follower's changes of the log are made
//!    under its lock; a leader's appends are not, but the log itself refuses those of a leader
//!    epoch that is over (`Log::fence`), which is called under the lock before the role changes. So
//!    no append, truncation or copy of one role gets into the time of another.
//! 5. A partition that has no other replicas takes no lock on an append but the log's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::effective::PartitionConfig;
use super::flush_ms::FlushDeadline;
use super::observer::PartitionObserver;
use super::surroundings::{Leadership, Surroundings};
use super::traffic::TopicTraffic;
use super::waiters::{Waiter, Waiters};
use crate::config::TopicConfig;
use crate::log::{
    AppendContext, AppendError, Appended, Log, LogDir, LogError, LogSlice, MoveError, Origin,
    ReadError,
};
use crate::machine::replica_set::{Decided, ReplicaSet};
use crate::record::Batch;
use crate::types::{ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicId, TopicPartition};

/// What this broker is for a partition.
pub(super) enum Role {
    /// The metadata has not said yet, or has taken the partition away.
    None,
    Leader(Box<ReplicaSet>),
    Follower {
        leader_epoch: LeaderEpoch,
    },
}

/// How long a move waits for its moment, before it copies on.
const ROLE_WAIT: Duration = Duration::from_millis(10);

/// "Does not lead", in place of the epoch since when it does.
const LEADS_NOT: i32 = i32::MAX;

/// The offsets that bound what may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    pub log_start_offset: Offset,
    pub last_stable_offset: Offset,
    pub high_watermark: Offset,
    pub log_end_offset: Offset,
}

/// A replica on this broker.
pub struct Partition {
    pub topic_partition: TopicPartition,
    pub topic_id: TopicId,
    log: ArcSwap<Log>,
    log_dir: ArcSwap<LogDir>,
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) topic_config: ArcSwap<TopicConfig>,
    pub(super) leadership: ArcSwap<Leadership>,
    pub(super) role: Mutex<Role>,
    /// The first of the leader epochs that this broker has led without a break.
    leads_since: AtomicI32,
    pub(super) high_watermark: AtomicI64,
    pub(super) flush_deadline: FlushDeadline,
    /// Those who wait for the watermarks.
    waiters: Waiters,
    /// Followers that wait for the log's end, or for the high watermark.
    follower_waiters: Waiters,
    observer: Option<Arc<dyn PartitionObserver>>,
    /// Shared by the partitions of its topic.
    pub topic_traffic: Arc<TopicTraffic>,
}

/// What a partition is made of.
pub struct NewPartition {
    pub topic_id: TopicId,
    pub log: Arc<Log>,
    pub log_dir: Arc<LogDir>,
    pub surroundings: Arc<Surroundings>,
    pub topic_config: Arc<TopicConfig>,
    /// From the checkpoint of the last run.
    pub high_watermark: Option<Offset>,
    pub observer: Option<Arc<dyn PartitionObserver>>,
    pub topic_traffic: Arc<TopicTraffic>,
}

impl Partition {
    /// It does nothing before [`Partition::follow_metadata`].
    pub fn new(new: NewPartition) -> Arc<Partition> {
        let log = new.log;
        let start = log.log_start_offset();
        let high_watermark = new.high_watermark.unwrap_or(start).max(start);
        Arc::new(Partition {
            topic_partition: log.topic_partition().clone(),
            topic_id: new.topic_id,
            log_dir: ArcSwap::new(new.log_dir),
            surroundings: new.surroundings,
            topic_config: ArcSwap::new(new.topic_config),
            high_watermark: AtomicI64::new(high_watermark.min(log.log_end_offset()).0),
            log: ArcSwap::new(log),
            flush_deadline: FlushDeadline::default(),
            leadership: ArcSwap::from_pointee(Leadership::unknown()),
            role: Mutex::new(Role::None),
            leads_since: AtomicI32::new(LEADS_NOT),
            waiters: Waiters::default(),
            follower_waiters: Waiters::default(),
            observer: new.observer,
            topic_traffic: new.topic_traffic,
        })
    }

    /// The log as it is now. Another may take its place at any time, when the replica is moved to
    /// another directory: then this one can be read for a while, but is closed.
    pub fn log(&self) -> Guard<Arc<Log>> {
        self.log.load()
    }

    pub fn log_dir(&self) -> Arc<LogDir> {
        self.log_dir.load_full()
    }

    /// Runs `work` on the log; if it fails because another has taken its place, on that one.
    pub fn on_log<T, E>(&self, mut work: impl FnMut(&Log) -> Result<T, E>) -> Result<T, E> {
        loop {
            let log = self.log.load();
            let done = work(&log);
            if done.is_ok() || Arc::ptr_eq(&log, &self.log.load()) {
                return done;
            }
        }
    }

    /// Puts `future`, a log in `log_dir`, in the place of the log. `false`: not yet.
    pub(super) fn move_to(
        &self,
        future: &Arc<Log>,
        log_dir: &Arc<LogDir>,
        now: TimestampMs,
    ) -> Result<bool, MoveError> {
        let current = self.log.load_full();
        let Some(replacing) = future.replacing(&current) else {
            return Ok(false);
        };
        // Who has the role uses one log all the while, and may want to cut it.
        let Some(_role) = self.role.try_lock_for(ROLE_WAIT) else {
            return Ok(false);
        };
        replacing.finish(now, || {
            self.log.store(future.clone());
            self.log_dir.store(log_dir.clone());
        })
    }

    pub fn topic_config(&self) -> Arc<TopicConfig> {
        self.topic_config.load_full()
    }

    pub fn configure(&self, config: PartitionConfig) {
        self.topic_config.store(config.topic);
        loop {
            let log = self.log.load();
            log.update_config(config.log.clone());
            if Arc::ptr_eq(&log, &self.log.load()) {
                break;
            }
        }
        self.note_flush_ms();
    }

    /// Takes over what the metadata says of the partition's leader. What is older than what is
    /// known (the controller has answered an ISR change sooner) changes nothing.
    pub fn follow_metadata(&self, leadership: Leadership) {
        let epoch = leadership.leader_epoch;
        let leads = leadership.leader == self.surroundings.this_broker;
        {
            let mut role = self.role.lock();
            let known = self.leadership.load();
            let newest = (known.leader_epoch, known.partition_epoch);
            if (epoch, leadership.partition_epoch) < newest {
                return;
            }
            match leads {
                true => self.become_leader(&mut role, &leadership),
                false => {
                    self.log().fence(epoch);
                    self.leads_since.store(LEADS_NOT, Ordering::SeqCst);
                    *role = Role::Follower {
                        leader_epoch: epoch,
                    };
                }
            }
            self.leadership.store(Arc::new(leadership));
        }
        if leads {
            self.advance_high_watermark(self.log().log_end_offset());
        }
        match &self.observer {
            Some(observer) if leads => observer.on_leader(self.topic_partition.partition, epoch),
            Some(observer) => observer.on_not_leader(self.topic_partition.partition),
            None => {}
        }
        self.wake_all();
    }

    fn become_leader(&self, role: &mut Role, leadership: &Leadership) {
        let now = self.surroundings.clock.monotonic();
        let decided = Decided {
            leader_epoch: leadership.leader_epoch,
            partition_epoch: leadership.partition_epoch,
            replicas: leadership.replicas.clone(),
            isr: leadership.isr.clone(),
        };
        if let Role::Leader(set) = role {
            if set.leader_epoch() == decided.leader_epoch {
                let before = set.decided().isr.len();
                if set.settle(decided, now) {
                    let after = set.decided().isr.len();
                    self.surroundings.traffic.isr_changed(before, after);
                }
                return;
            }
        } else {
            self.leads_since
                .store(decided.leader_epoch.0, Ordering::SeqCst);
        }
        let this_broker = self.surroundings.this_broker;
        let end = self.log().assign_epoch_at_end(decided.leader_epoch);
        let high_watermark = self.high_watermark().min(end);
        let set = ReplicaSet::lead(this_broker, decided, end, high_watermark, now);
        *role = Role::Leader(Box::new(set));
    }

    /// The metadata says that this broker has no replica of it any more, or that it is deleted:
    /// who waits is told to look elsewhere.
    pub fn close(&self) {
        {
            let mut role = self.role.lock();
            self.log().fence(LeaderEpoch(i32::MAX));
            self.leads_since.store(LEADS_NOT, Ordering::SeqCst);
            *role = Role::None;
            self.leadership.store(Arc::new(Leadership::unknown()));
        }
        if let Some(observer) = &self.observer {
            observer.on_not_leader(self.topic_partition.partition);
        }
        self.wake_all();
    }

    pub fn leadership(&self) -> Arc<Leadership> {
        self.leadership.load_full()
    }

    /// Whether this broker may answer a client that knows `current_leader_epoch` (-1: none) and
    /// wants the leader.
    pub fn check_leader(&self, current_leader_epoch: i32) -> Result<(), ErrorCode> {
        let leadership = self.leadership.load();
        if leadership.leader != self.surroundings.this_broker {
            return Err(self.not_here());
        }
        check_epoch(current_leader_epoch, leadership.leader_epoch)
    }

    /// Why this broker does not serve it: it does not lead, or its directory has failed.
    fn not_here(&self) -> ErrorCode {
        match self.log_dir.load().offline_reason() {
            None => ErrorCode::NotLeaderOrFollower,
            Some(_) => ErrorCode::KafkaStorageError,
        }
    }

    /// The same for a client that may read from a follower as well (KIP-392).
    pub fn check_replica(&self, current_leader_epoch: i32) -> Result<(), ErrorCode> {
        let leadership = self.leadership.load();
        if leadership.leader_epoch == LeaderEpoch::NONE {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        check_epoch(current_leader_epoch, leadership.leader_epoch)
    }

    pub fn is_leader(&self) -> bool {
        self.leadership.load().leader == self.surroundings.this_broker
    }

    /// Whether acks=all may be promised: `min.insync.replicas` replicas are in sync. A topic that
    /// has fewer needs all of them, because eligible leader replicas are on (KIP-966).
    pub fn has_enough_replicas(&self) -> bool {
        let leadership = self.leadership.load();
        let wanted = self.topic_config.load().min_insync_replicas.max(1) as usize;
        leadership.isr.len() >= wanted.min(leadership.replicas.len())
    }

    /// How many replicas acks=all needs.
    pub(super) fn min_insync_replicas(&self) -> usize {
        self.topic_config.load().min_insync_replicas.max(1) as usize
    }

    /// Appends one checked batch and wakes those who wait for it, after the flush that the topic
    /// may ask for.
    pub fn append(
        &self,
        batch: Batch,
        origin: Origin,
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        let (appended, needs_flush) = self.append_unflushed(batch, origin, now)?;
        if needs_flush {
            self.on_log(Log::flush)?;
            self.flushed();
        }
        Ok(appended)
    }

    /// As [`Partition::append`], but a flush that the topic asks for (true) is left to the caller,
    /// and with it the waking of those who wait ([`Partition::flush`]).
    pub fn append_unflushed(
        &self,
        mut batch: Batch,
        origin: Origin,
        now: TimestampMs,
    ) -> Result<(Appended, bool), AppendError> {
        let leader_epoch = {
            let leadership = self.leadership.load();
            if leadership.leader != self.surroundings.this_broker {
                return Err(AppendError::Fenced {
                    leader_epoch: LeaderEpoch::NONE,
                    current: leadership.leader_epoch,
                });
            }
            leadership.leader_epoch
        };
        let context = AppendContext {
            leader_epoch,
            origin,
            now,
        };
        let appended = self.on_log(|log| log.append_as_leader(&mut batch, &context))?;
        if !appended.is_duplicate {
            let traffic = &self.surroundings.traffic;
            traffic.appended(&self.topic_traffic, &batch);
        }
        self.note_rolled(&appended);
        let needs_flush = self.needs_flush(&appended);
        if !needs_flush {
            self.note_unflushed();
            self.advance_high_watermark(appended.last_offset.next());
        }
        Ok((appended, needs_flush))
    }

    pub(super) fn note_rolled(&self, appended: &Appended) {
        if appended.rolled {
            // Nobody listens any more when the node stops, which flushes everything.
            let _ = self.surroundings.rolled.send(self.log.load_full());
        }
    }

    /// Whether the topic wants what was appended on disk before it is acknowledged. A duplicate may
    /// have come while the flush of the original goes on.
    pub(super) fn needs_flush(&self, appended: &Appended) -> bool {
        let flush_messages = self.topic_config.load().flush_messages;
        let is_dirty_duplicate =
            || flush_messages < i64::MAX && self.log().recovery_point() <= appended.last_offset;
        appended.unflushed_records >= flush_messages
            || (appended.is_duplicate && is_dirty_duplicate())
    }

    /// Flushes, together with what others wait for at the same time, and wakes those who wait for
    /// what was appended.
    /// Asked for when it is called, and not when it is awaited first.
    pub fn flush(self: Arc<Self>) -> impl Future<Output = Result<(), Arc<LogError>>> + Send {
        let flusher = self.surroundings.flusher.clone();
        flusher.flush(self)
    }

    /// Of a leader: what the disk has may be replicated.
    pub(super) fn flushed(&self) {
        if self.is_leader() {
            self.advance_high_watermark(self.log().recovery_point());
        }
    }

    /// The log has reached `end`. Without other replicas that is the high watermark, and the
    /// replica set, should there be others one day, is told then (`raise_high_watermark`).
    fn advance_high_watermark(&self, end: Offset) {
        if self.leadership.load().replicas.len() > 1 {
            self.advance_with_followers();
            self.follower_waiters.wake_all();
            return;
        }
        let before = self.high_watermark.fetch_max(end.0, Ordering::SeqCst);
        if before < end.0 {
            self.tell_high_watermark();
        }
    }

    /// The high watermark was moved. What is told is what it is now: a word that comes late, after
    /// this broker was a follower for a while, must not speak of records that were cut since.
    pub(super) fn tell_high_watermark(&self) {
        if let Some(observer) = &self.observer {
            let partition = self.topic_partition.partition;
            observer.on_high_watermark(partition, self.high_watermark());
        }
        self.wake_all();
    }

    fn wake_all(&self) {
        self.waiters.wake_all();
        self.follower_waiters.wake_all();
    }

    /// What to answer a producer with acks=all whose records end at `end` and were appended in
    /// `leader_epoch`; `None` while it has to wait.
    ///
    /// The watermark is looked at first: if this broker still leads without a break after that, it
    /// led then, and what lay below were those records.
    pub fn replicated(
        &self,
        leader_epoch: LeaderEpoch,
        end: Offset,
    ) -> Option<Result<(), ErrorCode>> {
        let is_committed = self.high_watermark() >= end;
        if leader_epoch.0 < self.leads_since.load(Ordering::SeqCst) {
            return Some(Err(ErrorCode::NotLeaderOrFollower));
        }
        is_committed.then(|| match self.has_enough_replicas() {
            true => Ok(()),
            false if self.is_maximal_isr_enough() => Ok(()),
            false => Err(ErrorCode::NotEnoughReplicasAfterAppend),
        })
    }

    pub fn high_watermark(&self) -> Offset {
        Offset(self.high_watermark.load(Ordering::SeqCst))
    }

    pub fn watermarks(&self) -> Watermarks {
        // The end is read last: it only grows, so the order of invariant 1 holds.
        let high_watermark = self.high_watermark();
        let log = self.log.load();
        let log_start_offset = log.log_start_offset();
        Watermarks {
            log_start_offset,
            last_stable_offset: log.last_stable_offset(high_watermark),
            high_watermark,
            log_end_offset: log.log_end_offset(),
        }
    }

    /// Reads what consumers may see below `up_to`.
    pub fn read(
        &self,
        from: Offset,
        max_bytes: u32,
        up_to: Offset,
        at_least_one_batch: bool,
    ) -> Result<LogSlice, ReadError> {
        self.on_log(|log| log.read(from, max_bytes, up_to, at_least_one_batch))
    }

    /// DeleteRecords: gives up what lies below `offset`; -1 means the high watermark. Returns the
    /// new low watermark.
    pub fn delete_records(&self, offset: Offset) -> Result<Offset, DeleteRecordsError> {
        let high_watermark = self.high_watermark();
        let target = if offset == Offset::NONE {
            high_watermark
        } else {
            offset
        };
        if target < Offset::ZERO || target > high_watermark {
            return Err(DeleteRecordsError::OutOfRange);
        }
        self.on_log(|log| log.advance_log_start_offset(target))?;
        self.waiters.wake_all();
        Ok(self.log().log_start_offset())
    }

    pub fn register(&self, waiter: &Arc<Waiter>) {
        self.waiters.register(waiter);
    }

    pub fn deregister(&self, waiter: &Arc<Waiter>) {
        self.waiters.deregister(waiter);
    }

    pub fn register_follower(&self, waiter: &Arc<Waiter>) {
        self.follower_waiters.register(waiter);
    }

    pub fn deregister_follower(&self, waiter: &Arc<Waiter>) {
        self.follower_waiters.deregister(waiter);
    }
}

/// Older than ours is fenced, newer is unknown (KIP-320).
fn check_epoch(known: i32, leader_epoch: LeaderEpoch) -> Result<(), ErrorCode> {
    if known == LeaderEpoch::NONE.0 {
        return Ok(());
    }
    match known.cmp(&leader_epoch.0) {
        std::cmp::Ordering::Less => Err(ErrorCode::FencedLeaderEpoch),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(ErrorCode::UnknownLeaderEpoch),
    }
}

/// Why records were not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteRecordsError {
    #[error("the offset is not between 0 and the high watermark")]
    OutOfRange,
    #[error(transparent)]
    Storage(#[from] crate::log::LogError),
}
