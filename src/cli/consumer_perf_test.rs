//! `kafka-consumer-perf-test`: reads records and says how fast that went.

use std::time::Duration;

use super::admin::{Admin, AdminError, OffsetSpec};
use super::common::{help_or_version, key_value_pairs, require};
use super::consume::{Consumer, ConsumerConfig, Membership, Start};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::passed_over::ClientKind;
use super::settings::Settings;
use super::when;

const PURPOSE: &str = "This tool is used to verify the consumer performance.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server to connect to",
        "REQUIRED: Brokers.",
    ),
    text("topic", "topic", "The topic to read."),
    text("include", "Java regex (String)", "Not supported yet."),
    text("group", "gid", "The group; none if left out."),
    typed(
        "fetch-size",
        "Integer",
        "size",
        "How much is read of a partition at once.",
    )
    .or("1048576"),
    flag(
        "from-latest",
        "Begin at the end unless there is a committed offset.",
    ),
    typed(
        "socket-buffer-size",
        "Integer",
        "size",
        "Has no effect here.",
    )
    .or("2097152"),
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
    text(
        "command-property",
        "prop1=val1",
        "A consumer configuration.",
    ),
    flag("print-metrics", "Accepted; there are none here."),
    flag("show-detailed-stats", "Report every interval."),
    typed(
        "timeout",
        "Long",
        "milliseconds",
        "End when there was no record for so long.",
    )
    .or("10000")
    .optional_argument(),
    typed(
        "num-records",
        "Long",
        "count",
        "REQUIRED: How many records.",
    ),
    typed(
        "messages",
        "Long",
        "count",
        "(DEPRECATED) The same as num-records.",
    ),
    typed(
        "reporting-interval",
        "Long",
        "interval_ms",
        "Between reports.",
    )
    .or("5000"),
    text("date-format", "date format", "Only the default is known.").or("yyyy-MM-dd HH:mm:ss:SSS"),
    flag("hide-header", "No header."),
    HELP,
    VERSION,
];

const MEGABYTE: f64 = 1024.0 * 1024.0;

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let refused = |error: super::options::OptionError| Exit::usage(&error.to_string(), OPTIONS);
    let options = Options::parse(OPTIONS, args).map_err(refused)?;
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    help_or_version(&options, OPTIONS, PURPOSE)?;
    if options.has("messages") == options.has("num-records") {
        let text = "Exactly one of the following arguments is required: [num-records], [messages]";
        return Err(Exit::usage(text, OPTIONS));
    }
    require(&options, OPTIONS, &["bootstrap-server"])?;
    if options.has("include") {
        return Err(Exit::error("klamm: --include is not supported yet"));
    }
    require(&options, OPTIONS, &["topic"])?;
    if options.has("messages") {
        io.line("Warning: --messages is deprecated. Use --num-records instead.");
    }
    let settings = settings(&options)?;
    let config = ConsumerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Consumer, "perf-consumer-client")?;
    let count = options
        .number::<u64>("num-records")?
        .or(options.number("messages")?);
    let mut test = Test {
        consumer: Consumer::new(Admin::new(client), config),
        topic: options.one("topic")?.unwrap_or_default().to_owned(),
        member: None,
        count: count.unwrap_or(0),
        timeout: Duration::from_millis(options.number("timeout")?.unwrap_or(10_000)),
        interval: Duration::from_millis(options.number("reporting-interval")?.unwrap_or(5_000)),
        is_detailed: options.has("show-detailed-stats"),
        read: Read::default(),
        join_ms: 0,
    };
    if let Some(group) = options.one("group")? {
        test.member = Some(Membership::new(group, vec![test.topic.clone()]));
    }
    if !options.has("hide-header") {
        io.line(header(test.is_detailed));
    }
    test.run(io)
        .await
        .map_err(|error| Exit::error(error.exception()))
}

fn header(is_detailed: bool) -> &'static str {
    match is_detailed {
        true => {
            "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
             rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        }
        false => {
            "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
             rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        }
    }
}

