//! What the leader of a partition knows of its replicas, and what follows from it: who is in sync,
//! and up to where records are committed.
//!
//! ```text
//!            propose_growth -> Growing ---.
//!   Settled                                >-- settle (the controller's answer, or the metadata)
//!            propose_shrink -> Shrinking -'    -> Settled
//!                                              refuse (not attempted) -> Settled, as it was
//! ```
//!
//! 1. The high watermark never goes back. It is at most the log end offset of every member of the
//!    maximal ISR: those the controller knows, and one that it may know by the time it answers.
//!    Whoever the controller elects next is one of these, and so has every committed record.
//! 2. A follower's log end offset is what its last fetch asked for: it has what lies below. It
//!    counts for this leader epoch only, nothing is taken over from an earlier one.
//! 3. The ISR grows by a follower that has reached the high watermark and the offset where this
//!    leader epoch starts: below that lies what an earlier leader may have committed without
//!    telling. It shrinks by those who were not at the log's end for `replica.lag.time.max.ms`.
//! 4. One change of the ISR is under way at a time, made from the partition epoch that it names.
//! 5. A follower may be added only as the incarnation that has fetched: if it has registered anew,
//!    what it had in its log may be gone.
//! 6. With fewer in sync than `min.insync.replicas` nothing is committed (KIP-966).

mod follower;
mod truncation;

use std::sync::Arc;
use std::time::Duration;

pub use follower::{Fetched, FollowerState};
pub use truncation::{EpochEnds, truncation_offset};

use follower::Follower;

use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset};

/// A broker's registration epoch where none is known: nothing is checked then.
pub const NO_BROKER_EPOCH: i64 = -1;

/// What the controller has decided about a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    pub replicas: Arc<[BrokerId]>,
    pub isr: Arc<[BrokerId]>,
}

/// What the leader asks the controller for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrProposal {
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// With the registration epoch of each, [`NO_BROKER_EPOCH`] where it does not matter.
    pub new_isr: Vec<(BrokerId, i64)>,
}

/// What is to be done after the controller refused a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Ask again.
    Retry,
    /// It was not attempted: the ISR is what it was.
    Dropped,
    /// It may have happened, or the metadata has moved on: the next metadata says.
    WaitForMetadata,
}

/// The ISR: what the controller last said, and the change that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Growing(BrokerId),
    Shrinking,
}

/// A follower outside of the ISR that was at the log's end so lately is about to join.
const JOINS_SOON: Duration = Duration::from_secs(1);

/// Which brokers may join an ISR: those that are registered, not fenced and not shutting down, with
/// their registration epoch.
pub type Eligible<'a> = &'a dyn Fn(BrokerId) -> Option<i64>;

/// The state of a partition's leader. Lives for one leader epoch.
#[derive(Debug, Clone)]
pub struct ReplicaSet {
    this_broker: BrokerId,
    decided: Decided,
    change: Change,
    followers: Vec<Follower>,
    /// Where the log ended when this epoch began.
    leader_epoch_start: Offset,
    high_watermark: Offset,
}

impl ReplicaSet {
    /// A leader epoch begins. Nothing is known of the followers but that those in sync were so a
    /// moment ago: they get `replica.lag.time.max.ms` to fetch.
    pub fn lead(
        this_broker: BrokerId,
        decided: Decided,
        log_end_offset: Offset,
        high_watermark: Offset,
        now: Duration,
    ) -> ReplicaSet {
        assert!(
            high_watermark <= log_end_offset,
            "committed what is not there"
        );
        let mut replica_set = ReplicaSet {
            this_broker,
            change: Change::None,
            followers: Vec::new(),
            leader_epoch_start: log_end_offset,
            high_watermark,
            decided,
        };
        replica_set.set_followers(now);
        replica_set
    }

    pub fn decided(&self) -> &Decided {
        &self.decided
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.decided.leader_epoch
    }

