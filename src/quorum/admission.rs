//! A voter that lost its disk, or moved, is admitted anew.
//!
//! ```text
//! voter 1 {2, 3 know it by another directory}
//!    │  refuses what is sent to the other directory: it votes for nobody
//!    └─ asks the leader ──> {2, 3} ──> {2, 3} and 1 as a learner ── has caught up ──> {1, 2, 3}
//! ```
//!
//! 1. In between it is no voter: what the others commit meanwhile is committed without it, and its
//!    empty log is counted for nothing.
//! 2. Only a voter of the leader's own list is admitted.
//! 3. A disk that was a voter's before, and comes back after another one took its place, does not
//!    know that from its own log: as long as nobody leads it, it asks the others. It may follow on
//!    with the log and the vote that it has, as it never acknowledged anything that is not there.
//! 4. Nor does it if it led when it was taken away: it leads on in its old term, and those that it
//!    knows by directories which they have left follow it as little as it hears them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::error::{ClientWriteError, RaftError};
use tokio::time::Instant;

use crate::host::tasks;
use crate::peer::{QUORUM_HELLO, QUORUM_JOIN};
use crate::types::base64_uuid;

use super::peer_transport::PeerTransport;
use super::raft_types::{Raft, VoterNode, broker_id, raft_id};
use super::reasons::Reasons;
use super::rpc::{HelloAnswer, HelloRequest, JoinAnswer, JoinRequest, VoterInfo};
use super::voters::check_place_is_free;
use super::{Quorum, QuorumError, Waiting};

/// How often a voter looks whether it still is one.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const ASK_MAX: Duration = Duration::from_secs(1);
/// A learner may have to read the whole log first.
const CATCH_UP_MAX: Duration = Duration::from_secs(120);

type ChangeError = RaftError<u64, ClientWriteError<u64, VoterNode>>;

/// Keeps this voter's place among the voters until the quorum is gone.
pub(super) fn start(quorum: &Arc<Quorum>, transport: &Arc<PeerTransport>, waiting: &Waiting) {
    waiting.waits_for("the leader of the metadata quorum");
    let (quorum, transport) = (Arc::downgrade(quorum), transport.clone());
    drop(tasks::spawn(keep_place(quorum, transport, waiting.clone())));
}

async fn keep_place(quorum: Weak<Quorum>, transport: Arc<PeerTransport>, waiting: Waiting) {
    let mut reasons = Reasons::default();
    let mut looks_in_vain = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(quorum) = quorum.upgrade() else {
            return;
        };
        let Ok(voter) = quorum.voter() else {
            return;
        };
        // Somebody may still hold it: one that has stopped must not take its successor's place.
        if voter.raft.metrics().borrow().running_state.is_err() {
            return;
        }
        if let Err(error) = quorum.end_change().await {
            tracing::debug!("a change of the voters is not ended: {error}");
        }
        let listed = voter.listed.get(&quorum.node_id).cloned();
        let dynamic = !voter.begin_at.is_empty();
        let Some(address) = listed.or(dynamic.then(|| voter.address.clone())) else {
            return;
        };
        let me = VoterInfo {
            id: quorum.node_id,
            address,
            directory_id: quorum.directory_id,
        };
        let has_place =
            quorum.voters().contains(&me) || (dynamic && quorum.learners().contains(&me));
        looks_in_vain = match quorum.leads_in_vain() {
            true => looks_in_vain + 1,
            false => 0,
        };
        // A new leader is not followed in its first moment either.
        let in_vain = looks_in_vain >= 2;
        // What this log says of its voters may be out of date if nobody leads here.
        if has_place && quorum.has_leader() && !in_vain {
            match quorum.disagreement() {
                Some(reason) if reasons.is_due(&reason, Instant::now()) => {
                    tracing::warn!("{reason}: the cluster goes by its own");
                }
                Some(_) => {}
                None => reasons.forget(),
            }
            continue;
        }
        let placed = match quorum.is_leader() && !in_vain {
            true => quorum
                .give_place(me)
                .await
                .map_err(|error| error.to_string()),
            false => ask_for_place(&quorum, &transport, me).await,
        };
        match placed {
            Err(reason) if waiting.because(&reason) => {}
            Err(reason) if reasons.is_due(&reason, Instant::now()) => {
                tracing::warn!("nobody leads this controller: {reason}");
            }
            Err(reason) => tracing::debug!("nobody leads this controller: {reason}"),
            Ok(()) => {}
        }
    }
}

