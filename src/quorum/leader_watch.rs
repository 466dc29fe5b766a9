//! When voters choose another leader: this, not openraft's own clock, begins elections where there
//! are several voters.
//!
//! ```text
//!                 .-- its address refuses, or it has no vote: it is gone ---.
//!   a leader leads                                                         >-- in turn: elect
//!                 '-- silent for five heartbeats -> would a majority vote -'
//!   nobody leads ---- for one heartbeat ----------> for this node?
//! ```
//!
//! 1. A leader whose process dies is noticed at once: the kernel closes its connections, and its
//!    port refuses the next one. A cut network does not refuse, it is silent.
//! 2. While a leader is gone, but not yet silent, others still refuse their votes. Voters begin one
//!    after the other: the first is refused by those that do not know yet, and knows then that its
//!    own vote is free; the next one is elected.
//! 3. A leader that is only silent may still lead the others: a voter stands for election when a
//!    majority would vote for it (`hearing`).
//! 4. A leader whose vote was taken away leads on, as far as openraft is concerned, though nobody
//!    finds it among the voters any more: it counts as gone. Who stands for election then has a
//!    higher term, of which the old leader hears with its next message.
//! 5. The time in which this node did not run says nothing of the leader's silence.

use std::io::ErrorKind;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::host::{random, tasks};
use crate::metadata::Plan;
use crate::peer::{PeerError, QUORUM_PRE_VOTE};
use crate::types::BrokerId;

use super::peer_transport::{HANG_UP, PeerTransport};
use super::rpc::PreVoteAnswer;
use super::{Quorum, broker_id, raft_id};

/// Between the elections of two voters.
const TURN: Duration = Duration::from_millis(40);
/// How often a voter begins anew before it looks again what has become of the leader.
const ROUNDS: u32 = 8;
const DIAL_AGAIN: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(50);
/// A look that comes so late shows that this node did not run.
const LOOK_LATE: Duration = Duration::from_millis(300);
/// How long a candidate waits to hear whether it would be voted for.
const PRE_VOTE_MAX: Duration = Duration::from_millis(500);

/// What has become of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Gone,
    Silent,
}

/// Watches until the quorum is gone.
pub(super) fn start(quorum: &Arc<Quorum>, transport: &Arc<PeerTransport>) {
    if let Ok(raft) = quorum.raft() {
        raft.runtime_config().elect(false);
    }
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
        let raft_leader = leader.map(raft_id);
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
    let Ok(heartbeat_interval) = this.voter().map(|voter| voter.heartbeat_interval) else {
        return;
    };
    if leader == Some(this.node_id) {
        // A new leader makes sure that it has all that was committed, and begins a new cluster.
        if let Err(error) = this.run(|_| Plan::answer(())).await {
            tracing::debug!("the first entry of this leader: {error}");
            sleep(DIAL_AGAIN).await;
            return;
        }
        drop(this);
        return std::future::pending().await;
    }
    drop(this);
    let loss = match leader {
        None => {
            sleep(heartbeat_interval).await;
            Loss::Silent
        }
        Some(leader) => tokio::select! {
            () = refused(quorum, transport, leader) => Loss::Gone,
            () = voteless(quorum, leader) => Loss::Gone,
            () = silent(quorum, leader) => Loss::Silent,
        },
    };
    if let Some(this) = quorum.upgrade() {
        succeed(&this, transport, leader, loss).await;
    }
}

/// Returns when nobody listens any more where `leader` did.
async fn refused(quorum: &Weak<Quorum>, transport: &Arc<PeerTransport>, leader: BrokerId) {
    loop {
        let Some(voters) = quorum.upgrade().map(|this| this.voters()) else {
            return std::future::pending().await;
        };
        let Some(address) = voters.into_iter().find(|voter| voter.id == leader) else {
            // The leader of a new cluster is heard of before its voters are.
            sleep(DIAL_AGAIN).await;
            continue;
        };
        match transport.connect(&address.address).await {
            Ok(connection) => connection.closed().await,
            Err(PeerError::Connect { source, .. })
                if source.kind() == ErrorKind::ConnectionRefused =>
            {
                return;
            }
            Err(_) => sleep(DIAL_AGAIN).await,
        }
    }
}

/// Returns when `leader` has no vote any more, and this node has one.
async fn voteless(quorum: &Weak<Quorum>, leader: BrokerId) {
    let mut looks = 0;
    // It has a moment to say that to all others.
    while looks < 2 {
        sleep(DIAL_AGAIN).await;
        let Some(this) = quorum.upgrade() else {
            return std::future::pending().await;
        };
        let voters = this.voters();
        let votes = |id| voters.iter().any(|voter| voter.id == id);
        looks = match votes(this.node_id) && !votes(leader) {
            true => looks + 1,
            false => 0,
        };
    }
}

