//! What older clients are told, and how one decision becomes an answer per partition.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{ErrorCode, TopicPartition};

/// The requests whose older versions do not know PRODUCER_FENCED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionApi {
    InitProducerId,
    AddPartitionsToTxn,
    AddOffsetsToTxn,
    EndTxn,
}

impl TransactionApi {
    /// The first version that knows PRODUCER_FENCED.
    const fn knows_fenced_from(self) -> i16 {
        match self {
            TransactionApi::InitProducerId => 4,
            TransactionApi::AddPartitionsToTxn
            | TransactionApi::AddOffsetsToTxn
            | TransactionApi::EndTxn => 2,
        }
    }
}

/// `error` as a client of this version knows it.
pub fn error_in_version(api: TransactionApi, version: i16, error: ErrorCode) -> ErrorCode {
    if error == ErrorCode::ProducerFenced && version < api.knows_fenced_from() {
        return ErrorCode::InvalidProducerEpoch;
    }
    error
}

/// AddPartitionsToTxn is all or nothing: with one partition that cannot be added (unknown, not
/// allowed) the others get OPERATION_NOT_ATTEMPTED and the transaction is not asked. `None` when
/// all can be.
pub fn partition_errors(
    partitions: &BTreeSet<TopicPartition>,
    refused: &BTreeMap<TopicPartition, ErrorCode>,
) -> Option<BTreeMap<TopicPartition, ErrorCode>> {
    if refused.is_empty() {
        return None;
    }
    let not_attempted = ErrorCode::OperationNotAttempted;
    let mut errors: BTreeMap<_, _> = partitions
        .iter()
        .map(|partition| (partition.clone(), not_attempted))
        .collect();
    errors.extend(
        refused
            .iter()
            .map(|(partition, error)| (partition.clone(), *error)),
    );
    Some(errors)
}
