//! The metadata quorum: the only user of openraft.
//!
//! A node holds the metadata as an image that it builds from the entries of a replicated log. The
//! leader of the quorum is the controller: it alone plans changes. With one voter the log is
//! replicated to nobody and the node leads from the start, through the same code.
//!
//! ```text
//!            submit(planner)                              image()   subscribe()
//!                 │                                          ^          ^
//!                 v                                          │          │
//!            controller ──> openraft ──> log store       published <── state machine
//!                               │            │                              ^ │
//!                               │            v                              │ v
//!                               │       key-value store <───────────────── snapshots
//!                               └──────────────── committed entries ────────┘
//! ```

mod admission;
mod controller;
mod endpoint;
mod error;
mod formation;
mod hearing;
mod identity;
mod keys;
mod leader_watch;
mod log_store;
mod network;
mod observer;
mod packing;
mod peer_transport;
mod published;
mod raft_types;
mod reach;
mod reasons;
mod rpc;
mod runtime;
mod snapshot_store;
mod state_machine;
mod voters;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::SnapshotPolicy;
use openraft::error::RaftError;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::host::{KeyValue, random, tasks};
use crate::metadata::{Draw, MetadataImage, Plan};
use crate::peer::{Address, ControllerFinder, ControllerPlace};
use crate::types::{BrokerId, Offset};

use controller::{Controller, Job, job};
use hearing::Hearing;
use identity::Identity;
use log_store::LogStore;
use observer::Seen;
use published::Published;
use raft_types::{Raft, VoterNode, broker_id, raft_id};
use reach::Reach;
use rpc::Content;
use snapshot_store::SnapshotStore;
use state_machine::StateMachine;

pub use endpoint::{Endpoint, OBSERVER_MAX, Observed};
pub use error::QuorumError;
pub use identity::is_formatted;
pub use network::{NoTransport, RaftMessage, RaftRpc, Sent, Transport};
pub use peer_transport::PeerTransport;
pub use published::{Change, Subscription};
pub use rpc::VoterInfo;
pub use voters::{Until, VoterChangeError};
pub use waiting::Waiting;

/// What a node must know to take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumConfig {
    pub node_id: BrokerId,
    /// Generated for an empty store when not given.
    pub cluster_id: Option<String>,
    /// The directory of the metadata, if it has an id already.
    pub directory_id: Option<Uuid>,
    /// The voters and their `host:port`, this node among them. Only an empty store is formatted
    /// with them; afterwards the log says who votes.
    pub voters: BTreeMap<BrokerId, String>,
    /// What shows that the node was part of a cluster before, if its store is empty: it does not
    /// begin another one.
    pub earlier: Option<String>,
    /// Where to look for the others when the log alone says who votes (KIP-853); empty when
    /// `voters` does. Empty stores are formatted with all who are there.
    pub begin_at: Vec<String>,
    /// This node's own `host:port`, where `voters` does not name it.
    pub address: String,
    /// Nodes without a vote follow this one, or other voters are there.
    pub serves_others: bool,
    /// The default that a new cluster begins with, if it is this node that begins it.
    pub min_insync_replicas: i32,
    /// A snapshot is made after so many entries or bytes of entries, whichever comes first.
    pub snapshot_entries: u64,
    pub snapshot_bytes: u64,
    /// How often a leader lets several voters know that it is there (`leader_watch`).
    pub heartbeat_interval_ms: u64,
}

impl QuorumConfig {
    /// A quorum of this node alone.
    pub fn single(node_id: BrokerId, cluster_id: Option<String>) -> Self {
        QuorumConfig {
            node_id,
            cluster_id,
            directory_id: None,
            // Nobody ever dials it.
            voters: BTreeMap::from([(node_id, String::new())]),
            earlier: None,
            begin_at: Vec::new(),
            address: String::new(),
            serves_others: false,
            min_insync_replicas: 1,
            snapshot_entries: 1000,
            snapshot_bytes: 4 << 20,
            heartbeat_interval_ms: 150,
        }
    }

