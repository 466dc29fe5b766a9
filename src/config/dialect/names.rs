//! From the names of variables to the names of configurations, and from their values to values.
//!
//! 1. Of a name with the prefix and one without (bitnami), the one with the prefix counts.
//! 2. A value that is empty says nothing; one in quotes is meant without them.

use super::family::{Family, Own};
use super::{Dialect, Place};
use crate::config::broker::broker_row;
use crate::config::{ConfigType, Origin, Property};

/// Variables that speak to the images' scripts or to the JVM, in every family.
const LEFT_OUT: &[&str] = &[
    "KAFKA_VERSION",
    "KAFKA_HOME",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_JVM_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_PORT",
    "KAFKA_CLUSTER_ID",
    "KAFKA_CUB_ZK_TIMEOUT",
    "KAFKA_RESTART_ATTEMPTS",
];

/// Names whose empty value is a value: no check of the host's name.
const MAY_BE_EMPTY: &str = "ssl.endpoint.identification.algorithm";

/// What variables say.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub properties: Vec<Property>,
    pub own: OwnNames,
    pub without_effect: Vec<String>,
    pub notes: Vec<String>,
}

/// Names of before there were listeners.
#[derive(Debug, Default)]
pub(super) struct OwnNames {
    pub host: Option<Property>,
    pub port: Option<Property>,
}

/// Variables that name the cluster where no start script reads them.
const CLUSTER_IDS: &[&str] = &["KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID", "CLUSTER_ID"];

/// `KAFKA_*` variables over a file, as apache/kafka reads them, and the id of the cluster.
pub fn environment_properties<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Property> {
    let family = Dialect::Apache.family();
    let mut sorted: Vec<(&str, &str)> = variables.into_iter().collect();
    sorted.sort();
    let names_cluster =
        |(variable, value): &(&str, &str)| CLUSTER_IDS.contains(variable) && !value.is_empty();
    let is_meant = |(variable, value): &(&str, &str)| {
        !is_service_link(variable, value) && family.own(variable).is_none()
            || names_cluster(&(*variable, *value))
    };
    let found = sorted.into_iter().filter(is_meant).filter_map(|pair| {
        let name = match names_cluster(&pair) {
            true => "klamm.cluster.id".to_owned(),
            false => property_name(family, pair.0)?,
        };
        let origin = Origin::Environment(pair.0.to_owned());
        let value = pair.1.to_owned();
        Some(Property {
            name,
            value,
            origin,
        })
    });
    found.collect()
}

pub(super) fn read(
    family: &'static Family,
    variables: &[(String, String)],
    place: &Place<'_>,
) -> Read {
    let mut read = Read::default();
    let mut all: Vec<(String, String)> = variables.to_vec();
    read_files(family, &mut all, place, &mut read);
    expand_commands(&mut all, place);
    all.sort();
    let (with_prefix, own): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|(variable, value)| !is_service_link(variable, value))
        .partition(|(variable, _)| family.own(variable).is_none());
    for (variable, value) in own {
        let origin = Origin::Environment(variable.clone());
        let Some(value) = repaired("", value) else {
            continue;
        };
        let property = |name: &str| Property {
            name: name.to_owned(),
            value: value.clone(),
            origin: origin.clone(),
        };
        match family.own(variable) {
            Some(Own::Property(name)) => {
                read.properties
                    .extend(repaired(name, &value).map(|value| Property {
                        value,
                        ..property(name)
                    }))
            }
            Some(Own::Host) => read.own.host = Some(property("host")),
            // KAFKA_ADVERTISED_PORT sorts before KAFKA_PORT, and says more.
            Some(Own::Port) => {
                read.own.port.get_or_insert(property("port"));
            }
            None => {}
        }
    }
    for (variable, value) in with_prefix {
        let Some(name) = property_name(family, variable) else {
            continue;
        };
        let origin = Origin::Environment(variable.clone());
        if let Some(value) = repaired(&name, value) {
            read.properties.push(Property {
                name,
                value,
                origin,
            });
        }
    }
    read
}

/// The name of the configuration that a variable with a prefix sets.
fn property_name(family: &Family, variable: &str) -> Option<String> {
    let left_out = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => variable.starts_with(start),
        None => variable == *pattern,
    };
    if LEFT_OUT.iter().chain(family.left_out).any(left_out) {
        return None;
    }
    let found = family
        .prefixes
        .iter()
        .find_map(|(prefix, written)| Some((variable.strip_prefix(prefix)?, *written)))?;
    let (rest, written) = found;
    if rest.is_empty() {
        return None;
    }
    let dotted = rest.to_lowercase().replace('_', ".");
    let name = match family.escapes {
        true => dotted.replace("...", "-").replace("..", "_"),
        false if family.dialect == Dialect::Bitnami => dotted
            .replace("sasl.ssl", "sasl_ssl")
            .replace("sasl.plaintext", "sasl_plaintext"),
        false => dotted,
    };
    Some(format!("{written}{name}"))
}

