//! The files of `kafka-reassign-partitions`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::json::{self, Object};
use super::log_dirs::Moves;
use super::stop::Stop;
use crate::cli::java_order;
use crate::cli::options::Options;
use crate::host::read_given;

/// Topic and partition.
pub type Name = (String, i32);

pub type Plan = BTreeMap<Name, Vec<i32>>;

/// What a file says, in its order; a partition may be in it twice.
pub struct Wanted {
    pub rows: Vec<(Name, Vec<i32>)>,
    pub moves: Moves,
}

pub fn show((topic, partition): &Name) -> String {
    format!("{topic}-{partition}")
}

pub fn joined<T: ToString>(items: &[T], separator: &str) -> String {
    let texts: Vec<String> = items.iter().map(T::to_string).collect();
    texts.join(separator)
}

/// As Java's sets of partitions are walked.
pub fn in_java_order(partitions: impl Iterator<Item = Name>) -> Vec<String> {
    let mut partitions: Vec<Name> = partitions.collect();
    java_order::sort_by_hash(&mut partitions, 16, |(topic, partition)| {
        java_order::partition_hash(topic, *partition)
    });
    partitions.iter().map(show).collect()
}

/// Those that come again.
pub fn repeated<T: Ord + Clone>(items: &[T]) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    let again = items.iter().filter(|item| !seen.insert(*item));
    again.cloned().collect()
}

fn read(options: &Options, option: &str) -> Result<Vec<u8>, Stop> {
    let path = options.one(option)?.unwrap_or_default();
    read_given(Path::new(path)).map_err(|_| Stop::Thrown {
        class: "java.io.IOException",
        text: format!("Unable to read file {path}"),
    })
}

fn check_version(file: &Object<'_>) -> Result<(), Stop> {
    match file.get("version").map(json::integer).transpose()? {
        None | Some(1) => Ok(()),
        Some(version) => {
            let text = format!("Not supported version field value {version}");
            Err(Stop::impossible(text))
        }
    }
}

/// The topics of `--topics-to-move-json-file`.
pub fn read_topics(options: &Options) -> Result<Vec<String>, Stop> {
    let bytes = read(options, "topics-to-move-json-file")?;
    let value = json::parse(&bytes);
    let value = value.map_err(|_| Stop::impossible("The input string is not a valid JSON"))?;
    let file = Object::new(&value)?;
    check_version(&file)?;
    let rows = file.objects("topics")?;
    rows.iter()
        .map(|row| json::text(row.field("topic")?))
        .collect()
}

/// What `--reassignment-json-file` says.
pub fn read_wanted(options: &Options) -> Result<Wanted, Stop> {
    let bytes = read(options, "reassignment-json-file")?;
    let value = json::parse(&bytes).map_err(|error| Stop::impossible(error.to_string()))?;
    wanted(&value)
}

fn wanted(value: &Value) -> Result<Wanted, Stop> {
    let file = Object::new(value)?;
    check_version(&file)?;
    let (mut rows, mut moves) = (Vec::new(), Moves::new());
    for row in file.objects("partitions")? {
        let topic = json::text(row.field("topic")?)?;
        let partition = json::integer(row.field("partition")?)?;
        let replicas = json::list(row.field("replicas")?, json::integer)?;
        let name = (topic, partition);
        let dirs = match row.get("log_dirs") {
            Some(dirs) => json::list(dirs, json::text)?,
            None => vec!["any".to_owned(); replicas.len()],
        };
        if dirs.len() != replicas.len() {
            let (ids, dirs) = (joined(&replicas, ", "), dirs.join(", "));
            return Err(Stop::failed(format!(
                "Size of replicas list [{ids}] is different from size of log dirs list [{dirs}] \
                 for partition {}",
                show(&name)
            )));
        }
        for (broker, dir) in replicas.iter().zip(dirs) {
            if dir != "any" {
                moves.insert((name.0.clone(), partition, *broker), dir);
            }
        }
        rows.push((name, replicas));
    }
    Ok(Wanted { rows, moves })
}

impl Wanted {
    /// What can be carried out: each partition once, with replicas that differ.
    pub fn into_plan(self) -> Result<(Plan, Moves), Stop> {
        let rows = self.rows;
        if rows.is_empty() {
            return Err(Stop::failed("Partition reassignment list cannot be empty"));
        }
        if rows.iter().any(|(_, replicas)| replicas.is_empty()) {
            return Err(Stop::failed("Partition replica list cannot be empty"));
        }
        let names: Vec<Name> = rows.iter().map(|(name, _)| name.clone()).collect();
        let twice = repeated(&names);
        if !twice.is_empty() {
            let names = in_java_order(twice.into_iter()).join(",");
            return Err(Stop::failed(format!(
                "Partition reassignment contains duplicate topic partitions: {names}"
            )));
        }
        let with_duplicates = rows.iter().filter_map(|(name, replicas)| {
            let twice: Vec<i32> = repeated(replicas).into_iter().collect();
            let (name, ids) = (show(name), joined(&twice, ","));
            let text = format!("{name} contains multiple entries for {ids}");
            (!twice.is_empty()).then_some(text)
        });
        let with_duplicates: Vec<String> = with_duplicates.collect();
        if !with_duplicates.is_empty() {
            return Err(Stop::failed(format!(
                "Partition replica lists may not contain duplicate entries: {}",
                with_duplicates.join(". ")
            )));
        }
        Ok((rows.into_iter().collect(), self.moves))
    }

    pub fn topics(&self) -> BTreeSet<String> {
        let topics = self.rows.iter().map(|((topic, _), _)| topic.clone());
        topics.collect()
    }
}

/// A plan as JSON, in Kafka's order of fields.
pub fn plan_json(plan: &Plan, dirs: impl Fn(&str, i32, i32) -> String) -> String {
    let rows = plan.iter().map(|((topic, partition), replicas)| {
        let dirs = replicas
            .iter()
            .map(|id| json!(dirs(topic, *partition, *id)).to_string());
        format!(
            "{{\"topic\":{},\"partition\":{partition},\"replicas\":[{}],\"log_dirs\":[{}]}}",
            json!(topic),
            joined(replicas, ","),
            dirs.collect::<Vec<_>>().join(",")
        )
    });
    let rows: Vec<String> = rows.collect();
    format!("{{\"version\":1,\"partitions\":[{}]}}", rows.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(file: &str) -> String {
        let wanted = wanted(&json::parse(file.as_bytes()).unwrap());
        match wanted.and_then(Wanted::into_plan) {
            Ok((plan, moves)) => format!("{} {moves:?}", plan_json(&plan, |_, _, _| "any".into())),
            Err(Stop::Thrown { text, .. }) => text,
            Err(_) => "?".to_owned(),
        }
    }

    /// More of them, with what Kafka's tool says, are in compat/cli/reassign.table.
    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let row = |row: &str| said(&format!("{{\"partitions\":[{row}]}}"));
        assert_eq!(
            row(r#"{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/d"]}"#),
            "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1],\
             \"log_dirs\":[\"any\"]}]} {(\"t\", 0, 1): \"/d\"}"
        );
        assert_eq!(
            row(r#"{"topic":"t","partition":0,"replicas":[1],"log_dirs":[]}"#),
            "Size of replicas list [1] is different from size of log dirs list [] for partition t-0"
        );
        assert_eq!(
            said(r#"{"version":7}"#),
            "Not supported version field value 7"
        );
        assert_eq!(said("[]"), "Expected JSON object, received []");
        assert_eq!(row(r#"{"topic":"t"}"#), "No such field exists: `partition`");
    }
}
