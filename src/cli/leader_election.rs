//! `kafka-leader-election`: elects the preferred leader of partitions, or any replica.

use std::path::Path;

use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::{ElectLeadersRequest, TopicName};
use serde::Deserialize;

use super::admin::{AdminError, check, text as wire_text};
use super::common::{caught, help_or_version};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::settings::Settings;
use crate::host::read_given;
use crate::types::ErrorCode;

const PURPOSE: &str = "This tool attempts to elect a new leader for a set of topic partitions. The type of elections \
     supported are preferred replicas and unclean replicas.";

const OPTIONS: &[Opt] = &[
    text("bootstrap-server", "host:port", "A broker."),
    text(
        "admin.config",
        "config file",
        "(DEPRECATED) The same as command-config.",
    ),
    text(
        "command-config",
        "Config file",
        "Properties of the admin client.",
    ),
    text(
        "path-to-json-file",
        "Path to JSON file",
        "{\"partitions\": [{\"topic\": \"a\", \"partition\": 0}]}",
    ),
    text("topic", "topic name", "The topic; with --partition."),
    typed(
        "partition",
        "Integer",
        "partition id",
        "The partition; with --topic.",
    ),
    flag("all-topic-partitions", "All partitions."),
    typed(
        "election-type",
        "[PREFERRED,UNCLEAN]",
        "election type",
        "preferred or unclean.",
    ),
    HELP,
    VERSION,
];

const FAILED: &str = "org.apache.kafka.tools.AdminCommandFailedException";

#[derive(Debug, Deserialize)]
struct File {
    partitions: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    topic: String,
    partition: i32,
}

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = Options::parse(OPTIONS, args).map_err(caught)?;
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    help_or_version(&options, OPTIONS, PURPOSE)?;
    check_options(&options)?;
    let kind = options
        .one("election-type")
        .map_err(caught)?
        .unwrap_or_default();
    let (name, election_type) = match kind.to_ascii_lowercase().as_str() {
        "preferred" => ("PREFERRED", 0),
        "unclean" => ("UNCLEAN", 1),
        _ => {
            let text = format!("Cannot parse argument '{kind}' of option election-type");
            return Err(Exit::caught(
                "joptsimple.OptionArgumentConversionException",
                &text,
            ));
        }
    };
    let partitions = partitions(&options)?;
    let row = |(topic, partition): &(String, i32)| {
        TopicPartitions::default()
            .with_topic(TopicName(wire_text(topic)))
            .with_partitions(vec![*partition])
    };
    let request = ElectLeadersRequest::default()
        .with_election_type(election_type)
        .with_topic_partitions(partitions.as_ref().map(|all| all.iter().map(row).collect()))
        .with_timeout_ms(30_000);
    let mut settings = Settings::default();
    for name in ["admin.config", "command-config"] {
        if let Some(file) = options.one(name).map_err(caught)? {
            settings.add_file(file)?;
        }
    }
    let servers = options.one("bootstrap-server").map_err(caught)?;
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    let admin = settings.admin()?;
    let failed = |error: AdminError| Exit::caught(FAILED, &error.message());
    let answer = admin.any("electLeaders", &request).await.map_err(failed)?;
    check(answer.error_code, None).map_err(failed)?;
    let mut results: Vec<(String, Option<AdminError>)> = Vec::new();
    for topic in &answer.replica_election_results {
        for partition in &topic.partition_result {
            let name = format!("{}-{}", topic.topic.0.as_str(), partition.partition_id);
            let result = check(partition.error_code, partition.error_message.as_ref());
            results.push((name, result.err()));
        }
    }
    report(io, name, results)
}

fn check_options(options: &Options) -> Done {
    let missing = ["election-type", "bootstrap-server"]
        .into_iter()
        .filter(|n| !options.has(n));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        let text = format!("Missing required option(s): {}", missing.join(", "));
        return Err(Exit::caught(FAILED, &text));
    }
    let sources = ["topic", "all-topic-partitions", "path-to-json-file"];
    if sources.iter().filter(|name| options.has(name)).count() != 1 {
        let text = format!(
            "One and only one of the following options is required: {}",
            sources.join(", ")
        );
        return Err(Exit::caught(FAILED, &text));
    }
    if options.has("topic") != options.has("partition") {
        let name = if options.has("topic") {
            "partition"
        } else {
            "topic"
        };
        return Err(Exit::caught(
            FAILED,
            &format!("Missing required option(s): {name}"),
        ));
    }
    Ok(())
}

fn partitions(options: &Options) -> Result<Option<Vec<(String, i32)>>, Exit> {
    if options.has("all-topic-partitions") {
        return Ok(None);
    }
    if let Some(path) = options.one("path-to-json-file").map_err(caught)? {
        let bytes = read_given(Path::new(path))
            .map_err(|_| Exit::caught("java.nio.file.NoSuchFileException", path))?;
        let file: File = serde_json::from_slice(&bytes).map_err(|_| {
            let text = "Replica election data is empty";
            Exit::caught(
                "org.apache.kafka.server.common.AdminOperationException",
                text,
            )
        })?;
        return Ok(Some(
            file.partitions
                .into_iter()
                .map(|r| (r.topic, r.partition))
                .collect(),
        ));
    }
    let topic = options
        .one("topic")
        .map_err(caught)?
        .unwrap_or_default()
        .to_owned();
    let partition = options.number("partition").map_err(caught)?.unwrap_or(0);
    Ok(Some(vec![(topic, partition)]))
}

fn report(io: &mut Io, kind: &str, results: Vec<(String, Option<AdminError>)>) -> Done {
    let (mut done, mut not_needed, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, error) in results {
        match error {
            None => done.push(name),
            Some(error) if error.is(ErrorCode::ElectionNotNeeded) => not_needed.push(name),
            Some(error) => failed.push((name, error)),
        }
    }
    if !done.is_empty() {
        let names = done.join(", ");
        io.line(format!(
            "Successfully completed leader election ({kind}) for partitions {names}"
        ));
    }
    if !not_needed.is_empty() {
        let names = not_needed.join(", ");
        io.line(format!(
            "Valid replica already elected for partitions {names}"
        ));
    }
    for (name, error) in &failed {
        let text = error.exception();
        io.line(format!(
            "Error completing leader election ({kind}) for partition: {name}: {text}"
        ));
    }
    match failed.len() {
        0 => Ok(()),
        count => Err(Exit::caught(
            FAILED,
            &format!("{count} replica(s) could not be elected"),
        )),
    }
}
