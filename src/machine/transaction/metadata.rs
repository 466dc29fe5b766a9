//! What is kept of one transactional id, and each change of it as a function from old to new.
//!
//! Each function asserts its transition in the table of `state.rs`.

use std::collections::BTreeSet;

use super::{ProducerIdAndEpoch, TransactionResult, TransactionState, TransactionVersion};
use crate::types::{ProducerEpoch, ProducerId, TimestampMs, TopicPartition};

/// The highest epoch; only a fence or the end of a transaction may reach it, never a client.
pub const PRODUCER_EPOCH_MAX: ProducerEpoch = ProducerEpoch(i16::MAX);

/// Whether a producer id has no epoch left to give to a client: one is kept for fencing.
pub const fn is_epoch_exhausted(epoch: ProducerEpoch) -> bool {
    epoch.0 >= i16::MAX - 1
}

/// One transactional id, as its last record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionMetadata {
    pub producer_id: ProducerId,
    /// The producer id before this record, not before the last change of it.
    pub previous_producer_id: ProducerId,
    /// The producer id that follows once this transaction is complete, if its epochs ran out.
    pub next_producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// The epoch a retried InitProducerId or EndTxn may still come with. Not part of the record:
    /// after a reload it is -1, as in Kafka.
    pub last_producer_epoch: ProducerEpoch,
    /// Two-phase commit (KIP-939); read, and dropped at the next change.
    pub next_producer_epoch: ProducerEpoch,
    pub transaction_timeout_ms: i32,
    pub state: TransactionState,
    pub partitions: BTreeSet<TopicPartition>,
    /// When the last transaction began; -1 before the first.
    pub start_timestamp: TimestampMs,
    pub last_update_timestamp: TimestampMs,
    pub client_transaction_version: TransactionVersion,
}

impl TransactionMetadata {
    /// A transactional id nobody has seen. Not stored before [`Self::with_next_epoch`].
    pub fn new(producer_id: ProducerId) -> Self {
        TransactionMetadata {
            producer_id,
            previous_producer_id: ProducerId::NONE,
            next_producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            last_producer_epoch: ProducerEpoch::NONE,
            next_producer_epoch: ProducerEpoch::NONE,
            transaction_timeout_ms: 0,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_timestamp: TimestampMs::NONE,
            last_update_timestamp: TimestampMs::NONE,
            client_transaction_version: TransactionVersion::V0,
        }
    }

    pub fn producer(&self) -> ProducerIdAndEpoch {
        ProducerIdAndEpoch {
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
        }
    }

    /// The outcome, from the moment it is decided.
    pub fn result(&self) -> Option<TransactionResult> {
        match self.state {
            TransactionState::PrepareCommit | TransactionState::CompleteCommit => {
                Some(TransactionResult::Commit)
            }
            TransactionState::PrepareAbort | TransactionState::CompleteAbort => {
                Some(TransactionResult::Abort)
            }
            _ => None,
        }
    }

    /// A copy in the next state. Time never goes back for one transactional id.
    fn changed(&self, state: TransactionState, now: TimestampMs) -> Self {
        assert!(
            self.state.may_become(state),
            "{:?} may not become {state:?}",
            self.state
        );
        TransactionMetadata {
            state,
            previous_producer_id: self.producer_id,
            next_producer_epoch: ProducerEpoch::NONE,
            last_update_timestamp: now.max(self.last_update_timestamp),
            ..self.clone()
        }
    }

    /// InitProducerId without a transaction in between.
    fn initialized(&self, now: TimestampMs, transaction_timeout_ms: i32) -> Self {
        TransactionMetadata {
            transaction_timeout_ms,
            partitions: BTreeSet::new(),
            start_timestamp: TimestampMs::NONE,
            ..self.changed(TransactionState::Empty, now)
        }
    }

    /// InitProducerId: the next epoch. `last_producer_epoch` is the one that the same client may
    /// ask again with; -1 shuts out whoever was there before.
    pub fn with_next_epoch(
        &self,
        now: TimestampMs,
        transaction_timeout_ms: i32,
        last_producer_epoch: ProducerEpoch,
    ) -> Self {
        assert!(!is_epoch_exhausted(self.producer_epoch));
        TransactionMetadata {
            producer_epoch: ProducerEpoch(self.producer_epoch.0 + 1),
            last_producer_epoch,
            ..self.initialized(now, transaction_timeout_ms)
        }
    }

    /// InitProducerId, asked again: nothing new.
    pub fn with_same_epoch(&self, now: TimestampMs, transaction_timeout_ms: i32) -> Self {
        self.initialized(now, transaction_timeout_ms)
    }

