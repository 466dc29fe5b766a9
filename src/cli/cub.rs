//! `cub`: the checks of Confluent's images that scripts wait with.
//!
//! ```text
//! cub kafka-ready [-b SERVERS | -z ZOOKEEPER] [-c FILE] [-s PROTOCOL] BROKERS TIMEOUT
//! cub zk-ready ZOOKEEPER TIMEOUT
//! cub listeners ADVERTISED
//! cub ensure-topic [-b SERVERS] -c FILE -f TOPICS_FILE -t TIMEOUT [--create_if_not_exists]
//! cub sr-ready|kr-ready|connect-ready|ksql-server-ready|control-center-ready HOST PORT TIMEOUT
//! ```
//!
//! It ends with 0 when what is waited for is there, and with 1 when the time is over.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::admin::NewTopic;
use super::exit::{Done, Exit};
use super::io::Io;
use super::passed_over::ClientKind;
use super::settings::Settings;
use crate::host::{Clock, SystemClock, read_given};
use crate::peer::Address;
use crate::types::ErrorCode;

const PAUSE: Duration = Duration::from_millis(200);

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let words = Words::read(args);
    match words.plain.first().map(String::as_str) {
        Some("kafka-ready") => kafka_ready(io, &words).await,
        Some("zk-ready") => zk_ready(io, &words).await,
        Some("listeners") => listeners(io, &words),
        Some("ensure-topic") => ensure_topic(io, &words).await,
        Some(
            "sr-ready"
            | "kr-ready"
            | "connect-ready"
            | "ksql-server-ready"
            | "control-center-ready",
        ) => http_ready(io, &words).await,
        _ => Err(Exit {
            code: 2,
            out: String::new(),
            err: "usage: cub {zk-ready,kafka-ready,sr-ready,kr-ready,connect-ready,\
                  ksql-server-ready,control-center-ready,ensure-topic,listeners} ...\n"
                .to_owned(),
        }),
    }
}

/// Options may stand before and after the other words.
struct Words {
    plain: Vec<String>,
    options: Vec<(String, String)>,
    create: bool,
}

impl Words {
    fn read(args: &[String]) -> Words {
        let (mut plain, mut options, mut create) = (Vec::new(), Vec::new(), false);
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--create_if_not_exists" => create = true,
                "--secure" => {}
                _ if word.starts_with('-') && word.len() > 1 => {
                    let (name, value) = match word.split_once('=') {
                        Some((name, value)) => (name.to_owned(), value.to_owned()),
                        None => (word.clone(), rest.next().cloned().unwrap_or_default()),
                    };
                    options.push((name, value));
                }
                _ => plain.push(word.clone()),
            }
        }
        Words {
            plain,
            options,
            create,
        }
    }

    fn option(&self, names: &[&str]) -> Option<&str> {
        let found = self
            .options
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_str())
    }

    fn number(&self, index: usize, what: &str) -> Result<u64, Exit> {
        let word = self
            .plain
            .get(index)
            .map(String::as_str)
            .unwrap_or_default();
        word.parse().map_err(|_| Exit {
            code: 2,
            out: String::new(),
            err: format!("cub: {what} is to be a number, not '{word}'\n"),
        })
    }

    fn settings(&self) -> Result<Settings, Exit> {
        let mut settings = Settings::default();
        if let Some(file) = self.option(&["-c", "--config"]) {
            settings.add_file(file)?;
        }
        if let Some(servers) = self.option(&["-b", "--bootstrap_broker_list"]) {
            settings.set("bootstrap.servers", servers);
        }
        if let Some(protocol) = self.option(&["-s", "--security-protocol"])
            && settings.get("security.protocol").is_none()
        {
            settings.set("security.protocol", protocol);
        }
        Ok(settings)
    }
}

