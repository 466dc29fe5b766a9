//! Three voters in one process, over a transport of function calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::Weak;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::tests::{Memory, TIMEOUT, put, value};
use super::*;

/// Delivers to whoever is there.
#[derive(Default)]
pub(super) struct Calls {
    /// Where all of them listen, as far as they say; by default nowhere.
    address: Option<String>,
    nodes: Mutex<BTreeMap<BrokerId, Weak<Quorum>>>,
    /// Whether what brings or compares entries waits; heartbeats and votes do not.
    holds_entries: watch::Sender<bool>,
}

/// A heartbeat has nothing to compare with the log.
fn has_entries(message: &RaftMessage) -> bool {
    type Request = openraft::raft::AppendEntriesRequest<raft_types::Types>;
    let body: Result<Request, _> = keys::decode("a message", &message.body);
    message.rpc == RaftRpc::AppendEntries
        && body.is_ok_and(|request| request.prev_log_id.is_some() || !request.entries.is_empty())
}

impl Calls {
    pub(super) fn listening_at(address: String) -> Calls {
        Calls {
            address: Some(address),
            ..Calls::default()
        }
    }

    fn address_of(&self, id: i32) -> String {
        let address = self.address.clone();
        address.unwrap_or_else(|| format!("node-{id}:9093"))
    }
}

impl Transport for Arc<Calls> {
    fn send(&self, message: RaftMessage) -> Sent {
        let target = self.nodes.lock().get(&message.target).cloned();
        let mut holds = self.holds_entries.subscribe();
        Box::pin(async move {
            if has_entries(&message) {
                let _ = holds.wait_for(|holds| !holds).await;
            }
            let target = target.and_then(|target| target.upgrade());
            let target = target.ok_or(io::ErrorKind::ConnectionRefused)?;
            let answer = target.handle_rpc(message.rpc, &message.body).await;
            answer.map_err(io::Error::other)
        })
    }
}

/// How long a vote stays with a leader that is gone follows from it.
const HEARTBEAT_MS: u64 = 100;

async fn start(id: i32, calls: &Arc<Calls>, store: &Arc<dyn KeyValue>) -> Arc<Quorum> {
    let config = QuorumConfig {
        voters: (1..=3)
            .map(|id| (BrokerId(id), calls.address_of(id)))
            .collect(),
        begin_at: vec!["node-1:9093".into()],
        snapshot_entries: 20,
        heartbeat_interval_ms: HEARTBEAT_MS,
        ..QuorumConfig::single(BrokerId(id), Some("cluster".into()))
    };
    let transport = Arc::new(calls.clone());
    let quorum = Quorum::start(config, store.clone(), transport)
        .await
        .unwrap();
    // The test says who stands for election, and when: no leader is unseated by a clock.
    quorum.raft().unwrap().runtime_config().elect(false);
    calls
        .nodes
        .lock()
        .insert(BrokerId(id), Arc::downgrade(&quorum));
    quorum
}

/// The one of `nodes` that leads all of them.
fn agreed(nodes: &[Arc<Quorum>]) -> Option<Arc<Quorum>> {
    let metrics = |node: &Arc<Quorum>| node.raft().unwrap().metrics().borrow().clone();
    let first = metrics(&nodes[0]);
    let leads = |node: &&Arc<Quorum>| Some(raft_id(node.node_id())) == first.current_leader;
    let agree = nodes.iter().all(|node| metrics(node).vote == first.vote);
    nodes.iter().find(leads).filter(|_| agree).cloned()
}

/// Has `nodes` stand for election in turn until all of them agree on a leader, whoever it is: a
/// voter also stands when it starts, and one whose log is shorter is not elected.
pub(super) async fn elect(nodes: &[Arc<Quorum>]) -> Arc<Quorum> {
    type Metrics = openraft::RaftMetrics<u64, raft_types::VoterNode>;
    let elected = async {
        for candidate in nodes.iter().cycle() {
            for node in nodes {
                let wait = node.raft().unwrap();
                let wait = wait.wait(Some(Duration::from_millis(HEARTBEAT_MS)));
                let led = |m: &Metrics| m.current_leader.is_some();
                // Nobody may lead after this time; then the next election is due.
                let _ = wait.metrics(led, "a leader").await;
            }
            if let Some(leader) = agreed(nodes) {
                return leader;
            }
            let raft = candidate.raft().unwrap();
            let term = raft.metrics().borrow().current_term;
            raft.trigger().elect().await.unwrap();
            let begun = |m: &Metrics| m.current_term > term;
            let wait = raft.wait(Some(TIMEOUT));
            wait.metrics(begun, "the election").await.unwrap();
        }
        unreachable!("the turns do not end")
    };
    tokio::time::timeout(TIMEOUT, elected).await.unwrap()
}

async fn until(node: &Quorum, key: &str, expected: &str) {
    let mut changes = node.subscribe();
    while let Some(change) = changes.next().await {
        if value(&change.image, key).as_deref() == Some(expected) {
            return;
        }
    }
    panic!("node {} stopped", node.node_id());
}

