//! `kafka-reassign-partitions`: moves partitions to other brokers.
//!
//! ```text
//! --generate   a proposal from topics and brokers      --verify   how far a reassignment is
//! --execute    starts one                              --cancel   stops one
//! --list       those under way
//! ```
//!
//! Throttles are set with --throttle and taken away by --verify once all is done. Moves between the
//! log directories of a broker are in `log_dirs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::admin::{Admin, AdminError, Answer};
use super::common::{help_or_version, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::java_order;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::settings::Settings;
use crate::host::{Disk, RealDisk};
use crate::types::ErrorCode;
use plan::{Name, Plan, joined, plan_json, read_wanted, show};
use stop::Stop;

mod execute;
mod generate;
mod json;
mod log_dirs;
mod plan;
mod stop;
mod throttles;

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
    typed(
        "timeout",
        "Long",
        "timeout",
        "Milliseconds to wait for a replica that moves to a directory of another broker.",
    )
    .or("10000"),
    flag("additional", "Even if others are under way."),
    flag("preserve-throttles", "Leave throttles as they are."),
    HELP,
    VERSION,
];

const ACTIONS: [&str; 5] = ["generate", "execute", "verify", "cancel", "list"];

/// What may stand beside an action, but for what it needs and `--command-config`.
fn permitted(action: &str) -> &'static [&'static str] {
    match action {
        "verify" => &["bootstrap-server", "preserve-throttles"],
        "generate" => &["bootstrap-server", "disable-rack-aware"],
        "execute" => &[
            "additional",
            "bootstrap-server",
            "throttle",
            "replica-alter-log-dirs-throttle",
            "timeout",
            "disallow-replication-factor-change",
        ],
        "cancel" => &[
            "bootstrap-server",
            "bootstrap-controller",
            "preserve-throttles",
            "timeout",
        ],
        _ => &["bootstrap-server", "bootstrap-controller"],
    }
}

fn needed(action: &str) -> &'static [&'static str] {
    match action {
        "generate" => &["topics-to-move-json-file", "broker-list"],
        "list" => &[],
        _ => &["reassignment-json-file"],
    }
}

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = Options::parse(OPTIONS, args)?;
    help_or_version(&options, OPTIONS, PURPOSE)?;
    let action = check_options(&options)?;
    act(io, action, &options).await.map_err(Stop::into_exit)
}

/// The one action.
fn check_options(options: &Options) -> Result<&'static str, Exit> {
    let actions: Vec<&str> = ACTIONS
        .into_iter()
        .filter(|action| options.has(action))
        .collect();
    let usage = |text: &str| Err(Exit::usage(text, OPTIONS));
    let [action] = actions[..] else {
        return usage(
            "Command must include exactly one action: --generate, --execute, --verify, --cancel, \
             --list",
        );
    };
    match (
        options.has("bootstrap-server"),
        options.has("bootstrap-controller"),
    ) {
        (true, true) => {
            return usage(
                "Please don't specify both --bootstrap-server and --bootstrap-controller",
            );
        }
        (false, false) => {
            return usage("Please specify either --bootstrap-server or --bootstrap-controller");
        }
        _ => {}
    }
    require(options, OPTIONS, needed(action))?;
    let is_known = |name: &str| {
        name == action
            || name == "command-config"
            || needed(action).contains(&name)
            || permitted(action).contains(&name)
    };
    let unknown = OPTIONS
        .iter()
        .find(|option| options.has(option.name) && !is_known(option.name));
    match unknown {
        None => Ok(action),
        Some(option) => usage(&format!(
            "Option \"[{}]\" can't be used with action \"[{action}]\"",
            option.name
        )),
    }
}

async fn act(io: &mut Io, action: &str, options: &Options) -> Result<(), Stop> {
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        if !RealDisk.exists(Path::new(file)) {
            return Err(Stop::Thrown {
                class: "java.nio.file.NoSuchFileException",
                text: file.to_owned(),
            });
        }
        settings.add_file(file).map_err(Stop::Exit)?;
    }
    let servers = options
        .one("bootstrap-server")?
        .or(options.one("bootstrap-controller")?);
    let Some(servers) = servers else {
        let text = "Error: null\njava.lang.NullPointerException\n";
        return Err(Stop::Exit(Exit::output(text)));
    };
    settings.set("bootstrap.servers", servers);
    let mut admin = settings.admin().map_err(Stop::Exit)?;
    admin.is_controller = options.has("bootstrap-controller");
    match action {
        "generate" => generate::generate(io, &admin, options).await,
        "execute" => execute::execute(io, &admin, options).await,
        "verify" => verify(io, &admin, options).await,
        "cancel" => execute::cancel(io, &admin, options).await,
        _ => Ok(list(io, &admin).await?),
    }
}

