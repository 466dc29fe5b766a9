//! Starting and stopping a node: a broker, a controller, or both.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::StartError;
use super::background::{Background, with_dynamic, write_high_watermarks};
use super::contested;
use super::controller_log::start_controller_log;
use super::directories;
use super::elections::start_elections;
use super::kafka_directory;
use super::lifecycle::{Lifecycle, start_controller};
use super::monitor::{self, Monitor, Phase, Served};
use super::registration::{end_points, register, registration, unfence};
use super::role::Role;
use super::storage;
use super::transactions::TransactionServices;
use crate::api::{CONSUMER_OFFSETS, ConnectionKind, Node, Peers};
use crate::config::{Listener, NodeConfig};
use crate::coordinator::TopicLog;
use crate::coordinator::group::{ClusterSource, GroupCoordinator};
use crate::host::{Clock, Host, limits, tasks};
use crate::metadata::planners::RegisterBroker;
use crate::metadata::{BrokerEndpoint, BrokerEpoch};
use crate::partition::{FetcherConfig, Fetchers, Partitions, RemoteLeader};
use crate::peer::{BrokerChannels, ControllerChannel, LocalController};
use crate::quorum::{Change, Endpoint, Quorum, QuorumError, Waiting};
use crate::record::Compression;
use crate::server::{Bound, ConnectionLimits, FrameBudget, ListenerSettings, Pipeline, bind};
use crate::types::BrokerId;

/// The memory that requests under way may take when `queued.max.request.bytes` sets no limit, in
/// largest requests.
const LARGEST_REQUESTS: usize = 4;

/// A running node.
pub struct Broker {
    pub(super) node: Arc<Node>,
    epoch: BrokerEpoch,
    stop: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
    background: Background,
    /// `None`: this node is no broker, or alone.
    lifecycle: Option<Lifecycle>,
    /// How many log directories work.
    working_dirs: watch::Receiver<usize>,
    monitor: Arc<Monitor>,
    served: Option<Served>,
}

/// What a node that is ready has to tell.
pub struct Ready {
    pub cluster_id: Arc<str>,
    pub broker_id: BrokerId,
    /// Listener names and the addresses they are bound to.
    pub bound: Vec<(String, SocketAddr)>,
    pub advertised: Vec<BrokerEndpoint>,
    /// What is told follows the way a client came (`klamm.advertised.mode`).
    pub follows: bool,
    pub log_dirs: Vec<String>,
    pub partitions: usize,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
}

impl Broker {
    /// Starts a node; when this returns, clients are served.
    pub async fn start(config: NodeConfig) -> Result<(Broker, Ready), StartError> {
        Broker::start_on(Host::real(), config).await
    }

    pub(super) async fn start_on(
        host: Host,
        config: NodeConfig,
    ) -> Result<(Broker, Ready), StartError> {
        let waiting = Waiting::default();
        tokio::select! {
            started = Broker::start_all(host, config, &waiting) => started,
            never = waiting.say() => match never {},
        }
    }