    /// InitProducerId when the epochs have run out.
    pub fn with_next_producer_id(
        &self,
        now: TimestampMs,
        transaction_timeout_ms: i32,
        producer_id: ProducerId,
        last_producer_epoch: ProducerEpoch,
    ) -> Self {
        assert!(is_epoch_exhausted(self.producer_epoch));
        TransactionMetadata {
            producer_id,
            producer_epoch: ProducerEpoch(0),
            last_producer_epoch,
            ..self.initialized(now, transaction_timeout_ms)
        }
    }

    pub fn with_partitions(
        &self,
        now: TimestampMs,
        added: &BTreeSet<TopicPartition>,
        client_transaction_version: TransactionVersion,
    ) -> Self {
        let mut next = self.changed(TransactionState::Ongoing, now);
        if self.state != TransactionState::Ongoing {
            // By this clock, though another one may have been ahead.
            next.start_timestamp = now;
        }
        next.partitions.extend(added.iter().cloned());
        next.client_transaction_version = client_transaction_version;
        next
    }

    fn prepared(&self, now: TimestampMs, state: TransactionState) -> Self {
        let mut next = self.changed(state, now);
        // Two prepared transactions of one id never carry the same time: it names their markers.
        next.last_update_timestamp = now.max(TimestampMs(self.last_update_timestamp.0 + 1));
        next
    }

    /// The end of a transaction of version 0 or 1: the epoch stays.
    pub fn prepared_with_same_epoch(&self, now: TimestampMs, result: TransactionResult) -> Self {
        TransactionMetadata {
            client_transaction_version: TransactionVersion::V0,
            ..self.prepared(now, prepared_state(result))
        }
    }

    /// The end of a transaction of version 2: the next epoch, which also fences records that are
    /// still on their way; `next_producer_id` is given when this epoch is the last.
    pub fn prepared_with_next_epoch(
        &self,
        now: TimestampMs,
        result: TransactionResult,
        next_producer_id: Option<ProducerId>,
    ) -> Self {
        let mut next = self.prepared(now, prepared_state(result));
        if self.state != TransactionState::Ongoing {
            // An abort of nothing. When it began is unknown, but a time has to stand there.
            next.start_timestamp = next.last_update_timestamp;
        }
        next.last_producer_epoch = self.producer_epoch;
        next.producer_epoch = next_epoch(self.producer_epoch);
        next.next_producer_id = next_producer_id.unwrap_or(ProducerId::NONE);
        next.client_transaction_version = TransactionVersion::V2;
        next
    }

    /// The abort of a transaction by the coordinator, in a cluster below version 2: the epoch that
    /// fences the producer is never given to anybody.
    pub fn fenced(&self, now: TimestampMs) -> Self {
        let fence = TransactionState::PrepareEpochFence;
        assert!(self.state.may_become(fence) && fence.may_become(TransactionState::PrepareAbort));
        TransactionMetadata {
            producer_epoch: next_epoch(self.producer_epoch),
            last_producer_epoch: ProducerEpoch::NONE,
            client_transaction_version: TransactionVersion::V0,
            ..self.prepared(now, TransactionState::PrepareAbort)
        }
    }

    /// All markers are written.
    pub fn completed(&self, now: TimestampMs) -> Self {
        let state = match self.state {
            TransactionState::PrepareCommit => TransactionState::CompleteCommit,
            _ => TransactionState::CompleteAbort,
        };
        let after = self.producer_after_completion();
        TransactionMetadata {
            producer_id: after.producer_id,
            producer_epoch: after.producer_epoch,
            next_producer_id: ProducerId::NONE,
            partitions: BTreeSet::new(),
            ..self.changed(state, now)
        }
    }

    /// The producer that a prepared transaction leaves behind: what the client is told.
    pub fn producer_after_completion(&self) -> ProducerIdAndEpoch {
        if self.next_producer_id == ProducerId::NONE {
            return self.producer();
        }
        ProducerIdAndEpoch {
            producer_id: self.next_producer_id,
            producer_epoch: ProducerEpoch(0),
        }
    }
}

fn prepared_state(result: TransactionResult) -> TransactionState {
    match result {
        TransactionResult::Commit => TransactionState::PrepareCommit,
        TransactionResult::Abort => TransactionState::PrepareAbort,
    }
}

fn next_epoch(epoch: ProducerEpoch) -> ProducerEpoch {
    ProducerEpoch(epoch.0.saturating_add(1)).min(PRODUCER_EPOCH_MAX)
}