/// What Kubernetes and old links set beside a service named `kafka`: `KAFKA_PORT=tcp://...`,
/// `KAFKA_SERVICE_HOST`, `KAFKA_PORT_9092_TCP_ADDR`.
fn is_service_link(variable: &str, value: &str) -> bool {
    let ends = ["_TCP_PORT", "_TCP_ADDR", "_TCP_PROTO", "_TCP"];
    value.starts_with("tcp://")
        || variable.contains("_SERVICE_HOST")
        || variable.contains("_SERVICE_PORT")
        || (variable.contains("_PORT_") && ends.iter().any(|end| variable.ends_with(end)))
        || variable == "KAFKA_PORT" && value.parse::<u16>().is_err()
}

/// The value without quotes around it and blanks beside it, in Java's words; `None`: it is empty.
fn repaired(name: &str, value: &str) -> Option<String> {
    let mut value = value.trim();
    if let Some(inner) = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'))
        && !inner.contains('"')
    {
        value = inner.trim();
    }
    if value == "null" {
        return None;
    }
    let row = broker_row(name);
    if row.is_some_and(|row| row.config_type == ConfigType::Boolean) {
        match value.to_lowercase().as_str() {
            "yes" | "on" | "1" => return Some("true".to_owned()),
            "no" | "off" | "0" => return Some("false".to_owned()),
            _ => {}
        }
    }
    let is_list = row.is_some_and(|row| row.config_type == ConfigType::List)
        || name == "listener.security.protocol.map"
        || name == "advertised.listeners";
    if is_list {
        let items = value.split(',').map(str::trim);
        let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
        let text = items.join(",");
        return (!text.is_empty()).then_some(text);
    }
    (!value.is_empty() || name == MAY_BE_EMPTY).then(|| value.to_owned())
}

/// NAME_FILE for the names of the family that have it.
fn read_files(
    family: &Family,
    all: &mut Vec<(String, String)>,
    place: &Place<'_>,
    read: &mut Read,
) {
    let mut found = Vec::new();
    for (variable, path) in all.iter() {
        let Some(name) = variable.strip_suffix("_FILE") else {
            continue;
        };
        if !family.files.contains(&name) {
            continue;
        }
        match (place.read)(path) {
            Some(text) => found.push((name.to_owned(), text.trim_end().to_owned())),
            None => read
                .notes
                .push(format!("{variable}: {path} cannot be read")),
        }
    }
    all.retain(|(variable, _)| !found.iter().any(|(name, _)| name == variable));
    all.extend(found);
    all.retain(|(variable, _)| {
        let named = variable.strip_suffix("_FILE");
        named.is_none_or(|name| !family.files.contains(&name))
    });
}

/// The commands of wurstmeister and bitnami, and `_{NAME_COMMAND}` inside other values.
const COMMANDS: &[(&str, &str)] = &[
    ("BROKER_ID_COMMAND", "KAFKA_BROKER_ID"),
    ("KAFKA_NODE_ID_COMMAND", "KAFKA_NODE_ID"),
    (
        "KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND",
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
    ),
    ("RACK_COMMAND", "KAFKA_BROKER_RACK"),
    ("HOSTNAME_COMMAND", "KAFKA_ADVERTISED_HOST_NAME"),
    ("PORT_COMMAND", "KAFKA_ADVERTISED_PORT"),
];

fn expand_commands(all: &mut Vec<(String, String)>, place: &Place<'_>) {
    for (command, target) in COMMANDS {
        let Some(at) = all.iter().position(|(variable, _)| variable == command) else {
            continue;
        };
        let (_, line) = all.remove(at);
        // A command that fails in this container (docker, a cloud's address) means the host name.
        let fallback = || (*command == "HOSTNAME_COMMAND").then(|| place.host_name.to_owned());
        let Some(output) = (place.run)(&line)
            .filter(|out| !out.is_empty())
            .or_else(fallback)
        else {
            continue;
        };
        let marker = format!("_{{{command}}}");
        let is_used_inside = all.iter().any(|(_, value)| value.contains(&marker));
        for (_, value) in all.iter_mut() {
            *value = value.replace(&marker, &output);
        }
        if !is_used_inside && !all.iter().any(|(variable, _)| variable == target) {
            all.push(((*target).to_owned(), output));
        }
    }
}

/// The id that the family's variables give the cluster.
pub(super) fn cluster_id(
    family: &Family,
    variables: &[(String, String)],
    place: &Place<'_>,
) -> Option<Property> {
    let property = |value: String, origin: Origin| Property {
        name: "cluster.id".to_owned(),
        value,
        origin,
    };
    for name in family.cluster_id {
        let file = format!("{name}_FILE");
        for (variable, value) in variables {
            let text = match variable {
                v if v == name => repaired("", value),
                v if *v == file && family.files.contains(name) => {
                    (place.read)(value).and_then(|text| repaired("", &text))
                }
                _ => None,
            };
            if let Some(text) = text {
                return Some(property(text, Origin::Environment(variable.clone())));
            }
        }
    }
    let default = family.cluster_id_default?;
    Some(property(default.to_owned(), Origin::Image(family.name)))
}