    async fn start_all(
        host: Host,
        config: NodeConfig,
        waiting: &Waiting,
    ) -> Result<(Broker, Ready), StartError> {
        let role = Role::of(&config)?;
        let is_broker = config.broker.is_broker();
        let node_id = BrokerId(config.broker.identity.node_id);
        let file_handles_max = limits::raise_file_handles();
        let (bound, controller_bound) = bind_all(&config, &role).await?;
        let monitor = Arc::new(Monitor::default());
        let served = monitor::serve(&config, &monitor).await?;
        let sockets = bound.sockets.iter().chain(&controller_bound.sockets);
        *monitor.traffic.lock() = sockets.map(|socket| socket.traffic().clone()).collect();
        let storage = storage::open(&host, &config, node_id, file_handles_max)?;
        let Host { disk, clock, .. } = host;
        let _ = monitor.log_dirs.set(storage.log_dirs.clone());
        monitor.enter(Phase::Forming);
        let (stop, stopping) = watch::channel(false);
        let endpoint = Endpoint::new(node_id);
        let pipeline = Pipeline::new(endpoint.clone(), clock.clone());
        let connections_max = storage::connections_max(file_handles_max);
        let settings = listener_settings(&config, connections_max, &stopping);
        monitor.budgets.lock().push(settings.budget.clone());
        // Nodes that are to form a cluster speak to one another before there is one.
        let mut listeners = listen(&pipeline, controller_bound.sockets, &settings);
        let min_insync_replicas = config.topic_defaults.min_insync_replicas;
        let quorum = role
            .start_quorum(node_id, &storage, &endpoint, min_insync_replicas, waiting)
            .await?;
        waiting.waits_for("its log directories");
        storage::format_new(&storage.log_dirs, &config, &quorum)?;
        if storage.metadata.is_some() {
            kafka_directory::take_over(&*disk, &storage.kafka_metadata, node_id, &quorum).await?;
        }

        let mut changes = quorum.subscribe();
        let first = changes.next().await.ok_or(QuorumError::Stopped)?;
        let first_image = first.image.clone();
        let config = with_dynamic(&config, &first_image, node_id);
        let config = Arc::new(ArcSwap::from_pointee(config));
        let (rolled_sender, rolled) = mpsc::unbounded_channel();
        let log_dirs = storage.log_dirs.clone();
        let partitions = Arc::new(Partitions::new(
            node_id,
            log_dirs,
            clock.clone(),
            rolled_sender,
        ));
        partitions.copy_with(fetchers(&config.load(), &partitions));
        let groups = group_coordinator(&config, &clock, &quorum, &partitions);
        let channel = |purpose| controller_channel(purpose, node_id, &quorum, &pipeline);
        let surroundings = partitions.surroundings().clone();
        let brokers = BrokerChannels::new(&format!("broker-{node_id}"), surroundings);
        let peers = Peers {
            endpoint,
            channel: channel("broker"),
            forwarding: channel("forwarding"),
            brokers: Arc::new(brokers),
        };
        let services = TransactionServices {
            broker_id: node_id,
            config: &config,
            clock: &clock,
            quorum: &quorum,
            partitions: &partitions,
            channel: &peers.channel,
            brokers: &peers.brokers,
        };
        let coordinators = services.coordinators(groups);
        monitor.enter(Phase::Recovering);
        let clean_stop = load(&partitions, config.load_full(), first).await?;
        let lifecycle_channel = channel("lifecycle");
        let node = Node::new(
            node_id,
            config,
            clock,
            quorum,
            partitions,
            coordinators,
            peers,
        );
        monitor.watch(&node);
        monitor.enter(Phase::Registering);
        let has_crashed = clean_stop == BrokerEpoch::NONE;
        let background =
            Background::start(&node, first_image, changes, rolled, &stopping, has_crashed);
        let _ = monitor.cleaner.set(background.cleaner.clone());
        pipeline.serve(&node);
        if node.quorum.has_other_nodes() {
            start_controller(&node, &stopping);
            start_elections(&node, &stopping);
            start_controller_log(&node, &stopping);
        }
        let advertised = end_points(&node.config(), &bound.ports());
        let (mut epoch, mut lifecycle) = (BrokerEpoch::NONE, None);
        if is_broker {
            let request = registration(&node, advertised.clone(), clean_stop);
            (epoch, lifecycle) =
                enter_cluster(&node, lifecycle_channel, request, &stopping, waiting).await?;
            directories::start(&node, lifecycle.is_some(), &storage.working, &stopping);
            contested::start(&node, &stopping);
        }
        let settings = listener_settings(&node.config(), connections_max, &stopping);
        monitor.budgets.lock().push(settings.budget.clone());
        let bound_addresses = bound.addresses.clone();
        listeners.extend(listen(&pipeline, bound.sockets, &settings));
        let ready = Ready {
            cluster_id: node.quorum.cluster_id().clone(),
            broker_id: node_id,
            bound: bound_addresses
                .into_iter()
                .chain(controller_bound.addresses)
                .collect(),
            advertised,
            follows: node.config().tells_the_way(),
            log_dirs: node.config().broker.log_dirs().to_vec(),
            partitions: node.partitions.all().len(),
            metrics: served.as_ref().map(|served| served.address),
        };
        monitor.enter(Phase::Running);
        Ok((
            Broker {
                node,
                epoch,
                stop,
                listeners,
                background,
                lifecycle,
                working_dirs: storage.working,
                monitor,
                served,
            },
            ready,
        ))
    }

