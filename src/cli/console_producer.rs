//! `kafka-console-producer`: lines of standard input become records.
//!
//! 1. Lines are read on a thread of their own, so that lingering batches go out while a person
//!    thinks.
//! 2. Whatever ends the command, the records before it are sent first.

use std::io::{BufRead, IsTerminal, Write};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::host::tasks;

use super::common::{key_value_pairs, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::line_reader::{LineError, LineReader};
use super::options::{HELP, Opt, OptionError, Options, VERSION, flag, text, typed};
use super::passed_over::ClientKind;
use super::produce::{Delivered, Outgoing, Producer, ProducerConfig};
use super::settings::Settings;

const PURPOSE: &str = "This tool helps to read data from standard input and publish it to Kafka.";

const OPTIONS: &[Opt] = &[
    text("topic", "topic", "REQUIRED: The topic to produce to."),
    text(
        "bootstrap-server",
        "server to connect to",
        "REQUIRED: Brokers, HOST1:PORT1,HOST2:PORT2.",
    ),
    flag("sync", "Wait for each record before the next is sent."),
    text(
        "compression-codec",
        "compression-codec",
        "none, gzip, snappy, lz4 or zstd; gzip if nothing follows.",
    )
    .optional_argument(),
    typed(
        "batch-size",
        "Integer",
        "size",
        "The size of a batch in bytes.",
    )
    .or("16384"),
    typed(
        "message-send-max-retries",
        "Integer",
        "",
        "How often a batch is tried again.",
    )
    .or("3"),
    typed("retry-backoff-ms", "Long", "", "The wait before a retry.").or("100"),
    typed(
        "timeout",
        "Long",
        "timeout_ms",
        "How long a record may wait for others.",
    )
    .or("1000"),
    text(
        "request-required-acks",
        "request required acks",
        "Who has to have it: -1, 0 or 1.",
    )
    .or("-1"),
    typed(
        "request-timeout-ms",
        "Integer",
        "request timeout ms",
        "How long a broker may take to answer.",
    )
    .or("1500"),
    typed(
        "metadata-expiry-ms",
        "Long",
        "metadata expiration interval",
        "The age at which metadata is asked for anew.",
    )
    .or("300000"),
    typed(
        "max-block-ms",
        "Long",
        "max block on send",
        "How long a send may wait.",
    )
    .or("60000"),
    typed(
        "max-memory-bytes",
        "Long",
        "total memory in bytes",
        "Memory for what waits.",
    )
    .or("33554432"),
    typed(
        "max-partition-memory-bytes",
        "Integer",
        "memory in bytes per partition",
        "(Deprecated) The same as batch-size.",
    )
    .or("16384"),
    text("line-reader", "reader_class", "The class that reads lines.")
        .or("org.apache.kafka.tools.LineMessageReader"),
    typed(
        "socket-buffer-size",
        "Integer",
        "size",
        "Has no effect here.",
    )
    .or("102400"),
    text(
        "property",
        "prop",
        "(DEPRECATED) The same as reader-property.",
    ),
    text(
        "reader-property",
        "prop",
        "How lines are read: parse.key, key.separator, ...",
    ),
    text(
        "reader-config",
        "config file",
        "A file of reader properties.",
    ),
    text(
        "producer-property",
        "producer_prop",
        "(DEPRECATED) The same as command-property.",
    ),
    text(
        "command-property",
        "producer_prop",
        "A producer configuration, key=value.",
    ),
    text(
        "producer.config",
        "config file",
        "(DEPRECATED) The same as command-config.",
    ),
    text(
        "command-config",
        "config file",
        "A file of producer configurations.",
    ),
    HELP,
    VERSION,
];

/// Option, configuration, and the values given here if neither is.
const MERGED: &[(&str, &str)] = &[
    ("timeout", "linger.ms"),
    ("request-required-acks", "acks"),
    ("request-timeout-ms", "request.timeout.ms"),
    ("message-send-max-retries", "retries"),
    ("retry-backoff-ms", "retry.backoff.ms"),
    ("max-memory-bytes", "buffer.memory"),
    ("batch-size", "batch.size"),
    ("max-block-ms", "max.block.ms"),
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = parse(io, args)?;
    let settings = settings(io, &options).map_err(refused)?;
    let reader = reader(io, &options)?;
    let config = ProducerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Producer, "console-producer")?;
    let mut producer = Producer::new(client, config);
    let topic = options.one("topic").map_err(refused)?.unwrap_or_default();
    let session = Session {
        topic,
        is_sync: options.has("sync"),
        sizes: Vec::new(),
    };
    session.run(io, &mut producer, reader).await
}

fn refused(error: impl ToString) -> Exit {
    Exit::usage(&error.to_string(), OPTIONS)
}

fn parse(io: &mut Io, args: &[String]) -> Result<Options, Exit> {
    let options = Options::parse(OPTIONS, args).map_err(refused)?;
    super::common::help_or_version(&options, OPTIONS, PURPOSE)?;
    require(&options, OPTIONS, &["topic"])?;
    if !options.has("bootstrap-server") {
        return Err(refused("Error while validating the bootstrap address\n"));
    }
    let renamed = [
        ("property", "reader-property"),
        ("producer-property", "command-property"),
        ("producer.config", "command-config"),
    ];
    for (old, new) in renamed {
        if options.has(old) && options.has(new) {
            let text = format!("Options {old} and {new} cannot be specified together.");
            return Err(refused(text));
        }
        if options.has(old) {
            io.line(format!(
                "Warning: --{old} is deprecated and will be removed in a future version. Use \
                 --{new} instead."
            ));
        }
    }
    Ok(options)
}

