//! The table of commands, and how one is found and run.
//!
//! A command is called as `klamm topics ...`, or by the name of the file: `kafka-topics` and
//! `kafka-topics.sh` are links to the one binary.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;

use super::exit::Done;
use super::io::Io;

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
    "metadata-quorum" => metadata_quorum,
}

/// What is to be done with the words that the process was called with.
pub enum Dispatched {
    /// A command, and it has run.
    Done(ExitCode),
    /// The broker is meant, with these arguments.
    Broker(Vec<OsString>),
}

/// Runs the command that `words` (the name of the program first) name, if they name one.
pub fn dispatch(words: Vec<OsString>) -> Dispatched {
    let by_program = words.first().and_then(|program| by_program(program));
    let (tool, args) = match by_program {
        Some(tool) => (tool, &words[1..]),
        None => match words.get(1).and_then(|word| by_name(word)) {
            Some(tool) => (tool, &words[2..]),
            None => return Dispatched::Broker(words),
        },
    };
    let args: Vec<String> = args
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Dispatched::Done(run(tool, &args))
}

fn by_name(word: &OsStr) -> Option<&'static Tool> {
    let name = word.to_str()?;
    TOOLS.iter().find(|tool| tool.name == name)
}

/// `/opt/kafka/bin/kafka-topics.sh` is the tool `topics`.
fn by_program(program: &OsStr) -> Option<&'static Tool> {
    let file = Path::new(program).file_name()?.to_str()?;
    let file = file.strip_suffix(".sh").unwrap_or(file);
    let name = file.strip_prefix("kafka-").or((file == "cub").then_some(file))?;
    TOOLS.iter().find(|tool| tool.name == name)
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
        let by_program = |name: &str| by_program(OsStr::new(name)).map(|tool| tool.name);
        assert_eq!(by_program("/opt/kafka/bin/kafka-topics.sh"), Some("topics"));
        assert_eq!(by_program("kafka-topics"), Some("topics"));
        assert_eq!(by_program("topics"), None);
        assert_eq!(by_program("klamm"), None);
        assert!(by_name(OsStr::new("topics")).is_some());
        assert!(by_name(OsStr::new("server.properties")).is_none());
    }
}
