//! `kafka-get-offsets`: the offsets of partitions, by time.
//!
//! ```text
//! topic-partitions = rule *("," rule)     rule = [topic pattern] [":" partitions]
//! partitions       = number | [lower, inclusive] "-" [upper, exclusive] | nothing: all
//! ```

use super::admin::{Admin, AdminError, OffsetSpec, TopicListing};
use super::common::{parse, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text};
use super::pattern::NamePattern;
use super::settings::Settings;

const PURPOSE: &str = "An interactive shell for getting topic-partition offsets.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "HOST1:PORT1,...,HOST3:PORT3",
        "REQUIRED. Brokers, HOST1:PORT1,HOST2:PORT2.",
    ),
    text(
        "topic-partitions",
        "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        "The partitions.",
    ),
    text("topic", "topic", "The topics, by pattern; all if left out."),
    text(
        "partitions",
        "partition ids",
        "The partitions, by number; all if left out.",
    ),
    text(
        "time",
        "<timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local \
         / -5 or latest-tiered / -6 or earliest-pending-upload",
        "Which offset: the first whose record is not older than a timestamp, or a special one.",
    )
    .or("latest"),
    text(
        "command-config",
        "config file",
        "Properties of the admin client.",
    ),
    flag("exclude-internal-topics", "Leave out internal topics."),
    HELP,
    VERSION,
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = parse(OPTIONS, args, PURPOSE).map_err(|exit| match exit.err.is_empty() {
        true => exit,
        false => tersely(exit),
    })?;
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    require(&options, OPTIONS, &["bootstrap-server"])?;
    let rules = rules(&options)?;
    let spec = spec(options.one("time")?.unwrap_or("latest"))?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    let admin = settings.admin()?;
    let topics = admin.list_topics().await.map_err(occurred)?;
    let exclude = options.has("exclude-internal-topics");
    let wanted = wanted(&admin, &topics, &rules, exclude);
    if wanted.is_empty() {
        return Err(failed(
            "Could not match any topic-partitions with the specified filters",
        ));
    }
    let rows: Vec<_> = wanted
        .into_iter()
        .map(|partition| (partition, spec))
        .collect();
    for ((topic, partition), found) in admin.list_offsets(&rows, false).await.map_err(occurred)? {
        match found {
            Ok(found) if found.offset >= 0 => {
                io.line(format!("{topic}:{partition}:{}", found.offset));
            }
            Ok(_) => {}
            Err(error) => io.error_line(format!(
                "Skip getting offsets for topic-partition {topic}-{partition} due to error: {}",
                error.message()
            )),
        }
    }
    Ok(())
}

fn failed(text: impl std::fmt::Display) -> Exit {
    Exit::error(format!("Error occurred: {text}"))
}

fn occurred(error: AdminError) -> Exit {
    failed(error.exception())
}

/// An exception of the parser, as this tool prints it.
fn tersely(exit: Exit) -> Exit {
    let class = "Exception in thread \"main\" joptsimple.";
    match exit
        .err
        .strip_prefix(class)
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, message)) => failed(message.trim_end()),
        None => exit,
    }
}

fn spec(text: &str) -> Result<OffsetSpec, Exit> {
    let special = [
        ("latest", -1),
        ("earliest", -2),
        ("max-timestamp", -3),
        ("earliest-local", -4),
        ("latest-tiered", -5),
        ("earliest-pending-upload", -6),
    ];
    let named = special.iter().find(|(name, _)| *name == text);
    match named.map(|(_, value)| *value).or_else(|| text.parse().ok()) {
        Some(value) => Ok(OffsetSpec(value)),
        None => Err(failed(format!(
            "Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or \
             max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or \
             earliest-pending-upload, or a specified long format timestamp"
        ))),
    }
}

/// Which partitions of which topics.
struct Rule {
    topic: Option<NamePattern>,
    partitions: Partitions,
}

enum Partitions {
    All,
    Listed(Vec<i32>),
    /// Upper exclusive.
    Range(i32, i32),
}

fn rules(options: &Options) -> Result<Vec<Rule>, Exit> {
    let by_rule = options.one("topic-partitions")?;
    let topic = options.one("topic")?;
    let partitions = options.one("partitions")?;
    if by_rule.is_some() && (topic.is_some() || partitions.is_some()) {
        return Err(failed(
            "--topic-partitions cannot be used with --topic or --partitions",
        ));
    }
    if let Some(text) = by_rule {
        return text.split(',').map(rule).collect();
    }
    let topic = match topic {
        Some(topic) => Some(NamePattern::include_list(topic)?),
        None => None,
    };
    let partitions = match partitions {
        None => Partitions::All,
        Some(text) => {
            let numbers: Result<Vec<i32>, _> = text.split(',').map(|p| p.trim().parse()).collect();
            Partitions::Listed(numbers.map_err(|_| {
                failed(format!(
                    "--partitions expects a comma separated list of numeric partition ids, but \
                     received: {text}"
                ))
            })?)
        }
    };
    Ok(vec![Rule { topic, partitions }])
}

fn rule(text: &str) -> Result<Rule, Exit> {
    let terse = "org.apache.kafka.tools.TerseException";
    let message = format!("{terse}: Invalid rule specification: {text}");
    let invalid = || failed(format!("{message}\njava.lang.RuntimeException: {message}"));
    let (topic, partitions) = match text.split_once(':') {
        Some((topic, partitions)) => (topic, Some(partitions)),
        None => (text, None),
    };
    let topic = match topic {
        "" => None,
        topic => Some(NamePattern::include_list(topic)?),
    };
    let number = |text: &str, default: i32| match text {
        "" => Ok(default),
        text => text.parse().map_err(|_| invalid()),
    };
    let partitions = match partitions {
        None | Some("") => Partitions::All,
        Some(text) => match text.split_once('-') {
            Some((lower, upper)) => Partitions::Range(number(lower, 0)?, number(upper, i32::MAX)?),
            None => Partitions::Listed(vec![number(text, 0)?]),
        },
    };
    Ok(Rule { topic, partitions })
}

/// The partitions that some rule names, by topic and number.
fn wanted(
    admin: &Admin,
    topics: &[TopicListing],
    rules: &[Rule],
    exclude_internal: bool,
) -> Vec<(String, i32)> {
    let cluster = admin.client.cluster();
    let mut wanted = Vec::new();
    for topic in topics
        .iter()
        .filter(|t| !(exclude_internal && t.is_internal))
    {
        let view = cluster.topics.get(&topic.name);
        for partition in view.iter().flat_map(|view| &view.partitions) {
            let index = partition.index;
            let is_named = |rule: &Rule| {
                let is_topic = rule.topic.as_ref().is_none_or(|p| p.is_match(&topic.name));
                is_topic
                    && match &rule.partitions {
                        Partitions::All => true,
                        Partitions::Listed(numbers) => numbers.contains(&index),
                        Partitions::Range(lower, upper) => (*lower..*upper).contains(&index),
                    }
            };
            if rules.iter().any(is_named) {
                wanted.push((topic.name.clone(), index));
            }
        }
    }
    wanted
}
