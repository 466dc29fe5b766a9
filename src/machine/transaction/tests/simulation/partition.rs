//! A partition, as far as transactions go: one epoch per producer, open records, markers.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[derive(Default)]
struct Producer {
    epoch: i16,
    coordinator_epoch: i32,
    /// A record that was checked with the coordinator may only be appended if no marker came since.
    marker_count: u32,
    open: Vec<Txn>,
}

#[derive(Default)]
pub struct Partition {
    producers: BTreeMap<ProducerId, Producer>,
    /// Idempotence: what was appended once is not appended again.
    seen: BTreeSet<(Txn, u32)>,
}

impl Partition {
    pub fn has_open(&self, producer: ProducerIdAndEpoch) -> bool {
        self.producers
            .get(&producer.producer_id)
            .is_some_and(|p| !p.open.is_empty() && p.epoch == producer.producer_epoch.0)
    }

    pub fn open_count(&self) -> usize {
        self.producers.values().map(|p| p.open.len()).sum()
    }

    pub fn marker_count(&self, producer: ProducerIdAndEpoch) -> u32 {
        self.producers
            .get(&producer.producer_id)
            .map_or(0, |p| p.marker_count)
    }

    /// Whether the record is (now or already) in the log.
    pub fn append(
        &mut self,
        producer: ProducerIdAndEpoch,
        txn: Txn,
        number: u32,
        marker_count: u32,
    ) -> Append {
        if self.seen.contains(&(txn, number)) {
            return Append::Repeated;
        }
        let state = self.producers.entry(producer.producer_id).or_default();
        let epoch = producer.producer_epoch.0;
        if epoch < state.epoch || marker_count != state.marker_count {
            return Append::Refused;
        }
        let newer = epoch > state.epoch;
        assert!(
            !newer || state.open.is_empty(),
            "a new epoch meets an open transaction"
        );
        state.epoch = epoch;
        state.open.push(txn);
        self.seen.insert((txn, number));
        Append::Appended
    }

    /// The records that the marker decides about; `None` if it is refused.
    pub fn write_marker(&mut self, markers: &TxnMarkers) -> Option<Vec<Txn>> {
        let state = self
            .producers
            .entry(markers.producer.producer_id)
            .or_default();
        let epoch = markers.producer.producer_epoch.0;
        if markers.coordinator_epoch.0 < state.coordinator_epoch || epoch < state.epoch {
            return None;
        }
        // The marker of a version 2 transaction is above the epoch of its records: at the same
        // epoch it is one that came before.
        let strict = markers.transaction_version.bumps_epoch();
        if strict && epoch == state.epoch && !state.open.is_empty() {
            return None;
        }
        state.epoch = epoch;
        state.coordinator_epoch = markers.coordinator_epoch.0;
        state.marker_count += 1;
        Some(std::mem::take(&mut state.open))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Append {
    Appended,
    Repeated,
    Refused,
}