pub(super) type Stores = [Arc<dyn KeyValue>; 3];

/// Voters 1 to 3, with what they keep.
pub(super) async fn three(calls: &Arc<Calls>) -> (Stores, Vec<Arc<Quorum>>) {
    let stores = [(); 3].map(|()| Arc::new(Memory::default()) as Arc<dyn KeyValue>);
    let mut nodes = Vec::new();
    for (id, store) in (1..).zip(&stores) {
        nodes.push(start(id, calls, store).await);
    }
    (stores, nodes)
}

#[tokio::test]
async fn three_voters_agree_and_outlive_their_leader() {
    let calls = Arc::new(Calls::default());
    let (stores, mut nodes) = three(&calls).await;
    let first = elect(&nodes).await;
    put(&first, "a", "1").await.unwrap();
    for node in &nodes {
        until(node, "a", "1").await;
        assert_eq!(node.image().cluster_id().map(|id| &**id), Some("cluster"));
    }
    let followers = nodes
        .iter()
        .filter(|node| node.node_id() != first.node_id());
    let [follower, other] = followers.collect::<Vec<_>>()[..] else {
        panic!("three voters");
    };
    match put(follower, "b", "1").await {
        Err(QuorumError::NotController { leader }) => assert_eq!(leader, Some(first.node_id())),
        other => panic!("{other:?}"),
    }

    // Whoever hears a leader, or has more than the candidate, would not vote for it.
    let request = follower.pre_vote_request().unwrap();
    assert!(!first.pre_vote(&request).is_granted, "it leads");
    assert!(other.pre_vote(&request).is_granted, "it has heard nobody");
    let mut shorter = request.clone();
    shorter.last_log.1 -= 1;
    assert!(!other.pre_vote(&shorter).is_granted);
    let mut foreign = request.clone();
    foreign.cluster_id.push('x');
    assert!(!other.pre_vote(&foreign).is_granted);
    other.hear(first.node_id());
    assert!(!other.pre_vote(&request).is_granted, "it hears the leader");

    // The leader goes; the others go on without it, past a snapshot.
    first.shutdown().await;
    calls.nodes.lock().remove(&first.node_id());
    nodes.retain(|node| node.node_id() != first.node_id());
    let second = elect(&nodes).await;
    for i in 0..100 {
        put(&second, "c", &i.to_string()).await.unwrap();
    }

    // It comes back and gets what it missed.
    let id = first.node_id().0;
    let back = start(id, &calls, &stores[id as usize - 1]).await;
    until(&back, "c", "99").await;
    assert_eq!(*back.image(), *second.image());
}

