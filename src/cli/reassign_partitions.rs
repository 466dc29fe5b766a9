//! `kafka-reassign-partitions`: moves partitions to other brokers.
//!
//! ```text
//! --generate   a proposal from topics and brokers      --verify   how far a reassignment is
//! --execute    starts one                              --cancel   stops one
//! --list       those under way
//! ```
//!
//! Throttles are set with --throttle and taken away by --verify once all is done. Moves between the
//! log directories of a broker are in `reassign_log_dirs`.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::{AlterPartitionReassignmentsRequest, BrokerId, TopicName};

use super::admin::{
    Admin, AdminError, AlterOp, Answer, Resource, ResourceKind, check, text as wire_text,
};
use super::common::{help_or_version, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::reassign_log_dirs;
use super::reassign_plan::{Plan, Topics, failed, plan_json, read_json, read_plan};
use super::settings::Settings;

const PURPOSE: &str = "This tool helps to move topic partitions between replicas.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "Server(s) to use for bootstrapping",
        "Brokers.",
    )
    .optional_argument(),
    text(
        "bootstrap-controller",
        "bootstrap controller to connect to",
        "Controllers.",
    )
    .optional_argument(),
    text(
        "command-config",
        "Admin client property file",
        "Properties of the admin client.",
    ),
    flag("generate", "Propose a reassignment."),
    flag("execute", "Start a reassignment."),
    flag("verify", "Show how far a reassignment is."),
    flag("cancel", "Stop a reassignment."),
    flag("list", "List reassignments."),
    text(
        "reassignment-json-file",
        "manual assignment json file path",
        "The reassignment.",
    ),
    text(
        "topics-to-move-json-file",
        "topics to reassign json file path",
        "The topics to move.",
    ),
    text(
        "broker-list",
        "brokerlist",
        "The brokers to move to, \"0,1,2\".",
    ),
    flag("disable-rack-aware", "Do not look at racks."),
    flag(
        "disallow-replication-factor-change",
        "Refuse to change the number of replicas.",
    ),
    typed(
        "throttle",
        "Long",
        "throttle",
        "Bytes a second between brokers.",
    ),
    typed(
        "replica-alter-log-dirs-throttle",
        "Long",
        "throttle",
        "Bytes a second between the log directories of a broker.",
    ),
    typed("timeout", "Long", "timeout", "Accepted; no effect.").or("10000"),
    flag("additional", "Even if others are under way."),
    flag("preserve-throttles", "Leave throttles as they are."),
    HELP,
    VERSION,
];

const ACTIONS: [&str; 5] = ["generate", "execute", "verify", "cancel", "list"];

const RATES: [&str; 2] = [
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
];
const REPLICAS: [&str; 2] = [
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = Options::parse(OPTIONS, args)?;
    help_or_version(&options, OPTIONS, PURPOSE)?;
    let actions = ACTIONS.iter().filter(|action| options.has(action)).count();
    if actions != 1 {
        let text = "Command must include exactly one action: --generate, --execute, --verify, \
                    --cancel, --list";
        return Err(Exit::usage(text, OPTIONS));
    }
    if !options.has("bootstrap-server") && !options.has("bootstrap-controller") {
        let text = "Please specify either --bootstrap-server or --bootstrap-controller";
        return Err(Exit::usage(text, OPTIONS));
    }
    let needed: &[&str] = match ACTIONS.iter().find(|action| options.has(action)) {
        Some(&"generate") => &["topics-to-move-json-file", "broker-list"],
        Some(&"list") => &[],
        _ => &["reassignment-json-file"],
    };
    require(&options, OPTIONS, needed)?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    let servers = options
        .one("bootstrap-server")?
        .or(options.one("bootstrap-controller")?);
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    let mut admin = settings.admin()?;
    admin.is_controller = options.has("bootstrap-controller");
    let done = match ACTIONS.iter().find(|action| options.has(action)) {
        Some(&"generate") => generate(io, &admin, &options).await,
        Some(&"execute") => execute(io, &admin, &options).await,
        Some(&"verify") => verify(io, &admin, &options).await,
        Some(&"cancel") => cancel(io, &admin, &options).await,
        _ => list(io, &admin).await.map_err(Stop::from),
    };
    done.map_err(|stop| match stop {
        Stop::Exit(exit) => exit,
        Stop::Call(error) => failed(&error.message()),
    })
}

enum Stop {
    Exit(Exit),
    Call(AdminError),
}

