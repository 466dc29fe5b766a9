//! Commands written when there was a ZooKeeper: `--zookeeper HOST` means the broker, and
//! `zookeeper-server-start` keeps a port open that answers the four-letter words.
//!
//! 1. In the container of a broker its own listener is meant. In another one the address is looked
//!    for, and what was taken is said.
//! 2. Nothing is stored: a client of ZooKeeper gets no session.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::exit::{Done, Exit};
use super::io::Io;
use super::settings::Settings;
use crate::config::dialect::WRITTEN;
use crate::host::{Disk, RealDisk, tasks};

const OPTION: &str = "--zookeeper";
/// The tools that had the option.
const TOOLS: &[&str] = &[
    "topics",
    "configs",
    "leader-election",
    "reassign-partitions",
];
const CLIENT_PORT: u16 = 2181;

/// The files that the start scripts of the images write.
const PROPERTIES: &[&str] = &[
    "/etc/kafka/kafka.properties",
    "/opt/kafka/config/server.properties",
    "/opt/bitnami/kafka/config/server.properties",
];
/// Where `cub kafka-ready` leaves the address that it has found.
const LAST_ADDRESS: &str = "/tmp/.klamm-bootstrap";
const DIAL_MAX: Duration = Duration::from_millis(300);

/// The tools in which `--broker-list` was the address; in others it is a list of ids.
const HAD_BROKER_LIST: &[&str] = &[
    "console-producer",
    "consumer-perf-test",
    "get-offsets",
    "verifiable-consumer",
    "verifiable-producer",
];

/// `--broker-list` of older releases, as today's tools call it.
pub fn renamed(tool: &str, args: &mut [String]) {
    if !HAD_BROKER_LIST.contains(&tool) {
        return;
    }
    for word in args.iter_mut() {
        for old in ["--broker-list", "-broker-list"] {
            if word == old
                || word
                    .strip_prefix(old)
                    .is_some_and(|rest| rest.starts_with('='))
            {
                *word = word.replacen(old, "--bootstrap-server", 1);
                break;
            }
        }
    }
}

/// The user whose password would be stored: without a listener that asks for passwords it has no
/// use, and scripts go on only after a 0.
pub fn user_without_use(tool: &str, args: &[String]) -> Option<String> {
    let value = |name: &str| {
        let at = args.iter().position(|word| word == name)?;
        args.get(at + 1).cloned()
    };
    let sets_password = value("--add-config")
        .is_some_and(|configs| configs.trim_start_matches('[').starts_with("SCRAM-"));
    let is_of_users = value("--entity-type").as_deref() == Some("users");
    (tool == "configs" && is_of_users && sets_password)
        .then(|| value("--entity-name"))
        .flatten()
}

/// The words of a tool with the broker in place of ZooKeeper, and a line that says so.
pub fn mapped(tool: &str, args: &[String]) -> Option<(Vec<String>, String)> {
    if !TOOLS.contains(&tool) {
        return None;
    }
    let is_it =
        |word: &String| word == OPTION || word == "-zookeeper" || word.starts_with("--zookeeper=");
    let at = args.iter().position(is_it)?;
    let mut words = args.to_vec();
    let zookeeper = match words[at].split_once('=') {
        Some((_, hosts)) => hosts.to_owned(),
        None if at + 1 < words.len() => words.remove(at + 1),
        None => return None,
    };
    words.remove(at);
    if words
        .iter()
        .any(|word| word.starts_with("--bootstrap-server"))
    {
        let text = format!("klamm: there is no ZooKeeper; --zookeeper {zookeeper} is passed over");
        return Some((words, text));
    }
    let address = own_broker().or_else(|| found_broker(&zookeeper));
    let address = address.unwrap_or_else(|| "kafka:9092".to_owned());
    let text = format!("klamm: there is no ZooKeeper; {address} is asked for {zookeeper}");
    words.extend(["--bootstrap-server".to_owned(), address]);
    Some((words, text))
}

/// The broker of this container: the first listener for clients that its file names.
pub fn own_broker() -> Option<String> {
    // The image has an example too, which says nothing about this container.
    let is_written = |path: &&&str| {
        let read = RealDisk.read(Path::new(path));
        read.is_ok_and(|bytes| bytes.starts_with(WRITTEN.as_bytes()))
    };
    let file = PROPERTIES.iter().find(is_written)?;
    let settings = Settings::read_file(file).ok()?;
    let controllers = settings
        .get("controller.listener.names")
        .unwrap_or_default();
    let inter_broker = settings
        .get("inter.broker.listener.name")
        .unwrap_or("PLAINTEXT");
    let mut listeners: Vec<(&str, &str)> = settings
        .get("listeners")?
        .split(',')
        .filter_map(|item| item.trim().split_once("://"))
        .filter(|(name, _)| !controllers.split(',').any(|known| known.trim() == *name))
        .collect();
    // What brokers use among themselves is reachable from inside.
    listeners.sort_by_key(|(name, _)| *name != inter_broker);
    let (_, address) = listeners.first()?;
    let (host, port) = address.rsplit_once(':')?;
    let host = match host {
        "" | "0.0.0.0" | "[::]" => "localhost",
        host => host,
    };
    Some(format!("{host}:{port}"))
}

