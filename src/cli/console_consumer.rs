//! `kafka-console-consumer`: prints the records of topics.
//!
//! With `--group` it is a member of that group. Without, Kafka's tool invents a group whose offsets
//! nobody reads; here the partitions are read directly, which shows the same records.

use std::time::Duration;

use super::admin::{Admin, AdminError, Answer, OffsetSpec};
use super::common::{key_value_pairs, require};
use super::consume::{Consumer, ConsumerConfig, Incoming, Membership, Reset, Start};
use super::exit::{Done, Exit};
use super::formatter::Formatter;
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::passed_over::ClientKind;
use super::pattern::NamePattern;
use super::settings::Settings;
use crate::types::ErrorCode;

const PURPOSE: &str =
    "This tool helps to read data from Kafka topics and outputs it to standard output.";

const OPTIONS: &[Opt] = &[
    text("topic", "topic", "The topic to read."),
    text(
        "include",
        "Java regex (String)",
        "The topics to read, by pattern.",
    ),
    typed(
        "partition",
        "Integer",
        "partition",
        "The partition to read, from its end unless --offset says otherwise.",
    ),
    text(
        "offset",
        "consume offset",
        "Where to begin: a number, 'earliest' or 'latest'.",
    )
    .or("latest"),
    text(
        "bootstrap-server",
        "server to connect to",
        "REQUIRED: Brokers, HOST1:PORT1,HOST2:PORT2.",
    ),
    text("group", "consumer group id", "The group to be a member of."),
    flag(
        "from-beginning",
        "Begin with the first record unless there is a committed offset.",
    ),
    typed(
        "max-messages",
        "Integer",
        "num_messages",
        "End after so many records.",
    ),
    typed(
        "timeout-ms",
        "Long",
        "timeout_ms",
        "End when there was no record for so long.",
    ),
    flag(
        "skip-message-on-error",
        "Pass over a record that cannot be shown instead of ending.",
    ),
    text(
        "isolation-level",
        "",
        "read_committed hides records of transactions that are not committed.",
    )
    .or("read_uncommitted"),
    text("formatter", "class", "The class that prints records.")
        .or("org.apache.kafka.tools.consumer.DefaultMessageFormatter"),
    text(
        "formatter-property",
        "prop",
        "What is printed: print.key, key.separator, null.literal, ...",
    ),
    text(
        "formatter-config",
        "config file",
        "A file of formatter properties.",
    ),
    text(
        "property",
        "prop",
        "(DEPRECATED) The same as formatter-property.",
    ),
    text(
        "key-deserializer",
        "deserializer for keys",
        "The class that reads keys.",
    ),
    text(
        "value-deserializer",
        "deserializer for values",
        "The class that reads values.",
    ),
    text(
        "consumer-property",
        "consumer_prop",
        "(DEPRECATED) The same as command-property.",
    ),
    text(
        "command-property",
        "consumer_prop",
        "A consumer configuration, key=value.",
    ),
    text(
        "consumer.config",
        "config file",
        "(DEPRECATED) The same as command-config.",
    ),
    text(
        "command-config",
        "config file",
        "A file of consumer configurations.",
    ),
    flag("enable-systest-events", "Accepted; nothing is logged."),
    HELP,
    VERSION,
];

/// How often topics are looked up anew while records are waited for.
const REFRESH: Duration = Duration::from_secs(10);

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = Options::parse(OPTIONS, args).map_err(refused)?;
    super::common::help_or_version(&options, OPTIONS, PURPOSE)?;
    check(io, &options)?;
    let settings = settings(&options)?;
    let formatter = formatter(&options)?;
    let config = ConsumerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Consumer, "console-consumer")?;
    let consumer = Consumer::new(Admin::new(client), config);
    let mut session = Session {
        wanted: wanted(&options, &settings)?,
        consumer,
        formatter,
        max_messages: options
            .number("max-messages")
            .map_err(refused)?
            .unwrap_or(u64::MAX),
        timeout: options
            .number("timeout-ms")
            .map_err(refused)?
            .map(Duration::from_millis),
        skip_errors: options.has("skip-message-on-error"),
        count: 0,
    };
    let ended = tokio::select! {
        ended = session.run(io) => ended,
        _ = tokio::signal::ctrl_c() => Err(Exit::code(130)),
    };
    let left = session.leave().await;
    io.flush();
    io.error_line(format!("Processed a total of {} messages", session.count));
    ended.and(left)
}

fn refused(error: impl ToString) -> Exit {
    Exit::usage(&error.to_string(), OPTIONS)
}

