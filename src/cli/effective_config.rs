//! `klamm config`: the configuration that this environment comes to, and where each value is from.
//!
//! ```text
//! klamm config [--dialect FAMILY] [--file FILE] [--write FILE] [--override NAME=VALUE]*
//! klamm config --print-dialect | --cluster-id
//! ```
//!
//! 1. Without `--dialect` the family follows from the names of the variables and from the places
//!    that volumes are mounted at.
//! 2. `--write` is what the images' `configure` scripts do; what is worth a line is printed.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::Command;

use super::exit::{Done, Exit};
use super::io::Io;
use crate::config::dialect::{Dialect, Effective, FAMILIES, Family, Place, detect, resolve};
use crate::config::{Origin, argument_properties, parse_properties};
use crate::host::{Disk, RealDisk};

pub const VARIABLE: &str = "KLAMM_DIALECT";

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let words = Words::read(args)?;
    let variables = variables();
    let family = family(words.dialect.as_deref(), &variables)?;
    if words.print_dialect {
        io.line(family.word);
        return Ok(());
    }
    let mut made = effective(family, &variables, words.file.as_deref())?;
    let overrides = words.overrides.iter().map(String::as_str);
    for property in argument_properties(overrides).map_err(|e| Exit::error(e.to_string()))? {
        made.properties.insert(property.name.clone(), property);
    }
    if words.print_cluster_id {
        io.line(made.cluster_id.map_or(String::new(), |id| id.value));
        return Ok(());
    }
    let Some(path) = words.write else {
        print(io, family, &made);
        return Ok(());
    };
    bind_what_resolves(&mut made);
    let written = RealDisk.replace(Path::new(&path), made.file_text(family).as_bytes());
    written.map_err(|error| Exit::error(format!("klamm: cannot write {path}: {error}")))?;
    notes(&made)
        .iter()
        .for_each(|note| io.line(format!("klamm: {note}")));
    Ok(())
}

#[derive(Default)]
struct Words {
    dialect: Option<String>,
    file: Option<String>,
    write: Option<String>,
    overrides: Vec<String>,
    print_dialect: bool,
    print_cluster_id: bool,
}

impl Words {
    fn read(args: &[String]) -> Result<Words, Exit> {
        let mut words = Words::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let mut value = || {
                let value = value.take().or_else(|| rest.next().cloned());
                value.ok_or_else(|| Exit::error(format!("klamm config: {name} needs a value")))
            };
            match name {
                "--dialect" => words.dialect = Some(value()?),
                "--file" => words.file = Some(value()?),
                "--write" => words.write = Some(value()?),
                "--override" => words.overrides.push(value()?),
                "--print-dialect" => words.print_dialect = true,
                "--cluster-id" => words.print_cluster_id = true,
                other => {
                    let text = format!("klamm config: {other} is no option of it");
                    return Err(Exit {
                        code: 2,
                        ..Exit::error(text)
                    });
                }
            }
        }
        Ok(words)
    }
}

/// The environment of this process; names that no shell could hold are there too.
pub fn variables() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The family that was named, or that the environment is written for.
pub fn family(word: Option<&str>, variables: &[(String, String)]) -> Result<&'static Family, Exit> {
    let named = variables.iter().find(|(name, _)| name == VARIABLE);
    let word = word.or(named.map(|(_, value)| value.as_str()));
    match word.filter(|word| !word.is_empty() && *word != "auto") {
        None => Ok(detect(variables, &mounts()).family()),
        Some(word) => Dialect::from_word(word)
            .map(Dialect::family)
            .ok_or_else(|| {
                let known: Vec<&str> = FAMILIES.iter().map(|family| family.word).collect();
                Exit::error(format!(
                    "klamm: no dialect {word}; there are {}",
                    known.join(", ")
                ))
            }),
    }
}

