//! The limits under which partitions are moved: set by --throttle, taken away by --verify and
//! --cancel.

use std::collections::{BTreeMap, BTreeSet};

use super::log_dirs::Moves;
use super::plan::{Name, Plan, Wanted, joined};
use super::stop::Stop;
use crate::cli::admin::{Admin, AlterOp, Answer, Reassignment, Resource, ResourceKind};
use crate::cli::io::Io;
use crate::cli::java_order;

const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
const LOG_DIRS_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
const LEADERS: &str = "leader.replication.throttled.replicas";
const FOLLOWERS: &str = "follower.replication.throttled.replicas";

fn broker(id: i32) -> Resource {
    Resource {
        kind: ResourceKind::Broker,
        name: id.to_string(),
    }
}

fn set(name: &str, value: impl ToString) -> AlterOp {
    AlterOp::Set {
        name: name.to_owned(),
        value: value.to_string(),
    }
}

fn delete(name: &str) -> AlterOp {
    AlterOp::Delete {
        name: name.to_owned(),
    }
}

pub type Running = BTreeMap<Name, Reassignment>;

/// The brokers that a partition comes from, and those it goes to.
struct Move {
    sources: Vec<i32>,
    targets: Vec<i32>,
}

/// Partition and broker, in the order of texts.
#[derive(Default)]
struct Throttled {
    leaders: BTreeSet<String>,
    followers: BTreeSet<String>,
}

fn without(ids: &[i32], others: &[i32]) -> Vec<i32> {
    let rest = ids.iter().filter(|id| !others.contains(id));
    rest.copied().collect()
}

/// Those under way, and those that a plan begins.
fn all_moves(running: &Running, plan: &Plan, before: &Plan) -> BTreeMap<Name, Move> {
    let under_way = running.iter().map(|(name, now)| {
        let sources = without(&now.replicas, &now.adding);
        let targets = now.adding.clone();
        (name.clone(), Move { sources, targets })
    });
    let mut moves: BTreeMap<Name, Move> = under_way.collect();
    for (name, replicas) in plan {
        let sources = match moves.remove(name) {
            Some(under_way) => under_way.sources,
            None => before.get(name).cloned().unwrap_or_default(),
        };
        let targets = without(replicas, &sources);
        moves.insert(name.clone(), Move { sources, targets });
    }
    moves
}

/// Limits what the moves of a plan, and those under way, take between brokers.
pub async fn between_brokers(
    admin: &Admin,
    running: &Running,
    (plan, before): (&Plan, &Plan),
    rate: i64,
) -> Answer<()> {
    let mut topics: BTreeMap<String, Throttled> = BTreeMap::new();
    let mut brokers: BTreeSet<i32> = BTreeSet::new();
    for ((topic, index), moved) in all_moves(running, plan, before) {
        let of_topic = topics.entry(topic).or_default();
        let row = |id: &i32| format!("{index}:{id}");
        of_topic.leaders.extend(moved.sources.iter().map(row));
        of_topic.followers.extend(moved.targets.iter().map(row));
        brokers.extend(moved.sources.iter().chain(&moved.targets));
    }
    let list = |rows: BTreeSet<String>| rows.into_iter().collect::<Vec<_>>().join(",");
    for (topic, throttled) in topics {
        let ops = [
            set(LEADERS, list(throttled.leaders)),
            set(FOLLOWERS, list(throttled.followers)),
        ];
        admin.alter_configs(&Resource::topic(&topic), &ops).await?;
    }
    for id in brokers {
        let ops = [set(LEADER_RATE, rate), set(FOLLOWER_RATE, rate)];
        admin.alter_configs(&broker(id), &ops).await?;
    }
    Ok(())
}

/// Limits how fast the brokers of `moves` copy between their directories.
pub async fn between_dirs(admin: &Admin, moves: &Moves, rate: i64) -> Answer<()> {
    let brokers: BTreeSet<i32> = moves.keys().map(|(_, _, broker)| *broker).collect();
    for id in brokers {
        let ops = [set(LOG_DIRS_RATE, rate)];
        admin.alter_configs(&broker(id), &ops).await?;
    }
    Ok(())
}

/// Takes away all limits of the cluster's brokers and of the topics of a file.
pub async fn clear(io: &mut Io, admin: &Admin, wanted: &Wanted) -> Result<(), Stop> {
    let cluster = admin.describe_cluster(false).await?;
    let mut ids: BTreeSet<i32> = cluster.brokers.keys().copied().collect();
    ids.extend(wanted.rows.iter().flat_map(|(_, replicas)| replicas));
    let ids: Vec<i32> = ids.into_iter().collect();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (s, list) = (plural(ids.len()), joined(&ids, ","));
    io.line(format!(
        "Clearing broker-level throttles on broker{s} {list}"
    ));
    let rates = [LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE].map(delete);
    let is_there = |id: &&i32| cluster.brokers.contains_key(id);
    for id in ids.iter().filter(is_there) {
        admin.alter_configs(&broker(*id), &rates).await?;
    }
    if !ids.iter().all(|id| is_there(&id)) {
        return Err(Stop::no_broker("incrementalAlterConfigs"));
    }
    let mut topics: Vec<String> = wanted.topics().into_iter().collect();
    java_order::sort_texts(&mut topics);
    let (s, list) = (plural(topics.len()), topics.join(","));
    io.line(format!("Clearing topic-level throttles on topic{s} {list}"));
    let replicas = [LEADERS, FOLLOWERS].map(delete);
    let mut failed = None;
    for topic in &topics {
        let topic = Resource::topic(topic);
        if let Err(error) = admin.alter_configs(&topic, &replicas).await {
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}
