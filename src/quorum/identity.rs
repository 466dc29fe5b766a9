//! Whose store this is. An empty store is formatted: it gets the node id, the cluster id and the
//! directory id that it keeps for good.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::host::{KeyValue, random};
use crate::types::{BrokerId, base64_uuid};

use super::rpc::VoterInfo;
use super::{QuorumConfig, QuorumError, keys};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub node_id: BrokerId,
    pub cluster_id: String,
    /// Another one after the disk was lost: to the quorum that is another voter. Nil in a store of
    /// an older version.
    #[serde(default)]
    pub directory_id: Uuid,
    /// The first entry of the log, if it is this node that begins it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_voters: Option<Vec<VoterInfo>>,
}

/// The identity of `store`, which must be that of `config`; a new one for an empty store.
pub(super) fn open(store: &dyn KeyValue, config: &QuorumConfig) -> Result<Identity, QuorumError> {
    if let Some(known) = stored(store, config)? {
        return Ok(known);
    }
    let cluster_id = match &config.cluster_id {
        Some(given) => given.clone(),
        // Each of several voters would invent its own.
        None if config.voters.len() > 1 => return Err(QuorumError::NoClusterId),
        None => base64_uuid(random::uuid()),
    };
    let identity = Identity {
        node_id: config.node_id,
        cluster_id,
        directory_id: directory_id(store, config.directory_id)?,
        first_voters: None,
    };
    self::store(store, &identity)?;
    Ok(identity)
}

/// Whether `store` belongs to a node of a cluster.
pub fn is_formatted(store: &dyn KeyValue) -> Result<bool, QuorumError> {
    Ok(keys::get::<Identity>(store, keys::IDENTITY, "the identity")?.is_some())
}

/// `None`: the store is empty.
pub(super) fn stored(
    store: &dyn KeyValue,
    config: &QuorumConfig,
) -> Result<Option<Identity>, QuorumError> {
    let Some(mut stored) = keys::get::<Identity>(store, keys::IDENTITY, "the identity")? else {
        return Ok(None);
    };
    if stored.node_id != config.node_id {
        return Err(QuorumError::WrongNode {
            stored: stored.node_id,
            configured: config.node_id,
        });
    }
    if stored.directory_id.is_nil() {
        stored.directory_id = directory_id(store, config.directory_id)?;
        self::store(store, &stored)?;
    }
    match &config.cluster_id {
        Some(configured) if *configured != stored.cluster_id => Err(QuorumError::WrongCluster {
            stored: stored.cluster_id,
            configured: configured.clone(),
        }),
        _ => Ok(Some(stored)),
    }
}

pub(super) fn store(store: &dyn KeyValue, identity: &Identity) -> Result<(), QuorumError> {
    let change = keys::put(keys::IDENTITY, identity);
    store.commit(vec![change]).map_err(QuorumError::Store)
}

/// The directory id of a store, `preferred` or a new one for a store that has none. It is kept
/// before anybody is told of it.
pub(super) fn directory_id(
    store: &dyn KeyValue,
    preferred: Option<Uuid>,
) -> Result<Uuid, QuorumError> {
    if let Some(known) = keys::get::<Uuid>(store, keys::DIRECTORY, "the directory id")? {
        return Ok(known);
    }
    let new = preferred.unwrap_or_else(random::uuid);
    let change = keys::put(keys::DIRECTORY, &new);
    store.commit(vec![change]).map_err(QuorumError::Store)?;
    Ok(new)
}
