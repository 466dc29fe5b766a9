//! What must always hold, one file each.

mod acked_outcome_is_whole;
mod epoch_never_goes_back;
mod fenced_producer_never_commits;
mod marker_agrees_with_decision;
mod one_marker_kind_per_transaction;
mod outcome_never_changes;

use super::*;

pub trait Invariant: std::panic::UnwindSafe {
    fn on(&mut self, event: &Event);
    /// Everything is healed.
    fn at_end(&self) {}
}

pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<acked_outcome_is_whole::AckedOutcomeIsWhole>::default(),
        Box::<epoch_never_goes_back::EpochNeverGoesBack>::default(),
        Box::<fenced_producer_never_commits::FencedProducerNeverCommits>::default(),
        Box::<marker_agrees_with_decision::MarkerAgreesWithDecision>::default(),
        Box::<one_marker_kind_per_transaction::OneMarkerKindPerTransaction>::default(),
        Box::<outcome_never_changes::OutcomeNeverChanges>::default(),
    ]
}
