//! `kafka-consumer-groups`: lists and describes groups, deletes them, sets their offsets.
//!
//! Like Kafka's tool it ends with 0 when a call fails and says so on standard output; only a wrong
//! command line is an error to the shell.

mod delete;
mod describe;
mod reset;

use super::admin::{Admin, AdminError};
use super::common::{help_or_version, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use super::settings::Settings;

const PURPOSE: &str =
    "This tool helps to list, describe, delete and manage the offsets of consumer groups.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server to connect to",
        "Brokers. REQUIRED but for --validate-regex.",
    ),
    text(
        "command-config",
        "command config property file",
        "Properties of the clients.",
    ),
    text("group", "group id", "A group."),
    text(
        "topic",
        "topic",
        "A topic, or topic:0,1,2 for some of its partitions.",
    ),
    flag("all-topics", "All topics."),
    flag("all-groups", "All groups."),
    flag("list", "List groups."),
    flag("describe", "Describe groups: offsets and lag."),
    flag("delete", "Delete groups."),
    flag(
        "delete-offsets",
        "Delete the offsets of a group for topics.",
    ),
    flag(
        "reset-offsets",
        "Set the offsets of a group that has no members.",
    ),
    typed(
        "timeout",
        "Long",
        "timeout (ms)",
        "How long to wait for a group.",
    )
    .or("30000"),
    flag("members", "Describe the members."),
    flag("verbose", "Describe more."),
    flag(
        "offsets",
        "Describe the offsets; this is what --describe does.",
    ),
    text(
        "state",
        "",
        "Describe the state; or list states, or groups in states.",
    )
    .optional_argument(),
    text("type", "", "List types, or groups of types.").optional_argument(),
    flag("dry-run", "Show what a reset would do."),
    flag("execute", "Do the reset."),
    flag("export", "Print a reset as CSV."),
    text(
        "from-file",
        "path to CSV file",
        "Reset to what a CSV file says.",
    ),
    text(
        "to-datetime",
        "datetime",
        "Reset to a time, YYYY-MM-DDThh:mm:ss.sss.",
    ),
    text(
        "by-duration",
        "duration",
        "Reset to a time so long ago, PnDTnHnMnS.",
    ),
    flag("to-earliest", "Reset to the first offset."),
    flag("to-latest", "Reset to the end."),
    typed("to-offset", "Long", "offset", "Reset to an offset."),
    flag("to-current", "Reset to the current offset."),
    typed(
        "shift-by",
        "Long",
        "number-of-offsets",
        "Reset by so many offsets.",
    ),
    text("validate-regex", "regex", "Check a regular expression."),
    HELP,
    VERSION,
];

const ACTIONS: [&str; 6] = [
    "list",
    "describe",
    "delete",
    "reset-offsets",
    "delete-offsets",
    "validate-regex",
];

const SCENARIOS: [&str; 8] = [
    "to-current",
    "to-earliest",
    "to-offset",
    "shift-by",
    "from-file",
    "to-datetime",
    "by-duration",
    "to-latest",
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = Options::parse(OPTIONS, args)?;
    check_available(&options)?;
    help_or_version(&options, OPTIONS, PURPOSE)?;
    if ACTIONS.iter().filter(|action| options.has(action)).count() != 1 {
        return Err(refused(
            "Command must include exactly one action: --list, --describe, --delete, \
             --reset-offsets, --delete-offsets, --validate-regex",
        ));
    }
    if let Some(pattern) = options.one("validate-regex")? {
        let verdict = match regex::Regex::new(pattern) {
            Ok(_) => "valid.".to_owned(),
            Err(error) => format!("invalid: {error}."),
        };
        io.line(format!("The regular expression `{pattern}` is {verdict}"));
        return Ok(());
    }
    check(io, &options)?;
    let admin = admin(&options)?;
    let done = match ACTIONS.iter().find(|action| options.has(action)) {
        Some(&"list") => list(io, &admin, &options).await?,
        Some(&"describe") => describe::run(io, &admin, &options).await?,
        Some(&"delete") => delete::groups(io, &admin, &options).await?,
        Some(&"delete-offsets") => delete::offsets(io, &admin, &options).await?,
        _ => reset::run(io, &admin, &options).await?,
    };
    if let Err(error) = done {
        report(io, &error, true);
    }
    Ok(())
}

/// What a command of this tool ends with: a call's error is reported, not an exit code.
type Called = Result<Result<(), AdminError>, Exit>;

fn refused(text: &str) -> Exit {
    Exit::usage(text, OPTIONS)
}

/// An error as Kafka's tool prints it; `with_class` where it comes wrapped.
fn report(io: &mut Io, error: &AdminError, with_class: bool) {
    let text = match with_class {
        true => error.exception(),
        false => error.message(),
    };
    io.line(format!(
        "\nError: Executing consumer group command failed due to {text}"
    ));
    let wrapped = if with_class {
        "java.util.concurrent.ExecutionException: "
    } else {
        ""
    };
    io.error_line(format!("{wrapped}{}", error.exception()));
}

fn check_available(options: &Options) -> Done {
    let needs: [(&str, &[&str]); 5] = [
        ("members", &["describe"]),
        ("offsets", &["describe"]),
        ("verbose", &["describe"]),
        ("state", &["describe", "list"]),
        ("type", &["list"]),
    ];
    for (option, actions) in needs {
        if options.has(option) && !actions.iter().any(|action| options.has(action)) {
            let text = format!(
                "Option(s) [{option}] are unavailable given other options on the command line"
            );
            return Err(Exit::uncaught(
                "joptsimple.UnavailableOptionException",
                &text,
            ));
        }
    }
    Ok(())
}

