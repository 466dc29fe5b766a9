//! What can be asked of the machine, and what it answers.

use std::collections::BTreeSet;

use super::{TransactionRecord, TransactionVersion, TransactionalId};
use crate::types::{
    ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TimestampMs, TopicPartition,
};

/// Draws a fresh producer id; the error (COORDINATOR_LOAD_IN_PROGRESS while the next block is on
/// its way) goes to the client. Called at most once per decision, and only if one is needed.
pub type NextProducerId<'a> = dyn FnMut() -> Result<ProducerId, ErrorCode> + 'a;

/// A producer as a client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProducerIdAndEpoch {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

impl ProducerIdAndEpoch {
    /// What stands in an answer that carries an error.
    pub const NONE: Self = Self {
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
    };

    /// What an InitProducerId carries: nothing (both -1), or both.
    pub fn expected(
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
    ) -> Result<Option<Self>, ErrorCode> {
        match (
            producer_id == ProducerId::NONE,
            producer_epoch == ProducerEpoch::NONE,
        ) {
            (true, true) => Ok(None),
            (false, false) => Ok(Some(Self {
                producer_id,
                producer_epoch,
            })),
            _ => Err(ErrorCode::InvalidRequest),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionResult {
    Commit,
    Abort,
}

/// A producer id for a transactional id. (Without a transactional id none of this is needed: the
/// answer is the next producer id and epoch 0.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitProducerId {
    pub transactional_id: TransactionalId,
    pub transaction_timeout_ms: i32,
    /// Who the client believes to be, if it goes on after an error (v3+).
    pub expected: Option<ProducerIdAndEpoch>,
}

/// Partitions that the transaction writes to. AddOffsetsToTxn is the same with the partition of
/// `__consumer_offsets` that holds the group. The partitions are known to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPartitions {
    pub transactional_id: TransactionalId,
    pub producer: ProducerIdAndEpoch,
    pub partitions: BTreeSet<TopicPartition>,
    pub client_transaction_version: TransactionVersion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndTxn {
    pub transactional_id: TransactionalId,
    pub producer: ProducerIdAndEpoch,
    pub result: TransactionResult,
    pub client_transaction_version: TransactionVersion,
}

/// All markers of the transaction that was prepared at `prepared_at` are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteTxn {
    pub transactional_id: TransactionalId,
    pub prepared_at: TimestampMs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    InitProducerId(InitProducerId),
    AddPartitions(AddPartitions),
    EndTxn(EndTxn),
    CompleteTxn(CompleteTxn),
}

impl Command {
    pub fn transactional_id(&self) -> &TransactionalId {
        match self {
            Command::InitProducerId(command) => &command.transactional_id,
            Command::AddPartitions(command) => &command.transactional_id,
            Command::EndTxn(command) => &command.transactional_id,
            Command::CompleteTxn(command) => &command.transactional_id,
        }
    }
}

/// What leaves once the records of its decision are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    InitProducerId(Result<ProducerIdAndEpoch, ErrorCode>),
    AddPartitions(Result<(), ErrorCode>),
    /// The producer to go on with; only v5+ answers carry it.
    EndTxn(Result<ProducerIdAndEpoch, ErrorCode>),
    /// Nobody waits: the coordinator acted by itself.
    Nobody,
}

/// Markers to write: into each partition one control record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMarkers {
    pub transactional_id: TransactionalId,
    /// The transaction these belong to; [`MarkersWritten`] names it.
    pub prepared_at: TimestampMs,
    pub producer: ProducerIdAndEpoch,
    pub result: TransactionResult,
    pub coordinator_epoch: LeaderEpoch,
    /// WriteTxnMarkers v2: from V2 on, a partition takes only a marker with a higher epoch than
    /// that of the records.
    pub transaction_version: TransactionVersion,
    /// May be empty (an abort of nothing): then the transaction is to be completed at once.
    pub partitions: BTreeSet<TopicPartition>,
}

/// Some partitions have their marker (or are deleted, which does as well).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkersWritten {
    pub transactional_id: TransactionalId,
    pub prepared_at: TimestampMs,
    pub partitions: BTreeSet<TopicPartition>,
}

/// The outcome of a command: append `records`; once they are committed, apply them, send `reply`
/// and start writing `markers`. Without records the reply leaves at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub records: Vec<TransactionRecord>,
    pub reply: Reply,
    pub markers: Option<TxnMarkers>,
}

impl Decision {
    /// Nothing changes.
    pub(super) fn reply(reply: Reply) -> Self {
        Decision {
            records: Vec::new(),
            reply,
            markers: None,
        }
    }

    pub(super) fn record(record: TransactionRecord, reply: Reply) -> Self {
        Decision {
            records: vec![record],
            reply,
            markers: None,
        }
    }
}