fn check(io: &mut Io, options: &Options) -> Done {
    if options.has("topic") == options.has("include") {
        let text = "Exactly one of the following arguments is required: [topic], [include]";
        return Err(refused(text));
    }
    require(options, OPTIONS, &["bootstrap-server"])?;
    if options.has("partition") {
        if !options.has("topic") {
            return Err(refused(
                "The topic is required when partition is specified.",
            ));
        }
        if options.has("from-beginning") && options.has("offset") {
            let text = "Options from-beginning and offset cannot be specified together.";
            return Err(refused(text));
        }
        if options.has("group") {
            return Err(refused(
                "Options group and partition cannot be specified together.",
            ));
        }
    } else if options.has("offset") {
        return Err(refused(
            "The partition is required when offset is specified.",
        ));
    }
    let renamed = [
        ("property", "formatter-property"),
        ("consumer-property", "command-property"),
        ("consumer.config", "command-config"),
    ];
    for (old, new) in renamed {
        if options.has(old) && options.has(new) {
            let text = format!("Options {old} and {new} cannot be specified together.");
            return Err(refused(text));
        }
        if options.has(old) {
            io.line(format!(
                "Option --{old} is deprecated and will be removed in a future version. Use --{new} \
                 instead."
            ));
        }
    }
    Ok(())
}

fn settings(options: &Options) -> Result<Settings, Exit> {
    let mut settings = Settings::default();
    for name in ["consumer.config", "command-config"] {
        if let Some(file) = options.one(name).map_err(refused)? {
            settings.add_file(file)?;
        }
    }
    for name in ["consumer-property", "command-property"] {
        for (name, value) in key_value_pairs(options.all(name), true)? {
            settings.set(&name, &value);
        }
    }
    let servers = options
        .one("bootstrap-server")
        .map_err(refused)?
        .unwrap_or_default();
    settings.set("bootstrap.servers", servers);
    if options.has("isolation-level") || settings.get("isolation.level").is_none() {
        let level = options
            .one("isolation-level")
            .map_err(refused)?
            .unwrap_or_default();
        settings.set("isolation.level", level);
    }
    let from_beginning = options.has("from-beginning");
    match settings.get("auto.offset.reset") {
        Some(reset) if from_beginning && reset != "earliest" => {
            let text = format!(
                "Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', \
                 please remove one option"
            );
            return Err(Exit::error(text));
        }
        Some(_) => {}
        None if from_beginning => settings.set("auto.offset.reset", "earliest"),
        None => settings.set("auto.offset.reset", "latest"),
    }
    Ok(settings)
}

fn formatter(options: &Options) -> Result<Formatter, Exit> {
    let mut properties = Settings::default();
    if let Some(file) = options.one("formatter-config").map_err(refused)? {
        properties.add_file(file)?;
    }
    for name in ["property", "formatter-property"] {
        for (name, value) in key_value_pairs(options.all(name), true)? {
            properties.set(&name, &value);
        }
    }
    for (option, name) in [
        ("key-deserializer", "key.deserializer"),
        ("value-deserializer", "value.deserializer"),
    ] {
        if let Some(class) = options.one(option).map_err(refused)? {
            properties.set(name, class);
        }
    }
    let class = options
        .one("formatter")
        .map_err(refused)?
        .unwrap_or_default();
    Formatter::new(class, &properties).map_err(|exit| refused(exit.err.trim_end()))
}

/// What is to be read.
enum Wanted {
    Partition(String, i32, Start),
    Topic(String),
    Pattern(NamePattern),
    Group(Membership, Option<NamePattern>),
}

fn wanted(options: &Options, settings: &Settings) -> Result<Wanted, Exit> {
    let topic = options.one("topic").map_err(refused)?;
    if let (Some(topic), Some(partition)) = (topic, options.number("partition").map_err(refused)?) {
        return Ok(Wanted::Partition(
            topic.to_owned(),
            partition,
            start(options)?,
        ));
    }
    let group = options
        .one("group")
        .map_err(refused)?
        .or(settings.get("group.id"));
    let pattern = match options.one("include").map_err(refused)? {
        Some(pattern) => Some(NamePattern::include_list(pattern)?),
        None => None,
    };
    let topics = topic.map(str::to_owned);
    Ok(match (group, topics, pattern) {
        (Some(group), topics, pattern) => Wanted::Group(
            Membership::new(group, topics.into_iter().collect()),
            pattern,
        ),
        (None, Some(topic), _) => Wanted::Topic(topic),
        (None, None, Some(pattern)) => Wanted::Pattern(pattern),
        (None, None, None) => return Err(Exit::code(1)),
    })
}

fn start(options: &Options) -> Result<Start, Exit> {
    if options.has("from-beginning") {
        return Ok(Start::Time(OffsetSpec::EARLIEST));
    }
    let offset = options.one("offset").map_err(refused)?.unwrap_or("latest");
    match offset.to_ascii_lowercase().as_str() {
        "earliest" => return Ok(Start::Time(OffsetSpec::EARLIEST)),
        "latest" => return Ok(Start::Time(OffsetSpec::LATEST)),
        _ => {}
    }
    match offset.parse::<i64>() {
        Ok(number) if number >= 0 => Ok(Start::Offset(number)),
        _ => Err(refused(format!(
            "The provided offset value '{offset}' is incorrect. Valid values are 'earliest', \
             'latest', or a non-negative long."
        ))),
    }
}

struct Session {
    wanted: Wanted,
    consumer: Consumer,
    formatter: Formatter,
    max_messages: u64,
    timeout: Option<Duration>,
    skip_errors: bool,
    count: u64,
}

