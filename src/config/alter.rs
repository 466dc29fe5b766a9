//! AlterConfigs, IncrementalAlterConfigs and the configurations of CreateTopics: what is taken,
//! and Kafka's code and sentence for what is not.
//!
//! 1. A request changes all of its names or none.
//! 2. What comes out is checked as a whole, together with what the resource already had.

use std::collections::{BTreeMap, BTreeSet};

use super::broker::broker_row;
use super::node::NodeConfig;
use super::table::Table;
use super::{ClientMetricsConfig, ConfigType, GroupConfig, Overrides, Row, TopicConfig};
use crate::types::ErrorCode;

/// A resource that has configurations, with its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ResourceType {
    Topic = 2,
    /// One broker, or with an empty name all of them.
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceType {
    pub const fn code(self) -> i8 {
        self as i8
    }

    pub fn from_code(code: i8) -> Option<ResourceType> {
        use ResourceType::{Broker, BrokerLogger, ClientMetrics, Group, Topic};
        let all = [Topic, Broker, BrokerLogger, ClientMetrics, Group];
        all.into_iter().find(|resource| resource.code() == code)
    }
}

/// What to do with a name, with its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum AlterOp {
    Set = 0,
    Delete = 1,
    Append = 2,
    Subtract = 3,
}

impl AlterOp {
    pub fn from_code(code: i8) -> Option<AlterOp> {
        use AlterOp::{Append, Delete, Set, Subtract};
        let all = [Set, Delete, Append, Subtract];
        all.into_iter().find(|op| *op as i8 == code)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alteration {
    pub name: String,
    /// The code on the wire: an unknown one is answered, not refused at decoding.
    pub op: i8,
    pub value: Option<String>,
}

/// The names that change: a new value, or none for a name that is no longer set.
pub type Changes = BTreeMap<String, Option<String>>;

/// Kafka's answer to what is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Rejection {
    fn new(code: ErrorCode, message: impl Into<String>) -> Rejection {
        Rejection {
            code,
            message: Some(message.into()),
        }
    }

    pub(super) fn config(message: impl Into<String>) -> Rejection {
        Rejection::new(ErrorCode::InvalidConfig, message)
    }

    pub(super) fn request(message: impl Into<String>) -> Rejection {
        Rejection::new(ErrorCode::InvalidRequest, message)
    }
}

/// The name of a broker resource that a request at node `node_id` may name: its own id, or none
/// for all brokers.
pub fn check_broker_name(name: &str, node_id: i32) -> Result<(), Rejection> {
    if name.is_empty() {
        return Ok(());
    }
    match name.parse::<i32>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(id) => Err(Rejection::request(format!(
            "Unexpected broker id, expected {node_id}, but received {id}"
        ))),
        Err(_) => Err(Rejection::request(format!(
            "Node id must be an integer, but it is: {name}"
        ))),
    }
}

impl NodeConfig {
    /// What `alterations` change of a resource that has `current` set. Whether a topic exists, or
    /// whose broker id `name` is, is for the caller. `elr` says that eligible leader replicas are
    /// on, which keeps `min.insync.replicas` a matter of the cluster.
    pub fn alter(
        &self,
        resource: ResourceType,
        name: &str,
        current: &Overrides,
        alterations: &[Alteration],
        elr: bool,
    ) -> Result<Changes, Rejection> {
        check_names(alterations.iter().map(|a| a.name.as_str()))?;
        let takes_value = |a: &&Alteration| a.op != AlterOp::Delete as i8 && a.value.is_none();
        check_no_nulls(
            alterations
                .iter()
                .filter(takes_value)
                .map(|a| a.name.as_str()),
        )?;
        let mut altered = current.clone();
        for alteration in alterations {
            apply(resource, &mut altered, alteration)?;
        }
        let touched = alterations.iter().map(|a| a.name.as_str()).collect();
        self.check(resource, name, current, &altered, &touched, elr)?;
        Ok(changes(current, altered))
    }

    /// Legacy AlterConfigs: `values` are all that is set from now on.
    pub fn replace(
        &self,
        resource: ResourceType,
        name: &str,
        current: &Overrides,
        values: &[(String, Option<String>)],
        elr: bool,
    ) -> Result<Changes, Rejection> {
        check_names(values.iter().map(|(name, _)| name.as_str()))?;
        check_no_nulls(
            values
                .iter()
                .filter(|(_, v)| v.is_none())
                .map(|(name, _)| name.as_str()),
        )?;
        let pairs = values
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let altered: Overrides = pairs.collect();
        let touched = altered.keys().map(String::as_str).collect();
        self.check(resource, name, current, &altered, &touched, elr)?;
        Ok(changes(current, altered))
    }

