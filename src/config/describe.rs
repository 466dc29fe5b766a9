//! DescribeConfigs from the tables: every value with its source, synonyms and type.
//!
//! 1. Synonyms come by layer (this broker, all brokers, static, default) and, within one, in order
//!    of precedence. Kafka drops those before the first that bears the described name itself: a
//!    topic's `retention.ms` that comes from `log.retention.hours` shows no synonym and the source
//!    "default".
//! 2. The value is the one that acts, written anew from its type; a synonym is as it was set.
//! 3. A name that is in no table has no type and is taken for a secret.

use super::broker::{broker_row, broker_rows};
use super::node::{Layers, NodeConfig, default_value, parse};
use super::table::Table;
use super::{
    ClientMetricsConfig, ConfigSource, ConfigType, GroupConfig, Overrides, Row, Scope, TopicConfig,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    /// `None` for null, and for what must not be shown.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub sensitive: bool,
    pub synonyms: Vec<Synonym>,
    /// [`ConfigType`]'s code.
    pub config_type: i8,
    pub documentation: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    pub name: String,
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// What to describe.
#[derive(Debug, Clone, Copy)]
pub enum Describe<'a> {
    /// This broker.
    Broker,
    /// The dynamic values of all brokers: the broker resource without a name.
    Brokers,
    Topic(&'a Overrides),
    Group(&'a Overrides),
    ClientMetrics(&'a Overrides),
}

impl NodeConfig {
    /// Every configuration of a resource, by name; `keys` picks some. Unknown keys are left out.
    pub fn describe(&self, resource: Describe<'_>, keys: Option<&[String]>) -> Vec<Described> {
        let wanted = |name: &str| keys.is_none_or(|keys| keys.iter().any(|key| key == name));
        match resource {
            Describe::Broker => {
                let names = self.layers.names_of_broker();
                let wanted = names.into_iter().filter(|name| wanted(name));
                wanted
                    .map(|name| self.layers.describe_broker(name))
                    .collect()
            }
            Describe::Brokers => {
                let wanted = self.layers.cluster.iter().filter(|(name, _)| wanted(name));
                wanted
                    .map(|(name, value)| describe_dynamic(name, value))
                    .collect()
            }
            Describe::Topic(overrides) => rows_of::<TopicConfig>(overrides, &wanted)
                .map(|row| {
                    self.layers
                        .describe_row(row, overrides, ConfigSource::Topic)
                })
                .collect(),
            Describe::Group(overrides) => rows_of::<GroupConfig>(overrides, &wanted)
                .map(|row| {
                    self.layers
                        .describe_row(row, overrides, ConfigSource::Group)
                })
                .collect(),
            Describe::ClientMetrics(overrides) => {
                rows_of::<ClientMetricsConfig>(overrides, &wanted)
                    .map(|row| {
                        self.layers
                            .describe_row(row, overrides, ConfigSource::ClientMetrics)
                    })
                    .collect()
            }
        }
    }
}

/// The rows of a table that are shown; an internal one only where it is set.
fn rows_of<'a, T: Table>(
    overrides: &'a Overrides,
    wanted: &'a dyn Fn(&str) -> bool,
) -> impl Iterator<Item = &'static Row> + 'a {
    let shown = |row: &&Row| !row.internal || overrides.contains_key(row.name);
    T::ROWS.iter().filter(shown).filter(|row| wanted(row.name))
}

impl Layers {
    fn names_of_broker(&self) -> std::collections::BTreeSet<&str> {
        let rows = broker_rows()
            .filter(|row| !row.internal)
            .map(|row| row.name);
        let dynamic = self.cluster.keys().chain(self.this_broker.keys());
        rows.chain(self.given.keys().chain(dynamic).map(String::as_str))
            .collect()
    }

    fn describe_broker(&self, name: &str) -> Described {
        let row = broker_row(name);
        let base = row.or_else(|| listener_base(name));
        let sensitive = base.is_none_or(Row::sensitive);
        let synonyms = match (row, base) {
            (None, Some(base)) => self.synonyms(&[name, base.name], name, sensitive),
            _ => self.synonyms(&family(name), name, sensitive),
        };
        let value = match row {
            _ if sensitive => None,
            Some(row) => self.value(row).to_text(),
            None => self.written(name).and_then(|written| written.value),
        };
        let source = synonyms
            .first()
            .map_or(ConfigSource::Default, |first| first.source);
        Described {
            name: name.to_owned(),
            value,
            source,
            read_only: row.is_none_or(|row| row.scope == Scope::ReadOnly),
            sensitive,
            synonyms,
            config_type: base.map_or(ConfigType::UNKNOWN_CODE, |row| row.config_type.code()),
            documentation: base.map(|row| row.documentation),
        }
    }

    /// The broker's values of `names`, highest first, from the first that is `name`'s own.
    fn synonyms(&self, names: &[&str], name: &str, sensitive: bool) -> Vec<Synonym> {
        let mut found = Vec::new();
        let mut add = |name: &str, value: Option<&str>, source| {
            if let Some(value) = value {
                let value = (!sensitive).then(|| value.to_owned());
                found.push(Synonym {
                    name: name.to_owned(),
                    value,
                    source,
                });
            }
        };
        for name in names {
            let value = self.this_broker.get(*name).map(String::as_str);
            add(name, value, ConfigSource::DynamicBroker);
        }
        for name in names {
            let value = self.cluster.get(*name).map(String::as_str);
            add(name, value, ConfigSource::DynamicDefaultBroker);
        }
        for name in names {
            let value = self
                .given
                .get(*name)
                .map(|property| property.value.as_str());
            add(name, value, ConfigSource::StaticBroker);
        }
        for name in names {
            let value = broker_row(name).and_then(|row| row.default.text());
            add(name, value, ConfigSource::Default);
        }
        found
            .into_iter()
            .skip_while(|synonym| synonym.name != name)
            .collect()
    }

    fn describe_row(
        &self,
        row: &'static Row,
        overrides: &Overrides,
        override_source: ConfigSource,
    ) -> Described {
        let own = overrides
            .get(row.name)
            .and_then(|text| parse(row, text).ok());
        let mut synonyms: Vec<Synonym> = own
            .iter()
            .map(|value| (row.name, value.to_text(), override_source))
            .map(|(name, value, source)| Synonym {
                name: name.to_owned(),
                value,
                source,
            })
            .collect();
        if let Some(fallback) = row.fallbacks.first() {
            synonyms.extend(self.synonyms(&family(fallback.name), fallback.name, row.sensitive()));
        } else if override_source == ConfigSource::Group {
            let value = default_value(row).to_text();
            let name = row.name.to_owned();
            synonyms.push(Synonym {
                name,
                value,
                source: ConfigSource::Default,
            });
        }
        let source = synonyms
            .first()
            .map_or(ConfigSource::Default, |first| first.source);
        Described {
            name: row.name.to_owned(),
            value: own.unwrap_or_else(|| self.inherited(row)).to_text(),
            source,
            read_only: false,
            sensitive: row.sensitive(),
            synonyms,
            config_type: row.config_type.code(),
            documentation: Some(row.documentation),
        }
    }
}

fn describe_dynamic(name: &str, text: &str) -> Described {
    let row = broker_row(name);
    let sensitive = row
        .or_else(|| listener_base(name))
        .is_none_or(Row::sensitive);
    let value = (!sensitive).then(|| text.to_owned());
    let source = ConfigSource::DynamicDefaultBroker;
    Described {
        name: name.to_owned(),
        value: value.clone(),
        source,
        read_only: row.is_none_or(|row| row.scope == Scope::ReadOnly),
        sensitive,
        synonyms: vec![Synonym {
            name: name.to_owned(),
            value,
            source,
        }],
        config_type: row.map_or(ConfigType::UNKNOWN_CODE, |row| row.config_type.code()),
        documentation: row.map(|row| row.documentation),
    }
}

/// The broker names that stand in for one another (`log.retention.ms`, `.minutes`, `.hours`), in
/// order of precedence: what a topic's row falls back to. Otherwise the name alone.
pub(super) fn family(name: &str) -> Vec<&str> {
    let of_one_topic_row = TopicConfig::ROWS.iter().find_map(|row| {
        let names = row.fallbacks.iter().map(|fallback| fallback.name);
        names
            .clone()
            .any(|other| other == name)
            .then(|| names.collect())
    });
    of_one_topic_row.unwrap_or_else(|| vec![name])
}

/// The row that `listener.name.<listener>.<name>` sets for one listener, where `<name>` may begin
/// with a SASL mechanism.
pub(super) fn listener_base(name: &str) -> Option<&'static Row> {
    let (_, suffix) = name.strip_prefix("listener.name.")?.split_once('.')?;
    let of_mechanism = || broker_row(suffix.split_once('.')?.1);
    broker_row(suffix).or_else(of_mechanism)
}