#[tokio::test]
async fn a_leader_that_comes_back_in_its_term_plans_on_all_that_it_had_committed() {
    let calls = Arc::new(Calls::default());
    let (stores, nodes) = three(&calls).await;
    let first = elect(&nodes).await;
    put(&first, "a", "1").await.unwrap();
    put(&first, "a", "2").await.unwrap();
    let term = first.leader_and_term();
    let id = first.node_id();
    first.shutdown().await;
    calls.nodes.lock().remove(&id);

    // Nobody else stood for election. It has its last entry, but not that it was committed, and
    // cannot compare its log with the others'.
    calls.holds_entries.send_replace(true);
    let back = start(id.0, &calls, &stores[id.0 as usize - 1]).await;
    assert_eq!(back.leader_and_term(), term);
    assert_eq!(value(&back.image(), "a").as_deref(), Some("1"));
    let last_index = |node: &Quorum| node.raft().unwrap().metrics().borrow().last_log_index;
    let before = last_index(&back);
    let asked = back.clone();
    let seen = tasks::spawn(async move {
        loop {
            let planner = |image: &MetadataImage| Plan::answer(value(image, "a"));
            match asked.submit(TIMEOUT, planner).await {
                Ok(seen) => return seen,
                // The others' answers to a heartbeat came late.
                Err(QuorumError::NotController { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let settled = async {
        while last_index(&back) == before && !seen.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, settled).await.unwrap();
    calls.holds_entries.send_replace(false);
    assert_eq!(seen.await.unwrap().as_deref(), Some("2"));
}

/// A controller that has found the cluster, and has nothing of it yet.
async fn start_without_a_vote(voter: &VoterInfo, calls: &Arc<Calls>) -> Arc<Quorum> {
    let config = QuorumConfig {
        voters: BTreeMap::new(),
        begin_at: vec!["node-1:9093".into()],
        address: voter.address.clone(),
        heartbeat_interval_ms: HEARTBEAT_MS,
        ..QuorumConfig::single(voter.id, Some("cluster".into()))
    };
    let identity = Identity {
        node_id: voter.id,
        cluster_id: "cluster".into(),
        directory_id: voter.directory_id,
        first_voters: None,
    };
    let store = Arc::new(Memory::default());
    let transport = Arc::new(calls.clone());
    let quorum = Quorum::open(&config, identity, store, transport)
        .await
        .unwrap();
    quorum.raft().unwrap().runtime_config().elect(false);
    calls.nodes.lock().insert(voter.id, Arc::downgrade(&quorum));
    quorum
}

fn ids(voters: Vec<VoterInfo>) -> Vec<i32> {
    let mut ids: Vec<i32> = voters.iter().map(|voter| voter.id.0).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_voter_is_added_replaced_and_taken_away() {
    let calls = Arc::new(Calls::default());
    let (_stores, nodes) = three(&calls).await;
    let leads = elect(&nodes).await;
    put(&leads, "a", "1").await.unwrap();
    let fourth = |directory: u128| VoterInfo {
        id: BrokerId(4),
        address: "node-4:9093".into(),
        directory_id: Uuid::from_u128(directory),
    };

    let first_disk = start_without_a_vote(&fourth(1), &calls).await;
    leads.take_in(fourth(1)).await.unwrap();
    until(&first_disk, "a", "1").await;
    assert_eq!(ids(leads.voters()), [1, 2, 3], "it follows");
    assert_eq!(leads.learners(), [fourth(1)]);
    leads
        .add_voter(fourth(1), TIMEOUT, Until::Committed)
        .await
        .unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3, 4]);
    let again = leads.add_voter(fourth(1), TIMEOUT, Until::Committed).await;
    assert!(matches!(again, Err(VoterChangeError::Duplicate { .. })));

    // Another disk: it follows from the beginning, and votes no more.
    first_disk.shutdown().await;
    let second_disk = start_without_a_vote(&fourth(2), &calls).await;
    leads.take_in(fourth(2)).await.unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3]);
    until(&second_disk, "a", "1").await;
    leads
        .add_voter(fourth(2), TIMEOUT, Until::Committed)
        .await
        .unwrap();

    let other = leads.remove_voter(BrokerId(4), Uuid::from_u128(1)).await;
    assert!(matches!(other, Err(VoterChangeError::NotFound { .. })));
    leads
        .remove_voter(BrokerId(4), Uuid::from_u128(2))
        .await
        .unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3]);
    assert_eq!(leads.learners(), [fourth(2)], "it follows on");
    put(&leads, "a", "2").await.unwrap();
    until(&second_disk, "a", "2").await;
}

#[tokio::test]
async fn nobody_becomes_a_voter_before_it_has_the_log() {
    let calls = Arc::new(Calls::default());
    let (_stores, nodes) = three(&calls).await;
    let leads = elect(&nodes).await;
    put(&leads, "a", "1").await.unwrap();
    let fourth = VoterInfo {
        id: BrokerId(4),
        address: "node-4:9093".into(),
        directory_id: Uuid::from_u128(1),
    };
    let short = Duration::from_millis(HEARTBEAT_MS);
    let added = leads.add_voter(fourth.clone(), short, Until::Committed);
    let added = added.await;
    assert!(
        matches!(added, Err(VoterChangeError::NotReady { .. })),
        "{added:?}"
    );
    assert_eq!(ids(leads.voters()), [1, 2, 3]);
    assert_eq!(leads.learners(), [], "nothing is left of it");

    // It is there now. Nobody waits for the end of the change.
    let fourth_node = start_without_a_vote(&fourth, &calls).await;
    let added = leads.add_voter(fourth, TIMEOUT, Until::Written);
    added.await.unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3, 4]);
    let configs = || {
        let metrics = leads.raft().unwrap().metrics().borrow().clone();
        let membership = metrics.membership_config.membership().clone();
        membership.get_joint_config().len()
    };
    assert_eq!(configs(), 2, "the old voters and the new ones");
    let ended = async {
        while configs() > 1 {
            // While the first half is not committed yet, it is refused.
            let _ = leads.end_change().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, ended).await.unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3, 4]);
    put(&leads, "a", "2").await.unwrap();
    until(&fourth_node, "a", "2").await;
}

#[tokio::test]
async fn a_twin_takes_nothing_from_the_node_that_runs() {
    let calls = Arc::new(Calls::default());
    let (_stores, nodes) = three(&calls).await;
    let leads = elect(&nodes).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = VoterInfo {
        id: BrokerId(4),
        address: listener.local_addr().unwrap().to_string(),
        directory_id: Uuid::from_u128(1),
    };
    let _first = start_without_a_vote(&first, &calls).await;
    let added = leads.add_voter(first.clone(), TIMEOUT, Until::Committed);
    added.await.unwrap();
    let twin = VoterInfo {
        address: "node-4:9093".into(),
        directory_id: Uuid::from_u128(2),
        ..first.clone()
    };
    let refused = leads.take_in(twin.clone()).await;
    assert!(
        matches!(refused, Err(QuorumError::Membership(_))),
        "{refused:?}"
    );
    assert!(leads.voters().contains(&first));
    // Its own end is another thing.
    drop(listener);
    leads.take_in(twin.clone()).await.unwrap();
    assert_eq!(ids(leads.voters()), [1, 2, 3]);
    assert_eq!(leads.learners(), [twin]);
}
