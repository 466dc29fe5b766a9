//! The states of a transaction, the one table of its transitions, and the transaction versions.

/// Where a transactional id stands. The numbers are those of `__transaction_state` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum TransactionState {
    /// A producer id is assigned; no transaction yet.
    Empty = 0,
    /// Partitions are part of an open transaction.
    Ongoing = 1,
    /// The commit is decided; markers are being written.
    PrepareCommit = 2,
    /// The abort is decided; markers are being written.
    PrepareAbort = 3,
    CompleteCommit = 4,
    CompleteAbort = 5,
    /// The id is expiring. Never in a record: a tombstone is.
    Dead = 6,
    /// The coordinator is about to abort with a higher epoch. Never in a record: the PrepareAbort
    /// that follows at once is.
    PrepareEpochFence = 7,
}

use TransactionState::*;

/// Each state and those that may follow it.
pub const TRANSITIONS: &[(TransactionState, &[TransactionState])] = &[
    (Empty, &[Empty, Ongoing, PrepareAbort, Dead]),
    (
        Ongoing,
        &[Ongoing, PrepareCommit, PrepareAbort, PrepareEpochFence],
    ),
    (PrepareCommit, &[CompleteCommit]),
    (PrepareAbort, &[CompleteAbort]),
    (CompleteCommit, &[Empty, Ongoing, PrepareAbort, Dead]),
    (CompleteAbort, &[Empty, Ongoing, PrepareAbort, Dead]),
    (Dead, &[]),
    (PrepareEpochFence, &[PrepareAbort]),
];

impl TransactionState {
    pub const ALL: [TransactionState; 8] = [
        Empty,
        Ongoing,
        PrepareCommit,
        PrepareAbort,
        CompleteCommit,
        CompleteAbort,
        Dead,
        PrepareEpochFence,
    ];

    pub const fn id(self) -> i8 {
        self as i8
    }

    pub fn from_id(id: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }

    /// Kafka's name, as DescribeTransactions and ListTransactions give it.
    pub const fn name(self) -> &'static str {
        match self {
            Empty => "Empty",
            Ongoing => "Ongoing",
            PrepareCommit => "PrepareCommit",
            PrepareAbort => "PrepareAbort",
            CompleteCommit => "CompleteCommit",
            CompleteAbort => "CompleteAbort",
            Dead => "Dead",
            PrepareEpochFence => "PrepareEpochFence",
        }
    }

    /// The state of this name; names are case-sensitive.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    pub fn may_become(self, next: TransactionState) -> bool {
        TRANSITIONS
            .iter()
            .any(|(from, to)| *from == self && to.contains(&next))
    }

    /// Whether markers of this transaction are still to be written.
    pub const fn is_prepared(self) -> bool {
        matches!(self, PrepareCommit | PrepareAbort)
    }

    /// Whether the transactional id may be forgotten in this state.
    pub const fn may_expire(self) -> bool {
        matches!(self, Empty | CompleteCommit | CompleteAbort)
    }
}

/// The feature `transaction.version`: of the cluster, or the one a client's request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i16)]
pub enum TransactionVersion {
    V0 = 0,
    /// Records with tagged fields.
    V1 = 1,
    /// KIP-890: each transaction has an epoch of its own; partitions are added by their leaders.
    V2 = 2,
}

impl TransactionVersion {
    pub const fn level(self) -> i16 {
        self as i16
    }

    pub const fn from_level(level: i16) -> Option<Self> {
        match level {
            0 => Some(Self::V0),
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    /// What an AddPartitionsToTxn of this version stands for. AddOffsetsToTxn is always V0.
    pub const fn of_add_partitions(api_version: i16) -> Self {
        if api_version >= 4 { Self::V2 } else { Self::V0 }
    }

    /// What an EndTxn of this version stands for.
    pub const fn of_end_txn(api_version: i16) -> Self {
        if api_version >= 5 { Self::V2 } else { Self::V0 }
    }

    /// Whether ending a transaction gives the producer the next epoch.
    pub const fn bumps_epoch(self) -> bool {
        matches!(self, Self::V2)
    }

    /// The version of `__transaction_state` values that a cluster of this level writes.
    pub const fn value_version(self) -> i16 {
        match self {
            Self::V0 => 0,
            Self::V1 | Self::V2 => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows are from, columns are to, both in the order of `ALL`.
    const ALLOWED: [&str; 8] = [
        "xx.x..x.", // Empty
        ".xxx...x", // Ongoing
        "....x...", // PrepareCommit
        ".....x..", // PrepareAbort
        "xx.x..x.", // CompleteCommit
        "xx.x..x.", // CompleteAbort
        "........", // Dead
        "...x....", // PrepareEpochFence
    ];

    #[test]
    fn every_pair_of_states_is_decided() {
        for (from, row) in TransactionState::ALL.into_iter().zip(ALLOWED) {
            for (to, cell) in TransactionState::ALL.into_iter().zip(row.chars()) {
                assert_eq!(from.may_become(to), cell == 'x', "{from:?} to {to:?}");
            }
        }
        let listed: Vec<_> = TRANSITIONS.iter().map(|(from, _)| *from).collect();
        assert_eq!(listed, TransactionState::ALL);
    }

    #[test]
    fn ids_and_names_are_found_again() {
        for (id, state) in TransactionState::ALL.into_iter().enumerate() {
            assert_eq!(state.id(), id as i8);
            assert_eq!(TransactionState::from_id(state.id()), Some(state));
            assert_eq!(TransactionState::from_name(state.name()), Some(state));
        }
        assert_eq!(TransactionState::from_id(8), None);
        assert_eq!(TransactionState::from_id(-1), None);
        assert_eq!(TransactionState::from_name("ongoing"), None);
    }

    #[test]
    fn an_outcome_once_prepared_has_one_way_on() {
        for state in TransactionState::ALL
            .into_iter()
            .filter(|s| s.is_prepared())
        {
            let next: Vec<_> = TransactionState::ALL
                .into_iter()
                .filter(|to| state.may_become(*to))
                .collect();
            assert_eq!(next.len(), 1, "{state:?}");
            assert!(!state.may_expire());
        }
    }
}
