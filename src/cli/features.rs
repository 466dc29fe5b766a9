//! `kafka-features`: the features of a cluster and their levels.

use std::collections::BTreeMap;

use kafka_protocol::messages::UpdateFeaturesRequest;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;

use super::admin::{Admin, AdminError, check, text};
use super::argparse::{Argument, Command, Given, option, switch};
use super::connect::{CONFIG, CONTROLLER, SERVER, admin};
use super::exit::{Done, Exit};
use super::io::Io;

const FEATURE: Argument = option(&["--feature"], "FEATURE", "feature=level.").many();
const METADATA: Argument = option(
    &["--metadata"],
    "METADATA",
    "(DEPRECATED) A metadata version.",
);
const DRY_RUN: Argument = switch(&["--dry-run"], "Only check.");

const fn command(
    name: &'static str,
    help: &'static str,
    arguments: &'static [Argument],
) -> Command {
    Command {
        name,
        help,
        arguments,
        exclusive: &[],
        commands: &[],
    }
}

const TOOL: Command = Command {
    name: "kafka-features",
    help: "Describes and changes the features of a cluster.",
    arguments: &[CONFIG, SERVER, CONTROLLER],
    exclusive: &[(&["--bootstrap-server", "--bootstrap-controller"], false)],
    commands: &[
        command(
            "describe",
            "Describe the features.",
            &[option(&["--node-id"], "NODE_ID", "The node to ask.")],
        ),
        command(
            "upgrade",
            "Raise features.",
            &[
                METADATA,
                option(
                    &["--release-version"],
                    "RELEASE_VERSION",
                    "The features of a release.",
                ),
                FEATURE,
                DRY_RUN,
            ],
        ),
        command(
            "downgrade",
            "Lower features.",
            &[
                METADATA,
                option(
                    &["--release-version"],
                    "RELEASE_VERSION",
                    "The features of a release.",
                ),
                FEATURE,
                switch(&["--unsafe"], "Even if something is lost."),
                DRY_RUN,
            ],
        ),
        command(
            "disable",
            "Turn features off.",
            &[
                FEATURE,
                switch(&["--unsafe"], "Even if something is lost."),
                DRY_RUN,
            ],
        ),
        command(
            "version-mapping",
            "The features that belong to a metadata version.",
            &[option(
                &["--release-version"],
                "RELEASE_VERSION",
                "Which version.",
            )],
        ),
        command(
            "feature-dependencies",
            "What a feature level needs.",
            &[FEATURE.required()],
        ),
    ],
};

/// Metadata versions by level, from 7 (3.3-IV3) on.
const METADATA_VERSIONS: &[(i16, &str)] = &[
    (7, "3.3-IV3"),
    (8, "3.4-IV0"),
    (9, "3.5-IV0"),
    (10, "3.5-IV1"),
    (11, "3.5-IV2"),
    (12, "3.6-IV0"),
    (13, "3.6-IV1"),
    (14, "3.6-IV2"),
    (15, "3.7-IV0"),
    (16, "3.7-IV1"),
    (17, "3.7-IV2"),
    (18, "3.7-IV3"),
    (19, "3.7-IV4"),
    (20, "3.8-IV0"),
    (21, "3.9-IV0"),
    (22, "4.0-IV0"),
    (23, "4.0-IV1"),
    (24, "4.0-IV2"),
    (25, "4.0-IV3"),
    (26, "4.1-IV0"),
    (27, "4.1-IV1"),
];

/// The levels that belong to a release: its names, then metadata.version and how that is shown,
/// kraft, transaction, group, eligible.leader.replicas, share, streams.
type Mapping = (&'static [&'static str], i16, &'static str, [i16; 6]);

const MAPPINGS: &[Mapping] = &[
    (&["4.4", "4.4-IV2"], 33, "4.4-IV2", [1, 2, 1, 1, 2, 1]),
    (&["4.0", "4.0-IV3"], 25, "4.0", [1, 2, 1, 0, 0, 0]),
];

