//! How nodes with empty directories become one cluster, without a format step.
//!
//! ```text
//!            ┌── another voter belongs to a cluster ──> take its cluster id, wait to be spoken to
//! empty ─────┤
//!            └── all others are empty, and this is the lowest ──> make a cluster id, begin the log
//! ```
//!
//! 1. A new cluster is made only when *every* voter of the list was heard, and is empty. A voter
//!    that lost its disk finds one that did not, or waits: it never begins a second cluster.
//! 2. One node, the lowest, begins it. The first entry names each voter with its directory.
//! 3. The identity is written before the first message goes out; what was to be the first entry is
//!    written with it, so that a crash in between is made up for.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::host::{KeyValue, random, tasks};
use crate::peer::QUORUM_HELLO;
use crate::types::{BrokerId, base64_uuid};

use super::endpoint::Endpoint;
use super::identity::{self, Identity};
use super::peer_transport::PeerTransport;
use super::rpc::{HelloAnswer, HelloRequest, VoterInfo};
use super::{QuorumConfig, QuorumError};

pub(super) const ASK_AGAIN: Duration = Duration::from_millis(50);
const ASK_MAX: Duration = Duration::from_secs(1);
/// How often the log says for whom this node waits.
const SAY_AFTER: u32 = 100;

/// The identity of a store that is one of several voters', made if need be.
pub(super) async fn identity(
    config: &QuorumConfig,
    store: &dyn KeyValue,
    endpoint: &Endpoint,
    transport: &std::sync::Arc<PeerTransport>,
) -> Result<Identity, QuorumError> {
    if let Some(known) = identity::stored(store, config)? {
        return Ok(known);
    }
    let directory_id = identity::directory_id(store, config.directory_id)?;
    endpoint.looks_for_others(directory_id);
    let mut round = 0;
    loop {
        let heard = ask_all(config, transport).await;
        if let Some(identity) = decide(config, directory_id, &heard)? {
            identity::store(store, &identity)?;
            return Ok(identity);
        }
        if round % SAY_AFTER == SAY_AFTER / 10 {
            let missing: Vec<String> = config
                .voters
                .keys()
                .filter(|id| **id != config.node_id && !heard.iter().any(|h| h.node_id == **id))
                .map(ToString::to_string)
                .collect();
            tracing::info!("a new cluster waits for voters {}", missing.join(", "));
        }
        round += 1;
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Everyone's answer, of those that answer.
async fn ask_all(
    config: &QuorumConfig,
    transport: &std::sync::Arc<PeerTransport>,
) -> Vec<HelloAnswer> {
    let node_id = config.node_id;
    let others = config.voters.iter().filter(|(id, _)| **id != node_id);
    let asked: Vec<_> = others
        .map(|(id, address)| {
            let (id, address, transport) = (*id, address.clone(), transport.clone());
            tasks::spawn(async move {
                let question = HelloRequest { node_id };
                let answer = transport.ask(&address, &QUORUM_HELLO, &question, ASK_MAX);
                let answer: HelloAnswer = answer.await.ok()?;
                if answer.node_id != id {
                    tracing::warn!("{address} is node {}, not {id}", answer.node_id);
                    return None;
                }
                Some(answer)
            })
        })
        .collect();
    let mut heard = Vec::new();
    for answer in asked {
        heard.extend(answer.await.ok().flatten());
    }
    heard
}

/// What the answers mean for this node; `None`: ask again.
fn decide(
    config: &QuorumConfig,
    directory_id: Uuid,
    heard: &[HelloAnswer],
) -> Result<Option<Identity>, QuorumError> {
    let identity = |cluster_id: String, first_voters| Identity {
        node_id: config.node_id,
        cluster_id,
        directory_id,
        first_voters,
    };
    if let Some(formed) = heard.iter().find_map(|answer| answer.cluster_id.clone()) {
        return match &config.cluster_id {
            Some(configured) if *configured != formed => Err(QuorumError::WrongCluster {
                stored: formed,
                configured: configured.clone(),
            }),
            _ => Ok(Some(identity(formed, None))),
        };
    }
    let lowest = config.voters.keys().next() == Some(&config.node_id);
    if !lowest || heard.len() + 1 < config.voters.len() {
        return Ok(None);
    }
    let directory_of = |id: &BrokerId| match *id == config.node_id {
        true => Some(directory_id),
        false => heard
            .iter()
            .find(|h| h.node_id == *id)
            .map(|h| h.directory_id),
    };
    let mut voters = BTreeMap::new();
    for (id, address) in &config.voters {
        let Some(directory_id) = directory_of(id) else {
            return Ok(None);
        };
        let (id, address) = (*id, address.clone());
        voters.insert(
            id,
            VoterInfo {
                id,
                address,
                directory_id,
            },
        );
    }
    let cluster_id = config.cluster_id.clone();
    let cluster_id = cluster_id.unwrap_or_else(|| base64_uuid(random::uuid()));
    Ok(Some(identity(
        cluster_id,
        Some(voters.into_values().collect()),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(node_id: i32) -> QuorumConfig {
        QuorumConfig {
            voters: (1..=3)
                .map(|id| (BrokerId(id), format!("h:{id}")))
                .collect(),
            ..QuorumConfig::single(BrokerId(node_id), None)
        }
    }

    fn hello(node_id: i32, cluster_id: Option<&str>) -> HelloAnswer {
        HelloAnswer {
            node_id: BrokerId(node_id),
            directory_id: Uuid::from_u128(node_id as u128),
            cluster_id: cluster_id.map(str::to_owned),
            leader: None,
            term: 0,
            voters: Vec::new(),
        }
    }

    fn decided(node_id: i32, heard: &[HelloAnswer]) -> Option<Identity> {
        let own = Uuid::from_u128(node_id as u128);
        decide(&config(node_id), own, heard).unwrap()
    }

    #[test]
    fn only_the_lowest_begins_and_only_when_it_has_heard_all() {
        assert_eq!(decided(1, &[]), None);
        assert_eq!(decided(1, &[hello(2, None)]), None);
        assert_eq!(decided(2, &[hello(1, None), hello(3, None)]), None);
        let begun = decided(1, &[hello(2, None), hello(3, None)]).unwrap();
        let directories = begun.first_voters.unwrap();
        let directories = directories.iter().map(|voter| voter.directory_id.as_u128());
        assert_eq!(directories.collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn an_empty_node_takes_up_with_a_cluster_that_is_there() {
        for node_id in [1, 3] {
            let joined = decided(node_id, &[hello(2, Some("c"))]).unwrap();
            assert_eq!(
                (joined.cluster_id.as_str(), joined.first_voters),
                ("c", None)
            );
        }
        let mut other = config(1);
        other.cluster_id = Some("other".into());
        let error = decide(&other, Uuid::nil(), &[hello(2, Some("c"))]).unwrap_err();
        assert!(matches!(error, QuorumError::WrongCluster { .. }), "{error}");
    }
}
