//! What is wrong with a configuration, and where it was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Property, describe};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File {
        path: Arc<str>,
        line: u32,
    },
    /// The name of the environment variable.
    Environment(String),
    /// `--override`.
    Argument,
    /// What an image of Kafka starts with, by its name.
    Image(&'static str),
    /// Follows from another configuration.
    From(&'static str),
    /// [`super::SINGLE_NODE`], when no file is given.
    BuiltIn,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::File { path, line } => write!(f, "{path}:{line}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Argument => f.write_str("--override"),
            Origin::Image(name) => write!(f, "default of {name}"),
            Origin::From(name) => write!(f, "follows from {name}"),
            Origin::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A configuration that stops the start, or that a topic or a group does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "Invalid value {value} for configuration {name}: {reason}{}",
        at(origin)
    )]
    Invalid {
        name: String,
        value: String,
        reason: String,
        origin: Option<Origin>,
    },
    /// Kafka refuses blank items with a sentence of its own.
    #[error("Configuration '{name}' values must not be empty.")]
    BlankItem { name: String },
    #[error("Missing required configuration \"{name}\" which has no default value.{hint}")]
    Missing {
        name: &'static str,
        hint: &'static str,
    },
    /// Values that do not go together; the reason names the names and the way out, and
    /// [`ConfigError::placed`] adds where each was written.
    #[error("{reason}")]
    Conflict { reason: String },
    /// A value that would be unsafe to ignore.
    #[error("{name}={value} is not supported: {reason}{}", at(origin))]
    Refused {
        name: String,
        value: String,
        reason: &'static str,
        origin: Option<Origin>,
    },
    #[error("{origin}: expected name=value, found \"{text}\"")]
    NotAPair { text: String, origin: Origin },
    #[error("{origin}: a \\u escape needs four hexadecimal digits")]
    BadEscape { origin: Origin },
    /// Beside another error: the name that is missing may be there with a typo.
    #[error("{0}")]
    Unknown(Box<ConfigWarning>),
}

fn at(origin: &Option<Origin>) -> String {
    match origin {
        Some(origin) => format!(" ({origin})"),
        None => String::new(),
    }
}

/// Something worth a line in the log, that does not stop the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigWarning {
    #[error("{name} is unknown and ignored{} ({origin})", suggestion(similar))]
    Unknown {
        name: String,
        similar: Option<&'static str>,
        origin: Origin,
    },
    #[error("{name}={value} has no effect: {reason} ({origin})")]
    NoEffect {
        name: String,
        value: String,
        reason: &'static str,
        origin: Origin,
    },
    /// A dynamic value that the cluster holds and this node cannot use; it keeps the next lower
    /// one.
    #[error("dynamic value ignored: {0}")]
    Dynamic(ConfigError),
}

fn suggestion(similar: &Option<&'static str>) -> String {
    match similar {
        Some(name) => format!("; did you mean {name}?"),
        None => String::new(),
    }
}

impl ConfigError {
    /// The same error, with the place where the value was written.
    pub(super) fn at(self, place: &Origin) -> ConfigError {
        match self {
            ConfigError::Invalid {
                name,
                value,
                reason,
                origin: None,
            } => ConfigError::Invalid {
                name,
                value,
                reason,
                origin: Some(place.clone()),
            },
            other => other,
        }
    }

    /// The same error with the place of each value that was `given`: of its own name, or of all
    /// that a conflict names.
    pub(super) fn placed(self, given: &BTreeMap<String, Property>) -> ConfigError {
        match self {
            ConfigError::Conflict { reason } => {
                let places = places(&reason, given);
                ConfigError::Conflict {
                    reason: format!("{reason}{places}"),
                }
            }
            ConfigError::Refused {
                name,
                value,
                reason,
                origin: None,
            } => ConfigError::Refused {
                origin: given.get(&name).map(|property| property.origin.clone()),
                name,
                value,
                reason,
            },
            ConfigError::Invalid { ref name, .. } => match given.get(name) {
                Some(property) => self.at(&property.origin),
                None => self,
            },
            other => other,
        }
    }
}

/// ` (node.id: server.properties:2, broker.id: --override)`, or nothing when no name in `reason`
/// was given.
fn places(reason: &str, given: &BTreeMap<String, Property>) -> String {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
    // Kafka's sentences about voters call it so.
    let reason = reason.replace("the node id", "node.id");
    let mut named: Vec<&Property> = Vec::new();
    for word in reason.split(|c: char| !is_of_name(c)) {
        let word = word.trim_end_matches('.');
        // What is in milliseconds may have been said in hours.
        for name in describe::family(word) {
            if let Some(property) = given.get(name)
                && !named.iter().any(|known| known.name == property.name)
            {
                named.push(property);
            }
        }
    }
    let named: Vec<String> = named
        .into_iter()
        .map(|property| format!("{}: {}", property.name, property.origin))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!(" ({})", named.join(", ")),
    }
}
