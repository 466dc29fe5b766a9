//! AlterConfigs, IncrementalAlterConfigs and the configurations of CreateTopics: what is taken, and
//! Kafka's code and sentence for what is not.
//!
//! 1. A request changes all of its names or none.
//! 2. What comes out is checked as a whole, together with what the resource already had.

use std::collections::{BTreeMap, BTreeSet};

use super::broker::broker_row;
use super::describe::listener_base;
use super::group_ranges::GROUP_RANGES;
use super::node::{NodeConfig, parse};
use super::table::Table;
use super::value::trim;
use super::{
    ClientMetricsConfig, ConfigError, ConfigType, FromValue, GroupConfig, Overrides, Row, Scope,
    TopicConfig, Value,
};
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

    fn config(message: impl Into<String>) -> Rejection {
        Rejection::new(ErrorCode::InvalidConfig, message)
    }

    fn request(message: impl Into<String>) -> Rejection {
        Rejection::new(ErrorCode::InvalidRequest, message)
    }
}

/// The name of a broker resource that a request at node `node_id` may name: its own id, or none for
/// all brokers.
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

    fn check(
        &self,
        resource: ResourceType,
        name: &str,
        current: &Overrides,
        altered: &Overrides,
        touched: &BTreeSet<&str>,
        elr: bool,
    ) -> Result<(), Rejection> {
        match resource {
            ResourceType::Topic if name.is_empty() => Err(Rejection::request(
                "Default topic resources are not allowed.",
            )),
            ResourceType::Topic => self.check_topic(altered),
            ResourceType::Group if name.is_empty() => Err(Rejection::request(
                "Default group resources are not allowed.",
            )),
            ResourceType::Group => self.check_group(altered),
            ResourceType::ClientMetrics if name.is_empty() => {
                Err(Rejection::request("Subscription name can't be empty"))
            }
            ResourceType::ClientMetrics => check_client_metrics(altered),
            ResourceType::Broker => {
                self.check_broker(name, altered)?;
                if elr {
                    check_min_isr(name, current, altered, touched)
                } else {
                    Ok(())
                }
            }
            ResourceType::BrokerLogger => Err(Rejection::request(
                "Loggers are altered at the broker that has them",
            )),
        }
    }

    fn check_topic(&self, overrides: &Overrides) -> Result<(), Rejection> {
        check_rows::<TopicConfig>(overrides, "topic")?;
        let topic = self.topic(overrides);
        if topic.remote_storage_enable {
            return Err(Rejection::config(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                 configured with remote log storage.",
            ));
        }
        let (min, max) = (topic.min_compaction_lag_ms, topic.max_compaction_lag_ms);
        if min > max {
            return Err(Rejection::config(format!(
                "conflict topic config setting min.compaction.lag.ms ({min}) > \
                 max.compaction.lag.ms ({max})"
            )));
        }
        Ok(())
    }

    fn check_group(&self, overrides: &Overrides) -> Result<(), Rejection> {
        check_rows::<GroupConfig>(overrides, "group")?;
        for range in GROUP_RANGES {
            let Some(value) = overrides
                .get(range.name)
                .and_then(|text| trim(text).parse().ok())
            else {
                continue;
            };
            let limit = |name: &str| {
                let row = broker_row(name).expect("a limit is a broker's row");
                i32::from_value(self.layers.value(row))
            };
            if let Some(outside) = range.outside(value, &limit) {
                return Err(Rejection::config(outside));
            }
        }
        self.check_group_words(overrides)
    }

    fn check_group_words(&self, overrides: &Overrides) -> Result<(), Rejection> {
        let group = self.group(overrides);
        for (kind, session, heartbeat) in [
            (
                "consumer",
                group.consumer_session_timeout_ms,
                group.consumer_heartbeat_interval_ms,
            ),
            (
                "share",
                group.share_session_timeout_ms,
                group.share_heartbeat_interval_ms,
            ),
            (
                "streams",
                group.streams_session_timeout_ms,
                group.streams_heartbeat_interval_ms,
            ),
        ] {
            if session <= heartbeat {
                return Err(Rejection::config(format!(
                    "{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
                )));
            }
        }
        let assignors = &self.broker.streams.group_streams_assignors;
        if let Some(assignor) = overrides.get("streams.assignor.name")
            && !assignors.iter().any(|known| known == trim(assignor))
        {
            return Err(Rejection::config(format!(
                "streams.assignor.name '{assignor}' is not a registered task assignor. Registered \
                 assignors are: [{}].",
                assignors.join(", ")
            )));
        }
        if group.errors_deadletterqueue_topic_name.starts_with("__") {
            return Err(Rejection::config(
                "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
            ));
        }
        Ok(())
    }

    fn check_broker(&self, name: &str, overrides: &Overrides) -> Result<(), Rejection> {
        let known = || {
            overrides
                .keys()
                .filter_map(|name| Some((name, broker_row(name)?)))
        };
        let listed = |names: Vec<&String>| {
            let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
            names.join(", ")
        };
        let fixed = known().filter(|(name, row)| row.scope == Scope::ReadOnly || is_bound(name));
        let fixed: Vec<&String> = fixed.map(|(name, _)| name).collect();
        if !fixed.is_empty() {
            return Err(Rejection::request(format!(
                "Cannot update these configs dynamically: [{}]",
                listed(fixed)
            )));
        }
        let of_listeners: Vec<&String> = known()
            .map(|(name, _)| name)
            .filter(|name| name.starts_with("ssl."))
            .collect();
        if !of_listeners.is_empty() {
            return Err(Rejection::request(format!(
                "These security configs can be dynamically updated only per-listener using the \
                 listener prefix: [{}]",
                listed(of_listeners)
            )));
        }
        let of_one = |name: &&String| {
            let row = broker_row(name).or_else(|| listener_base(name));
            row.is_some_and(|row| row.scope == Scope::PerBroker)
        };
        let of_one: Vec<&String> = overrides.keys().filter(of_one).collect();
        if name.is_empty() && !of_one.is_empty() {
            return Err(Rejection::request(format!(
                "Cannot update these configs at default cluster level, broker id must be \
                 specified: [{}]",
                listed(of_one)
            )));
        }
        for (name, row) in known() {
            strict(row, &overrides[name]).map_err(|e| Rejection::request(e.to_string()))?;
        }
        self.check_threads(overrides)
    }

    /// Kafka lets a pool at most double or halve in one step.
    fn check_threads(&self, overrides: &Overrides) -> Result<(), Rejection> {
        for name in THREADS {
            let row = broker_row(name).expect("a pool of threads is a broker's row");
            let Some(text) = overrides.get(*name) else {
                continue;
            };
            let current = i64::from(i32::from_value(self.layers.value(row)));
            let Ok(wanted) = trim(text).parse::<i64>() else {
                continue;
            };
            let failed = |rule: &str| {
                Err(Rejection::request(format!(
                    "Dynamic thread count update validation failed for {name}={wanted}, value \
                     should {rule} the current value {current}"
                )))
            };
            if wanted > current * 2 {
                return failed("not be greater than double");
            }
            if wanted < current / 2 {
                return failed("be at least half");
            }
        }
        Ok(())
    }
}

