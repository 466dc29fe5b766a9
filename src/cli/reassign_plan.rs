//! The files of `kafka-reassign-partitions`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::exit::Exit;
use super::options::Options;
use super::reassign_log_dirs::Moves;
use crate::host::{Disk, RealDisk};

#[derive(Debug, Deserialize)]
struct File {
    partitions: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    topic: String,
    partition: i32,
    replicas: Vec<i32>,
    #[serde(default)]
    log_dirs: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Topics {
    pub topics: Vec<TopicRow>,
}

#[derive(Debug, Deserialize)]
pub struct TopicRow {
    pub topic: String,
}

pub type Plan = BTreeMap<(String, i32), Vec<i32>>;

const FAILED: &str = "org.apache.kafka.tools.AdminCommandFailedException";

/// What goes wrong once the tool runs is said on standard output.
pub fn failed(text: &str) -> Exit {
    Exit::output(format!("Error: {text}\n{FAILED}: {text}\n"))
}

pub fn read_json<T: for<'a> Deserialize<'a>>(path: &str) -> Result<T, Exit> {
    let bytes = RealDisk.read(Path::new(path)).map_err(|_| {
        Exit::output(format!(
            "Error: {path}\njava.nio.file.NoSuchFileException: {path}\n"
        ))
    })?;
    serde_json::from_slice(&bytes).map_err(|error| failed(&error.to_string()))
}

pub fn read_plan(options: &Options) -> Result<(Plan, Moves), Exit> {
    let path = options.one("reassignment-json-file")?.unwrap_or_default();
    let file: File = read_json(path)?;
    if file.partitions.is_empty() {
        return Err(failed("Partition reassignment list cannot be empty"));
    }
    let (mut plan, mut moves) = (Plan::new(), Moves::new());
    for row in file.partitions {
        let (topic, partition) = (row.topic, row.partition);
        if row.replicas.is_empty() {
            let text = "Partition replica list cannot be empty";
            return Err(failed(text));
        }
        if !row.log_dirs.is_empty() && row.log_dirs.len() != row.replicas.len() {
            let ids: Vec<String> = row.replicas.iter().map(i32::to_string).collect();
            let (ids, dirs) = (ids.join(", "), row.log_dirs.join(", "));
            return Err(failed(&format!(
                "Size of replicas list [{ids}] is different from size of log dirs list [{dirs}] \
                 for partition {topic}-{partition}"
            )));
        }
        for (broker, dir) in row.replicas.iter().zip(&row.log_dirs) {
            if dir != "any" {
                moves.insert((topic.clone(), partition, *broker), dir.clone());
            }
        }
        let unique: BTreeSet<i32> = row.replicas.iter().copied().collect();
        if unique.len() != row.replicas.len() {
            let text = "Partition replica lists may not contain duplicate entries";
            return Err(failed(&format!("{text}: {topic}-{partition}")));
        }
        if plan
            .insert((topic.clone(), partition), row.replicas)
            .is_some()
        {
            let text = "Partition reassignment contains duplicate topic partitions";
            return Err(failed(&format!("{text}: {topic}-{partition}")));
        }
    }
    Ok((plan, moves))
}

/// A plan as JSON, in Kafka's order of fields.
pub fn plan_json(plan: &Plan, dirs: impl Fn(&str, i32, i32) -> String) -> String {
    let rows = plan.iter().map(|((topic, partition), replicas)| {
        let ids: Vec<String> = replicas.iter().map(i32::to_string).collect();
        let dirs = replicas
            .iter()
            .map(|id| json!(dirs(topic, *partition, *id)).to_string());
        format!(
            "{{\"topic\":{},\"partition\":{partition},\"replicas\":[{}],\"log_dirs\":[{}]}}",
            json!(topic),
            ids.join(","),
            dirs.collect::<Vec<_>>().join(",")
        )
    });
    let rows: Vec<String> = rows.collect();
    format!("{{\"version\":1,\"partitions\":[{}]}}", rows.join(","))
}