pub fn effective(
    family: &'static Family,
    variables: &[(String, String)],
    file: Option<&str>,
) -> Result<Effective, Exit> {
    let path = file.or(family.mounted_file);
    let file = match path.map(|path| (path, RealDisk.read(Path::new(path)))) {
        Some((path, Ok(bytes))) => {
            let text = String::from_utf8_lossy(&bytes);
            let read = parse_properties(path, &text);
            Some(read.map_err(|error| Exit::error(format!("klamm: {error}")))?)
        }
        _ => None,
    };
    let host_name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let read = |path: &str| {
        let bytes = RealDisk.read(Path::new(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let place = Place {
        host_name: &host_name,
        file,
        read: &read,
        run: &shell,
    };
    resolve(family, variables, &place).map_err(|refusal| Exit::error(format!("klamm: {refusal}")))
}

/// What a shell command prints; `None` when it fails.
fn shell(line: &str) -> Option<String> {
    let bash = Command::new("bash").arg("-c").arg(line).output();
    let done = bash
        .or_else(|_| Command::new("sh").arg("-c").arg(line).output())
        .ok()?;
    let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    done.status.success().then_some(text)
}

/// Where something is mounted.
fn mounts() -> Vec<String> {
    let mut text = String::new();
    // Files of /proc have no length, so that Disk::read would give nothing.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .open("/proc/self/mountinfo");
    if let Ok(file) = file {
        let _ = file.take(1 << 20).read_to_string(&mut text);
    }
    let place = |line: &str| line.split(' ').nth(4).map(str::to_owned);
    text.lines().filter_map(place).collect()
}

/// A listener may be bound to the name of a service; where nobody knows the name, to every
/// address.
fn bind_what_resolves(made: &mut Effective) {
    let Some(property) = made.properties.get("listeners").cloned() else {
        return;
    };
    let mut unknown = Vec::new();
    let items: Vec<String> = property
        .value
        .split(',')
        .map(|item| {
            let parts = item.split_once("://").and_then(|(name, address)| {
                let (host, port) = address.rsplit_once(':')?;
                Some((name, host, port))
            });
            match parts {
                Some((name, host, port)) if !host.is_empty() && !resolves(host) => {
                    unknown.push(host.to_owned());
                    format!("{name}://0.0.0.0:{port}")
                }
                _ => item.to_owned(),
            }
        })
        .collect();
    if unknown.is_empty() {
        return;
    }
    unknown.dedup();
    made.notes.push(format!(
        "listeners: {} cannot be resolved here; 0.0.0.0 is bound instead",
        unknown.join(", ")
    ));
    if let Some(property) = made.properties.get_mut("listeners") {
        property.value = items.join(",");
    }
}

fn resolves(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, 0)
        .to_socket_addrs()
        .is_ok_and(|mut found| found.next().is_some())
}

fn notes(made: &Effective) -> Vec<String> {
    let mut notes = made.notes.clone();
    if !made.without_effect.is_empty() {
        let names = made.without_effect.join(", ");
        notes.push(format!("accepted without effect: {names}"));
    }
    notes
}

fn print(io: &mut Io, family: &Family, made: &Effective) {
    io.line(format!("# dialect: {}", family.name));
    notes(made)
        .iter()
        .for_each(|note| io.line(format!("# {note}")));
    let mut all: BTreeMap<&str, (&str, &Origin)> = made
        .properties
        .values()
        .map(|p| (p.name.as_str(), (p.value.as_str(), &p.origin)))
        .collect();
    if let Some(id) = &made.cluster_id {
        all.insert("cluster.id", (&id.value, &id.origin));
    }
    for (name, (value, origin)) in all {
        let is_secret = ["password", "jaas", "secret"]
            .iter()
            .any(|word| name.contains(word));
        let value = if is_secret { "(hidden)" } else { value };
        io.line(format!("{name}={}  # {origin}", value.replace('\n', "\\n")));
    }
    for topic in &made.topics {
        let (partitions, replicas) = (topic.partitions, topic.replication_factor);
        io.line(format!(
            "# topic {}: {partitions} partitions, {replicas} replicas",
            topic.name
        ));
    }
}
