//! EndTxn, the abort by the coordinator itself, and the completion once all markers are written.
//!
//! What an EndTxn gets where no transaction is open (48 = INVALID_TXN_STATE, 90 = PRODUCER_FENCED):
//!
//! ```text
//!                   version 0 and 1         version 2, present epoch   version 2, epoch before
//!                   (present epoch only)                               (a repeat)
//!                   commit     abort        commit     abort           commit     abort
//! Empty             48         48           48         new epoch       90         90
//! CompleteCommit    0          48           48         new epoch       0          48
//! CompleteAbort     48         0            48         new epoch       48         0
//! ```
//!
//! In version 2 a client that lost track aborts, whether there is something to abort or not. That
//! includes a client whose transaction was aborted by time-out: its epoch counts as a repeat.

use super::command::{
    CompleteTxn, Decision, EndTxn, NextProducerId, Reply, TransactionResult, TxnMarkers,
};
use super::metadata::is_epoch_exhausted;
use super::{TransactionMachine, TransactionMetadata, TransactionState, TransactionalId};
use crate::types::{ErrorCode, TimestampMs};

impl TransactionMachine {
    pub(super) fn decide_end_txn(
        &self,
        now: TimestampMs,
        command: &EndTxn,
        ids: &mut NextProducerId,
    ) -> Result<Decision, ErrorCode> {
        if command.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        self.check_version(command.client_transaction_version)?;
        let metadata = self.transactions.get(&command.transactional_id);
        let metadata = metadata.ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if command.client_transaction_version.bumps_epoch() {
            self.decide_end_v2(now, command, metadata, ids)
        } else {
            self.decide_end_v1(now, command, metadata)
        }
    }

    fn decide_end_v1(
        &self,
        now: TimestampMs,
        command: &EndTxn,
        metadata: &TransactionMetadata,
    ) -> Result<Decision, ErrorCode> {
        if metadata.producer_id != command.producer.producer_id {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        if metadata.producer_epoch != command.producer.producer_epoch {
            return Err(ErrorCode::ProducerFenced);
        }
        if self.is_in_transition(&command.transactional_id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        if metadata.state == TransactionState::Ongoing {
            let next = metadata.prepared_with_same_epoch(now, command.result);
            return Ok(self.prepare(&command.transactional_id, next));
        }
        if metadata.result() == Some(command.result) {
            return Ok(Decision::reply(Reply::EndTxn(Ok(metadata.producer()))));
        }
        Err(ErrorCode::InvalidTxnState)
    }

    fn decide_end_v2(
        &self,
        now: TimestampMs,
        command: &EndTxn,
        metadata: &TransactionMetadata,
        ids: &mut NextProducerId,
    ) -> Result<Decision, ErrorCode> {
        let producer = command.producer;
        let same_id = producer.producer_id == metadata.producer_id;
        // The end of a transaction used up the last epoch: the answer named a new producer id.
        let repeat_of_last_epoch = producer.producer_id == metadata.previous_producer_id
            && producer.producer_epoch.0 == i16::MAX - 1
            && metadata.producer_epoch.0 == 0;
        if !same_id && !repeat_of_last_epoch {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        if self.is_in_transition(&command.transactional_id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        let present = metadata.producer_epoch == producer.producer_epoch;
        // Only the end of a version 2 transaction takes an epoch away from its own client. Kafka
        // 4.4 does not ask for that, and so gives the present epoch of an old client to the one
        // that it fenced.
        let next_epoch = i32::from(producer.producer_epoch.0) + 1;
        let repeat = metadata.client_transaction_version.bumps_epoch()
            && (repeat_of_last_epoch || i32::from(metadata.producer_epoch.0) == next_epoch);
        match metadata.result() {
            // Empty or Ongoing: the epoch before is that of somebody else.
            None if !present => Err(ErrorCode::ProducerFenced),
            Some(_) if !present && !repeat => Err(ErrorCode::ProducerFenced),
            Some(result) if repeat && result == command.result => {
                Ok(Decision::reply(Reply::EndTxn(Ok(metadata.producer()))))
            }
            Some(_) if repeat => Err(ErrorCode::InvalidTxnState),
            _ => self.decide_end_now(now, command, metadata, ids),
        }
    }

    /// Version 2, with the present epoch.
    fn decide_end_now(
        &self,
        now: TimestampMs,
        command: &EndTxn,
        metadata: &TransactionMetadata,
        ids: &mut NextProducerId,
    ) -> Result<Decision, ErrorCode> {
        let nothing_open = metadata.state != TransactionState::Ongoing;
        if nothing_open && command.result == TransactionResult::Commit {
            return Err(ErrorCode::InvalidTxnState);
        }
        let next = end_with_next_epoch(metadata, now, command.result, ids)?;
        Ok(self.prepare(&command.transactional_id, next))
    }

    /// The coordinator aborts an open transaction: its time is up, or another producer comes.
    pub(super) fn decide_fence(
        &self,
        now: TimestampMs,
        transactional_id: &TransactionalId,
        ids: &mut NextProducerId,
    ) -> Result<Decision, ErrorCode> {
        let metadata = &self.transactions[transactional_id];
        assert_eq!(metadata.state, TransactionState::Ongoing);
        let next = if self.config.transaction_version.bumps_epoch() {
            end_with_next_epoch(metadata, now, TransactionResult::Abort, ids)?
        } else {
            metadata.fenced(now)
        };
        let mut decision = self.prepare(transactional_id, next);
        decision.reply = Reply::Nobody;
        Ok(decision)
    }

    /// Done when every marker is written; otherwise (a repeat, or not yet) nothing happens.
    pub(super) fn decide_complete(&self, now: TimestampMs, command: &CompleteTxn) -> Decision {
        let id = &command.transactional_id;
        if self.pending.contains_key(id) || !self.is_written(id, command.prepared_at) {
            return Decision::reply(Reply::Nobody);
        }
        Self::store(id, self.transactions[id].completed(now), Reply::Nobody)
    }

    fn prepare(&self, transactional_id: &TransactionalId, next: TransactionMetadata) -> Decision {
        let reply = Reply::EndTxn(Ok(next.producer_after_completion()));
        let markers = self.markers_of(transactional_id, &next);
        let mut decision = Self::store(transactional_id, next, reply);
        decision.markers = markers;
        decision
    }

    /// The markers that a prepared transaction needs.
    pub(super) fn markers_of(
        &self,
        transactional_id: &TransactionalId,
        metadata: &TransactionMetadata,
    ) -> Option<TxnMarkers> {
        if !metadata.state.is_prepared() {
            return None;
        }
        Some(TxnMarkers {
            transactional_id: transactional_id.clone(),
            prepared_at: metadata.last_update_timestamp,
            producer: metadata.producer(),
            result: metadata.result()?,
            coordinator_epoch: self.coordinator_epoch,
            transaction_version: metadata.client_transaction_version,
            partitions: metadata.partitions.clone(),
        })
    }
}

fn end_with_next_epoch(
    metadata: &TransactionMetadata,
    now: TimestampMs,
    result: TransactionResult,
    ids: &mut NextProducerId,
) -> Result<TransactionMetadata, ErrorCode> {
    let exhausted = is_epoch_exhausted(metadata.producer_epoch);
    let next_producer_id = exhausted.then(ids).transpose()?;
    Ok(metadata.prepared_with_next_epoch(now, result, next_producer_id))
}