impl Session {
    async fn run(&mut self, io: &mut Io) -> Done {
        let elapsed = |consumer: &Consumer| consumer.admin.client.elapsed();
        let mut last_record = elapsed(&self.consumer);
        let mut next_look = Duration::ZERO;
        while self.count < self.max_messages {
            let now = elapsed(&self.consumer);
            let left = match self.timeout {
                Some(timeout) => (last_record + timeout).saturating_sub(now),
                None => Duration::MAX,
            };
            if left.is_zero() {
                return Ok(());
            }
            let looked = match now >= next_look || self.is_member() {
                true => {
                    next_look = now + REFRESH;
                    match tokio::time::timeout(left, self.look()).await {
                        Ok(looked) => looked,
                        // Nothing came within --timeout-ms, not even a broker.
                        Err(_) => continue,
                    }
                }
                false => Ok(()),
            };
            if let Err(error) = looked {
                self.wait_or_end(error, &mut next_look).await?;
                continue;
            }
            match self.consumer.next(left.min(Duration::from_secs(1))).await {
                Ok(Some(record)) => {
                    self.show(io, &record)?;
                    last_record = elapsed(&self.consumer);
                }
                Ok(None) => {}
                Err(error) => self.wait_or_end(error, &mut next_look).await?,
            }
            if !self.consumer.has_ready() {
                let flushed = io.out.flush();
                if flushed.is_err() {
                    let text = "Unable to write to standard out, closing consumer.";
                    return Err(Exit::error(text));
                }
            }
        }
        Ok(())
    }

    fn is_member(&self) -> bool {
        matches!(self.wanted, Wanted::Group(..))
    }

    /// A topic or a broker that is not there yet may come; everything else ends the command.
    async fn wait_or_end(&self, error: AdminError, next_look: &mut Duration) -> Done {
        match error.is_retriable() {
            true => {
                *next_look = Duration::ZERO;
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(())
            }
            false => Err(Exit::error(error.exception())),
        }
    }

    /// Looks up what is to be read, and starts with what is new.
    async fn look(&mut self) -> Answer<()> {
        let from_now = match self.consumer.config.reset {
            Reset::Earliest => OffsetSpec::EARLIEST,
            Reset::Latest | Reset::None => OffsetSpec::LATEST,
        };
        let consumer = &mut self.consumer;
        let topics: Vec<String> = match &mut self.wanted {
            Wanted::Partition(topic, partition, start) => {
                let key = (topic.clone(), *partition);
                if consumer.partitions().is_empty() {
                    consumer.admin.require_partition(topic, *partition).await?;
                    return consumer.assign(vec![(key, *start)]).await;
                }
                return Ok(());
            }
            Wanted::Group(member, pattern) => {
                if let (Some(pattern), true) = (pattern, member.topics.is_empty()) {
                    member.topics = matching(&consumer.admin, pattern).await?;
                }
                return consumer.keep_membership(member).await.map(|_| ());
            }
            Wanted::Topic(topic) => vec![topic.clone()],
            Wanted::Pattern(pattern) => matching(&consumer.admin, pattern).await?,
        };
        let known = consumer.partitions();
        // What appears later is read from its beginning.
        let spec = match known.is_empty() {
            true => from_now,
            false => OffsetSpec::EARLIEST,
        };
        let mut starts = Vec::new();
        for topic in topics {
            for partition in consumer.admin.partitions_of(&topic).await? {
                let key = (topic.clone(), partition);
                if !known.contains(&key) {
                    starts.push((key, Start::Time(spec)));
                }
            }
        }
        match starts.is_empty() {
            true => Ok(()),
            false => consumer.assign_more(starts).await,
        }
    }

    fn show(&mut self, io: &mut Io, record: &Incoming) -> Done {
        self.count += 1;
        match self.formatter.write(record, &mut *io.out) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => match self.skip_errors
            {
                true => Ok(()),
                false => {
                    let class = "org.apache.kafka.common.errors.SerializationException";
                    Err(Exit::error(format!("{class}: {error}")))
                }
            },
            Err(_) => {
                let text = "Unable to write to standard out, closing consumer.";
                Err(Exit::error(text))
            }
        }
    }

    async fn leave(&mut self) -> Done {
        let Wanted::Group(member, _) = &mut self.wanted else {
            return Ok(());
        };
        let left = self.consumer.leave(member).await;
        left.map_err(|error| Exit::error(error.exception()))
    }
}

/// The topics a pattern stands for, without the internal ones.
async fn matching(admin: &Admin, pattern: &NamePattern) -> Answer<Vec<String>> {
    let all = admin.list_topics().await?;
    let found = all
        .into_iter()
        .filter(|t| !t.is_internal && pattern.is_match(&t.name));
    let names: Vec<String> = found.map(|topic| topic.name).collect();
    match names.is_empty() {
        true => Err(AdminError::answer(ErrorCode::UnknownTopicOrPartition, None)),
        false => Ok(names),
    }
}
