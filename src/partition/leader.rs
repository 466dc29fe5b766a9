//! One partition as its leader: appends, watermarks, reads.
//!
//! 1. log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.
//! 2. The high watermark never goes back while this broker leads. What lies below it is on every
//!    in-sync replica; alone, that is this broker's own log.
//! 3. Whoever waits is woken after the high watermark has moved, never before.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;

use tokio::sync::mpsc;

use super::effective::PartitionConfig;
use super::observer::PartitionObserver;
use super::waiters::{Waiter, Waiters};
use crate::config::TopicConfig;
use crate::log::{AppendContext, AppendError, Appended, Log, LogDir, LogSlice, Origin, ReadError};
use crate::record::Batch;
use crate::types::{
    BrokerId, ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicId, TopicPartition,
};

/// Who leads a partition, as the metadata says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub isr: Arc<[BrokerId]>,
    pub replicas: Arc<[BrokerId]>,
}

impl Leadership {
    fn unknown() -> Self {
        Leadership {
            leader: BrokerId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            isr: Arc::new([]),
            replicas: Arc::new([]),
        }
    }
}

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
    pub log: Arc<Log>,
    pub log_dir: Arc<LogDir>,
    this_broker: BrokerId,
    topic_config: ArcSwap<TopicConfig>,
    leadership: ArcSwap<Leadership>,
    high_watermark: AtomicI64,
    waiters: Waiters,
    /// Takes logs that began a new segment: the old one is to be flushed, aside.
    rolled: mpsc::UnboundedSender<Arc<Log>>,
    observer: Option<Arc<dyn PartitionObserver>>,
}

/// What a partition is made of.
pub struct NewPartition {
    pub topic_id: TopicId,
    pub log: Arc<Log>,
    pub log_dir: Arc<LogDir>,
    pub this_broker: BrokerId,
    pub topic_config: Arc<TopicConfig>,
    /// From the checkpoint of the last run.
    pub high_watermark: Option<Offset>,
    pub rolled: mpsc::UnboundedSender<Arc<Log>>,
    pub observer: Option<Arc<dyn PartitionObserver>>,
}

impl Partition {
    /// It does nothing before [`Partition::lead`].
    pub fn new(new: NewPartition) -> Arc<Partition> {
        let log = new.log;
        let start = log.log_start_offset();
        let high_watermark = new.high_watermark.unwrap_or(start).max(start);
        Arc::new(Partition {
            topic_partition: log.topic_partition().clone(),
            topic_id: new.topic_id,
            log_dir: new.log_dir,
            this_broker: new.this_broker,
            topic_config: ArcSwap::new(new.topic_config),
            high_watermark: AtomicI64::new(high_watermark.min(log.log_end_offset()).0),
            log,
            leadership: ArcSwap::from_pointee(Leadership::unknown()),
            waiters: Waiters::default(),
            rolled: new.rolled,
            observer: new.observer,
        })
    }

    pub fn topic_config(&self) -> Arc<TopicConfig> {
        self.topic_config.load_full()
    }

    pub fn configure(&self, config: PartitionConfig) {
        self.topic_config.store(config.topic);
        self.log.update_config(config.log);
    }

    /// Takes over what the metadata says of the partition's leader.
    pub fn lead(&self, leadership: Leadership) {
        let epoch = leadership.leader_epoch;
        let leads = leadership.leader == self.this_broker;
        self.leadership.store(Arc::new(leadership));
        if leads {
            self.log.assign_epoch_at_end(epoch);
            self.advance_high_watermark();
        }
        match &self.observer {
            Some(observer) if leads => observer.on_leader(self.topic_partition.partition, epoch),
            Some(observer) => observer.on_not_leader(self.topic_partition.partition),
            None => {}
        }
        self.waiters.wake_all();
    }

    pub fn leadership(&self) -> Arc<Leadership> {
        self.leadership.load_full()
    }

    /// Whether this broker may answer a client that knows `current_leader_epoch` (-1: none).
    /// Older than ours is fenced, newer is unknown (KIP-320).
    pub fn check_leader(&self, current_leader_epoch: i32) -> Result<(), ErrorCode> {
        let leadership = self.leadership.load();
        if leadership.leader != self.this_broker {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        if current_leader_epoch == LeaderEpoch::NONE.0 {
            return Ok(());
        }
        match current_leader_epoch.cmp(&leadership.leader_epoch.0) {
            std::cmp::Ordering::Less => Err(ErrorCode::FencedLeaderEpoch),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(ErrorCode::UnknownLeaderEpoch),
        }
    }

    /// Whether acks=all may be promised: `min.insync.replicas` replicas are in sync. A topic that
    /// has fewer needs all of them, because eligible leader replicas are on (KIP-966).
    pub fn has_enough_replicas(&self) -> bool {
        let leadership = self.leadership.load();
        let wanted = self.topic_config.load().min_insync_replicas.max(1) as usize;
        leadership.isr.len() >= wanted.min(leadership.replicas.len())
    }

    /// Appends one checked batch and wakes those who wait for it.
    pub fn append(
        &self,
        batch: Batch,
        origin: Origin,
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        let leader_epoch = self.leadership.load().leader_epoch;
        let context = AppendContext {
            leader_epoch,
            origin,
            now,
        };
        let appended = self.log.append_as_leader(batch, &context)?;
        if appended.rolled {
            // Nobody listens any more when the node stops, which flushes everything.
            let _ = self.rolled.send(self.log.clone());
        }
        if appended.unflushed_records >= self.topic_config.load().flush_messages {
            self.log.flush()?;
        }
        self.advance_high_watermark();
        Ok(appended)
    }

    /// Alone in sync, the log end is the high watermark.
    fn advance_high_watermark(&self) {
        if self.leadership.load().isr.len() > 1 {
            return;
        }
        let end = self.log.log_end_offset().0;
        let before = self.high_watermark.fetch_max(end, Ordering::SeqCst);
        if before < end {
            if let Some(observer) = &self.observer {
                observer.on_high_watermark(self.topic_partition.partition, Offset(end));
            }
            self.waiters.wake_all();
        }
    }

    pub fn high_watermark(&self) -> Offset {
        Offset(self.high_watermark.load(Ordering::SeqCst))
    }

    pub fn watermarks(&self) -> Watermarks {
        // The end is read last: it only grows, so the order of invariant 1 holds.
        let high_watermark = self.high_watermark();
        let log_start_offset = self.log.log_start_offset();
        Watermarks {
            log_start_offset,
            last_stable_offset: self.log.last_stable_offset(high_watermark),
            high_watermark,
            log_end_offset: self.log.log_end_offset(),
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
        self.log.read(from, max_bytes, up_to, at_least_one_batch)
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
        self.log.advance_log_start_offset(target)?;
        self.waiters.wake_all();
        Ok(self.log.log_start_offset())
    }

    /// The partition is gone from this broker: who waits is told to look elsewhere.
    pub fn close(&self) {
        self.lead(Leadership::unknown());
    }

    pub fn register(&self, waiter: &Arc<Waiter>) {
        self.waiters.register(waiter);
    }

    pub fn deregister(&self, waiter: &Arc<Waiter>) {
        self.waiters.deregister(waiter);
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