const MAPPED: [&str; 6] = [
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = match TOOL.parse(args) {
        super::argparse::Parsed::Given(given) => given,
        super::argparse::Parsed::Help(text) => {
            return Err(Exit {
                code: 0,
                out: text,
                err: String::new(),
            });
        }
        super::argparse::Parsed::Wrong { message, .. } => {
            let text = message.trim_start_matches("kafka-features: error: ");
            return Err(Exit::error(format!(
                "Command line error: {text}. Type --help for help."
            )));
        }
    };
    match given.command {
        Some("version-mapping") => return print_mapping(io, given.one("--release-version")),
        Some("feature-dependencies") => return print_dependencies(io, &given.all("--feature")),
        _ => {}
    }
    if !given.has("--bootstrap-server") && !given.has("--bootstrap-controller") {
        return Err(Exit::error(
            "You must specify either --bootstrap-controller or --bootstrap-server.",
        ));
    }
    let admin = admin(&given)?;
    match given.command {
        Some("describe") => describe(io, &admin).await,
        _ => update(io, &admin, &given).await,
    }
}

pub fn print_mapping(io: &mut Io, release: Option<&str>) -> Done {
    let wanted = release.unwrap_or("4.4");
    let found = MAPPINGS.iter().find(|(names, ..)| names.contains(&wanted));
    let Some((_, level, shown, levels)) = found else {
        return Err(Exit::error(format!("Unknown release version '{wanted}'.")));
    };
    io.line(format!("metadata.version={level} ({shown})"));
    for (name, level) in MAPPED.iter().zip(levels) {
        io.line(format!("{name}={level}"));
    }
    Ok(())
}

pub fn print_dependencies(io: &mut Io, features: &[&str]) -> Done {
    for feature in features {
        let (name, level) = feature_level(feature)?;
        if name != "metadata.version" && !MAPPED.contains(&name.as_str()) {
            return Err(Exit::error(format!("Unknown feature: {name}")));
        }
        io.line(format!("{name}={level} has no dependencies."));
    }
    Ok(())
}

fn feature_level(text: &str) -> Result<(String, i16), Exit> {
    let wrong = || {
        Exit::error(format!(
            "Can't parse feature=level string {text}: equals sign not found."
        ))
    };
    let (name, level) = text.split_once('=').ok_or_else(wrong)?;
    let level = level.trim().parse().map_err(|_| {
        Exit::error(format!(
            "Can't parse feature=level string {text}: unable to parse {level} as a short."
        ))
    })?;
    Ok((name.trim().to_owned(), level))
}

fn failed(error: AdminError) -> Exit {
    Exit::error(error.exception())
}

async fn describe(io: &mut Io, admin: &Admin) -> Done {
    let connection = admin.client.any().await;
    let connection = connection.map_err(|e| failed(AdminError::peer("describeFeatures", e)))?;
    let Some(answer) = connection.versions().answer.as_deref() else {
        return Ok(());
    };
    let finalized: BTreeMap<&str, i16> = answer
        .finalized_features
        .iter()
        .map(|feature| (feature.name.as_str(), feature.max_version_level))
        .collect();
    let mut rows: Vec<(&str, i16, i16)> = answer
        .supported_features
        .iter()
        .map(|feature| {
            (
                feature.name.as_str(),
                feature.min_version,
                feature.max_version,
            )
        })
        .collect();
    rows.sort_unstable();
    let epoch = answer.finalized_features_epoch;
    for (name, min, max) in rows {
        let level = finalized.get(name).copied().unwrap_or(0);
        let show = |level: i16| show_level(name, level);
        io.line(format!(
            "Feature: {name:42}SupportedMinVersion: {:17}SupportedMaxVersion: {:17}\
             FinalizedVersionLevel: {:17}Epoch: {epoch}",
            show(min),
            show(max),
            show(level)
        ));
    }
    Ok(())
}

