//! What is wrong with a configuration, and where it was written.

use std::sync::Arc;

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
    /// Values that do not go together; the reason names the names and the way out.
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
}
