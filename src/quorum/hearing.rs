//! When a voter last heard of its leader, and what it says to one that wants to stand for election.
//!
//! 1. A message of Raft that only a leader sends counts, however long this node takes over it.
//! 2. A voter that hears the leader, or leads, would not vote for another one; nor would one whose
//!    log has more. A candidate whose term rose in vain would bring down the leader when it is
//!    heard again, so nobody becomes one before a majority has said that it would vote for it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::types::BrokerId;

use super::raft_types::Raft;
use super::rpc::{PreVoteAnswer, PreVoteRequest};
use super::{Quorum, QuorumError};

/// A leader speaks once in a heartbeat interval. One that was not heard for so many is silent; the
/// voters' lease for it, which is openraft's, is over by then.
const SILENT_HEARTBEATS: u32 = 5;

/// Of the leader that spoke last.
#[derive(Debug, Default)]
pub(super) struct Hearing(Mutex<Option<(BrokerId, Instant)>>);

impl Hearing {
    pub(super) fn heard(&self, leader: BrokerId) {
        *self.0.lock() = Some((leader, Instant::now()));
    }

    /// Its process is known to be gone.
    pub(super) fn forget(&self, leader: BrokerId) {
        let mut last = self.0.lock();
        if last.is_some_and(|(known, _)| known == leader) {
            *last = None;
        }
    }

    pub(super) fn last(&self) -> Option<(BrokerId, Instant)> {
        *self.0.lock()
    }
}

impl Quorum {
    /// How long a leader may be silent.
    pub(super) fn silence_max(&self) -> Duration {
        self.voter().map_or(Duration::MAX, |voter| {
            voter.heartbeat_interval * SILENT_HEARTBEATS
        })
    }

    pub(super) fn hear(&self, leader: BrokerId) {
        if let Ok(voter) = self.voter() {
            voter.hearing.heard(leader);
        }
    }

    /// The leader that this voter heard last, and how long ago that was.
    pub fn heard_leader(&self) -> Option<(BrokerId, Duration)> {
        let (leader, at) = self.voter().ok()?.hearing.last()?;
        Some((leader, at.elapsed()))
    }

    /// Whether somebody leads this voter, as far as it can tell.
    pub(super) fn has_leader(&self) -> bool {
        let Some(leader) = self.leader() else {
            return false;
        };
        let heard = self.heard_leader();
        leader == self.node_id
            || heard.is_some_and(|(known, ago)| known == leader && ago < self.silence_max())
    }

    /// The controller, unless this node only remembers it: a voter hears it, or leads and was
    /// answered by a majority.
    pub fn active_controller(&self) -> Option<BrokerId> {
        let is_heard = !self.is_voter() || (self.has_leader() && !self.leads_in_vain());
        self.leader().filter(|_| is_heard)
    }

    /// Whether this node leads, and no majority has ever answered it as a leader.
    pub(super) fn leads_in_vain(&self) -> bool {
        let is_unheard = |raft: &Raft| raft.metrics().borrow().millis_since_quorum_ack.is_none();
        self.is_leader() && self.raft().is_ok_and(is_unheard)
    }

    /// What a candidate asks for.
    pub(super) fn pre_vote_request(&self) -> Result<PreVoteRequest, QuorumError> {
        let last = self.voter()?.log.last();
        Ok(PreVoteRequest {
            cluster_id: self.cluster_id.to_string(),
            candidate: self.node_id,
            last_log: last.map_or((0, 0), |last| (last.leader_id.term, last.index + 1)),
        })
    }

    pub(super) fn pre_vote(&self, request: &PreVoteRequest) -> PreVoteAnswer {
        let own = self.pre_vote_request();
        let is_granted = own.is_ok_and(|own| {
            request.cluster_id == own.cluster_id && request.last_log >= own.last_log
        });
        PreVoteAnswer {
            is_granted: is_granted && !self.has_leader(),
        }
    }
}