/// How long `--execute` and `--cancel` wait for a replica to come to its broker.
fn timeout(options: &Options) -> Result<Duration, Stop> {
    let timeout_ms = options.number::<i64>("timeout")?.unwrap_or_default();
    Ok(Duration::from_millis(timeout_ms.max(0) as u64))
}

/// The replicas as they are, and their directories.
async fn current_json(admin: &Admin, current: &Plan) -> Answer<String> {
    let mut dirs: BTreeMap<(String, i32, i32), String> = BTreeMap::new();
    let brokers: BTreeSet<i32> = current.values().flatten().copied().collect();
    for broker in brokers {
        for dir in admin.describe_log_dirs(broker).await.unwrap_or_default() {
            for replica in dir.replicas.into_iter().filter(|row| !row.is_future) {
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

/// The replicas of the partitions of a topic, by index; `None` if there is no such topic.
async fn describe_one(admin: &Admin, topic: &str) -> Result<Option<Vec<Vec<i32>>>, Stop> {
    if topic.is_empty() {
        return Err(Stop::of_call(
            "org.apache.kafka.common.errors.InvalidTopicException: The given topic name '' cannot \
             be represented in a request."
                .to_owned(),
        ));
    }
    let described = match admin.describe_topics(&[topic.to_owned()], 2000).await {
        Ok(described) => described,
        Err(AdminError::Answer {
            error: ErrorCode::UnknownTopicOrPartition,
            ..
        }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let partitions = described.into_iter().flat_map(|topic| topic.partitions);
    Ok(Some(partitions.map(|row| row.replicas).collect()))
}

fn not_found(text: &str) -> Stop {
    let class = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException";
    Stop::of_call(format!("{class}: {text}"))
}

/// The replicas of the partitions of these topics, all of which have to be there.
async fn describe(admin: &Admin, topics: BTreeSet<String>) -> Result<Plan, Stop> {
    let mut topics: Vec<String> = topics.into_iter().collect();
    java_order::sort_texts(&mut topics);
    let mut found = Plan::new();
    for topic in topics {
        let Some(partitions) = describe_one(admin, &topic).await? else {
            return Err(not_found(&format!("Topic {topic} not found.")));
        };
        for (index, replicas) in (0..).zip(partitions) {
            found.insert((topic.clone(), index), replicas);
        }
    }
    Ok(found)
}

async fn verify(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let wanted = read_wanted(options)?;
    let running = admin.list_reassignments(None).await?;
    let mut of_topics: BTreeMap<&str, Vec<Vec<i32>>> = BTreeMap::new();
    let mut lines: BTreeMap<&Name, String> = BTreeMap::new();
    for (name, replicas) in &wanted.rows {
        let shown = show(name);
        if running.contains_key(name) {
            let line = format!("Reassignment of partition {shown} is still in progress.");
            lines.insert(name, line);
            continue;
        }
        let (topic, index) = name;
        if !of_topics.contains_key(topic.as_str()) {
            let partitions = describe_one(admin, topic).await?.unwrap_or_default();
            of_topics.insert(topic, partitions);
        }
        let partitions = &of_topics[topic.as_str()];
        let there = usize::try_from(*index)
            .ok()
            .and_then(|at| partitions.get(at));
        let there = there.cloned().unwrap_or_default();
        let line = match there == *replicas {
            true => format!("Reassignment of partition {shown} is completed."),
            false => format!(
                "There is no active reassignment of partition {shown}, but replica set is {} \
                 rather than {}.",
                joined(&there, ","),
                joined(replicas, ",")
            ),
        };
        lines.insert(name, line);
    }
    io.line("Status of partition reassignment:");
    for line in lines.into_values() {
        io.line(line);
    }
    let is_moving = log_dirs::verify(io, admin, &wanted.moves).await?;
    if running.is_empty() && !is_moving && !options.has("preserve-throttles") {
        throttles::clear(io, admin, &wanted).await?;
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
