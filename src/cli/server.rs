//! `kafka-server-start` and `kafka-server-stop`.
//!
//! ```text
//! kafka-server-start [-daemon] [-name NAME] [-loggc] server.properties [--override name=value]*
//! kafka-server-stop [--process-role=ROLE] [--node-id=ID]
//! ```

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::host::{Disk, RealDisk};

const USAGE: &str =
    "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*";

/// The broker's own arguments, or how the command ends without becoming the broker.
pub fn start_words(program: &OsString, args: &[OsString]) -> Result<Vec<OsString>, ExitCode> {
    let mut words = vec![program.clone()];
    let mut has_file = false;
    let mut is_daemon = false;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("-daemon") => is_daemon = true,
            Some("-loggc") => {}
            Some("-name") => {
                rest.next();
            }
            Some("--version") => {
                println!("{}", super::common::KAFKA_VERSION);
                return Err(ExitCode::SUCCESS);
            }
            _ => {
                has_file = true;
                words.push(word.clone());
            }
        }
    }
    if !has_file {
        eprintln!("{USAGE}");
        return Err(ExitCode::FAILURE);
    }
    // As Kafka's script does: the file counts and not the environment.
    words.push(OsString::from(super::args::AS_KAFKA));
    if !is_daemon {
        return Ok(words);
    }
    Err(match start_daemon(&words[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kafka-server-start: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Starts the broker in a session of its own, its output in `$LOG_DIR/kafkaServer.out`.
fn start_daemon(args: &[OsString]) -> std::io::Result<()> {
    let dir = std::env::var_os("LOG_DIR").unwrap_or_else(|| OsString::from("/tmp"));
    let log = Path::new(&dir).join("kafkaServer.out");
    RealDisk.create_dir_all(Path::new(&dir))?;
    RealDisk.replace(&log, b"")?;
    let out = std::fs::OpenOptions::new().append(true).open(&log)?;
    let errors = out.try_clone()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors);
    // A process group of its own: a signal for the shell's jobs does not reach it.
    command.process_group(0);
    command.spawn()?;
    Ok(())
}

/// Sends SIGTERM to every broker of this binary (and of Kafka, as the original does).
pub fn stop(args: &[OsString]) -> ExitCode {
    for arg in args {
        let known = ["--process-role", "--node-id"];
        let text = arg.to_string_lossy();
        if text.starts_with("--") && !known.iter().any(|name| text.starts_with(name)) {
            eprintln!("kafka-server-stop: {text} is not a recognized option");
            return ExitCode::FAILURE;
        }
    }
    let mine = std::process::id();
    let mut stopped = 0;
    for pid in processes().into_iter().filter(|pid| *pid != mine) {
        if !is_broker(pid) {
            continue;
        }
        let raw = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(raw) = raw
            && rustix::process::kill_process(raw, rustix::process::Signal::TERM).is_ok()
        {
            stopped += 1;
        }
    }
    match stopped {
        0 => {
            println!("No kafka server to stop");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn processes() -> Vec<u32> {
    let entries = RealDisk.list(Path::new("/proc")).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.name.parse().ok())
        .collect()
}

/// Whether a process is a broker: this binary without the name of a command, or Kafka's class.
fn is_broker(pid: u32) -> bool {
    let Some(words) = words_of(pid) else {
        return false;
    };
    if words.iter().any(|word| word == "kafka.Kafka") {
        return true;
    }
    let own = std::env::current_exe().ok();
    let theirs = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    own.is_some() && own == theirs && super::tools::is_broker_call(&words)
}

fn words_of(pid: u32) -> Option<Vec<String>> {
    use std::io::Read;
    let path = format!("/proc/{pid}/cmdline");
    let mut bytes = Vec::new();
    // Files of /proc have no length, so that Disk::read would give nothing.
    let file = std::fs::OpenOptions::new().read(true).open(path).ok()?;
    file.take(1 << 20).read_to_end(&mut bytes).ok()?;
    let words = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    Some(
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    )
}