    /// Returns when the node can no longer serve: its metadata store has failed, or its last log
    /// directory.
    pub async fn failed(&self) -> StartError {
        let mut working = self.working_dirs.clone();
        tokio::select! {
            error = self.node.quorum.stopped() => error.into(),
            _ = working.wait_for(|count| *count == 0) => StartError::NoLogDir,
        }
    }

    /// Stops cleanly: the next start scans nothing.
    pub async fn stop(self) {
        if let Some(lifecycle) = &self.lifecycle {
            self.monitor.enter(Phase::HandingOver);
            lifecycle.shut_down(&self.node).await;
        }
        self.monitor.enter(Phase::Stopping);
        self.stop.send_replace(true);
        for listener in self.listeners {
            let _ = listener.await;
        }
        self.node.partitions.stop_copying();
        self.background.ended().await;
        let node = self.node.clone();
        let epoch = self.lifecycle.as_ref().map_or(self.epoch, Lifecycle::epoch);
        let closed = tasks::spawn_blocking(move || {
            write_high_watermarks(&node.partitions);
            for dir in node.partitions.working_dirs() {
                if let Err(error) = dir.close(epoch.0) {
                    tracing::error!(dir = %dir.path().display(), "not stopped cleanly: {error}");
                }
            }
        });
        if let Err(error) = closed.await {
            tracing::error!("closing the log directories failed: {error}");
        }
        self.node.quorum.shutdown().await;
        if let Some(served) = self.served {
            served.end().await;
        }
    }
}

/// A way to the active controller, which may be this node.
fn controller_channel(
    purpose: &str,
    node_id: BrokerId,
    quorum: &Arc<Quorum>,
    pipeline: &Arc<Pipeline>,
) -> Arc<ControllerChannel> {
    let channel = ControllerChannel::new(&format!("{purpose}-{node_id}"), quorum.clone());
    let local: Arc<dyn LocalController> = pipeline.clone();
    channel.answer_locally(Arc::downgrade(&local));
    channel
}

/// Opens all logs, and leads and follows what the first image says. The broker epoch of the last
/// clean stop.
async fn load(
    partitions: &Arc<Partitions>,
    config: Arc<NodeConfig>,
    Change { image, delta }: Change,
) -> Result<BrokerEpoch, StartError> {
    let partitions = partitions.clone();
    let loaded = tasks::spawn_blocking(move || {
        let clean_stop = partitions.load(&config, &image)?;
        partitions.apply(&config, &image, &delta);
        Ok(clean_stop.map_or(BrokerEpoch::NONE, BrokerEpoch))
    });
    loaded.await.expect("loading panicked")
}

/// Registers this broker and has it unfenced. What keeps it alive from then on, where there are
/// other nodes that care.
async fn enter_cluster(
    node: &Arc<Node>,
    channel: Arc<ControllerChannel>,
    request: RegisterBroker,
    stopping: &watch::Receiver<bool>,
    waiting: &Waiting,
) -> Result<(BrokerEpoch, Option<Lifecycle>), StartError> {
    if node.quorum.has_other_nodes() {
        let started = Lifecycle::start(node, channel, request, stopping, waiting);
        let (lifecycle, epoch) = started.await?;
        return Ok((epoch, Some(lifecycle)));
    }
    register(node, request).await?;
    Ok((unfence(node).await?, None))
}