fn settings(options: &Options) -> Result<Settings, Exit> {
    let mut settings = Settings::default();
    for name in ["consumer.config", "command-config"] {
        if let Some(file) = options.one(name)? {
            settings.add_file(file)?;
        }
    }
    for (name, value) in key_value_pairs(options.all("command-property"), true)? {
        settings.set(&name, &value);
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    if let Some(size) = options.one("fetch-size")? {
        settings.set("max.partition.fetch.bytes", size);
    }
    let reset = if options.has("from-latest") {
        "latest"
    } else {
        "earliest"
    };
    settings.set("auto.offset.reset", reset);
    Ok(settings)
}

#[derive(Debug, Clone, Copy, Default)]
struct Read {
    records: u64,
    bytes: u64,
}

struct Test {
    consumer: Consumer,
    topic: String,
    member: Option<Membership>,
    count: u64,
    timeout: Duration,
    interval: Duration,
    is_detailed: bool,
    read: Read,
    join_ms: u64,
}

impl Test {
    async fn run(&mut self, io: &mut Io) -> Result<(), AdminError> {
        let start_ms = self.consumer.admin.client.now_ms();
        let start = self.elapsed();
        self.begin().await?;
        self.join_ms = (self.elapsed() - start).as_millis() as u64;
        let (mut last_record, mut last_report) = (self.elapsed(), self.elapsed());
        let mut reported = Read::default();
        while self.read.records < self.count {
            let now = self.elapsed();
            if now >= last_record + self.timeout {
                io.line(format!(
                    "WARNING: Exiting before consuming the expected number of records: timeout ({} \
                     ms) exceeded. You can use the --timeout option to increase the timeout.",
                    self.timeout.as_millis()
                ));
                break;
            }
            if let Some(member) = &mut self.member
                && !self.consumer.has_ready()
            {
                self.consumer.keep_membership(member).await?;
            }
            if let Some(record) = self.consumer.next(Duration::from_millis(100)).await? {
                self.read.records += 1;
                let size = |field: &Option<bytes::Bytes>| field.as_ref().map_or(0, |f| f.len());
                self.read.bytes += (size(&record.key) + size(&record.value)) as u64;
                last_record = self.elapsed();
            }
            if self.is_detailed && self.elapsed() >= last_report + self.interval {
                self.report(io, reported, self.elapsed() - last_report);
                (reported, last_report) = (self.read, self.elapsed());
            }
        }
        if let Some(member) = &mut self.member {
            self.consumer.leave(member).await?;
        }
        if !self.is_detailed {
            let whole = (self.elapsed() - start).as_secs_f64().max(1e-9);
            let fetch_ms = ((whole * 1000.0) as u64)
                .saturating_sub(self.join_ms)
                .max(1);
            let fetch = fetch_ms as f64 / 1000.0;
            let megabytes = self.read.bytes as f64 / MEGABYTE;
            let records = self.read.records as f64;
            let end_ms = self.consumer.admin.client.now_ms();
            io.line(format!(
                "{}, {}, {megabytes:.4}, {:.4}, {}, {:.4}, {}, {fetch_ms}, {:.4}, {:.4}",
                when::show_ms(start_ms),
                when::show_ms(end_ms),
                megabytes / whole,
                self.read.records,
                records / whole,
                self.join_ms,
                megabytes / fetch,
                records / fetch,
            ));
        }
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.consumer.admin.client.elapsed()
    }

    async fn begin(&mut self) -> Result<(), AdminError> {
        if let Some(member) = &mut self.member {
            return self.consumer.keep_membership(member).await.map(|_| ());
        }
        let spec = match self.consumer.config.reset {
            super::consume::Reset::Latest => OffsetSpec::LATEST,
            _ => OffsetSpec::EARLIEST,
        };
        let partitions = self.consumer.admin.partitions_of(&self.topic).await?;
        let start = |partition| ((self.topic.clone(), partition), Start::Time(spec));
        let starts = partitions.into_iter().map(start).collect();
        self.consumer.assign(starts).await
    }

    fn report(&self, io: &mut Io, before: Read, over: Duration) {
        let seconds = over.as_secs_f64().max(1e-9);
        let megabytes = (self.read.bytes - before.bytes) as f64 / MEGABYTE;
        let records = (self.read.records - before.records) as f64;
        let (mb_rate, rate) = (megabytes / seconds, records / seconds);
        let now_ms = self.consumer.admin.client.now_ms();
        io.line(format!(
            "{}, 0, {:.4}, {mb_rate:.4}, {}, {rate:.4}, 0, {}, {mb_rate:.4}, {rate:.4}",
            when::show_ms(now_ms),
            self.read.bytes as f64 / MEGABYTE,
            self.read.records,
            over.as_millis(),
        ));
    }
}
