//! `--generate`: a proposal from topics and brokers.

use std::collections::BTreeMap;

use super::plan::{Plan, joined, plan_json, read_topics, repeated};
use super::stop::Stop;
use super::{current_json, describe};
use crate::cli::admin::Admin;
use crate::cli::io::Io;
use crate::cli::options::Options;
use crate::host::random;
use crate::metadata::planners::{Place, place_among};
use crate::types::BrokerId;

/// The ids of `--broker-list`.
fn brokers(list: &str) -> Result<Vec<i32>, Stop> {
    let mut words: Vec<&str> = list.split(',').collect();
    // As Java's split does; of an empty text it gives that text.
    while words.len() > 1 && words.last().is_some_and(|word| word.is_empty()) {
        words.pop();
    }
    let number = |word: &&str| {
        word.parse().map_err(|_| Stop::Thrown {
            class: "java.lang.NumberFormatException",
            text: format!("For input string: \"{word}\""),
        })
    };
    let ids: Vec<i32> = words.iter().map(number).collect::<Result<_, _>>()?;
    let twice: Vec<i32> = repeated(&ids).into_iter().collect();
    match twice.is_empty() {
        true => Ok(ids),
        false => {
            let ids = joined(&twice, ", ");
            let text = format!("Broker list contains duplicate entries: [{ids}]");
            Err(Stop::failed(text))
        }
    }
}

pub async fn generate(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let brokers = brokers(options.one("broker-list")?.unwrap_or_default())?;
    let topics = read_topics(options)?;
    let twice: Vec<String> = repeated(&topics).into_iter().collect();
    if !twice.is_empty() {
        let names = twice.join(", ");
        let text = format!("List of topics to reassign contains duplicate entries: [{names}]");
        return Err(Stop::failed(text));
    }
    let current = describe(admin, topics.into_iter().collect()).await?;
    let cluster = admin.describe_cluster(false).await?;
    let is_rack_aware = !options.has("disable-rack-aware");
    let found = cluster.brokers.values().map(|(broker, _)| broker);
    let wanted = found.filter(|broker| brokers.contains(&broker.id));
    let racks = wanted.map(|broker| {
        let rack = broker.rack.clone().filter(|_| is_rack_aware);
        (broker.id, rack)
    });
    let racks: BTreeMap<i32, Option<String>> = racks.collect();
    let rackless = racks.values().filter(|rack| rack.is_none()).count();
    if is_rack_aware && rackless != 0 && rackless != racks.len() {
        return Err(Stop::impossible(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to \
             make replica assignment without rack information.",
        ));
    }
    let proposed = propose(&current, &racks)?;
    io.line("Current partition replica assignment");
    io.line(current_json(admin, &current).await?);
    io.line("\nProposed partition reassignment configuration");
    io.line(plan_json(&proposed, |_, _, _| "any".to_owned()));
    Ok(())
}

/// Places the partitions of each topic as if it were made now.
fn propose(current: &Plan, racks: &BTreeMap<i32, Option<String>>) -> Result<Plan, Stop> {
    let mut topics: BTreeMap<&String, Vec<(i32, usize)>> = BTreeMap::new();
    for ((topic, partition), replicas) in current {
        let of_topic = topics.entry(topic).or_default();
        of_topic.push((*partition, replicas.len()));
    }
    let mut proposed = Plan::new();
    for (topic, partitions) in topics {
        let places = racks.iter().map(|(id, rack)| Place {
            broker: BrokerId(*id),
            rack: rack.as_deref().map(Into::into),
            fenced: false,
        });
        let factor = partitions.first().map_or(0, |(_, replicas)| *replicas);
        let mut below = |end: usize| (random::seed() % end as u64) as usize;
        let placed = place_among(places, partitions.len(), factor, &mut below);
        let placed = placed.map_err(|text| Stop::Thrown {
            class: "org.apache.kafka.common.errors.InvalidReplicationFactorException",
            text,
        })?;
        for ((partition, _), replicas) in partitions.into_iter().zip(placed) {
            let ids = replicas.into_iter().map(|id| id.0).collect();
            proposed.insert((topic.clone(), partition), ids);
        }
    }
    Ok(proposed)
}