/// What copies the partitions that other brokers lead.
fn fetchers(config: &NodeConfig, partitions: &Partitions) -> Fetchers {
    let replication = &config.broker.replication;
    let ms = |ms: i32| Duration::from_millis(ms.max(0) as u64);
    let fetcher_config = FetcherConfig {
        partition_max_bytes: replication.replica_fetch_max_bytes,
        response_max_bytes: replication.replica_fetch_response_max_bytes,
        min_bytes: replication.replica_fetch_min_bytes,
        max_wait: ms(replication.replica_fetch_wait_max_ms),
        backoff: ms(replication.replica_fetch_backoff_ms),
        timeout: ms(replication.replica_socket_timeout_ms),
    };
    let surroundings = partitions.surroundings().clone();
    let around = surroundings.clone();
    let make_source = move |leader, fetcher| -> Arc<dyn crate::partition::ReplicaSource> {
        Arc::new(RemoteLeader::new(around.clone(), leader, fetcher))
    };
    let num_replica_fetchers = replication.num_replica_fetchers.max(1) as usize;
    Fetchers::new(
        surroundings,
        fetcher_config,
        num_replica_fetchers,
        Box::new(make_source),
    )
}

/// The group coordinator, told of the partitions of its topic.
fn group_coordinator(
    config: &Arc<ArcSwap<NodeConfig>>,
    clock: &Arc<dyn Clock>,
    quorum: &Arc<Quorum>,
    partitions: &Arc<Partitions>,
) -> Arc<GroupCoordinator<TopicLog>> {
    let group = &config.load().broker.group;
    // The numbers of `compression.type` on the wire (`CompressionType.java`).
    let codec = u8::try_from(group.offsets_topic_compression_codec).ok();
    let log = TopicLog::new(
        CONSUMER_OFFSETS,
        codec
            .and_then(Compression::from_id)
            .unwrap_or(Compression::None),
        group.offsets_load_buffer_size,
        quorum.clone(),
        partitions.clone(),
        clock.clone(),
    );
    let source = ClusterSource {
        quorum: quorum.clone(),
        config: config.clone(),
    };
    let existing = quorum
        .image()
        .topic(CONSUMER_OFFSETS)
        .map(|topic| topic.partitions.len());
    let partition_count = existing.map_or(group.offsets_topic_num_partitions, |len| len as i32);
    let groups = Arc::new(GroupCoordinator::new(
        log,
        clock.clone(),
        Duration::from_millis(group.offsets_commit_timeout_ms.max(1) as u64),
        Arc::new(source),
        partition_count,
    ));
    partitions.observe(CONSUMER_OFFSETS, groups.clone());
    groups
}

/// Sockets of some listeners.
struct BoundListeners {
    sockets: Vec<Bound>,
    /// Listener names and the addresses they are bound to.
    addresses: Vec<(String, SocketAddr)>,
}

impl BoundListeners {
    fn ports(&self) -> Vec<(String, u16)> {
        let port = |(name, address): &(String, SocketAddr)| (name.clone(), address.port());
        self.addresses.iter().map(port).collect()
    }
}

/// Binds the listeners: those for clients and brokers, and those for controllers.
async fn bind_all(
    config: &NodeConfig,
    role: &Role,
) -> Result<(BoundListeners, BoundListeners), StartError> {
    let of_brokers = bind_some(config, config.listeners.broker(), ConnectionKind::Broker);
    let of_brokers = of_brokers.await?;
    if *role == Role::Alone {
        // There is nobody to ask.
        let none = BoundListeners {
            sockets: Vec::new(),
            addresses: Vec::new(),
        };
        return Ok((of_brokers, none));
    }
    let kind = ConnectionKind::Controller;
    let of_controllers = bind_some(config, config.listeners.controller(), kind).await?;
    Ok((of_brokers, of_controllers))
}

