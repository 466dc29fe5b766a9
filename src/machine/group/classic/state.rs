//! The states of a classic group.
//!
//! ```text
//!            first member joins               all joined, or time is up
//!   Empty ----------------------> Preparing ---------------------------> Completing
//!     ^                           Rebalance <--------------------------- Rebalance
//!     |                            |     ^   a member joins or goes          |
//!     |     nobody is left         |     |                                   | leader syncs
//!     +----------------------------+     +---------------- Stable <----------+
//!                                         a member joins or goes
//!
//!   any ---> Dead: the group is deleted
//! ```

/// A classic group's state, ordered as in [`TRANSITIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicState {
    /// No members; perhaps offsets.
    Empty,
    /// Members are asked to join again; joins are parked until all have, or time is up.
    PreparingRebalance,
    /// Everybody knows the generation; syncs are parked until the leader brings the assignment.
    CompletingRebalance,
    /// Members have their assignment.
    Stable,
    /// The group is gone.
    Dead,
}

use ClassicState::*;

/// Every transition that is allowed.
pub const TRANSITIONS: &[(ClassicState, ClassicState)] = &[
    (Empty, PreparingRebalance),
    (Empty, Dead),
    (PreparingRebalance, Empty),
    (PreparingRebalance, CompletingRebalance),
    (PreparingRebalance, Dead),
    (CompletingRebalance, PreparingRebalance),
    (CompletingRebalance, Stable),
    (CompletingRebalance, Dead),
    (Stable, PreparingRebalance),
    (Stable, Dead),
    (Dead, Dead),
];

impl ClassicState {
    pub const ALL: [ClassicState; 5] =
        [Empty, PreparingRebalance, CompletingRebalance, Stable, Dead];

    pub fn may_become(self, next: ClassicState) -> bool {
        TRANSITIONS.contains(&(self, next))
    }

    /// As Kafka's tools show it.
    pub const fn name(self) -> &'static str {
        match self {
            Empty => "Empty",
            PreparingRebalance => "PreparingRebalance",
            CompletingRebalance => "CompletingRebalance",
            Stable => "Stable",
            Dead => "Dead",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_what_kafka_allows() {
        // Rows: from; columns: to; in the order of ALL.
        let expected = [
            "-P--D", // Empty
            "E-C-D", // PreparingRebalance
            "-P-SD", // CompletingRebalance
            "-P--D", // Stable
            "----D", // Dead
        ];
        for (from, row) in ClassicState::ALL.into_iter().zip(expected) {
            for (to, cell) in ClassicState::ALL.into_iter().zip(row.chars()) {
                assert_eq!(from.may_become(to), cell != '-', "{from:?} -> {to:?}");
                if cell != '-' {
                    assert!(to.name().starts_with(cell));
                }
            }
        }
        assert!(TRANSITIONS.is_sorted());
    }
}
