//! Has the markers of a transaction written: again and again until each partition has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::host::tasks;
use crate::machine::transaction::TxnMarkers;
use crate::types::{ErrorCode, TopicPartition};

/// How long a partition that could not take its marker is left alone.
pub(super) const RETRY: Duration = Duration::from_millis(100);

/// What was answered for each partition.
pub type Written = BTreeMap<TopicPartition, ErrorCode>;

/// Brings markers to the leaders of their partitions, on this broker or on others.
pub trait MarkerTargets: Send + Sync + 'static {
    /// Writes the marker into each of `partitions`; those that do not exist (any more) are NONE.
    fn write<'a>(
        &'a self,
        markers: &'a TxnMarkers,
        partitions: &'a BTreeSet<TopicPartition>,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>>;
}

/// One round of writing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub written: BTreeSet<TopicPartition>,
    pub left: BTreeSet<TopicPartition>,
    /// A partition knows a newer coordinator or a newer producer: this one is not to end it.
    pub fenced: Option<(TopicPartition, ErrorCode)>,
}

pub(super) fn judge(answers: Written) -> Round {
    let mut round = Round::default();
    for (partition, error) in answers {
        match error {
            // Without transactions in its message format there is nothing to end.
            ErrorCode::None
            | ErrorCode::UnsupportedForMessageFormat
            | ErrorCode::UnsupportedVersion => drop(round.written.insert(partition)),
            ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced => {
                round.fenced = Some((partition, error));
            }
            _ => drop(round.left.insert(partition)),
        }
    }
    round
}

/// Goes on with `work` here for as long as it need not wait, and aside from then on.
pub(super) fn run_here_then_aside(work: impl Future<Output = ()> + Send + 'static) {
    if let Err(work) = tasks::poll_once(Box::pin(work)) {
        drop(tasks::spawn(work));
    }
}
