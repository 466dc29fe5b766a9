//! Voters that an administrator adds, takes away or moves (KIP-853). Only where the log alone says
//! who votes: with `controller.quorum.voters` the configuration does (`admission`).
//!
//! ```text
//! a controller that starts ──> learner ──add──> voter ──remove──> learner
//!                                 ^                │
//!                                 └─ another disk ─┘
//! ```
//!
//! 1. A voter is its number and its directory. One that comes back with another directory votes no
//!    more; it follows, and is to be added anew. While the one of its number that is known still
//!    listens at another address, it is refused.
//! 2. A learner becomes a voter when it has the whole log, not before.
//! 3. One change is under way at a time. One that was left halfway is ended by whoever leads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;
use tokio::time::{Instant, timeout_at};

use crate::peer::{Address, listens};
use crate::types::BrokerId;

use super::admission::{change, failed};
use super::raft_types::{VoterNode, broker_id, raft_id};
use super::rpc::VoterInfo;
use super::{Quorum, QuorumError};

/// How long it is tried to forget a learner that did not come, and how often.
const FORGET_MAX: Duration = Duration::from_secs(5);
const FORGET_AGAIN: Duration = Duration::from_millis(20);

/// Why the voters are as before.
#[derive(Debug, thiserror::Error)]
pub enum VoterChangeError {
    #[error("the voters are those of controller.quorum.voters")]
    Fixed,
    #[error("voter {id} is one already")]
    Duplicate { id: BrokerId },
    /// It does not answer, or has not caught up in time.
    #[error("voter {id} is not ready")]
    NotReady { id: BrokerId },
    #[error("there is no voter {id} with this directory")]
    NotFound { id: BrokerId },
    #[error(transparent)]
    Quorum(#[from] QuorumError),
}

/// When a new voter is answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Committed,
    /// In the leader's log.
    Written,
}

type Metrics = openraft::RaftMetrics<u64, VoterNode>;

impl Quorum {
    /// Whether the log alone says who votes.
    pub fn has_dynamic_voters(&self) -> bool {
        self.voter().is_ok_and(|voter| !voter.begin_at.is_empty())
    }

    fn check_dynamic(&self) -> Result<(), VoterChangeError> {
        match self.has_dynamic_voters() {
            true => Ok(()),
            false => Err(VoterChangeError::Fixed),
        }
    }

    fn check_leads(&self) -> Result<(), QuorumError> {
        match self.is_leader() {
            true => Ok(()),
            false => Err(QuorumError::NotController {
                leader: self.leader(),
            }),
        }
    }

    /// Makes `voter` one, once it has caught up.
    pub async fn add_voter(
        &self,
        voter: VoterInfo,
        time: Duration,
        until: Until,
    ) -> Result<(), VoterChangeError> {
        self.check_leads()?;
        self.check_dynamic()?;
        let this = self.voter()?;
        let deadline = Instant::now() + time;
        let timed_out = |_| QuorumError::TimedOut;
        let lock = timeout_at(deadline, this.admitting.lock()).await;
        let _one_at_a_time = lock.map_err(timed_out)?;
        if self.voters().iter().any(|known| known.id == voter.id) {
            return Err(VoterChangeError::Duplicate { id: voter.id });
        }
        let id = raft_id(voter.id);
        let follows = self.learners().iter().any(|known| known.id == voter.id);
        let caught_up = timeout_at(deadline, async {
            self.follow_as_learner(&voter).await?;
            self.caught_up(id).await
        });
        match caught_up.await {
            Ok(caught_up) => caught_up?,
            Err(_) => {
                // One that came by itself follows on; another one may not be there at all.
                if !follows {
                    self.forget_learner(id).await;
                }
                return Err(VoterChangeError::NotReady { id: voter.id });
            }
        }
        let add = ChangeMembers::AddVoterIds(BTreeSet::from([id]));
        let committed = timeout_at(deadline, change(&this.raft, add));
        let written = async {
            let votes = |m: &Metrics| m.membership_config.voter_ids().any(|known| known == id);
            this.raft.wait(None).metrics(votes, "written").await
        };
        tokio::select! {
            biased;
            committed = committed => committed.map_err(timed_out)??,
            _ = written, if until == Until::Written => {}
        }
        tracing::info!(voter = voter.id.0, "votes from now on");
        Ok(())
    }

