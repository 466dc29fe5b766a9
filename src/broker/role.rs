//! What this node is for the metadata quorum, by its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::storage::Storage;
use super::{StartError, registration};
use crate::config::{NodeConfig, parse_voter};
use crate::peer::Address;
use crate::quorum::{Endpoint, NoTransport, PeerTransport, Quorum, QuorumConfig, Waiting};
use crate::types::BrokerId;

/// The leader of the quorum speaks so many times within `controller.quorum.fetch.timeout.ms`.
const HEARTBEATS_PER_FETCH_TIMEOUT: i32 = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Broker and controller in one, and nobody else: the controller listener is not bound.
    Alone,
    /// One of these controllers.
    Voter {
        voters: BTreeMap<BrokerId, String>,
        heartbeat_interval_ms: u64,
    },
    /// A controller whose fellows the metadata log knows (KIP-853).
    Dynamic {
        /// Where to look for them.
        begin_at: Vec<String>,
        /// Where they find this one.
        address: String,
        heartbeat_interval_ms: u64,
    },
    /// A broker whose controllers are elsewhere, at these addresses.
    Observer { controllers: Vec<String> },
}

impl Role {
    pub fn of(config: &NodeConfig) -> Result<Role, StartError> {
        let quorum = &config.broker.quorum;
        let mut voters = BTreeMap::new();
        for voter in &quorum.controller_quorum_voters {
            let (id, host, port) = parse_voter(voter).ok_or_else(|| {
                StartError::Unsupported(format!("controller.quorum.voters: {voter}"))
            })?;
            voters.insert(BrokerId(id), address(host, port));
        }
        let servers = quorum.controller_quorum_bootstrap_servers.clone();
        if !config.broker.is_controller() {
            let controllers = match voters.is_empty() {
                true => servers,
                false => voters.into_values().collect(),
            };
            return Ok(Role::Observer { controllers });
        }
        let interval_ms = quorum.controller_quorum_fetch_timeout_ms / HEARTBEATS_PER_FETCH_TIMEOUT;
        let heartbeat_interval_ms = interval_ms.clamp(20, 10_000) as u64;
        if voters.is_empty() {
            let own = |server: &String| is_own(config, server);
            if let Some(address) = own_address(config)
                && !(servers.is_empty() || (servers.len() == 1 && servers.iter().all(own)))
            {
                return Ok(Role::Dynamic {
                    begin_at: servers,
                    address,
                    heartbeat_interval_ms,
                });
            }
            if config.broker.is_broker() {
                return Ok(Role::Alone);
            }
            let Some(own) = servers.into_iter().next() else {
                return Err(StartError::Unsupported(
                    "process.roles=controller: controller.quorum.voters names no controller"
                        .to_owned(),
                ));
            };
            voters.insert(BrokerId(config.broker.identity.node_id), own);
        }
        Ok(Role::Voter {
            voters,
            heartbeat_interval_ms,
        })
    }

    /// Takes this node's part in the quorum; for one of several this waits for the others.
    pub async fn start_quorum(
        &self,
        node_id: BrokerId,
        storage: &Storage,
        endpoint: &Arc<Endpoint>,
        min_insync_replicas: i32,
        waiting: &Waiting,
    ) -> Result<Arc<Quorum>, StartError> {
        let alone = QuorumConfig {
            min_insync_replicas,
            directory_id: storage.metadata_directory_id,
            earlier: storage.earlier.as_ref().map(ToString::to_string),
            ..QuorumConfig::single(node_id, storage.cluster_id.clone())
        };
        let store = storage.metadata.clone();
        let transport = PeerTransport::new(node_id);
        match (self, store) {
            (Role::Alone, Some(store)) => {
                Ok(Quorum::start(alone, store, Arc::new(NoTransport)).await?)
            }
            (
                Role::Voter {
                    voters,
                    heartbeat_interval_ms,
                },
                Some(store),
            ) => {
                let config = QuorumConfig {
                    voters: voters.clone(),
                    serves_others: true,
                    heartbeat_interval_ms: *heartbeat_interval_ms,
                    ..alone
                };
                let started = Quorum::start_voter(config, store, endpoint, &transport, waiting);
                Ok(started.await?)
            }
            (
                Role::Dynamic {
                    begin_at,
                    address,
                    heartbeat_interval_ms,
                },
                Some(store),
            ) => {
                let config = QuorumConfig {
                    voters: BTreeMap::new(),
                    begin_at: begin_at.clone(),
                    address: address.clone(),
                    serves_others: true,
                    heartbeat_interval_ms: *heartbeat_interval_ms,
                    ..alone
                };
                let started = Quorum::start_voter(config, store, endpoint, &transport, waiting);
                Ok(started.await?)
            }
            (Role::Observer { controllers }, _) => {
                let cluster_id = storage.cluster_id.clone();
                let controllers = controllers.clone();
                let observed =
                    Quorum::observe(node_id, cluster_id, controllers, &transport, waiting);
                Ok(observed.await?)
            }
            (_, None) => unreachable!("a controller has a store"),
        }
    }
}

/// Where the other controllers find this one: its first controller listener as it is advertised.
fn own_address(config: &NodeConfig) -> Option<String> {
    let listener = config.listeners.advertised_controller().next()?;
    Some(address(&registration::host(&listener.host), listener.port))
}

/// Whether `server` is this node's own controller listener.
fn is_own(config: &NodeConfig, server: &str) -> bool {
    let Ok(server) = Address::parse(server) else {
        return false;
    };
    let bound = config.listeners.controller();
    let mut own = bound.chain(config.listeners.advertised_controller());
    own.any(|listener| {
        let name = registration::host("");
        let this_machine = ["localhost", "127.0.0.1", "::1", name.as_str()];
        let same_host = server.host == listener.host
            || (this_machine.contains(&server.host.as_str())
                && (listener.host.is_empty()
                    || this_machine.contains(&listener.host.as_str())
                    || ["0.0.0.0", "::"].contains(&listener.host.as_str())));
        server.port == listener.port && same_host
    })
}

fn address(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
