//! What can go wrong with a log.
//!
//! 1. A failed write, sync, rename or removal takes the whole log directory offline: whoever meets
//!    it gets [`LogError::Io`], everyone after that [`LogError::Offline`]. It is never retried.
//!    The one exception is an append that meets the end of the space and can be taken back.
//! 2. A refused append ([`AppendError`] other than `Storage`) has changed nothing.

use std::io;
use std::path::{Path, PathBuf};

use crate::host::{Disk, PathKind};
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition};

/// The disk failed, or holds what cannot be a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("log directory {dir} is offline")]
    Offline { dir: PathBuf },
    /// Nothing was changed; it works again when there is space.
    #[error("log directory {dir} has no room")]
    Full { dir: PathBuf },
    /// Closed by a clean stop, or deleted.
    #[error("the log of {topic_partition} is closed")]
    Closed { topic_partition: TopicPartition },
    #[error("cannot {operation} {path}")]
    Io {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Of a directory only that one name is of no use.
    #[error("{path} is no directory but {what}")]
    NoDirectory { path: PathBuf, what: String },
    #[error("{path} is corrupt at byte {position}: {reason}")]
    Corrupt {
        path: PathBuf,
        position: u64,
        reason: &'static str,
    },
    #[error(
        "{path} ends at offset {log_end}, and its records had been flushed up to {recovery_point}: \
         put its files back, or, to go on with what is there (other replicas will be cut to that), \
         write {log_end} for it into recovery-point-offset-checkpoint"
    )]
    FlushedRecordsGone {
        path: PathBuf,
        log_end: Offset,
        recovery_point: Offset,
    },
    #[error(
        "{path} lacks the flushed records from offset {from} to {last}: put its files back, or, to \
         go on with what follows, write {to} for it into log-start-offset-checkpoint"
    )]
    SegmentGone {
        path: PathBuf,
        from: Offset,
        last: Offset,
        /// Here they go on.
        to: Offset,
    },
}

impl LogError {
    /// `None`: there is a directory, or nothing.
    pub(super) fn no_directory(disk: &dyn Disk, path: &Path) -> Option<LogError> {
        let what = match disk.kind(path) {
            PathKind::Dir | PathKind::Nothing => return None,
            PathKind::File => "a file: move it away",
            PathKind::LinkToNothing => {
                "a link to what is not there: make or mount that, or remove the link"
            }
        };
        let (path, what) = (path.to_owned(), what.to_owned());
        Some(LogError::NoDirectory { path, what })
    }
}

/// Why a batch was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error(transparent)]
    Storage(#[from] LogError),
    #[error("batch of {batch_bytes} bytes is larger than a segment of {segment_bytes}")]
    BatchTooLarge {
        batch_bytes: usize,
        segment_bytes: u32,
    },
    #[error("producer {producer_id}: sequence {sequence} does not follow {last_sequence}")]
    OutOfOrderSequence {
        producer_id: ProducerId,
        sequence: i32,
        last_sequence: i32,
    },
    #[error("producer {producer_id}: epoch {epoch} is older than {current}")]
    InvalidProducerEpoch {
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        current: ProducerEpoch,
    },
    #[error("producer {producer_id}: coordinator epoch {epoch} is older than {current}")]
    TransactionCoordinatorFenced {
        producer_id: ProducerId,
        epoch: i32,
        current: i32,
    },
    #[error("producer {producer_id} writes outside its open transaction")]
    InvalidTxnState { producer_id: ProducerId },
    /// Another leader has taken over.
    #[error("leader epoch {leader_epoch} is over; {current} is the current one")]
    Fenced {
        leader_epoch: LeaderEpoch,
        current: LeaderEpoch,
    },
    /// A follower's batch does not follow its log.
    #[error("batch at offset {base_offset} does not follow log end offset {log_end_offset}")]
    UnexpectedOffset {
        base_offset: Offset,
        log_end_offset: Offset,
    },
    /// A batch that has the right checksum but makes no sense.
    #[error("batch at offset {base_offset} is malformed: {reason}")]
    Malformed {
        base_offset: Offset,
        reason: &'static str,
    },
}

/// Why a read has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Storage(#[from] LogError),
    #[error("offset {offset} is not in {log_start_offset}..={log_end_offset}")]
    OffsetOutOfRange {
        offset: Offset,
        log_start_offset: Offset,
        log_end_offset: Offset,
    },
}