    pub fn leader_epoch_start(&self) -> Offset {
        self.leader_epoch_start
    }

    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// While there was no other replica the log's end was committed, and nobody has told.
    pub fn raise_high_watermark(&mut self, high_watermark: Offset) {
        self.high_watermark = self.high_watermark.max(high_watermark);
    }

    /// Takes over what the controller has decided within this leader epoch; `false` if that is
    /// older than what is known.
    pub fn settle(&mut self, decided: Decided, now: Duration) -> bool {
        assert_eq!(
            decided.leader_epoch, self.decided.leader_epoch,
            "another epoch is another replica set"
        );
        if decided.partition_epoch < self.decided.partition_epoch {
            return false;
        }
        let is_news = decided.partition_epoch > self.decided.partition_epoch;
        if is_news || self.change == Change::None {
            self.change = Change::None;
            self.decided = decided;
            self.set_followers(now);
        }
        true
    }

    /// Followers of `decided`: those that are known stay as they are.
    fn set_followers(&mut self, now: Duration) {
        let known = std::mem::take(&mut self.followers);
        let others = self.decided.replicas.iter().copied();
        let others = others.filter(|broker| *broker != self.this_broker);
        self.followers = others
            .map(|broker| {
                let known = known.iter().find(|follower| follower.broker == broker);
                let in_sync = self.decided.isr.contains(&broker);
                known
                    .cloned()
                    .unwrap_or_else(|| Follower::new(broker, in_sync.then_some(now)))
            })
            .collect();
    }

    /// A follower has fetched. `registered` is its registration epoch as the metadata has it.
    pub fn on_fetch(
        &mut self,
        fetched: &Fetched,
        registered: Option<i64>,
    ) -> Result<(), ErrorCode> {
        let follower = self
            .followers
            .iter_mut()
            .find(|f| f.broker == fetched.broker);
        let follower = follower.ok_or(ErrorCode::UnknownLeaderEpoch)?;
        follower.on_fetch(fetched, registered)
    }

    /// Whether `broker` is a follower here.
    pub fn is_follower(&self, broker: BrokerId) -> bool {
        self.followers
            .iter()
            .any(|follower| follower.broker == broker)
    }

    /// The replicas of other brokers.
    pub fn followers(&self) -> impl Iterator<Item = FollowerState> {
        self.followers.iter().map(Follower::state)
    }

    /// The high watermark that `broker` was last told.
    pub fn told_high_watermark(&self, broker: BrokerId) -> Offset {
        let follower = self.followers.iter().find(|f| f.broker == broker);
        follower.map_or(Offset::NONE, |follower| follower.told_high_watermark)
    }

    pub fn tell_high_watermark(&mut self, broker: BrokerId, high_watermark: Offset) {
        if let Some(follower) = self.followers.iter_mut().find(|f| f.broker == broker) {
            follower.told_high_watermark = high_watermark;
        }
    }

    /// How many the controller has in sync.
    pub fn isr_len(&self) -> usize {
        self.decided.isr.len()
    }

    /// How many have what is committed.
    pub fn maximal_isr_len(&self) -> usize {
        self.decided.isr.len() + usize::from(matches!(self.change, Change::Growing(_)))
    }

    /// `min.insync.replicas`, as far as there are replicas (KIP-966).
    pub fn effective_min_isr(&self, min_insync_replicas: usize) -> usize {
        min_insync_replicas.max(1).min(self.decided.replicas.len())
    }

    fn is_in_maximal_isr(&self, broker: BrokerId) -> bool {
        self.change == Change::Growing(broker) || self.decided.isr.contains(&broker)
    }