/// Asks `attempt` until it is true or `limit` has passed.
async fn wait_for(limit: Duration, attempt: impl AsyncFn() -> bool) -> bool {
    let clock = SystemClock::new();
    loop {
        let left = limit.saturating_sub(clock.monotonic());
        if let Ok(true) = tokio::time::timeout(left, attempt()).await {
            return true;
        }
        if clock.monotonic() + PAUSE >= limit {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn kafka_ready(io: &mut Io, words: &Words) -> Done {
    let wanted = words.number(1, "the number of brokers")? as usize;
    let limit = Duration::from_secs(words.number(2, "the time-out")?);
    let mut settings = words.settings()?;
    if settings.get("bootstrap.servers").is_none() {
        // Only a ZooKeeper is named, and there is none: this container's own broker is meant.
        let own = super::zookeeper::own_broker();
        let own = own.unwrap_or_else(|| "localhost:9092".to_owned());
        if words.option(&["-z", "--zookeeper_connect"]) != Some("own") {
            io.error_line(format!(
                "cub: there is no ZooKeeper; {own} is asked instead"
            ));
        }
        settings.set("bootstrap.servers", &own);
    }
    settings.set("default.api.timeout.ms", "1");
    let client = settings.client(ClientKind::Admin, "cub")?;
    let is_ready = wait_for(limit, async || {
        let cluster = client.metadata(Some(&[])).await;
        cluster.is_ok_and(|cluster| cluster.brokers.len() >= wanted)
    });
    match is_ready.await {
        true => {
            super::zookeeper::remember(settings.get("bootstrap.servers").unwrap_or_default());
            Ok(())
        }
        false => Err(Exit::error(format!(
            "Expected {wanted} brokers but did not find as many within {} s.",
            limit.as_secs()
        ))),
    }
}

async fn zk_ready(io: &mut Io, words: &Words) -> Done {
    let hosts = words.plain.get(1).map(String::as_str).unwrap_or_default();
    let hosts = hosts.split('/').next().unwrap_or_default();
    if hosts.trim().is_empty() {
        return Ok(());
    }
    let limit = Duration::from_secs(words.number(2, "the time-out")?);
    let addresses: Vec<Address> = hosts
        .split(',')
        .filter_map(|host| Address::parse(host.trim()).ok())
        .collect();
    let is_ready = wait_for(limit, async || {
        for address in &addresses {
            if ask(address, b"ruok", b"imok").await {
                return true;
            }
        }
        false
    });
    match is_ready.await {
        true => Ok(()),
        false => {
            io.flush();
            Err(Exit::error(format!(
                "ZooKeeper {hosts} did not answer within the time"
            )))
        }
    }
}

/// Whether an answer begins with what is expected.
async fn ask(address: &Address, question: &[u8], expected: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect((address.target(), address.port)).await else {
        return false;
    };
    if stream.write_all(question).await.is_err() {
        return false;
    }
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).await.is_ok() && answer == expected
}

async fn http_ready(io: &mut Io, words: &Words) -> Done {
    let host = words.plain.get(1).cloned().unwrap_or_default();
    let port = words.number(2, "the port")?;
    let limit = Duration::from_secs(words.number(3, "the time-out")?);
    let port = u16::try_from(port).map_err(|_| Exit::code(2))?;
    let address = Address::new(&host, port);
    let question = format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n");
    let is_ready = wait_for(limit, async || {
        ask(&address, question.as_bytes(), b"HTTP/1.").await
    });
    match is_ready.await {
        true => Ok(()),
        false => {
            io.flush();
            Err(Exit::error(format!(
                "http://{address} did not answer within the time"
            )))
        }
    }
}

/// `PLAINTEXT://host:9092,...` becomes `PLAINTEXT://0.0.0.0:9092,...`.
fn listeners(io: &mut Io, words: &Words) -> Done {
    let advertised = words.plain.get(1).map(String::as_str).unwrap_or_default();
    let mut listeners = Vec::new();
    for item in advertised
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        let parts = item.split_once("://").and_then(|(name, rest)| {
            let (_, port) = rest.rsplit_once(':')?;
            Some(format!("{name}://0.0.0.0:{port}"))
        });
        listeners.push(parts.ok_or_else(|| {
            Exit::error(format!("cub: {item} is not of the form NAME://host:port"))
        })?);
    }
    if listeners.is_empty() {
        return Err(Exit::error("cub: the advertised listeners are empty"));
    }
    io.line(listeners.join(","));
    Ok(())
}

async fn ensure_topic(io: &mut Io, words: &Words) -> Done {
    let path = words.option(&["-f", "--file"]).unwrap_or_default();
    let seconds = words
        .option(&["-t", "--timeout"])
        .and_then(|t| t.parse().ok())
        .unwrap_or(60);
    let bytes = read_given(Path::new(path))
        .map_err(|error| Exit::error(format!("cub: {path}: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let topics = topics_of(&text)?;
    let admin = words.settings()?.admin()?;
    let limit = Duration::from_secs(seconds);
    let there = wait_for(limit, async || {
        let Ok(known) = admin.list_topics().await else {
            return false;
        };
        for topic in &topics {
            if known.iter().any(|k| k.name == topic.name) {
                continue;
            }
            if !words.create {
                return false;
            }
            match admin.create_topic(topic).await {
                Ok(()) => {}
                Err(error) if error.is(ErrorCode::TopicAlreadyExists) => {}
                Err(_) => return false,
            }
        }
        true
    });
    match there.await {
        true => Ok(()),
        false => {
            io.flush();
            Err(Exit::error("cub: not all topics are there"))
        }
    }
}

/// One topic a line: `name[:partitions[:replication factor[:policy]]]`, or `name=...` of the same.
fn topics_of(text: &str) -> Result<Vec<NewTopic>, Exit> {
    let mut topics = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let mut parts = line.split([':', '=', ',']).map(str::trim);
        let wrong = || Exit::error(format!("cub: not a topic: {line}"));
        let name = parts.next().ok_or_else(wrong)?.to_owned();
        let mut number = |default: i32| match parts.next() {
            None | Some("") => Ok(default),
            Some(text) => text.parse::<i32>().map_err(|_| wrong()),
        };
        let partitions = number(-1)?;
        let factor = i16::try_from(number(-1)?).map_err(|_| wrong())?;
        let policy = parts.next().filter(|policy| !policy.is_empty());
        let configs = policy.map(|p| ("cleanup.policy".to_owned(), p.to_owned()));
        topics.push(NewTopic {
            name,
            partitions,
            replication_factor: factor,
            configs: configs.into_iter().collect(),
            ..NewTopic::default()
        });
    }
    Ok(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_words() {
        let topics = topics_of("# x\na\nb:3:1:compact\n").unwrap();
        assert_eq!((topics[0].name.as_str(), topics[0].partitions), ("a", -1));
        assert_eq!((topics[1].partitions, topics[1].replication_factor), (3, 1));
        assert_eq!(topics[1].configs.len(), 1);
        let args: Vec<String> = ["kafka-ready", "-b", "h:1", "1", "30"]
            .iter()
            .map(|w| (*w).to_owned())
            .collect();
        let words = Words::read(&args);
        assert_eq!(words.plain, ["kafka-ready", "1", "30"]);
        assert_eq!(words.option(&["-b"]), Some("h:1"));
    }
}
