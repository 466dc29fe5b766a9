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
//!    more; it follows, and is to be added anew.
//! 2. A learner becomes a voter when it has the whole log, not before.
//! 3. One change is under way at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;

use crate::types::BrokerId;

use super::admission::{change, failed};
use super::raft_types::{VoterNode, broker_id, raft_id};
use super::rpc::VoterInfo;
use super::{Quorum, QuorumError};

/// Why the voters are as before.
#[derive(Debug, thiserror::Error)]
pub enum VoterChangeError {
    #[error("the voters are those of controller.quorum.voters")]
    Fixed,
    #[error("voter {id} is one already")]
    Duplicate { id: BrokerId },
    #[error("there is no voter {id} with this directory")]
    NotFound { id: BrokerId },
    #[error(transparent)]
    Quorum(#[from] QuorumError),
}

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
    ) -> Result<(), VoterChangeError> {
        self.check_leads()?;
        self.check_dynamic()?;
        let this = self.voter()?;
        let added = async {
            let _one_at_a_time = this.admitting.lock().await;
            if self.voters().iter().any(|known| known.id == voter.id) {
                return Err(VoterChangeError::Duplicate { id: voter.id });
            }
            self.follow_as_learner(&voter).await?;
            let id = raft_id(voter.id);
            let node = VoterNode::new(&voter.address, voter.directory_id);
            let learner = this.raft.add_learner(id, node, true);
            learner.await.map_err(failed)?;
            let add = ChangeMembers::AddVoterIds(BTreeSet::from([id]));
            change(&this.raft, add).await?;
            tracing::info!(voter = voter.id.0, "votes from now on");
            Ok(())
        };
        let added = tokio::time::timeout(time, added).await;
        added.unwrap_or(Err(QuorumError::TimedOut.into()))
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
            Some(_) if votes => {
                tracing::warn!(
                    voter = starter.id.0,
                    "a voter has come back with another disk: it votes no more"
                );
                change(raft, ChangeMembers::RemoveVoters(BTreeSet::from([id]))).await?;
            }
            Some(_) => change(raft, ChangeMembers::RemoveNodes(BTreeSet::from([id]))).await?,
            None => {}
        }
        let learner = raft.add_learner(id, node, false).await;
        learner.map(|_| ()).map_err(failed)
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