async fn bind_some(
    config: &NodeConfig,
    listeners: impl Iterator<Item = &Listener>,
    kind: ConnectionKind,
) -> Result<BoundListeners, StartError> {
    let backlog = config.broker.network.socket_listen_backlog_size.max(1) as u32;
    let mut sockets = Vec::new();
    let mut addresses = Vec::new();
    for listener in listeners {
        let failed = |source| StartError::Bind {
            listener: listener.to_string(),
            source,
        };
        for (at, address) in resolve(listener).await?.into_iter().enumerate() {
            match bind(&listener.name, kind, address, backlog) {
                Ok(socket) => {
                    let address = socket.local_addr().map_err(failed)?;
                    addresses.push((listener.name.clone(), address));
                    sockets.push(socket);
                }
                // A name may stand for an address that this machine does not have, such as ::1.
                Err(error) if at > 0 => {
                    tracing::debug!(%address, "not bound as well: {error}");
                }
                Err(source) => return Err(failed(source)),
            }
        }
    }
    Ok(BoundListeners { sockets, addresses })
}

/// The addresses to bind for a listener, IPv4 first.
pub(super) async fn resolve(listener: &Listener) -> Result<Vec<SocketAddr>, StartError> {
    if listener.host.is_empty() {
        let any: IpAddr = if limits::has_ipv6() {
            [0u16; 8].into()
        } else {
            [0u8; 4].into()
        };
        return Ok(vec![SocketAddr::new(any, listener.port)]);
    }
    let found = tokio::net::lookup_host((listener.host.as_str(), listener.port)).await;
    let mut addresses: Vec<SocketAddr> = match found {
        Ok(found) => found.collect(),
        Err(source) => {
            return Err(StartError::Resolve {
                listener: listener.to_string(),
                host: listener.host.clone(),
                source,
            });
        }
    };
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    if listener.port == 0 {
        // Each address would get a port of its own, and only one can be told.
        addresses.truncate(1);
    }
    Ok(addresses)
}

fn listener_settings(
    config: &NodeConfig,
    connections_max: usize,
    stopping: &watch::Receiver<bool>,
) -> ListenerSettings {
    let network = &config.broker.network;
    let frame_bytes_max = network.socket_request_max_bytes.max(1) as usize;
    let budget_bytes = match network.queued_max_request_bytes {
        limit if limit > 0 => limit as usize,
        _ => frame_bytes_max.saturating_mul(LARGEST_REQUESTS),
    };
    ListenerSettings {
        limits: ConnectionLimits::new(
            connections_max.min(network.max_connections.max(0) as usize),
            network.max_connections_per_ip.max(0) as usize,
            per_ip_overrides(&network.max_connections_per_ip_overrides),
        ),
        budget: FrameBudget::new(budget_bytes, frame_bytes_max),
        frame_bytes_max,
        idle_max: idle_max(network.connections_max_idle_ms),
        stopping: stopping.clone(),
    }
}

fn listen(
    pipeline: &Arc<Pipeline>,
    sockets: Vec<Bound>,
    settings: &ListenerSettings,
) -> Vec<JoinHandle<()>> {
    let run = |socket: Bound| {
        let mut settings = settings.clone();
        if socket.kind() == ConnectionKind::Controller {
            // Nodes have their own time-outs for one another.
            settings.idle_max = idle_max(-1);
        }
        tasks::spawn(socket.run(pipeline.clone(), settings))
    };
    sockets.into_iter().map(run).collect()
}

/// A negative `connections.max.idle.ms` means for ever.
fn idle_max(configured_ms: i64) -> Duration {
    const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
    u64::try_from(configured_ms)
        .map_or(FOR_EVER, Duration::from_millis)
        .min(FOR_EVER)
}

/// `host:count` pairs; names that are no addresses are said once and left out.
fn per_ip_overrides(text: &str) -> HashMap<IpAddr, usize> {
    let mut overrides = HashMap::new();
    for pair in text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let parsed = pair.rsplit_once(':').and_then(|(host, count)| {
            Some((host.trim().parse().ok()?, count.trim().parse().ok()?))
        });
        match parsed {
            Some((ip, count)) => {
                overrides.insert(ip, count);
            }
            None => {
                tracing::warn!("max.connections.per.ip.overrides: {pair} is no address:count");
            }
        }
    }
    overrides
}