/// Returns when `leader` was not heard for too long.
async fn silent(quorum: &Weak<Quorum>, leader: BrokerId) {
    let mut looked = Instant::now();
    let mut since = None;
    loop {
        sleep(LOOK).await;
        let Some(this) = quorum.upgrade() else {
            return std::future::pending().await;
        };
        let now = Instant::now();
        if now.duration_since(looked) > LOOK_LATE {
            since = Some(now);
        }
        looked = now;
        let last = this.voter().ok().and_then(|voter| voter.hearing.last());
        let heard = last.filter(|(known, _)| *known == leader);
        // Of one that was never heard silence counts from the first look on.
        let begun = since.max(heard.map(|(_, at)| at)).unwrap_or(now);
        since = Some(begun);
        if now.duration_since(begun) >= this.silence_max() {
            return;
        }
    }
}

/// Stands for election, in turn with the other voters, until somebody leads.
async fn succeed(
    this: &Arc<Quorum>,
    transport: &Arc<PeerTransport>,
    lost: Option<BrokerId>,
    loss: Loss,
) {
    let voters = this.voters().into_iter().map(|voter| voter.id);
    let heirs: Vec<BrokerId> = voters.filter(|voter| Some(*voter) != lost).collect();
    let Some(turn) = heirs.iter().position(|voter| *voter == this.node_id) else {
        return sleep(DIAL_AGAIN).await;
    };
    if let (Some(leader), Loss::Gone) = (lost, loss) {
        tracing::info!(
            leader = leader.0,
            "the leader of the quorum is gone: nobody listens there, or it votes no more"
        );
        if let Ok(voter) = this.voter() {
            voter.hearing.forget(leader);
        }
    }
    sleep(TURN * turn as u32).await;
    for _ in 0..ROUNDS {
        let Ok(raft) = this.raft() else {
            return;
        };
        let leads = raft.metrics().borrow().current_leader.map(broker_id);
        if leads.is_some_and(|leader| Some(leader) != lost) {
            return;
        }
        if loss == Loss::Silent && !is_wanted(this, transport, lost).await {
            return sleep(LOOK).await;
        }
        if let (Some(leader), Loss::Silent) = (lost, loss) {
            tracing::info!(leader = leader.0, "the leader of the quorum is silent");
        }
        if raft.trigger().elect().await.is_err() {
            return;
        }
        let round = TURN * heirs.len() as u32;
        let jitter = Duration::from_millis(random::seed() % 20);
        sleep(round + jitter).await;
    }
}

/// Whether a majority would vote for this node. `lost` is not asked: it would be waited for.
async fn is_wanted(
    this: &Arc<Quorum>,
    transport: &Arc<PeerTransport>,
    lost: Option<BrokerId>,
) -> bool {
    let voters = this.voters();
    let Ok(request) = this.pre_vote_request() else {
        return false;
    };
    let (sender, mut answers) = mpsc::unbounded_channel();
    for voter in &voters {
        if voter.id == this.node_id || Some(voter.id) == lost {
            continue;
        }
        let (transport, request) = (transport.clone(), request.clone());
        let (address, sender) = (voter.address.clone(), sender.clone());
        drop(tasks::spawn(async move {
            // It may come late, and must not end the connection then.
            let asked = transport.ask(&address, &QUORUM_PRE_VOTE, &request, HANG_UP);
            let answer: std::io::Result<PreVoteAnswer> = asked.await;
            // Nobody may wait for it any more.
            let _ = sender.send(answer.is_ok_and(|answer| answer.is_granted));
        }));
    }
    drop(sender);
    let counted = async {
        let mut granted = 1;
        while granted * 2 <= voters.len() {
            match answers.recv().await {
                Some(true) => granted += 1,
                Some(false) => {}
                None => return false,
            }
        }
        true
    };
    timeout(PRE_VOTE_MAX, counted).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::*;
    use crate::quorum::tests::TIMEOUT;
    use crate::quorum::voters_tests::{Calls, elect, three};

    /// Shakes hands with whoever dials, says so, and keeps the connection.
    async fn keep(listener: TcpListener, dialled: oneshot::Sender<()>) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u32().await.unwrap();
        let mut request = vec![0; length as usize];
        stream.read_exact(&mut request).await.unwrap();
        // The correlation id, and no versions.
        stream.write_u32(4).await.unwrap();
        stream.write_all(&request[4..8]).await.unwrap();
        dialled.send(()).unwrap();
        std::future::pending::<()>().await;
        stream
    }

    #[tokio::test]
    async fn a_leader_that_is_heard_and_connected_but_has_no_vote_is_succeeded() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let calls = Arc::new(Calls::listening_at(address));
        let (_stores, nodes) = three(&calls).await;
        let leads = elect(&nodes).await;
        let leader = leads.node_id();
        let follows = nodes.iter().find(|node| node.node_id() != leader).unwrap();
        let (_, term) = follows.leader_and_term();

        let (sender, dialled) = oneshot::channel();
        let kept = tasks::spawn(keep(listener, sender));
        let transport = PeerTransport::new(follows.node_id());
        let weak = Arc::downgrade(follows);
        let watched = tasks::spawn(async move { attend(&weak, &transport, Some(leader)).await });
        dialled.await.unwrap();
        leads.remove_voter(leader, Uuid::nil()).await.unwrap();
        let heard = async {
            loop {
                follows.hear(leader);
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            ended = timeout(TIMEOUT, watched) => ended.unwrap().unwrap(),
            () = heard => {}
        }
        assert!(
            follows.leader_and_term().1 > term,
            "it has stood for election"
        );
        kept.abort();
    }
}