    fn raft(&self) -> openraft::Config {
        // openraft's clock ticks once per one and a half heartbeats. A single voter needs no clock:
        // it leads from the start and nobody waits for its heartbeats.
        let single = self.voters.len() == 1;
        let heartbeat_interval_ms = match single {
            true => 3_600_000,
            false => self.heartbeat_interval_ms,
        };
        let config = openraft::Config {
            cluster_name: "metadata".into(),
            heartbeat_interval: heartbeat_interval_ms,
            // A follower waits for the longer one before it votes, and for one in between before
            // it stands for election.
            election_timeout_min: heartbeat_interval_ms * 3,
            election_timeout_max: heartbeat_interval_ms * 4,
            // So many entries of the largest size fit a frame.
            max_payload_entries: 30,
            install_snapshot_timeout: 10_000,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_entries),
            // Voters that are a little behind are better served from the log.
            max_in_snapshot_log_to_keep: if single { 0 } else { self.snapshot_entries },
            replication_lag_threshold: self.snapshot_entries * 2,
            enable_tick: !single,
            ..openraft::Config::default()
        };
        config
            .validate()
            .expect("the election timeouts are above the heartbeat's")
    }
}

/// This node's part in the metadata quorum.
pub struct Quorum {
    node_id: BrokerId,
    cluster_id: Arc<str>,
    directory_id: Uuid,
    published: Arc<Published>,
    member: Member,
}

/// What a node does for the quorum.
enum Member {
    Voter(Box<Voter>),
    /// It follows what the voters have committed.
    Observer(watch::Receiver<Seen>),
}

struct Voter {
    raft: Raft,
    log: LogStore,
    snapshots: SnapshotStore,
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
    /// Those that may become voters by themselves.
    listed: BTreeMap<BrokerId, String>,
    /// Of [`QuorumConfig`]: not empty when the log alone says who votes.
    begin_at: Vec<String>,
    address: String,
    serves_others: bool,
    heartbeat_interval: Duration,
    hearing: Hearing,
    /// Held while the voters change.
    admitting: tokio::sync::Mutex<()>,
}