    /// Moves the high watermark as far as it may go; `Some` if it has moved.
    pub fn advance(
        &mut self,
        log_end_offset: Offset,
        min_insync_replicas: usize,
        lag_max: Duration,
        now: Duration,
        eligible: Eligible<'_>,
    ) -> Option<Offset> {
        if self.isr_len() < self.effective_min_isr(min_insync_replicas) {
            return None;
        }
        // Followers that keep up and are about to join are waited for: else the high watermark
        // would run ahead of them for ever. One that was cut off keeps up when it is back at the
        // log's end, not because it was there before: producers would wait until it is.
        let lag_max = lag_max.min(JOINS_SOON);
        let counts = |follower: &Follower| {
            self.is_in_maximal_isr(follower.broker)
                || (follower.is_caught_up(log_end_offset, now, lag_max)
                    && follower.is_incarnation(eligible(follower.broker)))
        };
        let ends = self.followers.iter().filter(|f| counts(f));
        let lowest = ends.map(|follower| follower.log_end_offset).min();
        let committed = lowest.map_or(log_end_offset, |lowest| lowest.min(log_end_offset));
        if committed <= self.high_watermark {
            return None;
        }
        self.high_watermark = committed;
        Some(committed)
    }

    /// The ISR with `broker`, if it may join now.
    pub fn propose_growth(
        &mut self,
        broker: BrokerId,
        eligible: Eligible<'_>,
    ) -> Option<IsrProposal> {
        if self.change != Change::None || self.decided.isr.contains(&broker) {
            return None;
        }
        let follower = self.followers.iter().find(|f| f.broker == broker)?;
        let reached = follower.log_end_offset >= self.high_watermark
            && follower.log_end_offset >= self.leader_epoch_start;
        if !reached || !follower.is_incarnation(eligible(broker)) {
            return None;
        }
        self.change = Change::Growing(broker);
        let mut new_isr: Vec<BrokerId> = self.decided.isr.to_vec();
        new_isr.push(broker);
        Some(self.proposal(&new_isr))
    }

    /// The ISR without those that have fallen behind, if any have.
    pub fn propose_shrink(
        &mut self,
        log_end_offset: Offset,
        lag_max: Duration,
        now: Duration,
    ) -> Option<IsrProposal> {
        if self.change != Change::None {
            return None;
        }
        let lags = |broker: BrokerId| {
            let follower = self.followers.iter().find(|f| f.broker == broker);
            follower.is_some_and(|f| !f.is_caught_up(log_end_offset, now, lag_max))
        };
        let isr = self.decided.isr.iter().copied();
        let new_isr: Vec<BrokerId> = isr.filter(|broker| !lags(*broker)).collect();
        if new_isr.len() == self.decided.isr.len() {
            return None;
        }
        self.change = Change::Shrinking;
        Some(self.proposal(&new_isr))
    }

    fn proposal(&self, new_isr: &[BrokerId]) -> IsrProposal {
        let epoch = |broker: BrokerId| {
            let follower = self.followers.iter().find(|f| f.broker == broker);
            follower.map_or(NO_BROKER_EPOCH, |f| {
                f.broker_epoch.unwrap_or(NO_BROKER_EPOCH)
            })
        };
        IsrProposal {
            leader_epoch: self.decided.leader_epoch,
            partition_epoch: self.decided.partition_epoch,
            new_isr: new_isr
                .iter()
                .map(|broker| (*broker, epoch(*broker)))
                .collect(),
        }
    }

    /// The controller has refused `proposal`.
    pub fn refuse(&mut self, proposal: &IsrProposal, error: ErrorCode) -> Refusal {
        let is_current = self.change != Change::None
            && proposal.leader_epoch == self.decided.leader_epoch
            && proposal.partition_epoch == self.decided.partition_epoch;
        if !is_current {
            return Refusal::WaitForMetadata;
        }
        match error {
            ErrorCode::OperationNotAttempted | ErrorCode::IneligibleReplica => {
                self.change = Change::None;
                Refusal::Dropped
            }
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::InvalidUpdateVersion
            | ErrorCode::InvalidRequest
            | ErrorCode::NewLeaderElected => Refusal::WaitForMetadata,
            _ => Refusal::Retry,
        }
    }
}

#[cfg(test)]
mod tests;
