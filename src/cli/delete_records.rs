//! `kafka-delete-records`: moves the start of partitions up to given offsets.

use std::path::Path;

use serde::Deserialize;

use crate::host::read_given;

use super::common::{parse, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::java_order;
use super::options::{HELP, Opt, VERSION, text};
use super::settings::Settings;

const PURPOSE: &str =
    "This tool helps to delete records of the given partitions down to the specified offset.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server(s) to use for bootstrapping",
        "REQUIRED: A broker.",
    ),
    text(
        "offset-json-file",
        "Offset json file path",
        "REQUIRED: {\"partitions\": [{\"topic\": \"a\", \"partition\": 0, \"offset\": 1}], \
         \"version\": 1}",
    ),
    text(
        "command-config",
        "command config property file path",
        "Properties of the admin client.",
    ),
    HELP,
    VERSION,
];

#[derive(Debug, Deserialize)]
struct File {
    #[serde(default = "first_version")]
    version: i32,
    partitions: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    topic: String,
    partition: i32,
    offset: i64,
}

fn first_version() -> i32 {
    1
}

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = parse(OPTIONS, args, PURPOSE)?;
    require(&options, OPTIONS, &["bootstrap-server", "offset-json-file"])?;
    let path = options.one("offset-json-file")?.unwrap_or_default();
    let rows = read(path)?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    let admin = settings.admin()?;
    io.line("Executing records delete operation");
    let results = admin.delete_records(&rows).await;
    let mut results = results.map_err(|error| Exit::error(error.exception()))?;
    io.line("Records delete operation completed:");
    java_order::sort_by_hash(&mut results, 16, |((topic, partition), _)| {
        java_order::partition_hash(topic, *partition)
    });
    for ((topic, partition), result) in results {
        match result {
            Ok(low) => io.line(format!(
                "partition: {topic}-{partition}\tlow_watermark: {low}"
            )),
            Err(error) => {
                let text = error.exception();
                io.line(format!("partition: {topic}-{partition}\terror: {text}"));
            }
        }
    }
    Ok(())
}

/// Topic, partition and the offset up to which records go.
type Rows = Vec<((String, i32), i64)>;

fn read(path: &str) -> Result<Rows, Exit> {
    let unreadable = |_| {
        let text = format!("Unable to read file {path}");
        Exit::caught("java.io.IOException", &text)
    };
    let operation = "org.apache.kafka.tools.AdminOperationException";
    let bytes = read_given(Path::new(path)).map_err(unreadable)?;
    let json: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|_| Exit::caught(operation, "The input string is not a valid JSON"))?;
    let file: File = serde_json::from_value(json).map_err(|error| {
        let text = error.to_string();
        Exit::caught("com.fasterxml.jackson.databind.JsonMappingException", &text)
    })?;
    if file.version != 1 {
        let text = format!("Not supported version field value {}", file.version);
        return Err(Exit::caught(operation, &text));
    }
    let mut rows = Rows::new();
    for row in file.partitions {
        let key = (row.topic, row.partition);
        if rows.iter().any(|(known, _)| *known == key) {
            let text = format!(
                "Offset json file contains duplicate topic partitions: {}-{}",
                key.0, key.1
            );
            return Err(Exit::caught(operation, &text));
        }
        rows.push((key, row.offset));
    }
    Ok(rows)
}
