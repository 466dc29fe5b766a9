//! Whose store this is. An empty store is formatted: it gets the node id and the cluster id that it
//! keeps for good.

use serde::{Deserialize, Serialize};

use crate::host::{KeyValue, random};
use crate::types::{BrokerId, base64_uuid};

use super::{QuorumConfig, QuorumError, keys};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub node_id: BrokerId,
    pub cluster_id: String,
}

/// The identity of `store`, which must be that of `config`.
pub(super) fn open(store: &dyn KeyValue, config: &QuorumConfig) -> Result<Identity, QuorumError> {
    let Some(stored) = keys::get::<Identity>(store, keys::IDENTITY, "the identity")? else {
        return format(store, config);
    };
    if stored.node_id != config.node_id {
        return Err(QuorumError::WrongNode {
            stored: stored.node_id,
            configured: config.node_id,
        });
    }
    match &config.cluster_id {
        Some(configured) if *configured != stored.cluster_id => Err(QuorumError::WrongCluster {
            stored: stored.cluster_id,
            configured: configured.clone(),
        }),
        _ => Ok(stored),
    }
}

fn format(store: &dyn KeyValue, config: &QuorumConfig) -> Result<Identity, QuorumError> {
    let cluster_id = match &config.cluster_id {
        Some(given) => given.clone(),
        // Each of several voters would invent its own.
        None if config.voters.len() > 1 => return Err(QuorumError::NoClusterId),
        None => base64_uuid(random::uuid()),
    };
    let identity = Identity {
        node_id: config.node_id,
        cluster_id,
    };
    let change = keys::put(keys::IDENTITY, &identity);
    store.commit(vec![change]).map_err(QuorumError::Store)?;
    Ok(identity)
}