/// Makes the address of a single voter known.
pub(super) async fn keep_address(quorum: &Quorum) -> Result<(), QuorumError> {
    match quorum.voter()?.listed.get(&quorum.node_id) {
        Some(address) => {
            let voter = VoterInfo {
                id: quorum.node_id,
                address: address.clone(),
                directory_id: quorum.directory_id,
            };
            quorum.admit(voter).await
        }
        None => Ok(()),
    }
}

/// Finds the leader through the others and asks it, unless it knows this voter already.
async fn ask_for_place(
    quorum: &Quorum,
    transport: &Arc<PeerTransport>,
    me: VoterInfo,
) -> Result<(), String> {
    let voter = quorum.voter().map_err(|error| error.to_string())?;
    let node_id = quorum.node_id;
    let others = voter.listed.iter().filter(|(id, _)| **id != node_id);
    let mut addresses: Vec<String> = others.map(|(_, address)| address.clone()).collect();
    // The voters of the log may be elsewhere by now.
    let known = quorum.voters().into_iter();
    let known = known.filter(|voter| voter.id != node_id);
    addresses.extend(known.map(|voter| voter.address));
    addresses.extend(voter.begin_at.iter().cloned());
    addresses.sort();
    addresses.dedup();
    let mut reasons = Vec::new();
    for address in &addresses {
        let question = HelloRequest { node_id };
        let answer = transport.ask(address, &QUORUM_HELLO, &question, ASK_MAX);
        let answer: HelloAnswer = match answer.await {
            Ok(answer) => answer,
            Err(error) => {
                reasons.push(format!("{address} does not answer ({error})"));
                continue;
            }
        };
        if answer.cluster_id.as_deref() != Some(&*quorum.cluster_id) {
            reasons.push(foreign(address, &answer, &quorum.cluster_id));
            continue;
        }
        if answer.leader != Some(answer.node_id) || answer.voters.is_empty() {
            reasons.push(match answer.leader {
                Some(leader) => format!("{address} says that {leader} leads"),
                None => format!("{address} knows no leader"),
            });
            reasons.extend(of_another_directory(&answer, &me));
            continue;
        }
        if answer.voters.contains(&me) {
            return Ok(());
        }
        if let Some(other) = of_another_directory(&answer, &me) {
            tracing::info!("{other}: asking for that");
        }
        let request = JoinRequest {
            cluster_id: quorum.cluster_id.to_string(),
            voter: me,
        };
        tracing::debug!(
            leader = answer.node_id.0,
            "asking for a place among the voters"
        );
        let joined = transport.ask(address, &QUORUM_JOIN, &request, CATCH_UP_MAX);
        let leader = format!("the leader, {} at {address}", answer.node_id);
        return match joined.await {
            Ok(JoinAnswer::Voter) => Ok(()),
            Ok(JoinAnswer::NotLeader { .. }) => Err("the leader has changed".into()),
            Ok(JoinAnswer::Refused { reason }) => Err(format!("{leader}, says no: {reason}")),
            Err(error) => Err(format!("{leader}, gives no answer: {error}")),
        };
    }
    reasons.sort();
    reasons.dedup();
    Err(format!("no leader was found: {}", reasons.join("; ")))
}

