//! One partition's log: interface first, the work lives in the files beside.

use std::path::PathBuf;
use std::sync::Arc;

use crate::host::File;
use crate::record::Batch;
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::types::{TopicId, TopicPartition};

use super::config::LogConfig;
use super::error::{AppendError, LogError, ReadError};

/// Who wrote a batch, and so which of its fields are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A producer: sequences and epochs are checked, repeats are answered.
    Client,
    /// A coordinator of this broker (also transaction markers): epochs are checked.
    Coordinator,
    /// WriteTxnMarkers with transaction version 2: an equal producer epoch is refused too.
    MarkerV2,
}

/// What an append as leader needs besides the batch.
#[derive(Debug, Clone, Copy)]
pub struct AppendContext {
    pub leader_epoch: LeaderEpoch,
    pub origin: Origin,
    pub now: TimestampMs,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub log_start_offset: Offset,
    /// The batch's max timestamp if it carries the broker's time or is a duplicate, else NONE.
    pub log_append_time: TimestampMs,
    /// The batch was in the log already, at `base_offset`; nothing was written.
    pub is_duplicate: bool,
    /// A new segment was begun: flush up to its start soon (aside).
    pub rolled: bool,
    /// Bytes appended since the last flush and records since, for flush.messages.
    pub unflushed_records: i64,
}

/// A run of whole batches in one segment's file.
#[derive(Clone)]
pub struct LogSlice {
    /// `None` when `len` is 0.
    pub file: Option<Arc<dyn File>>,
    pub position: u64,
    /// Bytes. The last batch may be cut.
    pub len: u32,
    /// Bytes that a reader without a limit would have got from this segment: `len` or more.
    pub available: u32,
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
}

/// An aborted transaction, as a fetch answer names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub last_stable_offset: Offset,
}

/// Where a timestamp was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    pub timestamp: TimestampMs,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
}

/// The state of one producer, for DescribeProducers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveProducer {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub last_sequence: i32,
    pub last_timestamp: TimestampMs,
    pub coordinator_epoch: i32,
    pub current_txn_start_offset: Option<Offset>,
}

/// Files that are out of the log and may be removed from `due` on (`LogDir::remove`).
#[derive(Debug)]
pub struct Deletion {
    pub due: TimestampMs,
    pub paths: Vec<PathBuf>,
}

/// One partition's log. All methods may be called from any thread.
pub struct Log {
    topic_partition: TopicPartition,
}

#[allow(unused_variables)]
impl Log {
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    pub fn topic_id(&self) -> TopicId {
        unimplemented!()
    }

    pub fn log_start_offset(&self) -> Offset {
        unimplemented!()
    }

    pub fn log_end_offset(&self) -> Offset {
        unimplemented!()
    }

    /// What lies below is flushed.
    pub fn recovery_point(&self) -> Offset {
        unimplemented!()
    }

    pub fn size_bytes(&self) -> u64 {
        unimplemented!()
    }

    pub fn segment_count(&self) -> usize {
        unimplemented!()
    }

    pub fn config(&self) -> Arc<LogConfig> {
        unimplemented!()
    }

    pub fn update_config(&self, config: Arc<LogConfig>) {
        unimplemented!()
    }

    /// Appends one checked batch: gives it offsets and the leader epoch.
    pub fn append_as_leader(
        &self,
        batch: Batch,
        context: &AppendContext,
    ) -> Result<Appended, AppendError> {
        unimplemented!()
    }

    /// Appends batches that have their offsets already (gaps are fine). The CRC was checked.
    pub fn append_as_follower(
        &self,
        batches: &[Batch],
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        unimplemented!()
    }

    /// The batches from the one that holds `from`, at most `max_bytes` (the last may be cut; the
    /// first comes whole if `at_least_one_batch`), none that ends at or after `up_to`.
    pub fn read(
        &self,
        from: Offset,
        max_bytes: u32,
        up_to: Offset,
        at_least_one_batch: bool,
    ) -> Result<LogSlice, ReadError> {
        unimplemented!()
    }

    /// The aborted transactions that a reader of `slice`, which was read from `from`, has to know.
    pub fn aborted_transactions(
        &self,
        from: Offset,
        slice: &LogSlice,
        up_to: Offset,
    ) -> Result<Vec<AbortedTxn>, LogError> {
        unimplemented!()
    }

    /// The first offset of a transaction that is open, or whose marker is at or above
    /// `high_watermark`.
    pub fn first_unstable_offset(&self, high_watermark: Offset) -> Option<Offset> {
        unimplemented!()
    }

    /// The smaller of the high watermark and the first unstable offset.
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        unimplemented!()
    }

    /// The newest epoch in the log.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        unimplemented!()
    }

    /// Notes that `epoch` starts at the end of the log (on becoming leader).
    pub fn assign_epoch_at_end(&self, epoch: LeaderEpoch) {
        unimplemented!()
    }

    /// OffsetForLeaderEpoch: the newest epoch not above `epoch` and where it ends.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        unimplemented!()
    }

    /// The epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        unimplemented!()
    }

    /// The first record with a timestamp of at least `timestamp`.
    pub fn offset_for_timestamp(
        &self,
        timestamp: TimestampMs,
    ) -> Result<Option<TimestampOffset>, LogError> {
        unimplemented!()
    }

    /// The record with the largest timestamp; the first of equals.
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampOffset>, LogError> {
        unimplemented!()
    }

    /// Drops everything from `offset` on. `false` if there was nothing.
    pub fn truncate_to(&self, offset: Offset, now: TimestampMs) -> Result<bool, LogError> {
        unimplemented!()
    }

    /// Drops everything; the next record has `offset`.
    pub fn truncate_fully_and_start_at(&self, offset: Offset) -> Result<(), LogError> {
        unimplemented!()
    }

    /// DeleteRecords: nothing below `offset` is served any more. `false` if it was so before.
    pub fn advance_log_start_offset(&self, offset: Offset) -> Result<bool, LogError> {
        unimplemented!()
    }

    /// Returns once everything appended before the call would survive a power cut.
    pub fn flush(&self) -> Result<(), LogError> {
        unimplemented!()
    }

    /// As [`Log::flush`], and everything a quick recovery needs: index tails, producer snapshot.
    pub fn checkpoint(&self) -> Result<(), LogError> {
        unimplemented!()
    }

    /// Takes segments out that `retention.ms`, `retention.bytes` or the log start offset allow.
    pub fn apply_retention(
        &self,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<Option<Deletion>, LogError> {
        unimplemented!()
    }

    /// Forgets producers that were quiet for `producer.id.expiration.ms`.
    pub fn expire_producers(&self, now: TimestampMs) -> usize {
        unimplemented!()
    }

    pub fn active_producers(&self) -> Vec<ActiveProducer> {
        unimplemented!()
    }

    /// Clean stop of this log; appends fail afterwards.
    pub fn close(&self) -> Result<(), LogError> {
        unimplemented!()
    }
}