fn settings(io: &mut Io, options: &Options) -> Result<Settings, String> {
    let mut settings = Settings::default();
    let _ = io;
    let of = |error: OptionError| error.to_string();
    for name in ["producer.config", "command-config"] {
        if let Some(file) = options.one(name).map_err(of)? {
            settings.add_file(file).map_err(|exit| exit.err)?;
        }
    }
    for name in ["producer-property", "command-property"] {
        for (name, value) in key_value_pairs(options.all(name), true).map_err(|e| e.err)? {
            settings.set(&name, &value);
        }
    }
    if let Some(servers) = options.one("bootstrap-server").map_err(of)? {
        settings.set("bootstrap.servers", servers);
    }
    if options.has("compression-codec") {
        let codec = options
            .one("compression-codec")
            .map_err(of)?
            .unwrap_or("gzip");
        settings.set("compression.type", codec);
    }
    for (option, name) in MERGED {
        let value = options.one(option).map_err(of)?;
        if let Some(value) = value
            && (options.has(option) || settings.get(name).is_none())
        {
            settings.set(name, value);
        }
    }
    if let Some(bytes) = options.one("max-partition-memory-bytes").map_err(of)?
        && options.has("max-partition-memory-bytes")
    {
        settings.set("batch.size", bytes);
    }
    Ok(settings)
}

fn reader(io: &mut Io, options: &Options) -> Result<LineReader, Exit> {
    let class = options.one("line-reader")?.unwrap_or_default();
    if class != "org.apache.kafka.tools.LineMessageReader" {
        return Err(Exit::error(format!(
            "java.lang.ClassNotFoundException: {class}"
        )));
    }
    let mut properties = Settings::default();
    if let Some(file) = options.one("reader-config")? {
        properties.add_file(file)?;
    }
    let _ = io;
    for name in ["property", "reader-property"] {
        for (name, value) in key_value_pairs(options.all(name), true)? {
            properties.set(&name, &value);
        }
    }
    Ok(LineReader::new(&properties))
}

struct Session<'a> {
    topic: &'a str,
    is_sync: bool,
    /// Key and value sizes by tag, for what is said of a failure.
    sizes: Vec<(Option<usize>, usize)>,
}

impl Session<'_> {
    async fn run(mut self, io: &mut Io, producer: &mut Producer, mut reader: LineReader) -> Done {
        let is_terminal = std::io::stdin().is_terminal();
        let input = std::mem::replace(&mut io.input, Box::new(std::io::empty()));
        let mut lines = read_lines(input);
        let mut broken = None;
        loop {
            if is_terminal {
                let _ = write!(io.out, ">");
                io.flush();
            }
            let Some(line) = self.next_line(io, producer, &mut lines).await else {
                break;
            };
            match reader.parse(&line) {
                Ok(record) => self.append(producer, record).await,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
            if self.is_sync {
                producer.flush().await;
                if let Some(error) = self.report_sync(producer) {
                    return Err(error);
                }
            }
            self.report(io, producer);
        }
        producer.flush().await;
        self.report(io, producer);
        match broken {
            None => Ok(()),
            Some(LineError(text)) => Err(Exit::error(format!(
                "org.apache.kafka.common.KafkaException: {text}"
            ))),
        }
    }

    /// Waits for a line; meanwhile lingering batches are sent.
    async fn next_line(
        &self,
        io: &mut Io,
        producer: &mut Producer,
        lines: &mut mpsc::Receiver<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        loop {
            producer.poll().await;
            self.report(io, producer);
            if producer.is_idle() {
                return lines.recv().await;
            }
            tokio::select! {
                biased;
                line = lines.recv() => return line,
                () = producer.wait() => {}
            }
        }
    }

    async fn append(&mut self, producer: &mut Producer, record: Outgoing) {
        let size = |field: &Option<Bytes>| field.as_ref().map(Bytes::len);
        let tag = self.sizes.len() as u64;
        self.sizes
            .push((size(&record.key), size(&record.value).unwrap_or(0)));
        let topic = self.topic.to_owned();
        producer
            .append(Outgoing {
                topic,
                tag,
                ..record
            })
            .await;
    }

    fn report(&self, io: &mut Io, producer: &mut Producer) {
        while let Some(Delivered { tag, result }) = producer.delivered.pop_front() {
            let Err(error) = result else {
                continue;
            };
            let (key, value) = self.sizes.get(tag as usize).copied().unwrap_or((None, 0));
            let key = key.map_or("null".to_owned(), |bytes| format!("{bytes} bytes"));
            io.error_line(format!(
                "ERROR Error when sending message to topic {} with key: {key}, value: {value} \
                 bytes with error: {}",
                self.topic,
                error.exception()
            ));
        }
    }

    fn report_sync(&self, producer: &mut Producer) -> Option<Exit> {
        let failed = producer.delivered.drain(..).find_map(|d| d.result.err())?;
        let text = format!(
            "java.util.concurrent.ExecutionException: {}",
            failed.exception()
        );
        Some(Exit::error(text))
    }
}

/// Reads lines on a thread of their own; the channel bounds what is read ahead.
fn read_lines(mut input: Box<dyn BufRead + Send>) -> mpsc::Receiver<Vec<u8>> {
    let (lines, receiver) = mpsc::channel(1024);
    tasks::spawn_blocking(move || {
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
