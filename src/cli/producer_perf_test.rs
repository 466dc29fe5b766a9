//! `kafka-producer-perf-test`: sends records and says how fast that went.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::argparse::{Command, Given, option, switch};
use super::exit::{Done, Exit};
use super::io::Io;
use super::passed_over::ClientKind;
use super::produce::{Outgoing, Producer, ProducerConfig};
use super::rate::Pace;
use super::settings::Settings;
use crate::host::{Clock, SystemClock, random, read_given};

const TOOL: Command = Command {
    name: "kafka-producer-perf-test",
    help: "This tool is used to verify the producer performance.",
    arguments: &[
        option(
            &["--bootstrap-server"],
            "BOOTSTRAP-SERVER",
            "Brokers, HOST1:PORT1.",
        ),
        option(&["--topic"], "TOPIC", "The topic to produce to.").required(),
        option(
            &["--payload-delimiter"],
            "PAYLOAD-DELIMITER",
            "Between payloads in the file.",
        ),
        option(
            &["--throughput"],
            "THROUGHPUT",
            "Records a second; -1: no limit.",
        )
        .required(),
        option(&["--num-records"], "NUM-RECORDS", "How many records.").required(),
        option(
            &["--producer-props"],
            "PROP-NAME=PROP-VALUE",
            "(DEPRECATED)",
        )
        .many(),
        option(
            &["--command-property"],
            "PROP-NAME=PROP-VALUE",
            "Producer configurations.",
        )
        .many(),
        option(&["--producer.config"], "CONFIG-FILE", "(DEPRECATED)"),
        option(
            &["--command-config"],
            "CONFIG-FILE",
            "A file of producer configurations.",
        ),
        switch(&["--print-metrics"], "Accepted; there are none here."),
        option(
            &["--transactional-id"],
            "TRANSACTIONAL-ID",
            "Not supported yet.",
        ),
        option(
            &["--transaction-duration-ms"],
            "TRANSACTION-DURATION",
            "Not supported yet.",
        ),
        option(
            &["--warmup-records"],
            "WARMUP-RECORDS",
            "Records that are not counted.",
        ),
        option(
            &["--reporting-interval"],
            "INTERVAL-MS",
            "Between reports; 5000.",
        ),
        option(
            &["--record-key-range"],
            "KEY-RANGE",
            "Keys from 0 up to this.",
        ),
        option(&["--key-distribution"], "KEY-DISTRIBUTION", "Accepted."),
        option(&["--random-seed"], "RANDOM-SEED", "Accepted."),
        option(&["--record-size"], "RECORD-SIZE", "Bytes a record."),
        option(&["--payload-file"], "PAYLOAD-FILE", "A file of payloads."),
        switch(
            &["--payload-monotonic"],
            "The payload is a number that grows.",
        ),
    ],
    exclusive: &[(
        &["--record-size", "--payload-file", "--payload-monotonic"],
        true,
    )],
    commands: &[],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = TOOL.parse_or_exit(args)?;
    if given.has("--transactional-id") || given.has("--transaction-duration-ms") {
        let text = "klamm: producer-perf-test has no transactions yet";
        return Err(Exit::error(text));
    }
    let settings = settings(io, &given)?;
    let config = ProducerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Producer, "perf-producer-client")?;
    let producer = Producer::new(client, config);
    let interval = number(&given, "--reporting-interval", 5000)?;
    let test = Test {
        topic: given.one("--topic").unwrap_or_default(),
        count: number(&given, "--num-records", 0)?,
        warmup: number(&given, "--warmup-records", 0)?,
        throughput: given
            .one("--throughput")
            .and_then(|t| t.parse().ok())
            .unwrap_or(-1.0),
        key_range: number(&given, "--record-key-range", 0)?,
        payloads: Payloads::read(&given)?,
        clock: SystemClock::new(),
        interval: Duration::from_millis(interval),
    };
    test.run(io, producer).await
}

fn number(given: &Given, name: &str, default: u64) -> Result<u64, Exit> {
    let Some(text) = given.one(name) else {
        return Ok(default);
    };
    text.parse().map_err(|_| {
        let tool = TOOL.name;
        Exit::error(format!(
            "{tool}: error: argument {name}: could not convert '{text}' to Long"
        ))
    })
}

fn settings(io: &mut Io, given: &Given) -> Result<Settings, Exit> {
    let sources = [
        "--bootstrap-server",
        "--command-property",
        "--producer-props",
        "--producer.config",
        "--command-config",
    ];
    if !sources.iter().any(|name| given.has(name)) {
        return Err(Exit::error(format!(
            "{}: error: At least one of --bootstrap-server, --command-property, --producer-props, \
             --producer.config or --command-config must be specified.",
            TOOL.name
        )));
    }
    for (old, new) in [
        ("--producer-props", "--command-property"),
        ("--producer.config", "--command-config"),
    ] {
        if given.has(old) {
            io.line(format!(
                "Option {old} has been deprecated and will be removed in a future version. Use \
                 {new} instead."
            ));
        }
    }
    let mut settings = Settings::default();
    for name in ["--producer.config", "--command-config"] {
        if let Some(file) = given.one(name) {
            settings.add_file(file)?;
        }
    }
    for name in ["--producer-props", "--command-property"] {
        for pair in given.all(name) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| Exit::error(format!("Invalid property: {pair}")))?;
            settings.set(name, value);
        }
    }
    if let Some(servers) = given.one("--bootstrap-server") {
        settings.set("bootstrap.servers", servers);
    }
    Ok(settings)
}

enum Payloads {
    Fixed(Bytes),
    Listed(Vec<Bytes>),
    Counting,
}