/// The others take this voter for another one.
fn of_another_directory(answer: &HelloAnswer, me: &VoterInfo) -> Option<String> {
    let known = answer.voters.iter().find(|voter| voter.id == me.id)?;
    let other = known.directory_id;
    if other.is_nil() || other == me.directory_id {
        return None;
    }
    Some(format!(
        "node {} knows voter {} by directory {}, and the metadata of this node is in directory {}, \
         which has no vote until the leader that the others elect has admitted it",
        answer.node_id,
        me.id,
        base64_uuid(other),
        base64_uuid(me.directory_id),
    ))
}

fn foreign(address: &str, answer: &HelloAnswer, own: &str) -> String {
    let Some(other) = &answer.cluster_id else {
        return format!("{address} belongs to no cluster yet");
    };
    let error = QuorumError::ForeignCluster {
        found: Some(other.clone()),
        expected: own.to_owned(),
    };
    let advice = error.advice().unwrap_or_default();
    format!("{address}: {error}: {advice}")
}

impl Quorum {
    /// Gives a controller that has started its place, as the leader.
    pub(super) async fn give_place(&self, starter: VoterInfo) -> Result<(), QuorumError> {
        match self.has_dynamic_voters() {
            true => self.take_in(starter).await,
            false => self.admit(starter).await,
        }
    }

    /// Gives `voter` its place among those that are listed, as the leader.
    async fn admit(&self, voter: VoterInfo) -> Result<(), QuorumError> {
        let this = self.voter()?;
        let _one_at_a_time = this.admitting.lock().await;
        if !self.is_leader() {
            let leader = self.leader();
            return Err(QuorumError::NotController { leader });
        }
        if !this.listed.contains_key(&voter.id) {
            let reason = format!("node {} is not in controller.quorum.voters", voter.id);
            return Err(QuorumError::Membership(reason));
        }
        let id = raft_id(voter.id);
        let node = VoterNode::new(&voter.address, voter.directory_id);
        let membership = this.raft.metrics().borrow().membership_config.clone();
        let known = membership.membership().get_node(&id).cloned();
        let votes = membership.voter_ids().any(|known| known == id);
        let raft = &this.raft;
        let same = |known: &VoterNode| {
            known.directory_id == node.directory_id || known.directory_id.is_nil()
        };
        match known {
            Some(known) if votes && known == node => return Ok(()),
            Some(known) if votes && same(&known) => {
                return change(raft, ChangeMembers::SetNodes(BTreeMap::from([(id, node)]))).await;
            }
            Some(known) if votes => {
                check_place_is_free(&known, &voter).await?;
                tracing::warn!(
                    voter = voter.id.0,
                    "a voter has come back with another disk"
                );
                change(raft, ChangeMembers::RemoveVoters(BTreeSet::from([id]))).await?;
            }
            Some(known) => {
                check_place_is_free(&known, &voter).await?;
                change(raft, ChangeMembers::RemoveNodes(BTreeSet::from([id]))).await?;
            }
            None => {}
        }
        raft.add_learner(id, node, false).await.map_err(failed)?;
        let caught_up = tokio::time::timeout(CATCH_UP_MAX, self.caught_up(id)).await;
        caught_up.map_err(|_| QuorumError::TimedOut)??;
        change(raft, ChangeMembers::AddVoterIds(BTreeSet::from([id]))).await?;
        tracing::info!(voter = voter.id.0, "is among the voters again");
        Ok(())
    }
}

pub(super) async fn change(
    raft: &Raft,
    change: ChangeMembers<u64, VoterNode>,
) -> Result<(), QuorumError> {
    let changed = raft.change_membership(change, false).await;
    changed.map(|_| ()).map_err(failed)
}

pub(super) fn failed(error: ChangeError) -> QuorumError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(to)) => QuorumError::NotController {
            leader: to.leader_id.map(broker_id),
        },
        RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => {
            QuorumError::Membership(error.to_string())
        }
        RaftError::Fatal(fatal) => fatal.into(),
    }
}
