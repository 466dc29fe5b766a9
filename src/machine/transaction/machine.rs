//! The machine itself: what it keeps, how commands reach their decisions, how records change it.
//!
//! The driver, for each command:
//!
//! 1. `decide` gives records, a reply and perhaps markers. Without records the reply leaves.
//! 2. `begin` notes that the records are under way; they are appended.
//! 3. Committed: `apply` each, send the reply, write the markers.
//!    Failed: drop the machine, load it again; the client gets the error of the append.
//! 4. `on_markers_written` for each answer to a marker request; when it says that all are written
//!    (for an empty set: at once), decide `CompleteTxn`.
//!
//! A driver may also `apply` at once, without `begin`, if everything it shows waits until what was
//! appended before is committed: replies without records, queries, and above all markers.
//!
//! After loading, `prepared` gives the markers of all transactions that were under way. At
//! `deadline`, `expire` gives decisions, to be handled as in 2 and 3.
//!
//! Times in the log are those of the wall clock of whoever wrote them. After loading, and whenever
//! the clock was set back, the driver says so (`clock_is`): what began in the future begins now,
//! or it would stay open until that future has come. What was decided before the clock was set
//! back has to be applied by then; a driver that applies later says it once more.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{Command, Decision, MarkersWritten, NextProducerId, Reply, TxnMarkers};
use super::{
    TransactionMetadata, TransactionRecord, TransactionState, TransactionVersion, TransactionalId,
};
use crate::types::{ErrorCode, LeaderEpoch, TimestampMs, TopicPartition};

/// How many transactions one `expire` ends, at most.
const EXPIRED_COUNT_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionConfig {
    /// `transaction.max.timeout.ms`
    pub transaction_max_timeout_ms: i32,
    /// `transactional.id.expiration.ms`
    pub transactional_id_expiration_ms: i32,
    /// The finalized level of the feature `transaction.version`.
    pub transaction_version: TransactionVersion,
}

/// The transactions of one partition of `__transaction_state`.
#[derive(Debug, Clone)]
pub struct TransactionMachine {
    pub(super) config: TransactionConfig,
    /// The leader epoch of the partition: markers carry it, so that those of an old coordinator
    /// are refused.
    pub(super) coordinator_epoch: LeaderEpoch,
    pub(super) transactions: BTreeMap<TransactionalId, TransactionMetadata>,
    /// Records under way: the state they lead to.
    pub(super) pending: BTreeMap<TransactionalId, TransactionState>,
    /// Of prepared transactions: the partitions that still lack their marker.
    pub(super) outstanding: BTreeMap<TransactionalId, BTreeSet<TopicPartition>>,
    /// When something is to be done about an id by itself; none while a record is under way.
    deadlines: BTreeSet<(TimestampMs, TransactionalId)>,
    /// From when the time of an id counts, where that is not what its record says.
    counts_from: BTreeMap<TransactionalId, TimestampMs>,
}

impl TransactionMachine {
    /// An empty machine; loading is `apply` of every record in the log.
    pub fn new(config: TransactionConfig, coordinator_epoch: LeaderEpoch) -> Self {
        TransactionMachine {
            config,
            coordinator_epoch,
            transactions: BTreeMap::new(),
            pending: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            counts_from: BTreeMap::new(),
        }
    }

    /// A configuration changed, or the feature level did.
    pub fn set_config(&mut self, config: TransactionConfig) {
        self.config = config;
        self.find_deadlines();
    }

    /// The clock says `now` where by the time that has passed it would say `expected`; after
    /// loading the two are the same. What waits keeps the time that it had left, but nothing waits
    /// for longer than if it began now.
    pub fn clock_is(&mut self, expected: TimestampMs, now: TimestampMs) {
        let mut counts_from = BTreeMap::new();
        for (id, metadata) in &self.transactions {
            let Some(recorded) = begins_at(metadata) else {
                continue;
            };
            let counted = self.counts_from.get(id).copied().unwrap_or(recorded);
            let passed_ms = expected.0.saturating_sub(counted.0).max(0);
            let from = TimestampMs(now.0.saturating_sub(passed_ms));
            if from != recorded {
                counts_from.insert(id.clone(), from);
            }
        }
        self.counts_from = counts_from;
        self.find_deadlines();
    }

