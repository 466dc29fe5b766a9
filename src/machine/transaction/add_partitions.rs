//! AddPartitionsToTxn and AddOffsetsToTxn: partitions become part of a transaction; or, for a
//! broker that is about to append, the question whether they are.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{AddPartitions, Decision, ProducerIdAndEpoch, Reply};
use super::{TransactionMachine, TransactionMetadata, TransactionState, TransactionalId};
use crate::types::{ErrorCode, TimestampMs, TopicPartition};

/// Are these partitions part of the open transaction (`verify_only` of AddPartitionsToTxn v4+)?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyPartitions {
    pub transactional_id: TransactionalId,
    pub producer: ProducerIdAndEpoch,
    pub partitions: BTreeSet<TopicPartition>,
}

impl TransactionMachine {
    pub(super) fn decide_add_partitions(
        &self,
        now: TimestampMs,
        command: &AddPartitions,
    ) -> Result<Decision, ErrorCode> {
        self.check_version(command.client_transaction_version)?;
        let metadata = self.metadata_of(&command.transactional_id, command.producer)?;
        if self.is_in_transition(&command.transactional_id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        let ongoing = metadata.state == TransactionState::Ongoing;
        if ongoing && command.partitions.is_subset(&metadata.partitions) {
            return Ok(Decision::reply(Reply::AddPartitions(Ok(()))));
        }
        let version = command.client_transaction_version;
        let next = metadata.with_partitions(now, &command.partitions, version);
        let reply = Reply::AddPartitions(Ok(()));
        Ok(Self::store(&command.transactional_id, next, reply))
    }

    /// One code for each partition. A record under way does not matter: what is asked is asked
    /// about the past, and the partition checks once more when it appends.
    pub fn verify(&self, command: &VerifyPartitions) -> BTreeMap<TopicPartition, ErrorCode> {
        let metadata = self.metadata_of(&command.transactional_id, command.producer);
        let error_of = |partition: &TopicPartition| match metadata {
            Err(error) => error,
            Ok(metadata) if metadata.state.is_prepared() => ErrorCode::ConcurrentTransactions,
            Ok(metadata) if metadata.partitions.contains(partition) => ErrorCode::None,
            Ok(_) => ErrorCode::TransactionAbortable,
        };
        let partitions = command.partitions.iter();
        partitions
            .map(|partition| (partition.clone(), error_of(partition)))
            .collect()
    }

    /// The transactional id, if this producer is its present one.
    fn metadata_of(
        &self,
        transactional_id: &TransactionalId,
        producer: ProducerIdAndEpoch,
    ) -> Result<&TransactionMetadata, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let metadata = self.transactions.get(transactional_id);
        let metadata = metadata.ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if metadata.producer_id != producer.producer_id {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        if metadata.producer_epoch != producer.producer_epoch {
            return Err(ErrorCode::ProducerFenced);
        }
        Ok(metadata)
    }
}
