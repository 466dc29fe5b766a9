//! InitProducerId for a transactional id: the next epoch, and the end of whoever was there before.

use super::command::{Decision, InitProducerId, NextProducerId, ProducerIdAndEpoch, Reply};
use super::metadata::is_epoch_exhausted;
use super::{TransactionMachine, TransactionMetadata, TransactionState};
use crate::types::{ErrorCode, ProducerEpoch, TimestampMs};

impl TransactionMachine {
    pub(super) fn decide_init_producer_id(
        &self,
        now: TimestampMs,
        command: &InitProducerId,
        ids: &mut NextProducerId,
    ) -> Result<Decision, ErrorCode> {
        let timeout_ms = command.transaction_timeout_ms;
        if command.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        if timeout_ms <= 0 || timeout_ms > self.config.transaction_max_timeout_ms {
            return Err(ErrorCode::InvalidTransactionTimeout);
        }
        if self.is_in_transition(&command.transactional_id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        let Some(metadata) = self.transactions.get(&command.transactional_id) else {
            // Whatever producer the client believes to be: the id is not known (any more).
            let fresh = TransactionMetadata::new(ids()?);
            let next = fresh.with_next_epoch(now, timeout_ms, ProducerEpoch::NONE);
            return Ok(initialized(command, next));
        };
        if command
            .expected
            .is_some_and(|expected| !may_come_back(metadata, expected))
        {
            return Err(ErrorCode::ProducerFenced);
        }
        if metadata.state == TransactionState::Ongoing {
            // Abort first. The client asks again, and gets an epoch that nobody had.
            let mut decision = self.decide_fence(now, &command.transactional_id, ids)?;
            decision.reply = Reply::InitProducerId(Err(ErrorCode::ConcurrentTransactions));
            return Ok(decision);
        }
        let expected_epoch = command.expected.map(|expected| expected.producer_epoch);
        let next = next_producer(metadata, now, timeout_ms, expected_epoch, ids)?;
        Ok(initialized(command, next))
    }
}

fn initialized(command: &InitProducerId, next: TransactionMetadata) -> Decision {
    let reply = Reply::InitProducerId(Ok(next.producer()));
    TransactionMachine::store(&command.transactional_id, next, reply)
}

/// Whether `expected` is the producer of this id: the present one, or (a repeat of the request that
/// changed the id) the one before, at the end of its epochs. Its epoch is looked at later.
fn may_come_back(metadata: &TransactionMetadata, expected: ProducerIdAndEpoch) -> bool {
    expected.producer_id == metadata.producer_id
        || (expected.producer_id == metadata.previous_producer_id
            && is_epoch_exhausted(expected.producer_epoch))
}

fn next_producer(
    metadata: &TransactionMetadata,
    now: TimestampMs,
    timeout_ms: i32,
    expected_epoch: Option<ProducerEpoch>,
    ids: &mut NextProducerId,
) -> Result<TransactionMetadata, ErrorCode> {
    // Without an expectation nobody may come with the old epoch any more.
    let last_epoch = match expected_epoch {
        None => ProducerEpoch::NONE,
        Some(epoch) if epoch == metadata.producer_epoch => epoch,
        // A repeat: the same answer once more. If somebody else had come in between, the last
        // epoch would be -1.
        Some(epoch) if epoch == metadata.last_producer_epoch => {
            return Ok(metadata.with_same_epoch(now, timeout_ms));
        }
        // Kafka 4.4 answers UNKNOWN_SERVER_ERROR here, and to the repeat above, if the epochs
        // have run out: an exception of its own.
        Some(_) => return Err(ErrorCode::ProducerFenced),
    };
    if is_epoch_exhausted(metadata.producer_epoch) {
        return Ok(metadata.with_next_producer_id(now, timeout_ms, ids()?, last_epoch));
    }
    Ok(metadata.with_next_epoch(now, timeout_ms, last_epoch))
}
