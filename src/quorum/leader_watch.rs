//! A leader whose process dies is noticed at once: the kernel closes its connections, and its port
//! refuses the next one. Waiting for the election time-out is for leaders that fall silent.
//!
//! 1. An election is begun early only when the leader's address refuses a connection: nobody
//!    listens there, so nobody leads from there. A cut network does not refuse, it is silent.
//! 2. Voters begin one after the other. The first is refused by those that do not know yet, and
//!    knows then that its own vote is free; the next one is elected.

use std::io::ErrorKind;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::host::{random, tasks};
use crate::metadata::Plan;
use crate::peer::PeerError;
use crate::types::BrokerId;

use super::Quorum;
use super::peer_transport::PeerTransport;
use super::raft_types::broker_id;

/// Between the elections of two voters.
const TURN: Duration = Duration::from_millis(40);
/// How often a voter begins anew before it leaves it to the election time-out.
const ROUNDS: u32 = 8;
const DIAL_AGAIN: Duration = Duration::from_millis(200);

/// Watches until the quorum is gone.
pub(super) fn start(quorum: &Arc<Quorum>, transport: &Arc<PeerTransport>) {
    let (quorum, transport) = (Arc::downgrade(quorum), transport.clone());
    drop(tasks::spawn(watch(quorum, transport)));
}

async fn watch(quorum: Weak<Quorum>, transport: Arc<PeerTransport>) {
    loop {
        let (mut metrics, leader) = {
            let Some(quorum) = quorum.upgrade() else {
                return;
            };
            let Ok(raft) = quorum.raft() else {
                return;
            };
            (raft.metrics(), quorum.leader())
        };
        let raft_leader = leader.map(super::raft_id);
        let changed = metrics.wait_for(|metrics| metrics.current_leader != raft_leader);
        tokio::select! {
            changed = changed => match changed {
                Ok(_) => continue,
                // The quorum has stopped.
                Err(_) => return,
            },
            () = attend(&quorum, &transport, leader) => {}
        }
    }
}

/// Does what there is to do while `leader` leads; returns when it is to be looked at anew.
async fn attend(quorum: &Weak<Quorum>, transport: &Arc<PeerTransport>, leader: Option<BrokerId>) {
    let Some(this) = quorum.upgrade() else {
        return;
    };
    let Some(leader) = leader else {
        drop(this);
        return std::future::pending().await;
    };
    if leader == this.node_id {
        // A new leader makes sure that it has all that was committed, and begins a new cluster.
        if let Err(error) = this.run(|_| Plan::answer(())).await {
            tracing::debug!("the first entry of this leader: {error}");
            tokio::time::sleep(DIAL_AGAIN).await;
            return;
        }
        drop(this);
        return std::future::pending().await;
    }
    let voters = this.voters();
    let Some(address) = voters
        .iter()
        .find(|v| v.id == leader)
        .map(|v| v.address.clone())
    else {
        drop(this);
        return std::future::pending().await;
    };
    drop(this);
    match transport.connect(&address).await {
        Ok(connection) => connection.closed().await,
        Err(PeerError::Connect { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => {
            let voters = voters.iter().map(|voter| voter.id);
            succeed(quorum, leader, voters.collect()).await;
        }
        Err(_) => tokio::time::sleep(DIAL_AGAIN).await,
    }
}

/// Stands for election, in turn with the other voters, until somebody leads.
async fn succeed(quorum: &Weak<Quorum>, dead: BrokerId, voters: Vec<BrokerId>) {
    let Some(this) = quorum.upgrade() else {
        return;
    };
    let heirs: Vec<BrokerId> = voters.into_iter().filter(|voter| *voter != dead).collect();
    let Some(turn) = heirs.iter().position(|voter| *voter == this.node_id) else {
        return;
    };
    tracing::info!(
        leader = dead.0,
        "the leader of the quorum is gone: nobody listens there"
    );
    let wait = TURN * turn as u32;
    tokio::time::sleep(wait).await;
    for _ in 0..ROUNDS {
        let Ok(raft) = this.raft() else {
            return;
        };
        let (leads, id) = {
            let metrics = raft.metrics();
            let metrics = metrics.borrow();
            (metrics.current_leader.map(broker_id), metrics.id)
        };
        if leads.is_some_and(|leader| leader != dead) || raft.trigger().elect().await.is_err() {
            return;
        }
        tracing::debug!(id, "an early election");
        let round = TURN * heirs.len() as u32;
        let jitter = Duration::from_millis(random::seed() % 20);
        tokio::time::sleep(round + jitter).await;
    }
    // From here on it is the election time-out's.
    tokio::time::sleep(Duration::from_secs(1)).await;
}
