//! `kafka-groups`: lists groups of every type.

use super::admin::AdminError;
use super::common::help_or_version;
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text};
use super::settings::Settings;

const PURPOSE: &str = "This tool helps to list groups of all types.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server to connect to",
        "REQUIRED: A broker of the cluster.",
    )
    .required(),
    text(
        "command-config",
        "command config property file",
        "Properties of the admin client.",
    ),
    flag("list", "List the groups."),
    text(
        "group-type",
        "type",
        "Only groups of this type: classic, consumer, share or streams.",
    ),
    text(
        "protocol",
        "protocol",
        "Only groups with this protocol type.",
    ),
    flag("consumer", "Only consumer groups of any kind."),
    flag("share", "Only share groups."),
    flag("streams", "Only streams groups."),
    HELP,
    VERSION,
];

fn refused(error: impl ToString) -> Exit {
    Exit::error(error.to_string())
}

const TYPES: [&str; 4] = ["Classic", "Consumer", "Share", "Streams"];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = Options::parse(OPTIONS, args).map_err(refused)?;
    help_or_version(&options, OPTIONS, PURPOSE)?;
    if !options.has("list") {
        return Err(Exit::usage(
            "Command must include exactly one action: --list.",
            OPTIONS,
        ));
    }
    let wanted_type = options.one("group-type").map_err(refused)?;
    let wanted_type = match wanted_type {
        None => None,
        Some(text) => Some(
            TYPES
                .into_iter()
                .find(|t| t.eq_ignore_ascii_case(text))
                .ok_or_else(|| {
                    let text = "--group-type must be a valid group type.";
                    Exit::caught("java.lang.IllegalArgumentException", text)
                })?,
        ),
    };
    let protocol = options.one("protocol").map_err(refused)?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config").map_err(refused)? {
        settings.add_file(file)?;
    }
    let servers = options.one("bootstrap-server").map_err(refused)?;
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    let admin = settings.admin()?;
    let listed = admin.list_groups(&[], &[]).await;
    let listed = listed.map_err(|error: AdminError| Exit::error(error.exception()))?;
    let rows: Vec<[String; 3]> = listed
        .into_iter()
        .map(|group| {
            let known = TYPES
                .into_iter()
                .find(|t| t.eq_ignore_ascii_case(&group.group_type));
            let shown = known.map_or(group.group_type.clone(), str::to_owned);
            [group.group, shown, group.protocol_type]
        })
        .filter(|[_, group_type, of]| {
            let is_consumer = group_type == "Consumer"
                || group_type == "Classic" && (of == "consumer" || of.is_empty());
            wanted_type.is_none_or(|wanted| wanted == group_type)
                && protocol.is_none_or(|wanted| wanted == of)
                && (!options.has("consumer") || is_consumer)
                && (!options.has("share") || group_type == "Share")
                && (!options.has("streams") || group_type == "Streams")
        })
        .collect();
    let width = rows
        .iter()
        .flatten()
        .map(|cell| cell.len())
        .max()
        .unwrap_or(0)
        .max(20);
    for row in std::iter::once(&["GROUP", "TYPE", "PROTOCOL"].map(str::to_owned)).chain(&rows) {
        let [group, group_type, protocol] = row;
        io.line(format!(
            "{group:width$} {group_type:width$} {protocol:width$}"
        ));
    }
    Ok(())
}
