//! `kafka-log-dirs`: the log directories of brokers and what is in them, as JSON.

use std::collections::BTreeSet;

use serde_json::json;

use super::admin::{Admin, AdminError, Answer, LogDir, LogDirReplica};
use super::common::{parse, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::java_order;
use super::options::{HELP, Opt, VERSION, flag, text};
use super::settings::Settings;

const PURPOSE: &str = "This tool helps to query log directory usage on the specified brokers.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "The server(s) to use for bootstrapping",
        "REQUIRED: A broker.",
    ),
    text(
        "command-config",
        "Admin client property file",
        "Properties of the admin client.",
    ),
    flag("describe", "Describe the log directories."),
    text(
        "topic-list",
        "Topic list",
        "Only these topics, \"topic1,topic2\".",
    )
    .or(""),
    text(
        "broker-list",
        "Broker list",
        "Only these brokers, \"0,1,2\".",
    )
    .or(""),
    HELP,
    VERSION,
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = parse(OPTIONS, args, PURPOSE)?;
    require(&options, OPTIONS, &["bootstrap-server", "describe"])?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    let admin = settings.admin()?;
    let failed = |error: AdminError| Exit::error(error.exception());
    let cluster = admin.describe_cluster(false).await.map_err(failed)?;
    let alive: Vec<i32> = cluster.brokers.into_keys().collect();
    let list = options.one("broker-list")?.unwrap_or_default();
    let brokers = match list {
        "" => alive,
        list => named_brokers(list, &alive)?,
    };
    let topics: BTreeSet<&str> = options
        .one("topic-list")?
        .unwrap_or_default()
        .split(',')
        .filter(|topic| !topic.is_empty())
        .collect();
    io.line("Querying brokers for log directories information");
    let mut described = Vec::new();
    for broker in &brokers {
        described.push(log_dirs(&admin, *broker, &topics).await.map_err(failed)?);
    }
    let ids: Vec<String> = brokers.iter().map(i32::to_string).collect();
    io.line(format!(
        "Received log directory information from brokers {}",
        ids.join(",")
    ));
    io.line(format!(
        "{{\"brokers\":[{}],\"version\":1}}",
        described.join(",")
    ));
    Ok(())
}

fn named_brokers(list: &str, alive: &[i32]) -> Result<Vec<i32>, Exit> {
    let mut named = Vec::new();
    for text in list.split(',') {
        named.push(text.trim().parse::<i32>().map_err(|_| {
            let text = format!("For input string: \"{text}\"");
            Exit::error(format!("ERROR: {text}"))
        })?);
    }
    let texts = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let missing: Vec<i32> = named
        .iter()
        .copied()
        .filter(|id| !alive.contains(id))
        .collect();
    match missing.is_empty() {
        true => Ok(named),
        false => Err(Exit::error(format!(
            "ERROR: The given brokers do not exist from --broker-list: {}. Current existent \
             brokers: {}",
            texts(&missing),
            texts(alive)
        ))),
    }
}

/// The log directories of a broker as JSON, the fields in Kafka's order.
async fn log_dirs(admin: &Admin, broker: i32, topics: &BTreeSet<&str>) -> Answer<String> {
    let mut dirs = admin.describe_log_dirs(broker).await?;
    java_order::sort_by_hash(&mut dirs, 16, |dir| java_order::hash_code(&dir.path));
    let show = |mut dir: LogDir| {
        java_order::sort_by_hash(&mut dir.replicas, 16, |replica| {
            java_order::partition_hash(&replica.topic, replica.partition)
        });
        let replicas = dir.replicas.iter();
        let wanted = replicas.filter(|r| topics.is_empty() || topics.contains(r.topic.as_str()));
        let partitions: Vec<String> = wanted.map(partition_json).collect();
        format!(
            "{{\"partitions\":[{}],\"error\":{},\"logDir\":{}}}",
            partitions.join(","),
            json!(dir.error),
            json!(dir.path)
        )
    };
    let dirs: Vec<String> = dirs.into_iter().map(show).collect();
    let dirs = dirs.join(",");
    Ok(format!("{{\"broker\":{broker},\"logDirs\":[{dirs}]}}"))
}

fn partition_json(replica: &LogDirReplica) -> String {
    format!(
        "{{\"partition\":{},\"size\":{},\"offsetLag\":{},\"isFuture\":{}}}",
        json!(format!("{}-{}", replica.topic, replica.partition)),
        replica.size_bytes,
        replica.offset_lag,
        replica.is_future
    )
}
