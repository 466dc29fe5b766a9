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

mod controller;
mod error;
mod identity;
mod keys;
mod log_store;
mod network;
mod packing;
mod published;
mod raft_types;
mod snapshot_store;
mod state_machine;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::RaftError;
use openraft::{BasicNode, SnapshotPolicy};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::host::{KeyValue, random, tasks};
use crate::metadata::{Draw, MetadataImage, Plan};
use crate::types::BrokerId;

use controller::{Controller, Job, job};
use log_store::LogStore;
use published::Published;
use raft_types::{Raft, broker_id, raft_id};
use snapshot_store::SnapshotStore;
use state_machine::StateMachine;

pub use error::QuorumError;
pub use network::{NoTransport, RaftMessage, RaftRpc, Sent, Transport};
pub use published::{Change, Subscription};

/// What a node must know to take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumConfig {
    pub node_id: BrokerId,
    /// Generated for an empty store of a single voter when not given.
    pub cluster_id: Option<String>,
    /// The voters and their `host:port`, this node among them. Only an empty store is formatted
    /// with them; afterwards the log says who votes.
    pub voters: BTreeMap<BrokerId, String>,
    /// A snapshot is made after so many entries or bytes of entries, whichever comes first.
    pub snapshot_entries: u64,
    pub snapshot_bytes: u64,
    /// How often a leader lets several voters know that it is there. An election begins when they
    /// heard nothing for five to ten times as long.
    pub heartbeat_interval_ms: u64,
}

impl QuorumConfig {
    /// A quorum of this node alone.
    pub fn single(node_id: BrokerId, cluster_id: Option<String>) -> Self {
        QuorumConfig {
            node_id,
            cluster_id,
            // Nobody ever dials it.
            voters: BTreeMap::from([(node_id, String::new())]),
            snapshot_entries: 1000,
            snapshot_bytes: 4 << 20,
            heartbeat_interval_ms: 200,
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
            election_timeout_min: heartbeat_interval_ms * 5,
            election_timeout_max: heartbeat_interval_ms * 10,
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
    raft: Raft,
    published: Arc<Published>,
    snapshots: SnapshotStore,
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
}

impl Quorum {
    /// Opens the node's metadata in `store`, formatting it if it is empty. A single voter leads and
    /// has its whole image when this returns; one of several has what its store holds.
    pub async fn start(
        config: QuorumConfig,
        store: Arc<dyn KeyValue>,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Quorum>, QuorumError> {
        let node_id = config.node_id;
        if !config.voters.contains_key(&node_id) {
            return Err(QuorumError::NotAVoter { node: node_id });
        }
        let identity = identity::open(&*store, &config)?;
        let cluster_id: Arc<str> = identity.cluster_id.into();
        let log = LogStore::open(store.clone())?;
        let appended_bytes = log.appended_bytes().clone();
        let snapshots = SnapshotStore::open(store)?;
        let (machine, published) = StateMachine::open(snapshots.clone(), appended_bytes.clone())?;
        let raft_config = Arc::new(config.raft());
        let network = network::Network(transport);
        let raft = Raft::new(raft_id(node_id), raft_config, network, log, machine).await?;
        let (jobs, waiting) = mpsc::unbounded_channel();
        let controller = Controller {
            raft: raft.clone(),
            published: published.clone(),
            cluster_id: cluster_id.clone(),
            appended_bytes,
            snapshot_bytes: config.snapshot_bytes,
        };
        tasks::spawn(controller.run(waiting));
        let quorum = Arc::new(Quorum {
            node_id,
            cluster_id,
            raft,
            published,
            snapshots,
            jobs,
        });
        quorum.initialize(&config).await?;
        Ok(quorum)
    }

    /// Gives an empty log its voters, and lets a single voter take the lead.
    async fn initialize(&self, config: &QuorumConfig) -> Result<(), QuorumError> {
        let single = config.voters.len() == 1;
        if !self.raft.is_initialized().await? {
            let node = |(id, addr): (&BrokerId, &String)| (raft_id(*id), BasicNode::new(addr));
            let voters: BTreeMap<u64, BasicNode> = config.voters.iter().map(node).collect();
            let initialized = self.raft.initialize(voters).await;
            initialized.map_err(|error| match error {
                RaftError::Fatal(fatal) => QuorumError::from(fatal),
                RaftError::APIError(error) => {
                    unreachable!("the log is empty and has this node as a voter: {error}")
                }
            })?;
        } else if single && self.leader().is_none() {
            // A single voter that led before leads again at once; this one crashed before it did.
            self.raft.trigger().elect().await?;
        }
        if !single {
            return Ok(());
        }
        let leads = self.raft.wait(None);
        let leads = leads
            .current_leader(raft_id(self.node_id), "single voter")
            .await;
        leads.map_err(|_| QuorumError::Stopped)?;
        self.run(|_| Plan::answer(())).await
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
        self.raft.metrics().borrow().current_leader.map(broker_id)
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
        self.jobs.send(job).map_err(|_| QuorumError::Stopped)?;
        answer.await.unwrap_or(Err(QuorumError::PlannerPanicked))
    }

    /// Answers a message of another voter.
    pub async fn handle_rpc(&self, rpc: RaftRpc, body: &[u8]) -> Result<Vec<u8>, QuorumError> {
        network::handle_rpc(&self.raft, rpc, body).await
    }

    /// Waits until the quorum on this node stops working, which only a failing store or `shutdown`
    /// brings about, and says why.
    pub async fn stopped(&self) -> QuorumError {
        let mut metrics = self.raft.metrics();
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
        // It fails when the task panicked, and then it has stopped as well.
        let _ = self.raft.shutdown().await;
        let snapshots = self.snapshots.clone();
        // The same goes for a snapshot that is being written.
        let _ = tasks::spawn_blocking(move || snapshots.close()).await;
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