impl From<AdminError> for Stop {
    fn from(error: AdminError) -> Stop {
        Stop::Call(error)
    }
}

impl From<Exit> for Stop {
    fn from(exit: Exit) -> Stop {
        Stop::Exit(exit)
    }
}

impl From<super::options::OptionError> for Stop {
    fn from(error: super::options::OptionError) -> Stop {
        Stop::Exit(error.into())
    }
}

/// The replicas as they are, and their directories.
async fn current_json(admin: &Admin, current: &Plan) -> Answer<String> {
    let mut dirs: BTreeMap<(String, i32, i32), String> = BTreeMap::new();
    let brokers: BTreeSet<i32> = current.values().flatten().copied().collect();
    for broker in brokers {
        for dir in admin.describe_log_dirs(broker).await.unwrap_or_default() {
            for replica in dir.replicas {
                let key = (replica.topic, replica.partition, broker);
                dirs.insert(key, dir.path.clone());
            }
        }
    }
    Ok(plan_json(current, |topic, partition, broker| {
        let known = dirs.get(&(topic.to_owned(), partition, broker));
        known.cloned().unwrap_or_else(|| "any".to_owned())
    }))
}

/// The replicas of the partitions of these topics.
async fn current(admin: &Admin, topics: &BTreeSet<String>) -> Answer<Plan> {
    let names: Vec<String> = topics.iter().cloned().collect();
    let mut current = Plan::new();
    for topic in admin.describe_topics(&names, 2000).await? {
        for partition in topic.partitions {
            current.insert((topic.name.clone(), partition.index), partition.replicas);
        }
    }
    Ok(current)
}

async fn generate(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let path = options.one("topics-to-move-json-file")?.unwrap_or_default();
    let file: Topics = read_json(path)?;
    let topics: BTreeSet<String> = file.topics.into_iter().map(|row| row.topic).collect();
    let list = options.one("broker-list")?.unwrap_or_default();
    let brokers: Result<Vec<i32>, _> = list.split(',').map(|id| id.trim().parse()).collect();
    let brokers = brokers.map_err(|_| failed(&format!("For input string: \"{list}\"")))?;
    let current = current(admin, &topics).await?;
    let mut proposed = Plan::new();
    for (partition, replicas) in &current {
        if replicas.len() > brokers.len() {
            let (wanted, there) = (replicas.len(), brokers.len());
            let text =
                format!("Replication factor: {wanted} larger than available brokers: {there}.");
            return Err(failed(&text).into());
        }
        // One broker further with each partition, the followers behind the leader.
        let start = partition.1 as usize;
        let place = |i: usize| brokers[(start + i) % brokers.len()];
        proposed.insert(partition.clone(), (0..replicas.len()).map(place).collect());
    }
    io.line("Current partition replica assignment");
    io.line(current_json(admin, &current).await?);
    io.line("\nProposed partition reassignment configuration");
    io.line(plan_json(&proposed, |_, _, _| "any".to_owned()));
    Ok(())
}

async fn execute(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let (plan, moves) = read_plan(options)?;
    let cluster = admin.describe_cluster(false).await?;
    let unknown = plan
        .values()
        .flatten()
        .find(|id| !cluster.brokers.contains_key(id));
    if let Some(id) = unknown {
        return Err(failed(&format!("Unknown broker id {id}")).into());
    }
    let running = admin.list_reassignments(None).await?;
    if !running.is_empty() && !options.has("additional") {
        let text = "Cannot execute because there is an existing partition assignment.  Use \
                    --additional to override this and create a new partition assignment in \
                    addition to the existing one. The --additional flag can also be used to change \
                    the throttle by resubmitting the current reassignment.";
        return Err(failed(text).into());
    }
    let topics: BTreeSet<String> = plan.keys().map(|(topic, _)| topic.clone()).collect();
    let mut before = current(admin, &topics).await?;
    before.retain(|partition, _| plan.contains_key(partition));
    if options.has("disallow-replication-factor-change")
        && let Some((partition, _)) = plan.iter().find(|(partition, replicas)| {
            before
                .get(*partition)
                .is_some_and(|old| old.len() != replicas.len())
        })
    {
        let (topic, index) = partition;
        let text = format!("Replication factor change of {topic}-{index} is not allowed");
        return Err(failed(&text).into());
    }
    io.line("Current partition replica assignment\n");
    io.line(current_json(admin, &before).await?);
    io.line("\nSave this to use as the --reassignment-json-file option during rollback");
    let rates = [
        options.number::<i64>("throttle")?,
        options.number::<i64>("replica-alter-log-dirs-throttle")?,
    ];
    if rates.iter().any(Option::is_some) {
        io.line(
            "Warning: You must run --verify periodically, until the reassignment completes, to \
             ensure the throttle is removed.",
        );
    }
    if let Some(rate) = rates[0] {
        throttle(admin, &plan, &before, rate).await?;
        io.line(format!(
            "The inter-broker throttle limit was set to {rate} B/s"
        ));
    }
    if let Some(rate) = rates[1] {
        reassign_log_dirs::throttle(admin, &moves, rate).await?;
        io.line(format!(
            "The replica-alter-dir throttle limit was set to {rate} B/s"
        ));
    }
    alter(admin, &plan, true).await?;
    let names: Vec<String> = plan
        .keys()
        .map(|(topic, p)| format!("{topic}-{p}"))
        .collect();
    let plural = if names.len() > 1 { "s" } else { "" };
    let names = names.join(",");
    io.line(format!(
        "Successfully started partition reassignment{plural} for {names}"
    ));
    reassign_log_dirs::execute(io, admin, &moves).await?;
    Ok(())
}

