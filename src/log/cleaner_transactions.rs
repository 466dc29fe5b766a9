//! Which batches of transactions compaction may drop, PURE. It is told of the batches in their
//! order.
//!
//! 1. The data of an aborted transaction go at once.
//! 2. A marker may go when, in this round, no data of its transaction were met: those of an aborted
//!    one went in an earlier round, those of a committed one were all superseded. Until then its
//!    entry in the transaction index stays too, since readers may still hold the data.
//! 3. A marker without a record was emptied in an earlier round and is kept for its producer only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::record::{BatchHeader, Marker, MarkerType};
use crate::types::{Offset, ProducerId};

use super::txn_index::AbortedTxn;

#[derive(Debug, Default)]
pub(super) struct CleanedTransactions {
    /// Committed, or open: data were met and no marker yet.
    with_data: BTreeSet<ProducerId>,
    /// Begun and to be aborted; whether data of it were met.
    aborted: BTreeMap<ProducerId, (AbortedTxn, bool)>,
    /// By first offset; not begun yet.
    coming: VecDeque<AbortedTxn>,
}

/// What a control batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Marker(MarkerType),
    Other,
    /// It has no record.
    Empty,
}

impl Control {
    pub fn of(header: &BatchHeader, marker: Option<Marker>) -> Control {
        match marker {
            _ if header.records_count == 0 => Control::Empty,
            Some(marker) => Control::Marker(marker.marker_type),
            None => Control::Other,
        }
    }
}

/// What may be done with a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerFate {
    pub may_go: bool,
    /// It stays in the transaction index.
    pub index: Option<AbortedTxn>,
}

impl CleanedTransactions {
    /// The aborted transactions of which batches follow; some may be known already.
    pub fn add_aborted(&mut self, aborted: &[AbortedTxn]) {
        for txn in aborted {
            let is_known =
                self.coming.contains(txn) || self.aborted.values().any(|(known, _)| known == txn);
            if !is_known {
                self.coming.push_back(*txn);
            }
        }
        let by_offset = self.coming.make_contiguous();
        by_offset.sort_by_key(|txn| txn.first_offset);
    }

    /// Whether the data batch is of an aborted transaction.
    pub fn on_data(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.attributes.is_transactional() {
            return false;
        }
        if let Some((_, has_data)) = self.aborted.get_mut(&header.producer_id) {
            *has_data = true;
            return true;
        }
        self.with_data.insert(header.producer_id);
        false
    }

    pub fn on_control(&mut self, header: &BatchHeader, control: Control) -> MarkerFate {
        self.begin_up_to(header.last_offset());
        let (may_go, index) = match control {
            Control::Empty => (true, None),
            Control::Other => (false, None),
            Control::Marker(MarkerType::Commit) => {
                (!self.with_data.remove(&header.producer_id), None)
            }
            Control::Marker(MarkerType::Abort) => match self.aborted.remove(&header.producer_id) {
                Some((txn, true)) => (false, Some(txn)),
                _ => (true, None),
            },
        };
        MarkerFate { may_go, index }
    }

    fn begin_up_to(&mut self, offset: Offset) {
        while let Some(txn) = self.coming.front().filter(|t| t.first_offset <= offset) {
            self.aborted.entry(txn.producer_id).or_insert((*txn, false));
            self.coming.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::support::{marker, transactional};
    use super::*;

    fn data(id: i64, offset: i64) -> BatchHeader {
        let mut header = transactional(id, 0, 0, 1).header;
        header.base_offset = Offset(offset);
        header
    }

    fn end(id: i64, offset: i64) -> BatchHeader {
        let mut header = marker(id, 0, MarkerType::Abort, 0).header;
        header.base_offset = Offset(offset);
        header
    }

    const COMMIT: Control = Control::Marker(MarkerType::Commit);
    const ABORT: Control = Control::Marker(MarkerType::Abort);

    #[test]
    fn markers_stay_while_there_are_data() {
        let txn = |id, first, last| AbortedTxn {
            producer_id: ProducerId(id),
            first_offset: Offset(first),
            last_offset: Offset(last),
            last_stable_offset: Offset(first),
        };
        let mut state = CleanedTransactions::default();
        // Producer 1 commits, 2 aborts, then the other way round; what 2 had begun at 8 is gone.
        state.add_aborted(&[txn(1, 5, 7), txn(2, 1, 3)]);
        state.add_aborted(&[txn(2, 1, 3), txn(2, 8, 9)]);
        assert!(!state.on_data(&data(1, 0)));
        assert!(state.on_data(&data(2, 1)));
        assert!(!state.on_control(&end(1, 2), COMMIT).may_go);
        let fate = state.on_control(&end(2, 3), ABORT);
        assert_eq!((fate.may_go, fate.index), (false, Some(txn(2, 1, 3))));
        assert!(!state.on_data(&data(2, 4)));
        assert!(state.on_data(&data(1, 5)));
        assert!(!state.on_control(&end(2, 6), COMMIT).may_go);
        assert_eq!(
            state.on_control(&end(1, 7), ABORT).index,
            Some(txn(1, 5, 7))
        );
        let fate = state.on_control(&end(2, 9), ABORT);
        assert_eq!((fate.may_go, fate.index), (true, None));
        // Neither has data any more.
        assert!(state.on_control(&end(1, 10), COMMIT).may_go);
        assert!(state.on_control(&end(1, 11), Control::Empty).may_go);
        assert!(!state.on_control(&end(1, 12), Control::Other).may_go);
    }
}