    /// Whether the transaction that is open is the one that was.
    fn goes_on(&self, id: &TransactionalId, next: Option<&TransactionMetadata>) -> bool {
        let is_open = |m: &TransactionMetadata| m.state == TransactionState::Ongoing;
        self.transactions.get(id).is_some_and(is_open) && next.is_some_and(is_open)
    }

    fn find_deadlines(&mut self) {
        let transactions = self.transactions.iter();
        let idle = transactions.filter(|(id, _)| !self.pending.contains_key(*id));
        self.deadlines = idle
            .filter_map(|(id, metadata)| Some((self.deadline_of(id, metadata)?, id.clone())))
            .collect();
    }

    /// The transaction version whose value format the records are written in.
    pub fn transaction_version(&self) -> TransactionVersion {
        self.config.transaction_version
    }

    pub fn decide(
        &self,
        now: TimestampMs,
        command: &Command,
        ids: &mut NextProducerId,
    ) -> Decision {
        match command {
            Command::InitProducerId(command) => self
                .decide_init_producer_id(now, command, ids)
                .unwrap_or_else(|error| Decision::reply(Reply::InitProducerId(Err(error)))),
            Command::AddPartitions(command) => self
                .decide_add_partitions(now, command)
                .unwrap_or_else(|error| Decision::reply(Reply::AddPartitions(Err(error)))),
            Command::EndTxn(command) => self
                .decide_end_txn(now, command, ids)
                .unwrap_or_else(|error| Decision::reply(Reply::EndTxn(Err(error)))),
            Command::CompleteTxn(command) => self.decide_complete(now, command),
        }
    }

    /// The records of a decision are about to be appended.
    pub fn begin(&mut self, records: &[TransactionRecord]) {
        for record in records {
            let state = record
                .metadata
                .as_ref()
                .map_or(TransactionState::Dead, |m| m.state);
            let id = &record.transactional_id;
            let before = self.pending.insert(id.clone(), state);
            assert_eq!(before, None, "two records of {id} under way");
            self.forget_deadline(id);
        }
    }

    /// A committed record, at start or live.
    pub fn apply(&mut self, record: TransactionRecord) {
        let TransactionRecord {
            transactional_id: id,
            metadata,
        } = record;
        self.pending.remove(&id);
        self.forget_deadline(&id);
        if !self.goes_on(&id, metadata.as_ref()) {
            self.counts_from.remove(&id);
        }
        self.outstanding.remove(&id);
        let Some(metadata) = metadata else {
            self.transactions.remove(&id);
            return;
        };
        if let Some(deadline) = self.deadline_of(&id, &metadata) {
            self.deadlines.insert((deadline, id.clone()));
        }
        if metadata.state.is_prepared() {
            self.outstanding
                .insert(id.clone(), metadata.partitions.clone());
        }
        self.transactions.insert(id, metadata);
    }

    /// Takes the marker off the list. True when none is left: time for `CompleteTxn`. What belongs
    /// to another transaction (late, or twice) changes nothing.
    pub fn on_markers_written(&mut self, written: &MarkersWritten) -> bool {
        let id = &written.transactional_id;
        if !self.is_prepared_at(id, written.prepared_at) {
            return false;
        }
        if let Some(outstanding) = self.outstanding.get_mut(id) {
            outstanding.retain(|partition| !written.partitions.contains(partition));
        }
        self.is_written(id, written.prepared_at)
    }

    /// The markers of every prepared transaction that are still to be written.
    pub fn prepared(&self) -> Vec<TxnMarkers> {
        let prepared = self.outstanding.iter();
        prepared
            .filter_map(|(id, partitions)| {
                let markers = self.markers_of(id, self.transactions.get(id)?)?;
                Some(TxnMarkers {
                    partitions: partitions.clone(),
                    ..markers
                })
            })
            .collect()
    }

