//! How nodes with empty directories become one cluster, without a format step.
//!
//! ```text
//!            ┌── another voter belongs to a cluster ──> take its cluster id, wait to be spoken to
//! empty ─────┤
//!            └── the others are empty, and this is the lowest ──> make a cluster id, begin the log
//! ```
//!
//! 1. A new cluster is made only when a majority of the list was heard, and is empty. A voter that
//!    lost its disk finds one that did not, or waits: it begins a second cluster only if a majority
//!    have lost theirs, or never had one.
//! 2. One node, the lowest of the list, begins it, so there are never two that do. It waits a while
//!    for those that are missing. The first entry names each voter that was heard with its
//!    directory; the others tell theirs later (`admission`).
//! 3. Where the directories were formatted for a cluster nobody has to invent its id, and any
//!    majority begins: each of them writes the same first entry, and an election decides.
//! 4. Nodes whose lists name other voters make no cluster: each would count another majority.
//! 5. Nor does anybody begin one while a node that answers has data of an older one. The others may
//!    have its metadata; if none does, that is for people to decide.
//! 6. The identity is written before the first message goes out; what was to be the first entry is
//!    written with it, so that a crash in between is made up for.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::host::{KeyValue, random, tasks};
use crate::peer::QUORUM_HELLO;
use crate::types::{BrokerId, base64_uuid};

use super::endpoint::{Endpoint, Looking};
use super::identity::{self, Identity};
use super::peer_transport::PeerTransport;
use super::rpc::{HelloAnswer, HelloRequest, VoterInfo};
use super::{Quorum, QuorumConfig, QuorumError, Waiting};

pub(super) const ASK_AGAIN: Duration = Duration::from_millis(50);
const ASK_MAX: Duration = Duration::from_secs(1);
/// How often those that are missing are asked for before it is done without them.
const ROUNDS_FOR_ALL: u32 = 40;

