//! A row of a table of configurations: all that Klamm knows of one name.

use super::Valid;

/// Kafka's type of a value, with the code that DescribeConfigs answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl ConfigType {
    /// The code of a name that is in no table.
    pub const UNKNOWN_CODE: i8 = 0;

    pub const fn code(self) -> i8 {
        self as i8
    }

    pub const fn name(self) -> &'static str {
        match self {
            ConfigType::Boolean => "BOOLEAN",
            ConfigType::String => "STRING",
            ConfigType::Int => "INT",
            ConfigType::Short => "SHORT",
            ConfigType::Long => "LONG",
            ConfigType::Double => "DOUBLE",
            ConfigType::List => "LIST",
            ConfigType::Class => "CLASS",
            ConfigType::Password => "PASSWORD",
        }
    }
}

/// The value of a name that nobody has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// The name must be set.
    Required,
    Null,
    Text(&'static str),
}

impl DefaultValue {
    pub const fn text(self) -> Option<&'static str> {
        match self {
            DefaultValue::Text(text) => Some(text),
            DefaultValue::Required | DefaultValue::Null => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

impl Importance {
    pub const fn name(self) -> &'static str {
        match self {
            Importance::High => "HIGH",
            Importance::Medium => "MEDIUM",
            Importance::Low => "LOW",
        }
    }
}

/// Where a running cluster takes a new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only at start.
    ReadOnly,
    /// For one broker at a time.
    PerBroker,
    /// For one broker, or for all at once.
    ClusterWide,
    /// For one topic, group, client or subscription: the rows of the other tables.
    Resource,
}

impl Scope {
    pub const fn name(self) -> &'static str {
        match self {
            Scope::ReadOnly => "read-only",
            Scope::PerBroker => "per-broker",
            Scope::ClusterWide => "cluster-wide",
            Scope::Resource => "dynamic",
        }
    }
}

/// What Klamm does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It acts.
    Applied,
    /// It is accepted and changes nothing: said in a warning when it is set to another value than
    /// the default.
    NoEffect(&'static str),
    /// Ignoring it would be unsafe, so a value other than the default stops the start.
    Refused(&'static str),
}

/// How a broker's value becomes that of a topic or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    Same,
    /// `log.retention.minutes` counts minutes, `retention.ms` milliseconds.
    Minutes,
    Hours,
    /// The first of a list.
    FirstItem,
}

/// A name whose value is taken when a row's own name is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    pub name: &'static str,
    pub conversion: Conversion,
}

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub config_type: ConfigType,
    pub default: DefaultValue,
    pub valid: Valid,
    pub importance: Importance,
    /// Kafka hides it from listings unless it is set.
    pub internal: bool,
    pub scope: Scope,
    /// In order of precedence.
    pub fallbacks: &'static [Fallback],
    pub effect: Effect,
    pub documentation: &'static str,
}

impl Row {
    /// A sensitive value never leaves the node.
    pub fn sensitive(&self) -> bool {
        self.config_type == ConfigType::Password
    }
}
