//! The table of commands, and how one is found and run.
//!
//! A command is called as `klamm topics ...`, or by the name of the file: `kafka-topics` and
//! `kafka-topics.sh` are links to the one binary.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;

use crate::config::nearest;

use super::exit::Done;
use super::io::Io;
use super::server;

type Run = for<'a> fn(&'a mut Io, &'a [String]) -> Pin<Box<dyn Future<Output = Done> + 'a>>;

/// One command.
pub struct Tool {
    /// Without `kafka-`.
    pub name: &'static str,
    run: Run,
}

macro_rules! tools {
    ($($name:literal => $module:ident,)*) => {
        /// Every command.
        pub const TOOLS: &[Tool] = &[$(Tool {
            name: $name,
            run: |io, args| Box::pin(super::$module::run(io, args)),
        },)*];
    };
}

tools! {
    "topics" => topics,
    "console-producer" => console_producer,
    "console-consumer" => console_consumer,
    "get-offsets" => get_offsets,
    "delete-records" => delete_records,
    "broker-api-versions" => broker_api_versions,
    "log-dirs" => log_dirs,
    "cluster" => cluster,
    "configs" => configs,
    "groups" => groups,
    "consumer-groups" => consumer_groups,
    "features" => features,
    "storage" => storage,
    "cub" => cub,
    "dump-log" => dump_log,
    "leader-election" => leader_election,
    "producer-perf-test" => producer_perf_test,
    "consumer-perf-test" => consumer_perf_test,
    "verifiable-producer" => verifiable_producer,
    "verifiable-consumer" => verifiable_consumer,
    "transactions" => transactions,
    "reassign-partitions" => reassign_partitions,
    "metadata-quorum" => metadata_quorum,
    "config" => effective_config,
    "create-topics" => create_topics,
    "zookeeper-server-start" => zookeeper,
}

/// Programs that are not called `kafka-...`.
const OWN_NAMES: &[&str] = &["cub", "zookeeper-server-start", "create-topics"];

const SERVER_START: &str = "server-start";
const SERVER_STOP: &str = "server-stop";

/// What is to be done with the words that the process was called with.
pub enum Dispatched {
    /// A command, and it has run.
    Done(ExitCode),
    /// The broker is meant, with these arguments.
    Broker(Vec<OsString>),
}

/// The commands, for `klamm --help`.
pub(super) fn listing() -> String {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let mut text = String::from("Kafka's tools, with Kafka's options (klamm COMMAND --help):");
    let mut line_len = usize::MAX;
    for name in names.into_iter().chain([SERVER_START, SERVER_STOP]) {
        if line_len.saturating_add(name.len()) > 76 {
            text.push_str("\n ");
            line_len = 1;
        }
        text.push(' ');
        text.push_str(name);
        line_len += 1 + name.len();
    }
    text
}

/// Runs the command that `words` (the name of the program first) name, if they name one.
pub fn dispatch(words: Vec<OsString>) -> Dispatched {
    let Some((name, args)) = called(&words) else {
        if let Some(word) = words.get(1).and_then(|word| no_command(word)) {
            eprintln!("{}", misspelt(word));
            return Dispatched::Done(ExitCode::from(2));
        }
        return Dispatched::Broker(words);
    };
    if name == SERVER_START {
        return match server::start_words(&words[0], args) {
            Ok(words) => Dispatched::Broker(words),
            Err(code) => Dispatched::Done(code),
        };
    }
    if name == SERVER_STOP {
        return Dispatched::Done(server::stop(args));
    }
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Dispatched::Broker(words);
    };
    let mut args: Vec<String> = args
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    super::zookeeper::renamed(name, &mut args);
    if let Some((mapped, text)) = super::zookeeper::mapped(name, &args) {
        if let Some(user) = super::zookeeper::user_without_use(name, &args) {
            eprintln!("klamm: no listener asks for passwords, so that of {user} is not kept");
            println!("Completed updating config for entity: user-principal '{user}'.");
            return Dispatched::Done(ExitCode::SUCCESS);
        }
        eprintln!("{text}");
        args = mapped;
    }
    Dispatched::Done(run(tool, &args))
}