/// The identity of a store that is one of several voters', made if need be.
pub(super) async fn identity(
    config: &QuorumConfig,
    store: &dyn KeyValue,
    endpoint: &Endpoint,
    transport: &std::sync::Arc<PeerTransport>,
    waiting: &Waiting,
) -> Result<Identity, QuorumError> {
    if let Some(known) = identity::stored(store, config)? {
        return Ok(known);
    }
    let directory_id = identity::directory_id(store, config.directory_id)?;
    endpoint.looks_for_others(Looking {
        directory_id,
        listed: config.voters.clone(),
        had_cluster: config.earlier.is_some(),
    });
    waiting.waits_for("the other controllers");
    let mut round = 0;
    loop {
        let (heard, silent) = ask_all(config, transport).await;
        let waits = round < ROUNDS_FOR_ALL;
        if let Some(identity) = decide(config, directory_id, &heard, waits)? {
            identity::store(store, &identity)?;
            return Ok(identity);
        }
        waiting.because(&why_not(config, &heard, &silent));
        round += 1;
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// An address, and what was answered there.
type Heard = (String, HelloAnswer);

/// Why there is an older cluster that a new one must not take the place of.
fn lost(config: &QuorumConfig, heard: &[Heard]) -> Option<String> {
    let advice = "the metadata is on none of the controllers that answer: bring back one that has \
                  it, or empty the directories of all nodes for a new cluster";
    if let Some(earlier) = &config.earlier {
        return Some(format!("{earlier}; {advice}"));
    }
    let (address, answer) = heard.iter().find(|(_, answer)| answer.had_cluster)?;
    let id = answer.node_id;
    Some(format!(
        "node {id} at {address} has data of an older one; {advice}"
    ))
}

/// Why no cluster is made yet. `silent`: what came from those that did not answer.
fn why_not(config: &QuorumConfig, heard: &[Heard], silent: &[String]) -> String {
    if let Some(reason) = lost(config, heard).or_else(|| disagreement(config, heard)) {
        return format!("no new cluster is made: {reason}");
    }
    let others = heard.iter().filter(|(_, a)| a.node_id != config.node_id);
    let new = others.map(|(at, a)| format!("node {} at {at} belongs to no cluster yet", a.node_id));
    let all: Vec<String> = silent.iter().cloned().chain(new).collect();
    format!("no new cluster is made yet: {}", all.join("; "))
}

/// Why those that were heard cannot be of one new cluster with this node: they would not vote for
/// one another. An address may have several names.
fn disagreement(config: &QuorumConfig, heard: &[Heard]) -> Option<String> {
    let (address, answer) = heard
        .iter()
        .find(|(_, answer)| !answer.listed.keys().eq(config.voters.keys()))?;
    let shown = |listed: &BTreeMap<BrokerId, String>| {
        let voters: Vec<String> = listed.iter().map(|(id, at)| format!("{id}@{at}")).collect();
        match voters.is_empty() {
            true => "not there".to_owned(),
            false => voters.join(","),
        }
    };
    Some(format!(
        "controller.quorum.voters of node {} at {address} is {}, that of this node is {}",
        answer.node_id,
        shown(&answer.listed),
        shown(&config.voters),
    ))
}

/// Everyone's answer, and why there is none from the rest. Among addresses without an id is this
/// node's own.
async fn ask_all(
    config: &QuorumConfig,
    transport: &std::sync::Arc<PeerTransport>,
) -> (Vec<Heard>, Vec<String>) {
    let node_id = config.node_id;
    let others = config.voters.iter().filter(|(id, _)| **id != node_id);
    let others = others.map(|(id, address)| (Some(*id), address.clone()));
    let places = config
        .begin_at
        .iter()
        .map(|address| (None, address.clone()));
    let asked: Vec<_> = others
        .chain(places)
        .map(|(id, address)| {
            let transport = transport.clone();
            tasks::spawn(async move {
                let question = HelloRequest { node_id };
                let answer = transport.ask(&address, &QUORUM_HELLO, &question, ASK_MAX);
                let answer: HelloAnswer = match answer.await {
                    Ok(answer) => answer,
                    Err(error) => return Err(format!("{address} does not answer ({error})")),
                };
                match id.filter(|id| *id != answer.node_id) {
                    Some(id) => Err(format!("{address} is node {}, not {id}", answer.node_id)),
                    None => Ok((address, answer)),
                }
            })
        })
        .collect();
    let mut heard = Vec::new();
    let mut silent = Vec::new();
    for answer in asked {
        match answer.await {
            Ok(Ok(answer)) => heard.push(answer),
            Ok(Err(reason)) => silent.push(reason),
            // The task was ended with the runtime.
            Err(_) => {}
        }
    }
    (heard, silent)
}

/// The voters of a new cluster: those that are listed, else all that were heard. `None`: somebody
/// has to be waited for.
fn first_voters(
    config: &QuorumConfig,
    directory_id: Uuid,
    heard: &[Heard],
    waits: bool,
) -> Option<Vec<VoterInfo>> {
    if !config.begin_at.is_empty() {
        let voters: BTreeMap<BrokerId, VoterInfo> = heard
            .iter()
            .map(|(address, answer)| {
                let voter = VoterInfo {
                    id: answer.node_id,
                    address: address.clone(),
                    directory_id: answer.directory_id,
                };
                (voter.id, voter)
            })
            .collect();
        let all = voters.len() == config.begin_at.len();
        let lowest = voters.keys().next() == Some(&config.node_id);
        return (all && lowest).then(|| voters.into_values().collect());
    }
    let there = heard.len() + 1;
    let all = there == config.voters.len();
    let formatted = config.cluster_id.is_some();
    let lowest = config.voters.keys().next() == Some(&config.node_id);
    let enough = there * 2 > config.voters.len() && !waits;
    if !(formatted || lowest) || !(all || enough) {
        return None;
    }
    let directory_of = |id: &BrokerId| {
        let answer = heard.iter().find(|(_, answer)| answer.node_id == *id);
        match answer {
            // Each that begins has to write the same.
            _ if formatted => Uuid::nil(),
            _ if *id == config.node_id => directory_id,
            Some((_, answer)) => answer.directory_id,
            None => Uuid::nil(),
        }
    };
    let voter = |(id, address): (&BrokerId, &String)| VoterInfo {
        id: *id,
        address: address.clone(),
        directory_id: directory_of(id),
    };
    Some(config.voters.iter().map(voter).collect())
}

/// What the answers mean for this node; `None`: ask again.
fn decide(
    config: &QuorumConfig,
    directory_id: Uuid,
    heard: &[Heard],
    waits: bool,
) -> Result<Option<Identity>, QuorumError> {
    let identity = |cluster_id: String, first_voters| Identity {
        node_id: config.node_id,
        cluster_id,
        directory_id,
        first_voters,
    };
    if let Some(formed) = heard
        .iter()
        .find_map(|(_, answer)| answer.cluster_id.clone())
    {
        return match &config.cluster_id {
            Some(configured) if *configured != formed => Err(QuorumError::WrongCluster {
                stored: formed,
                configured: configured.clone(),
            }),
            _ => Ok(Some(identity(formed, None))),
        };
    }
    if lost(config, heard).is_some() || disagreement(config, heard).is_some() {
        return Ok(None);
    }
    let Some(first) = first_voters(config, directory_id, heard, waits) else {
        return Ok(None);
    };
    let cluster_id = config.cluster_id.clone();
    let cluster_id = cluster_id.unwrap_or_else(|| base64_uuid(random::uuid()));
    Ok(Some(identity(cluster_id, Some(first))))
}

impl Quorum {
    /// Waits until the image is that of a cluster.
    pub(super) async fn formed(&self) -> Result<(), QuorumError> {
        let mut changes = self.subscribe();
        while let Some(change) = changes.next().await {
            if change.image.cluster_id().is_some() {
                return Ok(());
            }
        }
        Err(QuorumError::Stopped)
    }
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

    fn hello(node_id: i32, cluster_id: Option<&str>) -> Heard {
        let answer = HelloAnswer {
            node_id: BrokerId(node_id),
            directory_id: Uuid::from_u128(node_id as u128),
            cluster_id: cluster_id.map(str::to_owned),
            leader: None,
            term: 0,
            voters: Vec::new(),
            listed: config(node_id).voters,
            had_cluster: false,
        };
        (format!("h:{node_id}"), answer)
    }

    fn decided(node_id: i32, heard: &[Heard]) -> Option<Identity> {
        by(&config(node_id), heard, true)
    }

    fn by(config: &QuorumConfig, heard: &[Heard], waits: bool) -> Option<Identity> {
        let own = Uuid::from_u128(config.node_id.0 as u128);
        decide(config, own, heard, waits).unwrap()
    }

    fn directories(begun: Identity) -> Vec<u128> {
        let voters = begun.first_voters.unwrap().into_iter();
        voters.map(|voter| voter.directory_id.as_u128()).collect()
    }

    #[test]
    fn only_the_lowest_begins_and_only_when_it_has_heard_all() {
        assert_eq!(decided(1, &[]), None);
        assert_eq!(decided(1, &[hello(2, None)]), None);
        assert_eq!(decided(2, &[hello(1, None), hello(3, None)]), None);
        let begun = decided(1, &[hello(2, None), hello(3, None)]).unwrap();
        assert_eq!(directories(begun), [1, 2, 3]);
    }

    #[test]
    fn after_a_while_a_majority_is_enough() {
        let begun = by(&config(1), &[hello(3, None)], false).unwrap();
        assert_eq!(directories(begun), [1, 0, 3]);
        assert_eq!(by(&config(1), &[], false), None);
        assert_eq!(by(&config(2), &[hello(3, None)], false), None);
        for node_id in [2, 3] {
            let formatted = QuorumConfig {
                cluster_id: Some("c".into()),
                ..config(node_id)
            };
            let heard = [hello(5 - node_id, None)];
            assert_eq!(by(&formatted, &heard, true), None);
            let begun = by(&formatted, &heard, false).unwrap();
            assert_eq!(begun.cluster_id, "c");
            assert_eq!(directories(begun), [0, 0, 0], "the same by all");
        }
    }

    #[test]
    fn without_a_list_all_that_are_to_be_asked_begin() {
        let dynamic = |node_id: i32| QuorumConfig {
            voters: BTreeMap::new(),
            begin_at: (4..=6).map(|id| format!("h:{id}")).collect(),
            ..config(node_id)
        };
        let hello = |node_id, cluster_id| {
            let (address, mut answer) = hello(node_id, cluster_id);
            answer.listed.clear();
            (address, answer)
        };
        let all = [hello(4, None), hello(5, None), hello(6, None)];
        assert_eq!(by(&dynamic(4), &all[..2], false), None);
        assert_eq!(by(&dynamic(5), &all, false), None);
        assert_eq!(by(&dynamic(7), &all, false), None, "not one of them");
        let begun = by(&dynamic(4), &all, true).unwrap();
        assert_eq!(directories(begun), [4, 5, 6]);
        let late = [hello(4, Some("c"))];
        let joined = by(&dynamic(7), &late, true).unwrap();
        assert_eq!(joined.first_voters, None);
    }

    #[test]
    fn nobody_begins_with_those_that_list_other_voters() {
        let mut longer = hello(3, None);
        longer.1.listed.insert(BrokerId(4), "h:4".into());
        let mut shorter = hello(3, None);
        shorter.1.listed.remove(&BrokerId(1));
        let mut none = hello(3, None);
        none.1.listed.clear();
        for other in [longer, shorter, none] {
            let heard = [hello(2, None), other];
            assert_eq!(decided(1, &heard), None);
            assert_eq!(by(&config(1), &heard, false), None, "however long it waits");
            let reason = disagreement(&config(1), &heard).unwrap();
            assert!(reason.contains("of node 3 at h:3 is "), "{reason}");
        }
        // Another name of an address is another name.
        let mut renamed = hello(3, None);
        renamed.1.listed.insert(BrokerId(2), "two:2".into());
        assert!(decided(1, &[hello(2, None), renamed]).is_some());
    }

    #[test]
    fn nobody_begins_beside_the_data_of_an_older_cluster() {
        let with_data = QuorumConfig {
            earlier: Some("/d1 has partitions (t-0)".to_owned()),
            ..config(1)
        };
        let heard = [hello(2, None), hello(3, None)];
        assert!(by(&config(1), &heard, false).is_some());
        assert_eq!(by(&with_data, &heard, false), None);
        let reason = lost(&with_data, &heard).unwrap();
        assert!(reason.starts_with("/d1 has partitions (t-0); "), "{reason}");
        let mut other = hello(3, None);
        other.1.had_cluster = true;
        assert_eq!(by(&config(1), &[hello(2, None), other], false), None);
        // One that has the metadata is there.
        let joined = by(&with_data, &[hello(2, Some("c"))], false).unwrap();
        assert_eq!(
            (joined.cluster_id.as_str(), joined.first_voters),
            ("c", None)
        );
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
        let error = decide(&other, Uuid::nil(), &[hello(2, Some("c"))], true).unwrap_err();
        assert!(matches!(error, QuorumError::WrongCluster { .. }), "{error}");
    }
}
