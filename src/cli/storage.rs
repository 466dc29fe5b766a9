//! `kafka-storage`: random ids, and the marks (`meta.properties`) that make a log directory part of
//! a cluster.
//!
//! The directories of a Klamm node are formatted at its first start. Formatting them before keeps
//! what scripts and images do working: cluster and node id are written, and the start checks them.
//! The options that choose the first controllers and feature levels are taken and have no effect.

use std::path::Path;

use crate::config::parse_properties;
use crate::host::{Disk, RealDisk, random};
use crate::types::base64_uuid;

use super::argparse::{Argument, Command, Given, option, switch};
use super::exit::{Done, Exit};
use super::features::{print_dependencies, print_mapping};
use super::io::Io;
use super::settings::Settings;

const CONFIG: Argument =
    option(&["--config", "-c"], "CONFIG", "The server.properties file.").required();

const fn command(
    name: &'static str,
    help: &'static str,
    arguments: &'static [Argument],
) -> Command {
    Command {
        name,
        help,
        arguments,
        exclusive: &[(
            &[
                "--standalone",
                "--no-initial-controllers",
                "--initial-controllers",
            ],
            false,
        )],
        commands: &[],
    }
}

const TOOL: Command = Command {
    name: "kafka-storage",
    help: "The Kafka storage tool.",
    arguments: &[],
    exclusive: &[],
    commands: &[
        command("info", "Show the log directories of this node.", &[CONFIG]),
        command(
            "format",
            "Format the log directories of this node.",
            &[
                CONFIG,
                option(
                    &["--cluster-id", "-t"],
                    "CLUSTER_ID",
                    "The id of the cluster.",
                )
                .required(),
                option(&["--add-scram", "-S"], "ADD_SCRAM", "Not supported yet."),
                switch(
                    &["--ignore-formatted", "-g"],
                    "Pass over formatted directories.",
                ),
                option(
                    &["--release-version", "-r"],
                    "RELEASE_VERSION",
                    "Accepted; no effect.",
                ),
                option(&["--feature", "-f"], "FEATURE", "Accepted; no effect."),
                switch(&["--standalone", "-s"], "Accepted; no effect."),
                switch(&["--no-initial-controllers", "-N"], "Accepted; no effect."),
                option(
                    &["--initial-controllers", "-I"],
                    "INITIAL_CONTROLLERS",
                    "Accepted; no effect.",
                ),
            ],
        ),
        command(
            "version-mapping",
            "The features that belong to a metadata version.",
            &[option(
                &["--release-version", "-r"],
                "RELEASE_VERSION",
                "Which version.",
            )],
        ),
        command(
            "feature-dependencies",
            "What a feature level needs.",
            &[option(&["--feature", "-f"], "FEATURE", "feature=level.")
                .required()
                .many()],
        ),
        command("random-uuid", "Print a random UUID.", &[]),
    ],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = TOOL.parse_or_exit(args)?;
    match given.command {
        Some("random-uuid") => {
            io.line(base64_uuid(random::uuid()));
            Ok(())
        }
        Some("info") => info(io, &Node::read(&given)?),
        Some("format") => format(io, &Node::read(&given)?, &given),
        Some("version-mapping") => print_mapping(io, given.one("--release-version")),
        _ => print_dependencies(io, &given.all("--feature")),
    }
}

/// What of a server.properties file counts here.
struct Node {
    node_id: String,
    dirs: Vec<String>,
    is_controller: bool,
    has_voters: bool,
}

impl Node {
    fn read(given: &Given) -> Result<Node, Exit> {
        let path = given.one("--config").unwrap_or_default();
        if !RealDisk.exists(Path::new(path)) {
            return Err(Exit::uncaught("java.nio.file.NoSuchFileException", path));
        }
        let settings = Settings::read_file(path)?;
        let id = settings
            .get("node.id")
            .or(settings.get("broker.id"))
            .unwrap_or("1");
        let dirs = settings.get("log.dirs").or(settings.get("log.dir"));
        let mut dirs: Vec<String> = list(dirs.unwrap_or("/tmp/kafka-logs"));
        if let Some(metadata) = settings.get("metadata.log.dir")
            && !dirs.iter().any(|dir| dir == metadata)
        {
            dirs.push(metadata.to_owned());
        }
        dirs.sort();
        let roles = list(settings.get("process.roles").unwrap_or_default());
        let voters = settings.get("controller.quorum.voters").unwrap_or_default();
        Ok(Node {
            node_id: id.trim().to_owned(),
            dirs,
            is_controller: roles.iter().any(|role| role == "controller"),
            has_voters: !voters.trim().is_empty(),
        })
    }
}

