//! DescribeTransactions and ListTransactions: what the machine shows. Both see what is committed.

use std::collections::{BTreeMap, BTreeSet};

use super::{TransactionMachine, TransactionMetadata, TransactionState, TransactionalId};
use crate::types::{ErrorCode, ProducerId, TimestampMs};

/// The filters of ListTransactions; empty or negative ones let everything through.
#[derive(Default)]
pub struct TransactionFilters<'a> {
    /// By name, case-sensitive. Unknown names match nothing, even alone.
    pub states: BTreeSet<&'a str>,
    pub producer_ids: BTreeSet<ProducerId>,
    /// Only transactions that began longer ago than this. An id without any transaction counts as
    /// begun a millisecond before 1970, as in Kafka.
    pub duration_ms: Option<i64>,
    /// The whole transactional id has to match (v2+). The caller compiles the expression; a bad
    /// one is INVALID_REGULAR_EXPRESSION, an empty one is none.
    pub transactional_id: Option<&'a dyn Fn(&str) -> bool>,
}

/// One line of ListTransactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionListing {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub state: TransactionState,
}

/// What the transactions of a partition are doing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TransactionStates {
    /// How many transactional ids are in which state.
    pub counts: BTreeMap<TransactionState, usize>,
    /// When the eldest of those under way began.
    pub eldest: Option<TimestampMs>,
}

/// The named states that exist, and the names (each once) that the answer lists as unknown.
pub fn known_states<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> (BTreeSet<TransactionState>, BTreeSet<&'a str>) {
    let mut known = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    for name in names {
        match TransactionState::from_name(name) {
            Some(state) => drop(known.insert(state)),
            None => drop(unknown.insert(name)),
        }
    }
    (known, unknown)
}

impl TransactionMachine {
    /// While markers are being written, `partitions` are those still without one.
    pub fn describe(&self, transactional_id: &str) -> Result<TransactionMetadata, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let metadata = self.transactions.get(transactional_id);
        let mut metadata = metadata.ok_or(ErrorCode::TransactionalIdNotFound)?.clone();
        if let Some(partitions) = self.outstanding.get(transactional_id) {
            metadata.partitions = partitions.clone();
        }
        Ok(metadata)
    }

    /// Adds the transactions to `states`.
    pub fn count_states(&self, states: &mut TransactionStates) {
        for metadata in self.transactions.values() {
            let state = metadata.state;
            *states.counts.entry(state).or_default() += 1;
            if state == TransactionState::Ongoing || state.is_prepared() {
                let began = metadata.start_timestamp;
                states.eldest = Some(states.eldest.map_or(began, |eldest| eldest.min(began)));
            }
        }
    }

    pub fn list(&self, now: TimestampMs, filters: &TransactionFilters) -> Vec<TransactionListing> {
        let (states, _) = known_states(filters.states.iter().copied());
        let shown = |id: &str, metadata: &TransactionMetadata| {
            (filters.states.is_empty() || states.contains(&metadata.state))
                && (filters.producer_ids.is_empty()
                    || filters.producer_ids.contains(&metadata.producer_id))
                && filters.duration_ms.is_none_or(|duration_ms| {
                    duration_ms < 0
                        || now.0.saturating_sub(metadata.start_timestamp.0) > duration_ms
                })
                && filters.transactional_id.is_none_or(|matches| matches(id))
        };
        let transactions = self.transactions.iter();
        transactions
            .filter(|(id, metadata)| shown(id, metadata))
            .map(|(id, metadata)| TransactionListing {
                transactional_id: id.clone(),
                producer_id: metadata.producer_id,
                state: metadata.state,
            })
            .collect()
    }
}
