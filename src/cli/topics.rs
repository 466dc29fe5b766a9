//! `kafka-topics`: list, describe, create, alter and delete topics.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{ErrorCode, parse_base64_uuid};

use super::admin::{
    Admin, AdminError, ConfigValue, NewTopic, PartitionDetail, Resource, TopicDetail,
};
use super::common::{parse_caught, refuse, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::java_order;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::pattern::NamePattern;
use super::settings::Settings;

const PURPOSE: &str = "This tool helps to create, delete, describe, or change a topic.";
const EMPTY_PURPOSE: &str = "Create, delete, describe, or change a topic.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server to connect to",
        "REQUIRED: A broker of the cluster.",
    ),
    text(
        "command-config",
        "command config property file",
        "Properties of the admin client.",
    ),
    flag("list", "List all topics."),
    flag("create", "Create a topic."),
    flag("delete", "Delete a topic."),
    flag("alter", "Raise the number of partitions of a topic."),
    flag("describe", "Show the details of topics."),
    text(
        "topic",
        "topic",
        "The topic. All actions but --create take a regular expression too.",
    ),
    text("topic-id", "topic-id", "The id of the topic to describe."),
    text(
        "config",
        "name=value",
        "A configuration of the new topic; with --create only.",
    ),
    text("delete-config", "name", "Has no effect since Kafka 4.0."),
    typed(
        "partitions",
        "Integer",
        "# of partitions",
        "How many partitions the topic gets; with --create the cluster's default if left out. \
         Adding partitions moves keys to other partitions.",
    ),
    typed(
        "replication-factor",
        "Integer",
        "replication factor",
        "How many replicas each partition gets; the cluster's default if left out.",
    ),
    text(
        "replica-assignment",
        "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , \
         broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...",
        "The brokers of each replica of each partition.",
    ),
    flag(
        "under-replicated-partitions",
        "Describe only partitions that lack replicas.",
    ),
    flag(
        "unavailable-partitions",
        "Describe only partitions whose leader is not alive.",
    ),
    flag(
        "under-min-isr-partitions",
        "Describe only partitions below min.insync.replicas.",
    ),
    flag(
        "at-min-isr-partitions",
        "Describe only partitions right at min.insync.replicas.",
    ),
    flag(
        "topics-with-overrides",
        "Describe only topics with configurations of their own.",
    ),
    flag("if-exists", "Do nothing if the topic does not exist."),
    flag("if-not-exists", "Do nothing if the topic exists already."),
    flag(
        "exclude-internal",
        "Leave out internal topics; by default they are shown.",
    ),
    typed(
        "partition-size-limit-per-response",
        "Integer",
        "maximum number of partitions per response",
        "How many partitions one answer of a describe may have.",
    ),
    HELP,
    VERSION,
];

const ACTIONS: [&str; 5] = ["list", "describe", "create", "alter", "delete"];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(EMPTY_PURPOSE, OPTIONS));
    }
    let options = parse_caught(OPTIONS, args, PURPOSE)?;
    check_options(&options)?;
    let admin = admin(&options)?;
    let action = ACTIONS.iter().find(|action| options.has(action));
    match action.copied() {
        Some("create") => create(io, &admin, &options).await,
        Some("alter") => alter(&admin, &options).await,
        Some("describe") => describe(io, &admin, &options).await,
        Some("delete") => delete(&admin, &options).await,
        _ => list(io, &admin, &options).await,
    }
}

fn admin(options: &Options) -> Result<Admin, Exit> {
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config").map_err(failed)? {
        settings.add_file(file)?;
    }
    let servers = options.one("bootstrap-server").map_err(failed)?;
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    settings.admin()
}

/// What the tool says of everything that goes wrong once it runs.
fn failed(error: impl std::fmt::Display) -> Exit {
    Exit::output(format!("Error while executing topic command : {error}"))
}

fn call_failed(error: AdminError) -> Exit {
    failed(error.message())
}