    async fn forget_learner(&self, id: u64) {
        let Ok(raft) = self.raft() else {
            return;
        };
        let deadline = Instant::now() + FORGET_MAX;
        loop {
            let remove = ChangeMembers::RemoveNodes(BTreeSet::from([id]));
            match timeout_at(deadline, change(raft, remove)).await {
                // What made it a learner is not committed yet.
                Ok(Err(QuorumError::Membership(_))) => tokio::time::sleep(FORGET_AGAIN).await,
                Ok(Ok(())) => return,
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!(node = id, "it did not come, and is still sent the metadata");
                    return;
                }
            }
        }
    }

    /// Waits until a learner has what the log has now. openraft's own wait is over when a learner
    /// lacks few entries, even one that nobody has reached yet.
    pub(super) async fn caught_up(&self, learner: u64) -> Result<(), QuorumError> {
        let raft = self.raft()?;
        let end = raft.metrics().borrow().last_log_index;
        let has_it = |m: &Metrics| {
            let matching = m.replication.as_ref().and_then(|all| all.get(&learner));
            let leads = m.current_leader == Some(m.id);
            !leads || matching.is_some_and(|log_id| log_id.map(|id| id.index) >= end)
        };
        let waited = raft.wait(None).metrics(has_it, "caught up").await;
        waited.map_err(|_| QuorumError::Stopped)?;
        self.check_leads()
    }

    /// Ends a change of the voters that was not ended: its leader stopped in the middle, or whoever
    /// asked for it waited no longer. Until then a majority of both the old and the new voters is
    /// needed.
    pub(super) async fn end_change(&self) -> Result<(), QuorumError> {
        let this = self.voter()?;
        let membership = this.raft.metrics().borrow().membership_config.clone();
        let is_between = membership.membership().get_joint_config().len() > 1;
        if !is_between || !self.is_leader() {
            return Ok(());
        }
        let Ok(_one_at_a_time) = this.admitting.try_lock() else {
            return Ok(());
        };
        let nobody_else = ChangeMembers::AddVoterIds(BTreeSet::new());
        let ended = this.raft.change_membership(nobody_else, true).await;
        ended.map_err(failed)?;
        tracing::info!("a change of the voters that was not ended is");
        Ok(())
    }

    /// Lets a voter vote no more; it follows on.
    pub async fn remove_voter(
        &self,
        voter: BrokerId,
        directory_id: uuid::Uuid,
    ) -> Result<(), VoterChangeError> {
        self.check_leads()?;
        self.check_dynamic()?;
        let this = self.voter()?;
        let _one_at_a_time = this.admitting.lock().await;
        let voters = self.voters();
        let known = |v: &VoterInfo| v.id == voter && v.directory_id == directory_id;
        // The last one stays: nobody could decide anything without it.
        if voters.len() == 1 || !voters.iter().any(known) {
            return Err(VoterChangeError::NotFound { id: voter });
        }
        let remove = ChangeMembers::RemoveVoters(BTreeSet::from([raft_id(voter)]));
        let removed = this.raft.change_membership(remove, true).await;
        removed.map_err(failed)?;
        tracing::info!(voter = voter.0, "votes no more");
        Ok(())
    }

    /// Takes note of where a voter is now.
    pub async fn move_voter(&self, voter: VoterInfo) -> Result<(), VoterChangeError> {
        self.check_leads()?;
        self.check_dynamic()?;
        let this = self.voter()?;
        let _one_at_a_time = this.admitting.lock().await;
        let voters = self.voters();
        let known = |v: &&VoterInfo| v.id == voter.id && v.directory_id == voter.directory_id;
        let known = voters.iter().find(known);
        let known = known.ok_or(VoterChangeError::NotFound { id: voter.id })?;
        if known.address == voter.address {
            return Ok(());
        }
        let node = VoterNode::new(&voter.address, voter.directory_id);
        let nodes = BTreeMap::from([(raft_id(voter.id), node)]);
        change(&this.raft, ChangeMembers::SetNodes(nodes)).await?;
        Ok(())
    }

    /// Takes in a controller that has started: as the voter that it is, else without a vote.
    pub(super) async fn take_in(&self, starter: VoterInfo) -> Result<(), QuorumError> {
        self.check_leads()?;
        let this = self.voter()?;
        let _one_at_a_time = this.admitting.lock().await;
        self.follow_as_learner(&starter).await
    }

    /// Has `starter` follow at its address. Under the lock.
    async fn follow_as_learner(&self, starter: &VoterInfo) -> Result<(), QuorumError> {
        let raft = &self.voter()?.raft;
        let id = raft_id(starter.id);
        let node = VoterNode::new(&starter.address, starter.directory_id);
        let membership = raft.metrics().borrow().membership_config.clone();
        let known = membership.membership().get_node(&id).cloned();
        let votes = membership.voter_ids().any(|known| known == id);
        match known {
            Some(known) if known == node => return Ok(()),
            Some(known) if known.directory_id == node.directory_id => {
                let nodes = BTreeMap::from([(id, node)]);
                return change(raft, ChangeMembers::SetNodes(nodes)).await;
            }
            Some(known) if votes => {
                check_place_is_free(&known, starter).await?;
                tracing::warn!(
                    voter = starter.id.0,
                    "a voter has come back with another disk: it votes no more"
                );
                change(raft, ChangeMembers::RemoveVoters(BTreeSet::from([id]))).await?;
            }
            Some(known) => {
                check_place_is_free(&known, starter).await?;
                change(raft, ChangeMembers::RemoveNodes(BTreeSet::from([id]))).await?;
            }
            None => {}
        }
        let learner = raft.add_learner(id, node, false).await;
        learner.map(|_| ()).map_err(failed)
    }

    /// The voters by this node's configuration.
    pub(super) fn listed(&self) -> BTreeMap<BrokerId, String> {
        self.voter()
            .map_or_else(|_| BTreeMap::new(), |voter| voter.listed.clone())
    }

    /// What is wrong with this node's list of voters.
    pub(super) fn disagreement(&self) -> Option<String> {
        let listed = self.listed();
        if listed.is_empty() {
            return None;
        }
        let members = self.voters().into_iter().chain(self.learners());
        let members: BTreeSet<BrokerId> = members.map(|voter| voter.id).collect();
        if members.is_empty() || members.iter().eq(listed.keys()) {
            return None;
        }
        let shown = |ids: &mut dyn Iterator<Item = &BrokerId>| {
            let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
            ids.join(", ")
        };
        Some(format!(
            "controller.quorum.voters of this node names {}, the cluster's voters are {}",
            shown(&mut listed.keys()),
            shown(&mut members.iter()),
        ))
    }

    /// Controllers that follow without a vote.
    pub fn learners(&self) -> Vec<VoterInfo> {
        let Ok(raft) = self.raft() else {
            return Vec::new();
        };
        let metrics = raft.metrics();
        let membership = metrics.borrow().membership_config.clone();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let nodes = membership.nodes().filter(|(id, _)| !voters.contains(*id));
        let info = |(id, node): (&u64, &VoterNode)| VoterInfo {
            id: broker_id(*id),
            address: node.addr.clone(),
            directory_id: node.directory_id,
        };
        nodes.map(info).collect()
    }
}

/// A second node with the number of one that runs is a mistake, and not that one with a new disk.
pub(super) async fn check_place_is_free(
    known: &VoterNode,
    starter: &VoterInfo,
) -> Result<(), QuorumError> {
    let Ok(address) = Address::parse(&known.addr) else {
        return Ok(());
    };
    if known.addr == starter.address || !listens(&address).await {
        return Ok(());
    }
    Err(QuorumError::Membership(format!(
        "node {} runs at {} already; each node needs a node.id of its own",
        starter.id, known.addr
    )))
}