/// The broker beside a ZooKeeper: the one that this container waited for, one that the environment
/// names, or one with a usual name.
fn found_broker(zookeeper: &str) -> Option<String> {
    let mut candidates: Vec<String> = Vec::new();
    if let Ok(bytes) = RealDisk.read(Path::new(LAST_ADDRESS)) {
        candidates.push(String::from_utf8_lossy(&bytes).trim().to_owned());
    }
    let mut named: Vec<String> = super::effective_config::variables()
        .into_iter()
        .filter(|(name, _)| name.starts_with("KAFKA_") && name.contains("BOOTSTRAP"))
        .map(|(_, value)| value)
        .collect();
    named.sort();
    candidates.extend(named);
    let host = zookeeper.split([':', ',', '/']).next().unwrap_or_default();
    let mut hosts = vec!["kafka".to_owned(), "broker".to_owned()];
    for (from, to) in [
        ("zookeeper", "kafka"),
        ("zookeeper", "broker"),
        ("zk", "kafka"),
    ] {
        if host.contains(from) {
            hosts.insert(0, host.replace(from, to));
        }
    }
    for port in [29092, 9092, 9093] {
        candidates.extend(hosts.iter().map(|host| format!("{host}:{port}")));
    }
    candidates.into_iter().find(|address| is_open(address))
}

fn is_open(address: &str) -> bool {
    let first = address.split(',').next().unwrap_or_default();
    let Ok(mut found) = first.to_socket_addrs() else {
        return false;
    };
    found.any(|to| TcpStream::connect_timeout(&to, DIAL_MAX).is_ok())
}

/// Keeps the address for a later command of the same container that only names a ZooKeeper.
pub fn remember(address: &str) {
    // Only a convenience: where the file cannot be written, the usual names are tried.
    let _ = RealDisk.replace(Path::new(LAST_ADDRESS), address.as_bytes());
}

/// `zookeeper-server-start FILE`: stays in the foreground.
pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let file = args.iter().find(|word| !word.starts_with('-'));
    let settings = match file {
        Some(file) => Settings::read_file(file)?,
        None => Settings::default(),
    };
    let port = settings.number("clientPort", i32::from(CLIENT_PORT))?;
    let port = u16::try_from(port).unwrap_or(CLIENT_PORT);
    let failed = |error| Exit::error(format!("zookeeper-server-start: port {port}: {error}"));
    let listener = TcpListener::bind(("0.0.0.0", port)).await.map_err(failed)?;
    io.line(format!(
        "klamm: there is no ZooKeeper; port {port} only answers ruok, srvr, stat and mntr"
    ));
    io.flush();
    loop {
        let (mut stream, _) = listener.accept().await.map_err(failed)?;
        tasks::spawn(async move {
            let mut word = [0u8; 4];
            let asked = tokio::time::timeout(DIAL_MAX * 10, stream.read_exact(&mut word)).await;
            if let (Ok(Ok(_)), Some(answer)) = (asked, answer(&word)) {
                let _ = stream.write_all(answer).await;
            }
        });
    }
}

fn answer(word: &[u8; 4]) -> Option<&'static [u8]> {
    match word {
        b"ruok" => Some(b"imok"),
        b"srvr" | b"stat" => {
            Some(b"Zookeeper version: none (klamm)\nMode: standalone\nNode count: 0\n")
        }
        b"mntr" => Some(b"zk_version\tnone (klamm)\nzk_server_state\tstandalone\n"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_broker_takes_the_place_of_zookeeper() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let args = words("--zookeeper zk:2181 --list --bootstrap-server a:1");
        let (mapped_words, text) = mapped("topics", &args).unwrap();
        assert_eq!(mapped_words, words("--list --bootstrap-server a:1"));
        assert!(text.contains("zk:2181"));
        let (mapped_words, _) =
            mapped("topics", &words("--zookeeper=zk.invalid:1 --list")).unwrap();
        assert_eq!(mapped_words[..2], words("--list --bootstrap-server"));
        assert!(mapped("topics", &words("--list")).is_none());
        assert!(mapped("console-consumer", &words("--zookeeper a")).is_none());
    }

    #[test]
    fn an_old_name_of_the_address() {
        let mut args = ["--broker-list", "a:1", "-broker-list=b:1", "--topic"].map(str::to_owned);
        renamed("log-dirs", &mut args);
        assert_eq!(args[0], "--broker-list");
        renamed("console-producer", &mut args);
        let new = [
            "--bootstrap-server",
            "a:1",
            "--bootstrap-server=b:1",
            "--topic",
        ];
        assert_eq!(args, new.map(str::to_owned));
    }

    #[test]
    fn four_letter_words() {
        assert_eq!(answer(b"ruok"), Some(&b"imok"[..]));
        assert_eq!(answer(b"envi"), None);
    }
}