fn check_options(options: &Options) -> Done {
    let actions = ACTIONS.iter().filter(|action| options.has(action)).count();
    if actions != 1 {
        let text = "Command must include exactly one action: --list, --describe, --create, \
                    --alter or --delete";
        return Err(Exit::usage(text, OPTIONS));
    }
    if !options.has("bootstrap-server") {
        let text = "--bootstrap-server must be specified";
        return Err(Exit::caught("java.lang.IllegalArgumentException", text));
    }
    if !options.has("list") && !options.has("describe") {
        require(options, OPTIONS, &["topic"])?;
    }
    if options.has("alter") {
        if options.has("config") {
            let text = "Option combination \"[[bootstrap-server], [config]]\" can't be used with \
                        option \"[alter]\" (To alter topic configurations, the kafka-configs tool \
                        can be used.)";
            return Err(Exit::usage(text, OPTIONS));
        }
        require(options, OPTIONS, &["partitions"])?;
    }
    let allowed: &[(&str, &[&str])] = &[
        ("config", &["create"]),
        ("delete-config", &["alter"]),
        ("partitions", &["alter", "create"]),
        ("replication-factor", &["create"]),
        ("replica-assignment", &["alter", "create"]),
        ("under-replicated-partitions", &["describe"]),
        ("under-min-isr-partitions", &["describe"]),
        ("at-min-isr-partitions", &["describe"]),
        ("unavailable-partitions", &["describe"]),
        ("topics-with-overrides", &["describe"]),
        ("if-exists", &["alter", "delete", "describe"]),
        ("if-not-exists", &["create"]),
        ("exclude-internal", &["list", "describe"]),
    ];
    for (option, actions) in allowed {
        let invalid: Vec<&str> = ACTIONS
            .iter()
            .copied()
            .filter(|a| !actions.contains(a))
            .collect();
        refuse(options, OPTIONS, option, &invalid)?;
    }
    if options.has("create") {
        let counts = ["partitions", "replication-factor"];
        refuse(options, OPTIONS, "replica-assignment", &counts)?;
    }
    Ok(())
}

/// The topics that `--topic` matches (all without it), by name.
async fn topics(admin: &Admin, options: &Options) -> Result<Vec<String>, Exit> {
    let pattern = match options.one("topic").map_err(failed)? {
        Some(topic) => Some(NamePattern::include_list(topic)?),
        None => None,
    };
    let exclude_internal = options.has("exclude-internal");
    let all = admin.list_topics().await.map_err(call_failed)?;
    let wanted = all.into_iter().filter(|topic| {
        let is_match = pattern.as_ref().is_none_or(|p| p.is_match(&topic.name));
        is_match && !(exclude_internal && topic.is_internal)
    });
    Ok(wanted.map(|topic| topic.name).collect())
}

fn ensure_found(options: &Options, found: &[String]) -> Done {
    match options.one("topic").map_err(failed)? {
        Some(topic) if found.is_empty() && !options.has("if-exists") => Err(failed(format!(
            "Topic '{topic}' does not exist as expected"
        ))),
        _ => Ok(()),
    }
}

async fn list(io: &mut Io, admin: &Admin, options: &Options) -> Done {
    for topic in topics(admin, options).await? {
        io.line(topic);
    }
    Ok(())
}

async fn create(io: &mut Io, admin: &Admin, options: &Options) -> Done {
    let mut topic = NewTopic {
        name: options
            .one("topic")
            .map_err(failed)?
            .unwrap_or_default()
            .to_owned(),
        partitions: -1,
        replication_factor: -1,
        ..NewTopic::default()
    };
    if topic.name.contains(['.', '_']) {
        io.line(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore \
             ('_') could collide. To avoid issues it is best to use either, but not both.",
        );
    }
    if let Some(factor) = options
        .number::<i32>("replication-factor")
        .map_err(failed)?
    {
        topic.replication_factor =
            i16::try_from(factor)
                .ok()
                .filter(|f| *f >= 1)
                .ok_or_else(|| {
                    failed("The replication factor must be between 1 and 32767 inclusive")
                })?;
    }
    if let Some(partitions) = options.number::<i32>("partitions").map_err(failed)? {
        if partitions < 1 {
            return Err(failed("The partitions must be greater than 0"));
        }
        topic.partitions = partitions;
    }
    if let Some(assignment) = options.one("replica-assignment").map_err(failed)? {
        let replicas = parse_assignment(assignment)?;
        topic.assignment = replicas
            .into_iter()
            .enumerate()
            .map(|(i, r)| (i as i32, r))
            .collect();
    }
    for config in options.all("config") {
        let (name, value) = config.split_once('=').ok_or_else(|| {
            failed(
                "requirement failed: Invalid topic config: all configs to be added must be in the \
                 format \"key=val\".",
            )
        })?;
        topic
            .configs
            .push((name.trim().to_owned(), value.trim().to_owned()));
    }
    match admin.create_topic(&topic).await {
        Ok(()) => io.line(format!("Created topic {}.", topic.name)),
        Err(error) if error.is(ErrorCode::TopicAlreadyExists) && options.has("if-not-exists") => {}
        Err(error) => return Err(call_failed(error)),
    }
    Ok(())
}

