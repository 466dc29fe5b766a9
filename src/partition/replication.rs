//! The leader and its followers: their fetches, the ISR, the high watermark.
//!
//! 1. A follower reads to the log's end. Its fetch counts only after it was answered by this leader
//!    epoch without an error or a divergence: then it has what lies below its offset.
//! 2. A change of the ISR holds when the controller has decided it, and is handed on only outside
//!    of the role's lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::isr_changes::IsrChange;
use super::leader::{Partition, Role, Watermarks};
use super::surroundings::Leadership;
use crate::log::{LogSlice, ReadError};
use crate::machine::replica_set::{
    Decided, Fetched, FollowerState, IsrProposal, Refusal, ReplicaSet,
};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset};

/// What a follower asks of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaFetch {
    pub replica: BrokerId,
    /// Of its registration; -1: not told.
    pub replica_epoch: i64,
    /// -1: not told.
    pub current_leader_epoch: i32,
    pub fetch_offset: Offset,
    /// -1: nothing was fetched yet, or not told.
    pub last_fetched_epoch: LeaderEpoch,
    pub log_start_offset: Offset,
    pub max_bytes: u32,
}

/// What it gets.
pub struct ReplicaRead {
    pub watermarks: Watermarks,
    /// Where the logs part; there are no records then.
    pub diverging_epoch: Option<(LeaderEpoch, Offset)>,
    pub records: Option<LogSlice>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplicaFetchError {
    #[error("refused: {}", .0.name())]
    Refused(ErrorCode),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Partition {
    /// Reads for a follower, and takes note of how far it is.
    pub fn read_for_replica(
        &self,
        fetch: &ReplicaFetch,
        at_least_one_batch: bool,
    ) -> Result<ReplicaRead, ReplicaFetchError> {
        self.check_leader(fetch.current_leader_epoch)
            .map_err(ReplicaFetchError::Refused)?;
        let leader_epoch = self.with_leader(|set| {
            set.is_follower(fetch.replica)
                .then(|| set.leader_epoch())
                .ok_or(match fetch.current_leader_epoch {
                    // It may know of a reassignment before we do.
                    0.. => ErrorCode::UnknownLeaderEpoch,
                    _ => ErrorCode::NotLeaderOrFollower,
                })
        })?;
        let leader_epoch = leader_epoch.map_err(ReplicaFetchError::Refused)?;
        let diverging_epoch = self.divergence(fetch.last_fetched_epoch, fetch.fetch_offset)?;
        let mut read = ReplicaRead {
            watermarks: self.watermarks(),
            diverging_epoch,
            records: None,
        };
        if diverging_epoch.is_some() {
            return Ok(read);
        }
        let end = self.log().log_end_offset();
        let slice = self.read(fetch.fetch_offset, fetch.max_bytes, end, at_least_one_batch)?;
        self.on_replica_fetch(fetch, leader_epoch, end)?;
        read.records = Some(slice);
        read.watermarks.high_watermark = self.high_watermark();
        Ok(read)
    }

    /// Where the log of a fetcher parts from ours (KIP-595), if it does.
    pub fn divergence(
        &self,
        last_fetched_epoch: LeaderEpoch,
        fetch_offset: Offset,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ReplicaFetchError> {
        if last_fetched_epoch < LeaderEpoch(0) {
            return Ok(None);
        }
        match self.log().end_offset_for_epoch(last_fetched_epoch) {
            None => Err(ReplicaFetchError::Refused(ErrorCode::OffsetOutOfRange)),
            Some((epoch, end)) if epoch < last_fetched_epoch || end < fetch_offset => {
                Ok(Some((epoch, end)))
            }
            Some(_) => Ok(None),
        }
    }

    fn on_replica_fetch(
        &self,
        fetch: &ReplicaFetch,
        leader_epoch: LeaderEpoch,
        leader_log_end_offset: Offset,
    ) -> Result<(), ReplicaFetchError> {
        let surroundings = &self.surroundings;
        let fetched = Fetched {
            broker: fetch.replica,
            broker_epoch: fetch.replica_epoch,
            fetch_offset: fetch.fetch_offset,
            log_start_offset: fetch.log_start_offset,
            leader_log_end_offset,
            now: surroundings.clock.monotonic(),
        };
        let proposal = self.with_leader(|set| {
            if set.leader_epoch() != leader_epoch {
                return Err(ErrorCode::FencedLeaderEpoch);
            }
            set.on_fetch(&fetched, surroundings.registered(fetch.replica))?;
            let eligible = |broker| surroundings.eligible(broker);
            Ok(set.propose_growth(fetch.replica, &eligible))
        })?;
        let proposal = proposal.map_err(ReplicaFetchError::Refused)?;
        self.propose(proposal);
        self.advance_with_followers();
        Ok(())
    }

    fn with_leader<T>(
        &self,
        work: impl FnOnce(&mut ReplicaSet) -> T,
    ) -> Result<T, ReplicaFetchError> {
        match &mut *self.role.lock() {
            Role::Leader(set) => {
                set.raise_high_watermark(self.high_watermark());
                Ok(work(set))
            }
            _ => Err(ReplicaFetchError::Refused(ErrorCode::NotLeaderOrFollower)),
        }
    }

    fn propose(&self, proposal: Option<IsrProposal>) {
        if let Some(proposal) = proposal {
            self.surroundings.isr_changes.want(IsrChange {
                topic_id: self.topic_id,
                partition: self.topic_partition.partition,
                proposal,
            });
        }
    }

    /// Moves the high watermark as far as the followers allow.
    pub(super) fn advance_with_followers(&self) {
        let surroundings = &self.surroundings;
        let moved = self.with_leader(|set| {
            let eligible = |broker| surroundings.eligible(broker);
            let moved = set.advance(
                self.log().log_end_offset(),
                self.min_insync_replicas(),
                surroundings.lag_max(),
                surroundings.clock.monotonic(),
                &eligible,
            );
            if let Some(high_watermark) = moved {
                self.high_watermark
                    .fetch_max(high_watermark.0, Ordering::SeqCst);
            }
            moved
        });
        if let Ok(Some(_)) = moved {
            self.tell_high_watermark();
        }
    }

    /// Proposes an ISR without those that have fallen behind, and lets the high watermark go on
    /// without those that were waited for. To be called now and then.
    pub fn check_lag(&self) {
        if self.leadership.load().replicas.len() <= 1 {
            return;
        }
        let surroundings = &self.surroundings;
        let shrunk = self.with_leader(|set| {
            let end = self.log().log_end_offset();
            let now = surroundings.clock.monotonic();
            set.propose_shrink(end, surroundings.lag_max(), now)
        });
        if let Ok(proposal) = shrunk {
            self.propose(proposal);
            self.advance_with_followers();
        }
    }

    /// What the controller says of a proposal; `true`: ask again.
    pub(super) fn on_isr_answer(
        &self,
        proposal: &IsrProposal,
        answer: Result<Decided, ErrorCode>,
    ) -> bool {
        let now = self.surroundings.clock.monotonic();
        match &mut *self.role.lock() {
            Role::Leader(set) if set.leader_epoch() == proposal.leader_epoch => match answer {
                Ok(decided) if decided.leader_epoch == set.leader_epoch() => {
                    let before = set.decided().isr.len();
                    if !set.settle(decided, now) {
                        return false;
                    }
                    let decided = set.decided();
                    self.surroundings
                        .traffic
                        .isr_changed(before, decided.isr.len());
                    tracing::info!(
                        topic_partition = %self.topic_partition, isr = ?decided.isr,
                        "the in-sync replicas have changed"
                    );
                    self.leadership.store(Arc::new(Leadership {
                        leader: self.surroundings.this_broker,
                        leader_epoch: decided.leader_epoch,
                        partition_epoch: decided.partition_epoch,
                        isr: decided.isr.clone(),
                        replicas: decided.replicas.clone(),
                        directory: self.leadership.load().directory,
                    }));
                }
                // Another epoch: the metadata has more to say.
                Ok(_) => return false,
                Err(error) => return set.refuse(proposal, error) == Refusal::Retry,
            },
            _ => return false,
        }
        self.advance_with_followers();
        false
    }

    /// Whether those that have what is committed are enough for acks=all.
    pub(super) fn is_maximal_isr_enough(&self) -> bool {
        let min = self.min_insync_replicas();
        let enough = |set: &mut ReplicaSet| set.maximal_isr_len() >= set.effective_min_isr(min);
        self.with_leader(enough).unwrap_or(false)
    }

    /// Whether `replica` was last told another high watermark than there is now.
    pub fn owes_high_watermark(&self, replica: BrokerId) -> bool {
        let high_watermark = self.high_watermark();
        self.with_leader(|set| set.told_high_watermark(replica) < high_watermark)
            .unwrap_or(false)
    }

    /// `replica` is being told `high_watermark`.
    pub fn tell_replica(&self, replica: BrokerId, high_watermark: Offset) {
        let _ = self.with_leader(|set| set.tell_high_watermark(replica, high_watermark));
    }

    /// The followers that have fetched, for whoever picks a replica to read from.
    pub fn followers(&self) -> Vec<FollowerState> {
        self.with_leader(|set| set.followers().collect())
            .unwrap_or_default()
    }

    /// Whether the high watermark is still below what an earlier leader may have committed: then
    /// nobody can say yet what the newest committed offset is.
    pub fn is_recovering_watermark(&self) -> bool {
        if self.leadership.load().replicas.len() <= 1 {
            return false;
        }
        self.with_leader(|set| set.leader_epoch_start() > set.high_watermark())
            .unwrap_or(false)
    }
}
