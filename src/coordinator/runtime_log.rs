//! What the coordinator runtime needs of the log and of the machines it drives.

use std::time::Duration;

use bytes::Bytes;

use crate::types::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// One record of an internal topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// What is appended in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogBatch {
    /// One batch, outside of transactions or in one.
    Records {
        records: Vec<LogRecord>,
        producer: Option<(ProducerId, ProducerEpoch)>,
        timestamp: TimestampMs,
    },
    /// A control batch that ends a transaction.
    EndTransaction(EndTransaction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransaction {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub coordinator_epoch: i32,
    pub commit: bool,
    /// Of transaction version 2: a marker with the epoch of the open records is an old one.
    pub bumps_epoch: bool,
}

/// What is read back when a coordinator is loaded, in log order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    Record {
        record: LogRecord,
        /// -1 outside of transactions.
        producer_id: ProducerId,
    },
    EndTransaction {
        producer_id: ProducerId,
        commit: bool,
    },
}

/// A stretch of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    pub entries: Vec<LogEntry>,
    /// Where the next chunk starts. A chunk that starts and ends at one offset is the end.
    pub next_offset: Offset,
}

/// The internal topic of a coordinator. Calls may block for as long as a page-cache access takes;
/// `read` runs on a thread for blocking work.
pub trait CoordinatorLog: Send + Sync + 'static {
    /// Whether an append would be taken now (leadership, in-sync replicas).
    fn may_append(&self, partition: i32) -> Result<(), ErrorCode>;

    /// Appends as the leader of `leader_epoch`; returns the offset after the last record. That it
    /// is committed is told by `Runtime::on_high_watermark`, which may be called from within.
    fn append(
        &self,
        partition: i32,
        leader_epoch: LeaderEpoch,
        batch: LogBatch,
    ) -> Result<Offset, ErrorCode>;

    /// Reads up to a few MiB from `from` on (`None`: from the log's start), to the log's end.
    fn read(&self, partition: i32, from: Option<Offset>) -> Result<LogChunk, ErrorCode>;

    fn high_watermark(&self, partition: i32) -> Offset;
}

/// The time at which an event is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// For what is stored.
    pub wall: TimestampMs,
    /// For time-outs.
    pub monotonic: Duration,
}

/// What a machine wants done after an event. What `batches` says is already in its state.
#[derive(Debug)]
pub struct Step<R> {
    pub batches: Vec<LogBatch>,
    /// Replies by the token of their request.
    pub replies: Vec<(u64, R)>,
}

impl<R> Default for Step<R> {
    fn default() -> Self {
        Step {
            batches: Vec::new(),
            replies: Vec::new(),
        }
    }
}

/// A pure state machine, over one partition of the internal topic.
pub trait Machine: Send + 'static {
    type Command: Send;
    type Reply: Send;
    type LoadError: std::error::Error + Send;

    /// Whether the command may append something: it is refused if the log takes nothing.
    fn may_append(command: &Self::Command) -> bool;

    /// Takes in an entry of the log.
    fn load(&mut self, entry: &LogEntry) -> Result<(), Self::LoadError>;

    /// Everything was taken in; from now on time counts.
    fn on_loaded(&mut self, now: Moment) -> Step<Self::Reply>;

    /// Handles a command. The reply to `token` comes with this step or a later one.
    fn handle(&mut self, now: Moment, token: u64, command: Self::Command) -> Step<Self::Reply>;

    /// When `expire` wants to be called, by the monotonic clock.
    fn deadline(&self) -> Option<Duration>;

    fn expire(&mut self, now: Moment) -> Step<Self::Reply>;
}