fn check(io: &mut Io, options: &Options) -> Done {
    require(options, OPTIONS, &["bootstrap-server"])?;
    let has_group = options.has("group") || options.has("all-groups");
    if options.has("describe") {
        if !has_group {
            let text = "Option [describe] takes one of these options: [group], [all-groups]";
            return Err(refused(text));
        }
        let views = ["members", "offsets", "state"];
        if views.iter().filter(|view| options.has(view)).count() > 1 {
            let text = "Option [describe] takes at most one of these options: [members], \
                        [offsets], [state]";
            return Err(refused(text));
        }
        if let Some(state) = options.one("state")? {
            let text = format!("Option [describe] does not take a value for [state]: {state}");
            return Err(refused(&text));
        }
    }
    if options.has("delete") && !has_group {
        let text = "Option [delete] takes one of these options: [group], [all-groups]";
        return Err(refused(text));
    }
    if options.has("delete") && options.has("topic") {
        return Err(refused(
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ));
    }
    if options.has("delete-offsets") && !(options.has("group") && options.has("topic")) {
        let text = "Option [delete-offsets] takes the following options: [group], [topic]";
        return Err(refused(text));
    }
    match options.has("reset-offsets") {
        true => check_reset(io, options),
        false => Ok(()),
    }
}

fn check_reset(io: &mut Io, options: &Options) -> Done {
    if options.has("dry-run") && options.has("execute") {
        return Err(refused(
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ));
    }
    if !options.has("dry-run") && !options.has("execute") {
        io.error_line(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, \
             this command will require either --dry-run or --execute to be specified. You should \
             add the --dry-run option explicitly if you are scripting this command and want to \
             keep the current default behavior without prompting.",
        );
    }
    if !options.has("group") && !options.has("all-groups") {
        let text = "Option [reset-offsets] takes one of these options: [group], [all-groups]";
        return Err(refused(text));
    }
    let given = SCENARIOS
        .iter()
        .filter(|scenario| options.has(scenario))
        .count();
    if given != 1 {
        let names: Vec<String> = SCENARIOS.iter().map(|name| format!("[{name}]")).collect();
        let text = format!(
            "Option '[reset-offsets]' requires one of the following scenarios: [{}]",
            names.join(", ")
        );
        return Err(refused(&text));
    }
    if !options.has("from-file") && !options.has("all-topics") && !options.has("topic") {
        let text = "One of the reset scopes should be defined: --all-topics, --topic.";
        return Err(refused(text));
    }
    Ok(())
}

fn admin(options: &Options) -> Result<Admin, Exit> {
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    settings.admin()
}

/// The groups that are meant.
async fn group_names(admin: &Admin, options: &Options) -> Result<Vec<String>, AdminError> {
    if !options.has("all-groups") {
        return Ok(options
            .all("group")
            .iter()
            .map(|name| (*name).to_owned())
            .collect());
    }
    let listed = admin.list_groups(&[], &[]).await?;
    let is_consumer = |protocol: &str| protocol == "consumer" || protocol.is_empty();
    let groups = listed
        .into_iter()
        .filter(|group| is_consumer(&group.protocol_type));
    let mut names: Vec<String> = groups.map(|group| group.group).collect();
    names.sort();
    Ok(names)
}

const STATES: [&str; 7] = [
    "Dead",
    "PreparingRebalance",
    "Empty",
    "Stable",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
];
const TYPES: [&str; 2] = ["Classic", "Consumer"];

/// A list of states or types, in the broker's spelling.
fn words(
    what: &str,
    given: Option<&str>,
    valid: &[&'static str],
) -> Result<Vec<&'static str>, Exit> {
    let mut found = Vec::new();
    for word in given
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|w| !w.is_empty())
    {
        match valid.iter().find(|known| known.eq_ignore_ascii_case(word)) {
            Some(known) => found.push(*known),
            None => {
                let text = format!(
                    "Invalid {what} list '{}'. Valid {}s are: {}",
                    given.unwrap_or_default(),
                    what.trim_end_matches('s'),
                    valid.join(", ")
                );
                return Err(refused(&text));
            }
        }
    }
    Ok(found)
}

async fn list(io: &mut Io, admin: &Admin, options: &Options) -> Called {
    let (with_state, with_type) = (options.has("state"), options.has("type"));
    let states = words("state", options.one("state")?, &STATES)?;
    let types = words("types", options.one("type")?, &TYPES)?;
    let listed = match admin.list_groups(&states, &types).await {
        Ok(listed) => listed,
        Err(error) => return Ok(Err(error)),
    };
    let groups: Vec<_> = listed
        .into_iter()
        .filter(|group| group.protocol_type == "consumer" || group.protocol_type.is_empty())
        .collect();
    if !with_state && !with_type {
        groups.iter().for_each(|group| io.line(&group.group));
        return Ok(Ok(()));
    }
    let width = groups
        .iter()
        .map(|group| group.group.len())
        .max()
        .unwrap_or(0)
        .max(15)
        + 10;
    let row = |group: &str, of_type: &str, state: &str| {
        let mut line = format!("{group:width$}");
        if with_type {
            line += &format!(" {of_type:20}");
        }
        if with_state {
            line += &format!(" {state:20}");
        }
        line
    };
    io.line(row("GROUP", "TYPE", "STATE"));
    for group in &groups {
        let known = TYPES
            .iter()
            .find(|t| t.eq_ignore_ascii_case(&group.group_type));
        let of_type = known.copied().unwrap_or(group.group_type.as_str());
        io.line(row(&group.group, of_type, &group.state));
    }
    Ok(Ok(()))
}