    /// When `expire` will have something to do.
    pub fn deadline(&self) -> Option<TimestampMs> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Aborts what is open for too long and forgets the ids nobody uses, at most a thousand at a
    /// time. One that needs a producer id when there is none is left for the next call, when a
    /// block has arrived.
    pub fn expire(&self, now: TimestampMs, ids: &mut NextProducerId) -> Vec<Decision> {
        let due = self
            .deadlines
            .iter()
            .take_while(|(deadline, _)| *deadline <= now);
        due.take(EXPIRED_COUNT_MAX)
            .filter_map(|(_, id)| match self.transactions[id].state {
                TransactionState::Ongoing => self.decide_fence(now, id, ids).ok(),
                state => {
                    assert!(state.may_become(TransactionState::Dead));
                    let tombstone = TransactionRecord {
                        transactional_id: id.clone(),
                        metadata: None,
                    };
                    Some(Decision::record(tombstone, Reply::Nobody))
                }
            })
            .collect()
    }

    pub(super) fn store(
        transactional_id: &TransactionalId,
        metadata: TransactionMetadata,
        reply: Reply,
    ) -> Decision {
        let transactional_id = transactional_id.clone();
        let record = TransactionRecord {
            transactional_id,
            metadata: Some(metadata),
        };
        Decision::record(record, reply)
    }

    /// Whether a client has to wait: a record is under way, or markers are.
    pub(super) fn is_in_transition(&self, transactional_id: &str) -> bool {
        self.pending.contains_key(transactional_id)
            || self.outstanding.contains_key(transactional_id)
    }

    /// A request of version 2 in a cluster that writes records of version 0, which have no place
    /// for what it needs.
    pub(super) fn check_version(&self, client: TransactionVersion) -> Result<(), ErrorCode> {
        let of_cluster = self.config.transaction_version;
        if client.bumps_epoch() && of_cluster.value_version() == 0 {
            return Err(ErrorCode::UnsupportedVersion);
        }
        Ok(())
    }

    pub(super) fn is_written(&self, transactional_id: &str, prepared_at: TimestampMs) -> bool {
        self.is_prepared_at(transactional_id, prepared_at)
            && self
                .outstanding
                .get(transactional_id)
                .is_some_and(|left| left.is_empty())
    }

    fn is_prepared_at(&self, transactional_id: &str, prepared_at: TimestampMs) -> bool {
        self.transactions
            .get(transactional_id)
            .is_some_and(|metadata| {
                metadata.state.is_prepared() && metadata.last_update_timestamp == prepared_at
            })
    }

    fn forget_deadline(&mut self, transactional_id: &TransactionalId) {
        let metadata = self.transactions.get(transactional_id);
        if let Some(deadline) = metadata.and_then(|m| self.deadline_of(transactional_id, m)) {
            self.deadlines.remove(&(deadline, transactional_id.clone()));
        }
    }

    /// When the coordinator acts on an id by itself, if nobody else does before.
    fn deadline_of(
        &self,
        transactional_id: &TransactionalId,
        metadata: &TransactionMetadata,
    ) -> Option<TimestampMs> {
        let recorded = begins_at(metadata)?;
        let from = self.counts_from.get(transactional_id).unwrap_or(&recorded);
        let time_ms = match metadata.state {
            // Kafka aborts what is open for longer than the time-out.
            TransactionState::Ongoing => i64::from(metadata.transaction_timeout_ms) + 1,
            _ => i64::from(self.config.transactional_id_expiration_ms),
        };
        Some(TimestampMs(from.0.saturating_add(time_ms)))
    }
}

/// From when the time of an id counts by its record, if it is limited.
fn begins_at(metadata: &TransactionMetadata) -> Option<TimestampMs> {
    match metadata.state {
        // Two-phase commit: only its client may end it.
        TransactionState::Ongoing if metadata.transaction_timeout_ms == i32::MAX => None,
        TransactionState::Ongoing => Some(metadata.start_timestamp),
        state if state.may_expire() => Some(metadata.last_update_timestamp),
        _ => None,
    }
}