const THREADS: &[&str] = &[
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
];

/// Kafka changes these while it runs; here the sockets are bound once, at start.
fn is_bound(name: &str) -> bool {
    matches!(name, "listeners" | "listener.security.protocol.map")
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
        nulls.join(",")
    )))
}

fn row_of(resource: ResourceType, name: &str) -> Option<&'static Row> {
    match resource {
        ResourceType::Topic => TopicConfig::ROWS.iter().find(|row| row.name == name),
        ResourceType::Broker => broker_row(name),
        // Kafka does not append to the lists of the others.
        ResourceType::Group | ResourceType::ClientMetrics | ResourceType::BrokerLogger => None,
    }
}

fn apply(
    resource: ResourceType,
    overrides: &mut Overrides,
    alteration: &Alteration,
) -> Result<(), Rejection> {
    let name = &alteration.name;
    let value = alteration.value.clone().unwrap_or_default();
    let (word, verb) = match alteration.op {
        0 => {
            overrides.insert(name.clone(), value);
            return Ok(());
        }
        1 => {
            overrides.remove(name);
            return Ok(());
        }
        2 => ("APPEND", "append"),
        3 => ("SUBTRACT", "subtract"),
        _ => {
            return Err(Rejection {
                code: ErrorCode::UnknownServerError,
                message: None,
            });
        }
    };
    let row = row_of(resource, name).filter(|row| row.config_type == ConfigType::List);
    let Some(row) = row else {
        return Err(Rejection::config(match resource {
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
        match (word, place) {
            ("APPEND", None) => items.push(item),
            ("SUBTRACT", Some(place)) => {
                items.remove(place);
            }
            _ => {}
        }
    }
    let items = items.join(",");
    overrides.insert(name.clone(), items);
    Ok(())
}

/// Reads and checks a value as a topic or a group takes it: without blank items.
fn strict(row: &Row, text: &str) -> Result<Value, ConfigError> {
    let may_have_blanks = row.valid == super::Valid::ThrottledReplicas;
    let parsed = Value::parse(row.config_type, text);
    if !may_have_blanks && parsed.is_ok_and(|value| value.has_blanks()) {
        return Err(ConfigError::BlankItem {
            name: row.name.to_owned(),
        });
    }
    parse(row, text)
}

fn check_rows<T: Table>(overrides: &Overrides, kind: &str) -> Result<(), Rejection> {
    let row_of = |name: &str| T::ROWS.iter().find(|row| row.name == name);
    if let Some(name) = overrides.keys().find(|name| row_of(name).is_none()) {
        return Err(Rejection::config(format!(
            "Unknown {kind} config name: {name}"
        )));
    }
    for (name, text) in overrides {
        if let Some(row) = row_of(name) {
            strict(row, text).map_err(|error| Rejection::config(error.to_string()))?;
        }
    }
    Ok(())
}

fn check_client_metrics(overrides: &Overrides) -> Result<(), Rejection> {
    let row_of = |name: &str| {
        ClientMetricsConfig::ROWS
            .iter()
            .find(|row| row.name == name)
    };
    for (name, text) in overrides {
        let Some(row) = row_of(name) else {
            return Err(Rejection::request(format!(
                "Unknown client metrics configuration: {name}"
            )));
        };
        let value = strict(row, text).map_err(|error| Rejection::config(error.to_string()))?;
        match value {
            Value::Int(ms) if !(100..=3_600_000).contains(&ms) => {
                return Err(Rejection::request(format!(
                    "Invalid value {ms} for interval.ms, interval must be between 100 and 3600000 \
                     (1 hour)"
                )));
            }
            Value::List(patterns) if name == "match" => {
                if let Some(pattern) = patterns.iter().find(|pattern| !is_match(pattern)) {
                    let message = format!("Illegal client matching pattern: {pattern}");
                    return Err(Rejection::config(message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a subscription may match clients by.
const MATCHED: &[&str] = &[
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

fn is_match(pattern: &str) -> bool {
    pattern.split_once('=').is_some_and(|(name, expression)| {
        MATCHED.contains(&trim(name)) && !trim(expression).is_empty()
    })
}

fn check_min_isr(
    name: &str,
    current: &Overrides,
    altered: &Overrides,
    touched: &BTreeSet<&str>,
) -> Result<(), Rejection> {
    const NAME: &str = "min.insync.replicas";
    if name.is_empty() {
        if current.contains_key(NAME) && !altered.contains_key(NAME) {
            return Err(Rejection::config(
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            ));
        }
    } else if touched.contains(NAME) && current.get(NAME) != altered.get(NAME) {
        return Err(Rejection::config(
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ));
    }
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
