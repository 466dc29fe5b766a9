//! `kafka-verifiable-producer`: sends numbers and prints a JSON line for each that arrived.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::argparse::{Command, option};
use super::exit::{Done, Exit};
use super::io::Io;
use super::passed_over::ClientKind;
use super::produce::{Outgoing, Producer, ProducerConfig};
use super::rate::Pace;
use super::settings::Settings;
use crate::host::{Clock, SystemClock};

const TOOL: Command = Command {
    name: "verifiable-producer",
    help: "Sends growing numbers to a topic and prints what arrived as JSON.",
    arguments: &[
        option(&["--topic"], "TOPIC", "The topic to produce to.").required(),
        option(
            &["--bootstrap-server"],
            "HOST1:PORT1[,HOST2:PORT2[...]]",
            "REQUIRED: Brokers.",
        )
        .required(),
        option(&["--max-messages"], "MAX-MESSAGES", "How many; -1: no end."),
        option(
            &["--throughput"],
            "THROUGHPUT",
            "Records a second; -1: no limit.",
        ),
        option(&["--acks"], "ACKS", "-1, 0 or 1."),
        option(&["--producer.config"], "CONFIG-FILE", "(DEPRECATED)"),
        option(
            &["--command-config"],
            "CONFIG-FILE",
            "A file of producer configurations.",
        ),
        option(
            &["--message-create-time"],
            "CREATE-TIME",
            "The timestamp of the first record.",
        ),
        option(
            &["--value-prefix"],
            "VALUE-PREFIX",
            "Before each number, with a dot.",
        ),
        option(
            &["--repeating-keys"],
            "REPEATING-KEYS",
            "Keys from 0 up to this, again and again.",
        ),
    ],
    exclusive: &[],
    commands: &[],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = TOOL.parse_or_exit(args)?;
    let number = |name: &str| -> Result<i64, Exit> {
        let text = given.one(name).unwrap_or("-1");
        text.parse().map_err(|_| {
            let tool = TOOL.name;
            Exit::error(format!(
                "{tool}: error: argument {name}: could not convert '{text}'"
            ))
        })
    };
    let mut settings = Settings::default();
    for name in ["--producer.config", "--command-config"] {
        if let Some(file) = given.one(name) {
            settings.add_file(file)?;
        }
    }
    settings.set(
        "bootstrap.servers",
        given.one("--bootstrap-server").unwrap_or_default(),
    );
    settings.set("acks", given.one("--acks").unwrap_or("-1"));
    settings.set("linger.ms", "0");
    settings.set("retries", "0");
    let config = ProducerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Producer, "producer-1")?;
    let producer = Producer::new(client, config);
    let session = Session {
        topic: given.one("--topic").unwrap_or_default(),
        max: number("--max-messages")?,
        throughput: number("--throughput")?,
        create_time: number("--message-create-time")?,
        prefix: given.one("--value-prefix"),
        keys: number("--repeating-keys")?,
        clock: SystemClock::new(),
        acked: 0,
        sent: 0,
    };
    session.run(io, producer).await;
    Ok(())
}

struct Session<'a> {
    topic: &'a str,
    max: i64,
    throughput: i64,
    create_time: i64,
    prefix: Option<&'a str>,
    keys: i64,
    clock: SystemClock,
    acked: u64,
    sent: u64,
}

impl Session<'_> {
    async fn run(mut self, io: &mut Io, mut producer: Producer) {
        self.event(io, "startup_complete", "");
        let start = self.clock.monotonic();
        let mut pace = Pace::new(self.throughput as f64, start);
        let mut stop = Box::pin(tokio::signal::ctrl_c());
        let mut index = 0;
        while self.max < 0 || index < self.max {
            producer.append(self.record(index)).await;
            self.sent += 1;
            index += 1;
            producer.poll().await;
            self.report(io, &mut producer);
            let is_over = tokio::select! {
                biased;
                _ = &mut stop => true,
                () = self.wait(&mut pace, &mut producer) => false,
            };
            if is_over {
                break;
            }
        }
        producer.flush().await;
        self.report(io, &mut producer);
        self.event(io, "shutdown_complete", "");
        let seconds = (self.clock.monotonic() - start).as_secs_f64().max(1e-9);
        let average = self.acked as f64 / seconds;
        let fields = format!(
            ",\"sent\":{},\"acked\":{},\"target_throughput\":{},\"avg_throughput\":{average}",
            self.sent, self.acked, self.throughput
        );
        self.event(io, "tool_data", &fields);
    }

    async fn wait(&self, pace: &mut Pace, producer: &mut Producer) {
        while let Some(wait) = pace.wait(self.clock.monotonic()) {
            tokio::time::sleep(wait.min(Duration::from_millis(50))).await;
            producer.poll().await;
        }
        tokio::task::yield_now().await;
    }

    fn value(&self, index: i64) -> String {
        match self.prefix {
            Some(prefix) => format!("{prefix}.{index}"),
            None => index.to_string(),
        }
    }

    fn key(&self, index: i64) -> Option<String> {
        (self.keys > 0).then(|| (index % self.keys).to_string())
    }

    fn record(&self, index: i64) -> Outgoing {
        Outgoing {
            topic: self.topic.to_owned(),
            key: self.key(index).map(Bytes::from),
            value: Some(Bytes::from(self.value(index))),
            timestamp_ms: (self.create_time >= 0).then_some(self.create_time + index),
            tag: index as u64,
            ..Outgoing::default()
        }
    }

    fn report(&mut self, io: &mut Io, producer: &mut Producer) {
        while let Some(delivered) = producer.delivered.pop_front() {
            let index = delivered.tag as i64;
            let key = json!(self.key(index));
            let value = json!(self.value(index));
            let topic = json!(self.topic);
            match delivered.result {
                Ok((partition, offset)) => {
                    self.acked += 1;
                    let fields = format!(
                        ",\"key\":{key},\"value\":{value},\"offset\":{offset},\"topic\":{topic},\
                         \"partition\":{partition}"
                    );
                    self.event(io, "producer_send_success", &fields);
                }
                Err(error) => {
                    let (class, message) = (json!(error.class()), json!(error.message()));
                    let fields = format!(
                        ",\"key\":{key},\"value\":{value},\"topic\":{topic},\
                         \"exception\":{class},\"message\":{message}"
                    );
                    self.event(io, "producer_send_error", &fields);
                }
            }
        }
        io.flush();
    }

    fn event(&self, io: &mut Io, name: &str, fields: &str) {
        let now_ms = self.clock.now_ms();
        io.line(format!(
            "{{\"timestamp\":{now_ms},\"name\":\"{name}\"{fields}}}"
        ));
    }
}