fn show_level(name: &str, level: i16) -> String {
    if name != "metadata.version" {
        return level.to_string();
    }
    let known = METADATA_VERSIONS.iter().find(|(known, _)| *known == level);
    match known {
        Some((_, name)) => (*name).to_owned(),
        None if level == 33 => "4.4-IV2".to_owned(),
        None => format!("UNKNOWN {level}"),
    }
}

async fn update(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let (verb, upgrade_type) = match (given.command, given.has("--unsafe")) {
        (Some("upgrade"), _) => ("upgrade", 1),
        (Some("downgrade"), false) => ("downgrade", 2),
        (Some("downgrade"), true) => ("downgrade", 3),
        (_, false) => ("disable", 2),
        (_, true) => ("disable", 3),
    };
    let updates = updates(io, given, verb)?;
    let row = |(name, level): &(String, i16)| {
        FeatureUpdateKey::default()
            .with_feature(text(name))
            .with_max_version_level(*level)
            .with_upgrade_type(upgrade_type)
    };
    let is_dry = given.has("--dry-run");
    let request = UpdateFeaturesRequest::default()
        .with_timeout_ms(30_000)
        .with_feature_updates(updates.iter().map(row).collect())
        .with_validate_only(is_dry);
    let answer = admin
        .any("updateFeatures", &request)
        .await
        .map_err(failed)?;
    // Before version 2 each feature has a result of its own.
    let whole = check(answer.error_code, answer.error_message.as_ref()).err();
    let done = match verb {
        "upgrade" => "upgraded",
        "downgrade" => "downgraded",
        _ => "disabled",
    };
    let mut failures = 0;
    for (name, level) in &updates {
        let own = answer
            .results
            .iter()
            .find(|row| row.feature.as_str() == name);
        let own = own.and_then(|row| check(row.error_code, row.error_message.as_ref()).err());
        let to = match verb {
            "disable" => String::new(),
            _ => format!(" to {level}"),
        };
        match own.as_ref().or(whole.as_ref()) {
            Some(error) => {
                failures += 1;
                let helping = if is_dry || whole.is_some() {
                    "Can not"
                } else {
                    "Could not"
                };
                io.line(format!("{helping} {verb} {name}{to}. {}", error.message()));
            }
            None if is_dry => io.line(format!("{name} can be {done}{to}.")),
            None => io.line(format!("{name} was {done}{to}.")),
        }
    }
    match failures {
        0 => Ok(()),
        count => Err(Exit::error(format!(
            "{count} out of {} operation(s) failed.",
            updates.len()
        ))),
    }
}

fn updates(io: &mut Io, given: &Given, verb: &str) -> Result<Vec<(String, i16)>, Exit> {
    let mut updates = Vec::new();
    if let Some(version) = given.one("--metadata") {
        io.line(" `metadata` flag is deprecated and may be removed in a future release.");
        let known = METADATA_VERSIONS.iter().rev();
        let release = |name: &str| name.split("-IV").next() == Some(version);
        let mut known = known.filter(|(_, name)| *name == version || release(name));
        let (level, _) = known
            .next()
            .ok_or_else(|| Exit::error(format!("Unsupported metadata.version {version}.")))?;
        updates.push(("metadata.version".to_owned(), *level));
    }
    if let Some(release) = given.one("--release-version") {
        let found = MAPPINGS.iter().find(|(names, ..)| names.contains(&release));
        let (_, level, _, levels) =
            found.ok_or_else(|| Exit::error(format!("Unknown release version '{release}'.")))?;
        updates.push(("metadata.version".to_owned(), *level));
        let rest = MAPPED
            .iter()
            .zip(levels)
            .map(|(name, level)| ((*name).to_owned(), *level));
        updates.extend(rest);
    }
    for feature in given.all("--feature") {
        updates.push(match verb {
            "disable" => (feature.to_owned(), 0),
            _ => feature_level(feature)?,
        });
    }
    match updates.is_empty() {
        true => Err(Exit::error(format!(
            "You must specify at least one feature to {verb}"
        ))),
        false => Ok(updates),
    }
}
