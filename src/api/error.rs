//! The one map from what went wrong inside to Kafka's codes. No arm is `_`: a new error must be
//! given its code here.

use tokio::time::Instant;

use super::repeated::Repeated;
use crate::coordinator::transaction::NoProducerId;
use crate::log::{AppendError, LogError, ReadError};
use crate::metadata::PlanError;
use crate::quorum::QuorumError;
use crate::types::{ErrorCode, TopicPartition};

static DISK_ERRORS: Repeated = Repeated::new();

/// A failing disk is logged here, where it is consumed; the same failure not for every request that
/// meets it.
pub fn of_log(topic_partition: &TopicPartition, error: &LogError) -> ErrorCode {
    match error {
        // Clients look for the leader again and retry, until there is space or their time is up.
        LogError::Offline { .. } | LogError::Full { .. } => ErrorCode::KafkaStorageError,
        // Deleted, or the node stops: the client looks for the leader again.
        LogError::Closed { .. } => ErrorCode::NotLeaderOrFollower,
        LogError::Io { source, .. } => {
            say(topic_partition, format!("{error}: {source}"));
            ErrorCode::KafkaStorageError
        }
        LogError::Corrupt { .. }
        | LogError::FlushedRecordsGone { .. }
        | LogError::SegmentGone { .. }
        | LogError::NoDirectory { .. } => {
            say(topic_partition, error.to_string());
            ErrorCode::KafkaStorageError
        }
    }
}

fn say(topic_partition: &TopicPartition, error: String) {
    if DISK_ERRORS.is_due(format!("{topic_partition}: {error}"), Instant::now()) {
        tracing::error!(%topic_partition, "{error}");
    }
}

pub fn of_read(topic_partition: &TopicPartition, error: &ReadError) -> ErrorCode {
    match error {
        ReadError::Storage(error) => of_log(topic_partition, error),
        ReadError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
    }
}

pub fn of_append(topic_partition: &TopicPartition, error: &AppendError) -> ErrorCode {
    match error {
        AppendError::Storage(error) => of_log(topic_partition, error),
        AppendError::BatchTooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        AppendError::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        AppendError::Fenced { .. } => ErrorCode::NotLeaderOrFollower,
        AppendError::UnexpectedOffset { .. } | AppendError::Malformed { .. } => {
            tracing::error!(%topic_partition, "{error}");
            ErrorCode::UnknownServerError
        }
    }
}

pub fn of_quorum(error: &QuorumError) -> ErrorCode {
    match error {
        QuorumError::NotController { .. } => ErrorCode::NotController,
        QuorumError::TimedOut => ErrorCode::RequestTimedOut,
        QuorumError::Stopped | QuorumError::NoAnswer { .. } => ErrorCode::NotController,
        QuorumError::PlannerPanicked
        | QuorumError::Plan(_)
        | QuorumError::WrongNode { .. }
        | QuorumError::WrongCluster { .. }
        | QuorumError::NotAVoter { .. }
        | QuorumError::NoClusterId
        | QuorumError::ForeignCluster { .. }
        | QuorumError::Membership(_)
        | QuorumError::Store(_)
        | QuorumError::Damaged { .. }
        | QuorumError::Failed(_) => {
            tracing::error!("metadata: {error}");
            ErrorCode::UnknownServerError
        }
    }
}

/// As the answer for one of several topics.
pub fn plan_error(error: &QuorumError) -> PlanError {
    match error {
        QuorumError::NotController { .. } => {
            PlanError::new(ErrorCode::NotController, error.to_string())
        }
        error => PlanError::bare(of_quorum(error)),
    }
}

pub fn of_producer_id(error: &NoProducerId) -> ErrorCode {
    match error {
        NoProducerId::Quorum(error) => of_quorum(error),
        NoProducerId::Refused(code) => *code,
    }
}