impl Payloads {
    fn read(given: &Given) -> Result<Payloads, Exit> {
        if given.has("--payload-monotonic") {
            return Ok(Payloads::Counting);
        }
        if let Some(path) = given.one("--payload-file") {
            let bytes = read_given(Path::new(path))
                .map_err(|error| Exit::error(format!("{path}: {error}")))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let delimiter = given
                .one("--payload-delimiter")
                .unwrap_or("\n")
                .replace("\\n", "\n");
            let parts = text
                .split(delimiter.as_str())
                .filter(|part| !part.is_empty());
            let parts: Vec<Bytes> = parts.map(|p| Bytes::from(p.to_owned())).collect();
            return match parts.is_empty() {
                true => Err(Exit::error("File does not exist or empty file provided.")),
                false => Ok(Payloads::Listed(parts)),
            };
        }
        let size = number(given, "--record-size", 0)?;
        if size == 0 || size > 1 << 30 {
            return Err(Exit::error("--record-size should be greater than zero."));
        }
        // Letters, as in the original, from a small generator: only their compressibility counts.
        let mut state = 0x2545_f491_u32;
        let letters = (0..size).map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            b'A' + (state % 26) as u8
        });
        Ok(Payloads::Fixed(letters.collect()))
    }

    fn next(&self, index: u64) -> Bytes {
        match self {
            Payloads::Fixed(bytes) => bytes.clone(),
            Payloads::Listed(all) => all[random::seed() as usize % all.len()].clone(),
            Payloads::Counting => Bytes::from(index.to_string()),
        }
    }
}

struct Test<'a> {
    topic: &'a str,
    count: u64,
    warmup: u64,
    throughput: f64,
    key_range: u64,
    payloads: Payloads,
    clock: SystemClock,
    interval: Duration,
}

/// Latencies and bytes since some moment.
struct Window {
    start: Duration,
    latencies_ms: Vec<u64>,
    bytes: u64,
}

impl Window {
    fn new(start: Duration) -> Window {
        Window {
            start,
            latencies_ms: Vec::new(),
            bytes: 0,
        }
    }

    /// Records, records and MB a second, mean and maximum of the latency.
    fn summary(&self, now: Duration) -> String {
        let seconds = (now - self.start).as_secs_f64().max(1e-9);
        let count = self.latencies_ms.len();
        let total: u64 = self.latencies_ms.iter().sum();
        let mean = total as f64 / count.max(1) as f64;
        let max = self.latencies_ms.iter().copied().max().unwrap_or(0);
        let megabytes = self.bytes as f64 / seconds / (1024.0 * 1024.0);
        let rate = count as f64 / seconds;
        format!(
            "{count} records sent, {rate:.6} records/sec ({megabytes:.2} MB/sec), {mean:.2} ms avg \
             latency, {:.2} ms max latency",
            max as f64
        )
    }
}

impl Test<'_> {
    async fn run(&self, io: &mut Io, mut producer: Producer) -> Done {
        let mut whole = Window::new(self.clock.monotonic());
        let mut recent = Window::new(whole.start);
        let mut pace = Pace::new(self.throughput, whole.start);
        let mut failed = None;
        for index in 0..self.count {
            if index == self.warmup && self.warmup > 0 {
                producer.flush().await;
                self.collect(&mut producer, &mut whole, &mut recent, &mut failed);
                io.line(format!("{} records were for warming up.", self.warmup));
                whole = Window::new(self.clock.monotonic());
            }
            let value = self.payloads.next(index);
            let key = (self.key_range > 0)
                .then(|| Bytes::copy_from_slice(&(index % self.key_range).to_be_bytes()));
            let sent_us = self.clock.monotonic().as_micros() as u64;
            whole.bytes += value.len() as u64;
            recent.bytes += value.len() as u64;
            let record = Outgoing {
                topic: self.topic.to_owned(),
                key,
                value: Some(value),
                tag: sent_us,
                ..Outgoing::default()
            };
            producer.append(record).await;
            if index % 64 == 0 {
                producer.poll().await;
            }
            self.collect(&mut producer, &mut whole, &mut recent, &mut failed);
            while let Some(wait) = pace.wait(self.clock.monotonic()) {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = producer.wait() => {}
                }
                producer.poll().await;
            }
            let now = self.clock.monotonic();
            if now >= recent.start + self.interval {
                io.line(format!("{}.", recent.summary(now)));
                io.flush();
                recent = Window::new(now);
            }
        }
        producer.flush().await;
        self.collect(&mut producer, &mut whole, &mut recent, &mut failed);
        if let Some(error) = failed {
            io.error_line(error);
        }
        let now = self.clock.monotonic();
        let summary = whole.summary(now);
        whole.latencies_ms.sort_unstable();
        let count = whole.latencies_ms.len();
        let percentile = |share: f64| {
            let at = ((share * count as f64) as usize).min(count.saturating_sub(1));
            whole.latencies_ms.get(at).copied().unwrap_or(0)
        };
        io.line(format!(
            "{summary}, {} ms 50th, {} ms 95th, {} ms 99th, {} ms 99.9th.",
            percentile(0.5),
            percentile(0.95),
            percentile(0.99),
            percentile(0.999)
        ));
        Ok(())
    }

    fn collect(
        &self,
        producer: &mut Producer,
        whole: &mut Window,
        recent: &mut Window,
        failed: &mut Option<String>,
    ) {
        let now_us = self.clock.monotonic().as_micros() as u64;
        while let Some(delivered) = producer.delivered.pop_front() {
            match delivered.result {
                Ok(_) => {
                    let latency = now_us.saturating_sub(delivered.tag) / 1000;
                    whole.latencies_ms.push(latency);
                    recent.latencies_ms.push(latency);
                }
                Err(error) => *failed = Some(error.exception()),
            }
        }
    }
}