/// Starts (or, without replicas, stops) the reassignment of every partition of a plan.
async fn alter(admin: &Admin, plan: &Plan, starts: bool) -> Answer<()> {
    let mut topics: BTreeMap<&str, Vec<ReassignablePartition>> = BTreeMap::new();
    for ((topic, partition), replicas) in plan {
        let ids = replicas.iter().copied().map(BrokerId).collect();
        let row = ReassignablePartition::default()
            .with_partition_index(*partition)
            .with_replicas(starts.then_some(ids));
        topics.entry(topic).or_default().push(row);
    }
    let row = |(topic, partitions): (&str, Vec<ReassignablePartition>)| {
        ReassignableTopic::default()
            .with_name(TopicName(wire_text(topic)))
            .with_partitions(partitions)
    };
    let request = AlterPartitionReassignmentsRequest::default()
        .with_timeout_ms(60_000)
        .with_topics(topics.into_iter().map(row).collect());
    let answer = admin.any("alterPartitionReassignments", &request).await?;
    check(answer.error_code, answer.error_message.as_ref())?;
    for row in answer.responses.iter().flat_map(|topic| &topic.partitions) {
        check(row.error_code, row.error_message.as_ref())?;
    }
    Ok(())
}

/// Limits what the moves of a plan may take: leaders are the old replicas, followers the new ones.
async fn throttle(admin: &Admin, plan: &Plan, before: &Plan, rate: i64) -> Answer<()> {
    let mut lists: BTreeMap<&str, [Vec<String>; 2]> = BTreeMap::new();
    let mut brokers: BTreeSet<i32> = BTreeSet::new();
    for (partition, new) in plan {
        let old = before.get(partition).cloned().unwrap_or_default();
        let (topic, index) = partition;
        let row = lists.entry(topic).or_default();
        row[0].extend(old.iter().map(|id| format!("{index}:{id}")));
        let added = new.iter().filter(|id| !old.contains(id));
        row[1].extend(added.map(|id| format!("{index}:{id}")));
        brokers.extend(old.iter().chain(new));
    }
    for (topic, values) in lists {
        let set = |(name, value): (&&str, Vec<String>)| AlterOp::Set {
            name: (*name).to_owned(),
            value: value.join(","),
        };
        let ops: Vec<AlterOp> = REPLICAS.iter().zip(values).map(set).collect();
        admin.alter_configs(&Resource::topic(topic), &ops).await?;
    }
    for id in brokers {
        let set = |name: &&str| AlterOp::Set {
            name: (*name).to_owned(),
            value: rate.to_string(),
        };
        let ops: Vec<AlterOp> = RATES.iter().map(set).collect();
        admin.alter_configs(&broker(id), &ops).await?;
    }
    Ok(())
}

fn broker(id: i32) -> Resource {
    Resource {
        kind: ResourceKind::Broker,
        name: id.to_string(),
    }
}