/// `1:2,2:3`: the replicas of partition 0, of partition 1, and so on.
fn parse_assignment(text: &str) -> Result<Vec<Vec<i32>>, Exit> {
    let mut partitions: Vec<Vec<i32>> = Vec::new();
    for (index, list) in text.split(',').enumerate() {
        let mut replicas = Vec::new();
        for replica in list.trim().split(':') {
            let id = replica.trim().parse::<i32>();
            let id = id.map_err(|_| failed(format!("For input string: \"{}\"", replica.trim())))?;
            if replicas.contains(&id) {
                let text = "Partition replica lists may not contain duplicate entries:";
                return Err(failed(format!("{text} {id}")));
            }
            replicas.push(id);
        }
        if partitions
            .first()
            .is_some_and(|first| first.len() != replicas.len())
        {
            let text = format!("Partition {index} has different replication factor: [{list}]");
            return Err(failed(text));
        }
        partitions.push(replicas);
    }
    Ok(partitions)
}

async fn alter(admin: &Admin, options: &Options) -> Done {
    let found = topics(admin, options).await?;
    ensure_found(options, &found)?;
    if found.is_empty() {
        return Ok(());
    }
    let count = options
        .number::<i32>("partitions")
        .map_err(failed)?
        .unwrap_or(-1);
    let assignment = match options.one("replica-assignment").map_err(failed)? {
        Some(text) => Some(parse_assignment(text)?),
        None => None,
    };
    let details = admin
        .describe_topics(&found, 2000)
        .await
        .map_err(call_failed)?;
    let rows: Vec<_> = details
        .into_iter()
        .map(|topic| {
            let there = topic.partitions.len();
            let added = |a: &Vec<Vec<i32>>| a.get(there..).unwrap_or_default().to_vec();
            (topic.name, assignment.as_ref().map(added))
        })
        .collect();
    admin
        .create_partitions(&rows, count)
        .await
        .map_err(call_failed)
}

async fn delete(admin: &Admin, options: &Options) -> Done {
    let found = topics(admin, options).await?;
    ensure_found(options, &found)?;
    if found.is_empty() {
        return Ok(());
    }
    admin.delete_topics(&found).await.map_err(call_failed)
}

async fn describe(io: &mut Io, admin: &Admin, options: &Options) -> Done {
    let names = match options.one("topic-id").map_err(failed)? {
        Some(id) => vec![name_of_id(admin, options, id).await?],
        None => {
            let found = topics(admin, options).await?;
            ensure_found(options, &found)?;
            found
        }
    };
    if names.is_empty() {
        return Ok(());
    }
    let limit = options
        .number("partition-size-limit-per-response")
        .map_err(failed)?;
    let described = admin.describe_topics(&names, limit.unwrap_or(2000)).await;
    let mut details = described.map_err(call_failed)?;
    let capacity = details.len();
    java_order::sort_by_hash(&mut details, capacity, |t| java_order::hash_code(&t.name));
    let cluster = admin.describe_cluster(false).await.map_err(call_failed)?;
    let alive: BTreeSet<i32> = cluster.brokers.keys().copied().collect();
    let reassignments = match admin.list_reassignments(None).await {
        // Kafka's tool too describes without them what does not tell them.
        Err(error) if error.is(ErrorCode::UnsupportedVersion) => BTreeMap::new(),
        Err(error) if error.is(ErrorCode::ClusterAuthorizationFailed) => BTreeMap::new(),
        listed => listed.map_err(call_failed)?,
    };
    for topic in &details {
        let resource = Resource::topic(&topic.name);
        let configs = admin
            .describe_configs(&resource, false)
            .await
            .map_err(call_failed)?;
        let report = Report {
            options,
            topic,
            configs,
            alive: &alive,
        };
        report.print(io, &|index| {
            reassignments
                .get(&(topic.name.clone(), index))
                .map(|r| (r.adding.clone(), r.removing.clone()))
        });
    }
    Ok(())
}