fn list(text: &str) -> Vec<String> {
    let items = text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// The pairs of a directory's meta.properties, by name; `None`: it is not formatted.
fn marks(dir: &str) -> Option<Vec<(String, String)>> {
    let path = Path::new(dir).join("meta.properties");
    let bytes = RealDisk.read(&path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let read = parse_properties(&path.to_string_lossy(), &text).ok()?;
    let mut pairs: Vec<(String, String)> = read.into_iter().map(|p| (p.name, p.value)).collect();
    pairs.sort();
    Some(pairs)
}

fn info(io: &mut Io, node: &Node) -> Done {
    let (there, missing): (Vec<&String>, Vec<&String>) = node
        .dirs
        .iter()
        .partition(|dir| RealDisk.exists(Path::new(dir.as_str())));
    let mut problems: Vec<String> = missing
        .iter()
        .map(|dir| format!("{dir} does not exist"))
        .collect();
    if !there.is_empty() {
        io.line(match there.len() {
            1 => "Found log directory:",
            _ => "Found log directories:",
        });
        there.iter().for_each(|dir| io.line(format!("  {dir}")));
        io.line("");
    }
    let mut first: Option<Vec<(String, String)>> = None;
    for dir in &there {
        match marks(dir) {
            None => problems.push(format!("{dir} is not formatted.")),
            Some(found) => {
                first.get_or_insert(found);
            }
        }
    }
    if let Some(found) = first {
        let pairs: Vec<String> = found.iter().map(|(n, v)| format!("{n}={v}")).collect();
        io.line(format!("Found metadata: {{{}}}", pairs.join(", ")));
        io.line("");
    }
    if problems.is_empty() {
        return Ok(());
    }
    io.line(match problems.len() {
        1 => "Found problem:",
        _ => "Found problems:",
    });
    problems
        .iter()
        .for_each(|problem| io.line(format!("  {problem}")));
    io.line("");
    Err(Exit::code(1))
}

fn format(io: &mut Io, node: &Node, given: &Given) -> Done {
    if given.has("--add-scram") {
        let text = "klamm: --add-scram is not supported yet: there is no SASL to use it";
        return Err(Exit::error(text));
    }
    let chosen = [
        "--standalone",
        "--initial-controllers",
        "--no-initial-controllers",
    ];
    let is_chosen = chosen.iter().any(|name| given.has(name));
    if node.is_controller && !node.has_voters && !is_chosen {
        return Err(Exit::error(
            "Because controller.quorum.voters is not set on this controller, you must specify one \
             of the following: --standalone, --initial-controllers, or --no-initial-controllers.",
        ));
    }
    let cluster_id = given.one("--cluster-id").unwrap_or_default();
    let mut new = Vec::new();
    for dir in &node.dirs {
        let Some(found) = marks(dir) else {
            new.push(dir);
            continue;
        };
        if !given.has("--ignore-formatted") {
            return Err(Exit::error(format!(
                "Log directory {dir} is already formatted. Use --ignore-formatted to ignore this \
                 directory and format the others."
            )));
        }
        let expected = [
            ("cluster.id", cluster_id),
            ("node.id", node.node_id.as_str()),
        ];
        for (name, value) in expected {
            let read = found
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, v)| v.as_str());
            if let Some(read) = read.filter(|read| *read != value) {
                let text = format!(
                    "Invalid {name} in: {dir}/meta.properties. Expected {value}, but read {read}"
                );
                return Err(Exit::uncaught("java.lang.RuntimeException", &text));
            }
        }
    }
    if new.is_empty() {
        io.line("All of the log directories are already formatted.");
    }
    for dir in new {
        let kind = match node.is_controller {
            true => "metadata voter directory",
            false => "metadata directory",
        };
        let dynamic = if node.has_voters { "" } else { "dynamic " };
        io.line(format!(
            "Formatting {dynamic}{kind} {dir} with metadata.version 4.4-IV2."
        ));
        write_marks(dir, cluster_id, &node.node_id)?;
    }
    Ok(())
}

fn write_marks(dir: &str, cluster_id: &str, node_id: &str) -> Done {
    let directory_id = base64_uuid(random::uuid());
    let text = format!(
        "#\nversion=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
    );
    let path = Path::new(dir);
    let written = RealDisk
        .create_dir_all(path)
        .and_then(|()| RealDisk.replace(&path.join("meta.properties"), text.as_bytes()));
    written.map_err(|error| {
        let text = format!("Error while writing meta.properties file {dir}: {error}");
        Exit::error(text)
    })
}