async fn verify(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let (plan, moves) = read_plan(options)?;
    let running = admin.list_reassignments(None).await?;
    let topics: BTreeSet<String> = plan.keys().map(|(topic, _)| topic.clone()).collect();
    let known = admin.list_topics().await?;
    let known: BTreeSet<String> = known
        .into_iter()
        .map(|t| t.name)
        .filter(|name| topics.contains(name))
        .collect();
    let now = current(admin, &known).await?;
    io.line("Status of partition reassignment:");
    let mut is_running = false;
    for (partition, wanted) in &plan {
        let (topic, index) = partition;
        let there = now.get(partition).cloned().unwrap_or_default();
        if running.contains_key(partition) {
            is_running = true;
            io.line(format!(
                "Reassignment of partition {topic}-{index} is still in progress."
            ));
        } else if there == *wanted {
            io.line(format!(
                "Reassignment of partition {topic}-{index} is completed."
            ));
        } else {
            let join = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
            io.line(format!(
                "There is no active reassignment of partition {topic}-{index}, but replica set is \
                 {} rather than {}.",
                join(&there),
                join(wanted)
            ));
        }
    }
    is_running |= reassign_log_dirs::verify(io, admin, &moves).await;
    if !is_running && !options.has("preserve-throttles") {
        if moves.is_empty() {
            io.line("");
        }
        clear_throttles(io, admin, &plan, &known).await?;
    }
    Ok(())
}

async fn clear_throttles(
    io: &mut Io,
    admin: &Admin,
    plan: &Plan,
    topics: &BTreeSet<String>,
) -> Answer<()> {
    let cluster = admin.describe_cluster(false).await?;
    let mut ids: BTreeSet<i32> = cluster.brokers.keys().copied().collect();
    ids.extend(plan.values().flatten());
    let names: Vec<String> = ids.iter().map(i32::to_string).collect();
    let plural = |count: usize| if count > 1 { "s" } else { "" };
    let (s, list) = (plural(names.len()), names.join(","));
    io.line(format!(
        "Clearing broker-level throttles on broker{s} {list}"
    ));
    let delete = |name: &&str| AlterOp::Delete {
        name: (*name).to_owned(),
    };
    let mut rates: Vec<AlterOp> = RATES.iter().map(delete).collect();
    rates.push(reassign_log_dirs::unthrottle());
    for id in ids
        .into_iter()
        .filter(|id| cluster.brokers.contains_key(id))
    {
        admin.alter_configs(&broker(id), &rates).await?;
    }
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let (s, list) = (plural(names.len()), names.join(","));
    io.line(format!("Clearing topic-level throttles on topic{s} {list}"));
    let replicas: Vec<AlterOp> = REPLICAS.iter().map(delete).collect();
    for topic in topics {
        admin
            .alter_configs(&Resource::topic(topic), &replicas)
            .await?;
    }
    Ok(())
}

async fn cancel(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let (plan, moves) = read_plan(options)?;
    let running = admin.list_reassignments(None).await?;
    let active: Plan = plan
        .iter()
        .filter(|(partition, _)| running.contains_key(*partition))
        .map(|(partition, replicas)| (partition.clone(), replicas.clone()))
        .collect();
    if active.is_empty() {
        io.line("None of the specified partition reassignments are active.");
    } else {
        alter(admin, &active, false).await?;
        let names: Vec<String> = active.keys().map(|(t, p)| format!("{t}-{p}")).collect();
        let plural = if names.len() > 1 { "s" } else { "" };
        let names = names.join(", ");
        io.line(format!(
            "Successfully cancelled partition reassignment{plural} for: {names}"
        ));
    }
    let cancelled = reassign_log_dirs::cancel(admin, &moves).await?;
    if cancelled.is_empty() {
        let none = b"None of the specified partition moves are active.";
        let _ = std::io::Write::write_all(&mut io.out, none);
    } else {
        let names = cancelled.join(", ");
        io.line(format!(
            "Successfully cancelled replica log directory moves for: {names}"
        ));
    }
    if !options.has("preserve-throttles") {
        let topics: BTreeSet<String> = plan.keys().map(|(topic, _)| topic.clone()).collect();
        clear_throttles(io, admin, &plan, &topics).await?;
    }
    Ok(())
}

async fn list(io: &mut Io, admin: &Admin) -> Answer<()> {
    let running = admin.list_reassignments(None).await?;
    if running.is_empty() {
        io.line("No partition reassignments found.");
        return Ok(());
    }
    io.line("Current partition reassignments:");
    let join = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    for ((topic, partition), moves) in &running {
        let mut line = format!("{topic}-{partition}: replicas: {}.", join(&moves.replicas));
        if !moves.adding.is_empty() {
            line += &format!(" adding: {}.", join(&moves.adding));
        }
        if !moves.removing.is_empty() {
            line += &format!(" removing: {}.", join(&moves.removing));
        }
        io.line(line);
    }
    Ok(())
}
