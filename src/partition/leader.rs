//! One partition as its leader: appends, watermarks, reads.
//!
//! 1. log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset.
//! 2. The high watermark never goes back while this broker leads. What lies below it is on every
//!    in-sync replica; alone, that is this broker's own log.
//! 3. Whoever waits is woken after the high watermark has moved, never before.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;

use super::waiters::{Waiter, Waiters};
use crate::log::{AppendContext, AppendError, Appended, Log, LogSlice, Origin, ReadError};
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
    this_broker: BrokerId,
    leadership: ArcSwap<Leadership>,
    high_watermark: AtomicI64,
    waiters: Waiters,
}

impl Partition {
    pub fn new(
        topic_id: TopicId,
        log: Arc<Log>,
        this_broker: BrokerId,
        leadership: Leadership,
        checkpointed_high_watermark: Option<Offset>,
    ) -> Arc<Partition> {
        let start = log.log_start_offset();
        let high_watermark = checkpointed_high_watermark.unwrap_or(start).max(start);
        let partition = Arc::new(Partition {
            topic_partition: log.topic_partition().clone(),
            topic_id,
            this_broker,
            high_watermark: AtomicI64::new(high_watermark.min(log.log_end_offset()).0),
            log,
            leadership: ArcSwap::from_pointee(leadership.clone()),
            waiters: Waiters::default(),
        });
        partition.lead(leadership);
        partition
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

    /// In-sync replicas, this one included.
    pub fn isr_len(&self) -> usize {
        self.leadership.load().isr.len()
    }

    /// Appends one checked batch and wakes those who wait for it.
    pub fn append(
        &self,
        batch: Batch,
        origin: Origin,
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        let leader_epoch = self.leadership.load().leader_epoch;
        let context = AppendContext { leader_epoch, origin, now };
        let appended = self.log.append_as_leader(batch, &context)?;
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
        let target = if offset == Offset::NONE { high_watermark } else { offset };
        if target < Offset::ZERO || target > high_watermark {
            return Err(DeleteRecordsError::OutOfRange);
        }
        self.log.advance_log_start_offset(target)?;
        self.waiters.wake_all();
        Ok(self.log.log_start_offset())
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