async fn name_of_id(admin: &Admin, options: &Options, id: &str) -> Result<String, Exit> {
    let uuid = parse_base64_uuid(id).ok_or_else(|| {
        let bytes = id.len() * 6 / 8;
        failed(format!(
            "Input string `{id}` decoded as {bytes} bytes, which is not equal to the expected 16 \
             bytes of a base64-encoded UUID"
        ))
    })?;
    let all = admin.list_topics().await.map_err(call_failed)?;
    let found = all.into_iter().find(|topic| topic.id.0 == uuid);
    match found {
        Some(topic) => Ok(topic.name),
        None if options.has("if-exists") => Err(Exit::code(0)),
        None => Err(failed(format!("TopicId '{id}' does not exist as expected"))),
    }
}

/// What is said of one topic.
struct Report<'a> {
    options: &'a Options,
    topic: &'a TopicDetail,
    configs: Vec<ConfigValue>,
    alive: &'a BTreeSet<i32>,
}

/// Adding and removing replicas of a partition that is being reassigned.
type Moves<'a> = &'a dyn Fn(i32) -> Option<(Vec<i32>, Vec<i32>)>;

const PARTITION_FILTERS: [&str; 4] = [
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
];

impl Report<'_> {
    fn print(&self, io: &mut Io, moves: Moves<'_>) {
        let is_filtered = PARTITION_FILTERS.iter().any(|f| self.options.has(f));
        let only_overridden = self.options.has("topics-with-overrides");
        let mut configs: Vec<&ConfigValue> = self.configs.iter().collect();
        java_order::sort_by_hash(&mut configs, 16, |c| java_order::hash_code(&c.name));
        let own: Vec<String> = configs
            .iter()
            .filter(|config| !config.is_default())
            .map(|c| format!("{}={}", c.name, c.value.as_deref().unwrap_or("null")))
            .collect();
        if !is_filtered && (!only_overridden || !own.is_empty()) {
            let topic = self.topic;
            let factor = topic.partitions.first().map_or(0, |first| {
                let adding = moves(first.index).map_or(0, |(adding, _)| adding.len());
                first.replicas.len() - adding.min(first.replicas.len())
            });
            io.line(format!(
                "Topic: {}\tTopicId: {}\tPartitionCount: {}\tReplicationFactor: {factor}\t\
                 Configs: {}",
                topic.name,
                topic.id,
                topic.partitions.len(),
                own.join(","),
            ));
        }
        if only_overridden {
            return;
        }
        for partition in &self.topic.partitions {
            let moving = moves(partition.index);
            if !is_filtered || self.is_wanted(partition, moving.as_ref()) {
                io.line(self.partition_line(partition, moving));
            }
        }
    }

    fn is_wanted(
        &self,
        partition: &PartitionDetail,
        moving: Option<&(Vec<i32>, Vec<i32>)>,
    ) -> bool {
        let adding = moving.map_or(0, |(adding, _)| adding.len());
        let replicas = partition.replicas.len().saturating_sub(adding);
        let in_sync = partition.isr.len();
        let min_isr = self
            .configs
            .iter()
            .find(|c| c.name == "min.insync.replicas");
        let min_isr = min_isr
            .and_then(|c| c.value.as_deref()?.parse().ok())
            .unwrap_or(1_usize);
        let holds = |filter: &str| match filter {
            "under-replicated-partitions" => in_sync < replicas,
            "unavailable-partitions" => !self.alive.contains(&partition.leader),
            "under-min-isr-partitions" => in_sync < min_isr,
            _ => in_sync == min_isr,
        };
        PARTITION_FILTERS
            .iter()
            .any(|filter| self.options.has(filter) && holds(filter))
    }

    fn partition_line(
        &self,
        partition: &PartitionDetail,
        moving: Option<(Vec<i32>, Vec<i32>)>,
    ) -> String {
        let leader = match partition.leader {
            -1 => "none".to_owned(),
            id => id.to_string(),
        };
        let elr = |ids: &Option<Vec<i32>>| ids.as_ref().map_or("N/A".to_owned(), |ids| join(ids));
        let mut line = format!(
            "\tTopic: {}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}\tElr: {}\t\
             LastKnownElr: {}",
            self.topic.name,
            partition.index,
            join(&partition.replicas),
            join(&partition.isr),
            elr(&partition.elr),
            elr(&partition.last_known_elr),
        );
        if let Some((adding, removing)) = moving {
            line += &format!("\tAdding Replicas: {}", join(&adding));
            line += &format!("\tRemoving Replicas: {}", join(&removing));
        }
        line
    }
}

fn join(ids: &[i32]) -> String {
    let texts: Vec<String> = ids.iter().map(i32::to_string).collect();
    texts.join(",")
}