    /// The overrides of a topic that is made with `values`; of a name given twice the last counts.
    pub fn topic_overrides(
        &self,
        values: &[(String, Option<String>)],
    ) -> Result<Overrides, Rejection> {
        let nulls = values.iter().filter(|(_, value)| value.is_none());
        let nulls: Vec<&str> = nulls.map(|(name, _)| name.as_str()).collect();
        if !nulls.is_empty() {
            let message = format!(
                "Null value not supported for topic configs: {}",
                nulls.join(",")
            );
            return Err(Rejection::config(message));
        }
        let pairs = values
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let overrides: Overrides = pairs.collect();
        self.check_topic(&overrides)?;
        Ok(overrides)
    }
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Rejection::request("Error due to duplicate config keys"));
        }
    }
    Ok(())
}

fn check_no_nulls<'a>(nulls: impl Iterator<Item = &'a str>) -> Result<(), Rejection> {
    let nulls: Vec<&str> = nulls.collect();
    if nulls.is_empty() {
        return Ok(());
    }
    Err(Rejection::request(format!(
        "Null value not supported for : {}",
        nulls.join(", ")
    )))
}

/// The row of a name that a resource of this type may have.
pub fn find_row(resource: ResourceType, name: &str) -> Option<&'static Row> {
    let rows = match resource {
        ResourceType::Broker => return broker_row(name),
        ResourceType::Topic => TopicConfig::ROWS,
        ResourceType::Group => GroupConfig::ROWS,
        ResourceType::ClientMetrics => ClientMetricsConfig::ROWS,
        ResourceType::BrokerLogger => &[],
    };
    rows.iter().find(|row| row.name == name)
}

/// The list that may be appended to.
fn list_row(resource: ResourceType, name: &str) -> Option<&'static Row> {
    // Kafka does not append to the lists of the others.
    let has_lists = matches!(resource, ResourceType::Topic | ResourceType::Broker);
    let row = find_row(resource, name).filter(|_| has_lists);
    row.filter(|row| row.config_type == ConfigType::List)
}

fn apply(
    resource: ResourceType,
    overrides: &mut Overrides,
    alteration: &Alteration,
) -> Result<(), Rejection> {
    let name = &alteration.name;
    let value = alteration.value.clone().unwrap_or_default();
    let unknown = Rejection {
        code: ErrorCode::UnknownServerError,
        message: None,
    };
    let op = AlterOp::from_code(alteration.op).ok_or(unknown)?;
    let (word, verb) = match op {
        AlterOp::Set => {
            overrides.insert(name.clone(), value);
            return Ok(());
        }
        AlterOp::Delete => {
            overrides.remove(name);
            return Ok(());
        }
        AlterOp::Append => ("APPEND", "append"),
        AlterOp::Subtract => ("SUBTRACT", "subtract"),
    };
    let Some(row) = list_row(resource, name) else {
        return Err(Rejection::config(match resource {
            ResourceType::Broker if broker_row(name).is_none() => {
                format!("Unknown config name: {name}")
            }
            ResourceType::Broker => {
                format!("Config value {verb} is not allowed for config key: {name}")
            }
            _ => format!("Can't {word} to key {name} because its type is not LIST."),
        }));
    };
    let present = overrides
        .get(name)
        .map_or(row.default.text().unwrap_or(""), String::as_str);
    let mut items: Vec<&str> = match present {
        "" => Vec::new(),
        items => items.split(',').collect(),
    };
    for item in value.split(',') {
        let place = items.iter().position(|present| *present == item);
        match (op, place) {
            (AlterOp::Append, None) => items.push(item),
            (AlterOp::Subtract, Some(place)) => {
                items.remove(place);
            }
            _ => {}
        }
    }
    let items = items.join(",");
    overrides.insert(name.clone(), items);
    Ok(())
}

fn changes(current: &Overrides, altered: Overrides) -> Changes {
    let removed = current.keys().filter(|name| !altered.contains_key(*name));
    let mut changes: Changes = removed.map(|name| (name.clone(), None)).collect();
    let set = altered
        .into_iter()
        .filter(|(name, value)| current.get(name) != Some(value));
    changes.extend(set.map(|(name, value)| (name, Some(value))));
    changes
}