impl Quorum {
    /// Opens the node's metadata in `store`, formatting it if it is empty. A single voter leads and
    /// has its whole image when this returns; one of several has what its store holds.
    pub async fn start(
        config: QuorumConfig,
        store: Arc<dyn KeyValue>,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Quorum>, QuorumError> {
        if !config.voters.contains_key(&config.node_id) {
            let node = config.node_id;
            return Err(QuorumError::NotAVoter { node });
        }
        let identity = identity::open(&*store, &config)?;
        let nil = |(id, address): (&BrokerId, &String)| {
            let directory_id = match config.voters.len() {
                1 => identity.directory_id,
                _ => Uuid::nil(),
            };
            (raft_id(*id), VoterNode::new(address, directory_id))
        };
        let first = Some(config.voters.iter().map(nil).collect());
        let quorum = Self::open(&config, identity, store, transport).await?;
        quorum.initialize(config.voters.len() == 1, first).await?;
        Ok(quorum)
    }

    /// As [`Quorum::start`] for a voter that others speak to; several find one another over the
    /// network. Returns once the node has an image of the cluster.
    pub async fn start_voter(
        config: QuorumConfig,
        store: Arc<dyn KeyValue>,
        endpoint: &Arc<Endpoint>,
        transport: &Arc<PeerTransport>,
        waiting: &Waiting,
    ) -> Result<Arc<Quorum>, QuorumError> {
        if config.voters.len() == 1 {
            let quorum = Self::start(config, store, Arc::new(transport.clone())).await?;
            endpoint.serve(&quorum);
            admission::keep_address(&quorum).await?;
            return Ok(quorum);
        }
        let identity = formation::identity(&config, &*store, endpoint, transport, waiting).await?;
        let first = identity.first_voters.as_ref().map(|voters| {
            let node = |voter: &VoterInfo| {
                let node = VoterNode::new(&voter.address, voter.directory_id);
                (raft_id(voter.id), node)
            };
            voters.iter().map(node).collect()
        });
        let carrier = Arc::new(transport.clone());
        let quorum = Self::open(&config, identity, store, carrier).await?;
        endpoint.serve(&quorum);
        if first.is_some() && !quorum.raft()?.is_initialized().await? {
            // The others hear of the cluster meanwhile, and are there for the first election.
            tokio::time::sleep(formation::ASK_AGAIN * 2).await;
        }
        quorum.initialize(false, first).await?;
        leader_watch::start(&quorum, transport);
        admission::start(&quorum, transport, waiting);
        quorum.formed().await?;
        Ok(quorum)
    }

    /// Follows the metadata of the cluster whose controllers listen at `controllers`.
    pub async fn observe(
        node_id: BrokerId,
        cluster_id: Option<String>,
        controllers: Vec<String>,
        transport: &Arc<PeerTransport>,
        waiting: &Waiting,
    ) -> Result<Arc<Quorum>, QuorumError> {
        let published = Arc::new(Published::new(MetadataImage::empty()));
        let follower = observer::Follower::new(node_id, cluster_id, controllers, &published);
        let (cluster_id, seen) = follower.start(transport.clone(), waiting).await?;
        let quorum = Arc::new(Quorum {
            node_id,
            cluster_id: cluster_id.into(),
            directory_id: Uuid::nil(),
            published,
            member: Member::Observer(seen),
        });
        quorum.formed().await?;
        Ok(quorum)
    }

    async fn open(
        config: &QuorumConfig,
        identity: Identity,
        store: Arc<dyn KeyValue>,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Quorum>, QuorumError> {
        let cluster_id: Arc<str> = identity.cluster_id.into();
        let log = LogStore::open(store.clone())?;
        let appended_bytes = log.appended_bytes().clone();
        let snapshots = SnapshotStore::open(store)?;
        let (machine, published) = StateMachine::open(snapshots.clone(), appended_bytes.clone())?;
        let raft_config = Arc::new(config.raft());
        let network = network::Network {
            cluster_id: cluster_id.clone(),
            transport,
            reach: Reach::default(),
        };
        let id = raft_id(config.node_id);
        let raft = Raft::new(id, raft_config, network, log.clone(), machine).await?;
        let (jobs, waiting) = mpsc::unbounded_channel();
        let controller = Controller {
            raft: raft.clone(),
            published: published.clone(),
            cluster_id: cluster_id.clone(),
            min_insync_replicas: config.min_insync_replicas,
            appended_bytes,
            snapshot_bytes: config.snapshot_bytes,
        };
        tasks::spawn(controller.run(waiting));
        let voter = Voter {
            raft,
            log,
            snapshots,
            jobs,
            listed: config.voters.clone(),
            begin_at: config.begin_at.clone(),
            address: config.address.clone(),
            serves_others: config.serves_others || config.voters.len() > 1,
            heartbeat_interval: Duration::from_millis(config.heartbeat_interval_ms),
            hearing: Hearing::default(),
            admitting: tokio::sync::Mutex::default(),
        };
        let quorum = Arc::new(Quorum {
            node_id: config.node_id,
            cluster_id,
            directory_id: identity.directory_id,
            published,
            member: Member::Voter(Box::new(voter)),
        });
        Ok(quorum)
    }

    /// Gives an empty log its voters, and lets a single voter take the lead.
    async fn initialize(
        &self,
        single: bool,
        first: Option<BTreeMap<u64, VoterNode>>,
    ) -> Result<(), QuorumError> {
        let raft = self.raft()?;
        if !raft.is_initialized().await? {
            // Without them this node is spoken to by one that has them.
            if let Some(voters) = first {
                let initialized = raft.initialize(voters).await;
                match initialized {
                    Err(RaftError::Fatal(fatal)) => return Err(fatal.into()),
                    // Another voter was quicker and has written here since.
                    Ok(()) | Err(RaftError::APIError(_)) => {}
                }
            }
        } else if single && self.leader().is_none() {
            // A single voter that led before leads again at once; this one crashed before it did.
            raft.trigger().elect().await?;
        }
        if !single {
            return Ok(());
        }
        let leads = raft.wait(None);
        let leads = leads
            .current_leader(raft_id(self.node_id), "single voter")
            .await;
        leads.map_err(|_| QuorumError::Stopped)?;
        self.run(|_| Plan::answer(())).await
    }

    fn voter(&self) -> Result<&Voter, QuorumError> {
        match &self.member {
            Member::Voter(voter) => Ok(voter),
            Member::Observer(_) => Err(QuorumError::NotController {
                leader: self.leader(),
            }),
        }
    }

    fn raft(&self) -> Result<&Raft, QuorumError> {
        self.voter().map(|voter| &voter.raft)
    }

    /// Of the metadata on this node; nil where it has none of its own.
    pub fn directory_id(&self) -> Uuid {
        self.directory_id
    }

    /// Whether this node is one of the controllers.
    pub fn is_voter(&self) -> bool {
        matches!(self.member, Member::Voter(_))
    }

    /// Whether the cluster may have more nodes than this one.
    pub fn has_other_nodes(&self) -> bool {
        match &self.member {
            Member::Voter(voter) => voter.serves_others,
            Member::Observer(_) => true,
        }
    }

    /// The voters as far as this node knows.
    pub fn voters(&self) -> Vec<VoterInfo> {
        let voter = match &self.member {
            Member::Observer(seen) => return seen.borrow().voters.clone(),
            Member::Voter(voter) => voter,
        };
        let metrics = voter.raft.metrics();
        let membership = metrics.borrow().membership_config.clone();
        let info = |id: u64| {
            let node = membership.membership().get_node(&id)?;
            Some(VoterInfo {
                id: broker_id(id),
                address: node.addr.clone(),
                directory_id: node.directory_id,
            })
        };
        membership.voter_ids().filter_map(info).collect()
    }

    /// The controller as far as this node knows, and its term (Kafka's leader epoch).
    pub fn leader_and_term(&self) -> (Option<BrokerId>, u64) {
        match &self.member {
            Member::Observer(seen) => {
                let seen = seen.borrow();
                (seen.leader, seen.term)
            }
            Member::Voter(voter) => {
                let metrics = voter.raft.metrics();
                let metrics = metrics.borrow();
                (metrics.current_leader.map(broker_id), metrics.current_term)
            }
        }
    }

    /// Whether this node is the active controller, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.leader() == Some(self.node_id)
    }

    /// How far each voter has the log, if this node leads: the offset of its last entry.
    pub fn voter_offsets(&self) -> BTreeMap<BrokerId, Offset> {
        let Ok(raft) = self.raft() else {
            return BTreeMap::new();
        };
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        let offset = |index: u64| Offset(index as i64);
        let mut offsets = BTreeMap::new();
        for (id, matching) in metrics.replication.iter().flatten() {
            let at = matching.map_or(Offset::NONE, |matching| offset(matching.index));
            offsets.insert(broker_id(*id), at);
        }
        let own = metrics.last_log_index.map_or(Offset::NONE, offset);
        offsets.insert(self.node_id, own);
        offsets
    }

    /// Waits until the leader or its term is not `known`.
    pub async fn wait_for_leader(&self, known: (Option<BrokerId>, u64)) {
        match &self.member {
            Member::Voter(voter) => {
                let mut metrics = voter.raft.metrics();
                let changed = metrics.wait_for(|metrics| {
                    (metrics.current_leader.map(broker_id), metrics.current_term) != known
                });
                if changed.await.is_err() {
                    std::future::pending().await
                }
            }
            Member::Observer(seen) => {
                let mut seen = seen.clone();
                let changed = seen.wait_for(|seen| (seen.leader, seen.term) != known);
                if changed.await.is_err() {
                    std::future::pending().await
                }
            }
        }
    }

    /// Waits until the image is past `offset` or the leader or its term is not `known`.
    async fn wait_for_news(&self, offset: Offset, known: (Option<BrokerId>, u64)) {
        let mut reached = self.published.reached();
        let Ok(raft) = self.raft() else {
            return;
        };
        let mut metrics = raft.metrics();
        let changed = metrics.wait_for(|metrics| {
            (metrics.current_leader.map(broker_id), metrics.current_term) != known
        });
        tokio::select! {
            _ = reached.wait_for(|reached| *reached > offset) => {}
            _ = changed => {}
        }
    }

    /// What was committed after `offset`.
    fn content_after(&self, offset: Offset) -> Content {
        self.published.content_after(offset)
    }

    pub fn node_id(&self) -> BrokerId {
        self.node_id
    }

    pub fn cluster_id(&self) -> &Arc<str> {
        &self.cluster_id
    }

    /// The newest image on this node. Never waits.
    pub fn image(&self) -> Arc<MetadataImage> {
        self.published.image()
    }

    /// Every change of the image from now on, in order.
    pub fn subscribe(&self) -> Subscription {
        self.published.subscribe()
    }

    /// The controller as far as this node knows.
    pub fn leader(&self) -> Option<BrokerId> {
        self.leader_and_term().0
    }

    /// Runs `planner` on the controller, commits what it plans and gives its answer once this
    /// node's image has the change. A planner whose time is up before its turn is not run.
    pub async fn submit<T, F>(&self, timeout: Duration, planner: F) -> Result<T, QuorumError>
    where
        T: Send + 'static,
        F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
    {
        let answer = tokio::time::timeout(timeout, self.run(planner)).await;
        answer.unwrap_or(Err(QuorumError::TimedOut))
    }

    async fn run<T, F>(&self, planner: F) -> Result<T, QuorumError>
    where
        T: Send + 'static,
        F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
    {
        let (job, answer) = job(planner);
        let jobs = &self.voter()?.jobs;
        jobs.send(job).map_err(|_| QuorumError::Stopped)?;
        answer.await.unwrap_or(Err(QuorumError::PlannerPanicked))
    }

    /// Answers a message of another voter.
    pub async fn handle_rpc(&self, rpc: RaftRpc, body: &[u8]) -> Result<Vec<u8>, QuorumError> {
        network::handle_rpc(self.raft()?, rpc, body).await
    }

    /// Waits until the quorum on this node stops working, which only a failing store or `shutdown`
    /// brings about, and says why.
    pub async fn stopped(&self) -> QuorumError {
        let Ok(raft) = self.raft() else {
            // What it follows is elsewhere.
            return std::future::pending().await;
        };
        let mut metrics = raft.metrics();
        let stopped = metrics.wait_for(|metrics| metrics.running_state.is_err());
        match stopped.await {
            Ok(metrics) => match &metrics.running_state {
                Err(fatal) => fatal.clone().into(),
                Ok(()) => QuorumError::Stopped,
            },
            // The sender is gone.
            Err(_) => QuorumError::Stopped,
        }
    }

    /// Stops. Everything that was answered is in the store.
    pub async fn shutdown(&self) {
        let Member::Voter(voter) = &self.member else {
            self.published.close();
            return;
        };
        // It fails when the task panicked, and then it has stopped as well.
        let _ = voter.raft.shutdown().await;
        let snapshots = voter.snapshots.clone();
        // The same goes for a snapshot that is being written.
        let _ = tasks::spawn_blocking(move || snapshots.close()).await;
    }
}

impl ControllerFinder for Quorum {
    fn controller(&self) -> Option<ControllerPlace> {
        let id = self.leader()?;
        if id == self.node_id {
            return Some(ControllerPlace::Here);
        }
        let voter = self.voters().into_iter().find(|voter| voter.id == id)?;
        let address = Address::parse(&voter.address).ok()?;
        Some(ControllerPlace::At { id, address })
    }
}

/// A planner's randomness from the operating system.
pub struct HostDraw;

impl Draw for HostDraw {
    fn uuid(&mut self) -> Uuid {
        random::uuid()
    }

    fn below(&mut self, end: usize) -> usize {
        (random::seed() % end as u64) as usize
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod crash_tests;

#[cfg(test)]
mod store_tests;

#[cfg(test)]
mod voters_tests;