/// The command that words name, and its arguments.
fn called(words: &[OsString]) -> Option<(&'static str, &[OsString])> {
    if let Some(name) = words.first().and_then(|program| by_program(program)) {
        return Some((name, &words[1..]));
    }
    let name = by_name(words.get(1)?.to_str()?)?;
    Some((name, &words[2..]))
}

/// The word, if it is neither an option nor the file of a configuration: it was meant as a command.
fn no_command(word: &OsStr) -> Option<&str> {
    let text = word.to_str()?;
    let is_name = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let is_option = text.starts_with('-') || text.is_empty();
    (is_name && !is_option && !Path::new(word).exists()).then_some(text)
}

fn misspelt(word: &str) -> String {
    let bare = word.strip_prefix("kafka-").unwrap_or(word);
    let names = || {
        TOOLS
            .iter()
            .map(|tool| tool.name)
            .chain([SERVER_START, SERVER_STOP])
    };
    let begins = || names().find(|name| name.starts_with(bare) && bare.len() >= 3);
    let meant = match nearest(bare, names()).or_else(begins) {
        Some(name) => format!("; did you mean 'klamm {name}'?"),
        None => String::new(),
    };
    format!(
        "klamm: '{word}' is neither a command nor a file{meant}\n{}",
        listing()
    )
}

/// Whether these words, of another process, start a broker.
pub fn is_broker_call(words: &[String]) -> bool {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    called(&words).is_none_or(|(name, _)| name == SERVER_START)
}

fn by_name(name: &str) -> Option<&'static str> {
    let tools = TOOLS.iter().map(|tool| tool.name);
    tools
        .chain([SERVER_START, SERVER_STOP])
        .find(|known| *known == name)
}

/// `/opt/kafka/bin/kafka-topics.sh` is the tool `topics`.
fn by_program(program: &OsStr) -> Option<&'static str> {
    let file = Path::new(program).file_name()?.to_str()?;
    let file = file.strip_suffix(".sh").unwrap_or(file);
    match OWN_NAMES.contains(&file) {
        true => by_name(file),
        false => by_name(file.strip_prefix("kafka-")?),
    }
}

fn run(tool: &Tool, args: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut io = Io::standard();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            io.error_line(format!("klamm: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on((tool.run)(&mut io, args));
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            let _ = io.out.write_all(exit.out.as_bytes());
            io.flush();
            let _ = io.err.write_all(exit.err.as_bytes());
            ExitCode::from(exit.code)
        }
    };
    io.flush();
    // A thread that still waits for standard input must not keep the process.
    runtime.shutdown_background();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_program_and_by_word() {
        let by_program = |name: &str| by_program(OsStr::new(name));
        assert_eq!(by_program("/opt/kafka/bin/kafka-topics.sh"), Some("topics"));
        assert_eq!(by_program("kafka-topics"), Some("topics"));
        assert_eq!(by_program("topics"), None);
        assert_eq!(by_program("klamm"), None);
        assert!(by_name("topics").is_some());
        assert!(by_name("server.properties").is_none());
        let misspelt = |word: &str| misspelt(word).lines().next().unwrap_or_default().to_owned();
        for (word, meant) in [
            ("topic", "topics"),
            ("kafka-topics", "topics"),
            ("consumer-group", "consumer-groups"),
            ("console", "console-producer"),
        ] {
            let line = misspelt(word);
            assert!(line.ends_with(&format!("'klamm {meant}'?")), "{line}");
        }
        assert!(misspelt("nonsense").ends_with("nor a file"));
        assert_eq!(no_command(OsStr::new("topic")), Some("topic"));
        for word in ["server.properties", "./topic", "-x", "--help", "src", ""] {
            assert_eq!(no_command(OsStr::new(word)), None, "{word}");
        }
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_broker_call(&words("klamm server.properties")));
        assert!(is_broker_call(&words("kafka-server-start.sh a.properties")));
        assert!(!is_broker_call(&words("klamm topics --list")));
    }
}
