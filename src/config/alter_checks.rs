//! What an altered resource is held against, resource by resource.
//!
//! 1. A set of overrides is checked as a whole: a value may only be wrong beside another.
//! 2. Codes are Kafka's: a topic or a group answers INVALID_CONFIG, a broker INVALID_REQUEST.

use std::collections::BTreeSet;

use super::alter::{Rejection, ResourceType};
use super::broker::broker_row;
use super::describe::listener_base;
use super::group_ranges::GROUP_RANGES;
use super::node::{NodeConfig, default_value, parse};
use super::numbers::number_errors;
use super::table::Table;
use super::value::trim;
use super::{
    ClientMetricsConfig, ConfigError, Effect, FromValue, GroupConfig, Overrides, Row, Scope,
    TopicConfig, Value,
};

impl NodeConfig {
    pub(super) fn check(
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

    pub(super) fn check_topic(&self, overrides: &Overrides) -> Result<(), Rejection> {
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
        let is_fixed = |name: &str, row: &Row| {
            row.scope == Scope::ReadOnly && !self.may_alter_advertised(name)
        };
        let fixed = known().filter(|(name, row)| is_fixed(name, row));
        let fixed: Vec<&String> = fixed.map(|(name, _)| name).collect();
        let not_dynamic = |names: Vec<&String>| {
            Err(Rejection::request(format!(
                "Cannot update these configs dynamically: [{}]",
                listed(names)
            )))
        };
        if !fixed.is_empty() {
            return not_dynamic(fixed);
        }
        check_security(overrides)?;
        let of_one = |name: &&String| {
            let row = broker_row(name).or_else(|| listener_base(name));
            row.is_some_and(|row| row.scope == Scope::PerBroker) || self.may_alter_advertised(name)
        };
        let of_one: Vec<&String> = overrides.keys().filter(of_one).collect();
        if name.is_empty() && !of_one.is_empty() {
            return Err(Rejection::request(format!(
                "Cannot update these configs at default cluster level, broker id must be \
                 specified: [{}]",
                listed(of_one)
            )));
        }
        let bound: Vec<&String> = overrides.keys().filter(|name| is_bound(name)).collect();
        if !bound.is_empty() && self.changes_sockets(overrides)? {
            return not_dynamic(bound);
        }
        for (name, row) in known() {
            let value = strict(row, &overrides[name]);
            let value = value.map_err(|error| Rejection::request(error.to_string()))?;
            if let Effect::Refused(reason) = row.effect
                && value != default_value(row)
            {
                return Err(Rejection::request(format!(
                    "{name} is not supported: {reason}"
                )));
            }
        }
        if let Some(count) = overrides
            .get("max.connections")
            .filter(|text| trim(text) == "0")
        {
            return Err(Rejection::request(format!(
                "Invalid max.connections {count}"
            )));
        }
        self.check_threads(overrides)?;
        let layers = &self.layers;
        let dynamic = match name {
            "" => (overrides.clone(), (*layers.this_broker).clone()),
            _ => ((*layers.cluster).clone(), overrides.clone()),
        };
        let (altered, _) = self.with_dynamic(dynamic.0, dynamic.1);
        if altered.advertised_is_altered() {
            let read = altered.read_listeners();
            read.map_err(|error| Rejection::request(error.to_string()))?;
        }
        let new_errors = number_errors(&altered).into_iter().next();
        new_errors.map_or(Ok(()), |reason| Err(Rejection::request(reason)))
    }

    /// Whether other sockets would have to be bound, or what is wrong with the listeners.
    fn changes_sockets(&self, overrides: &Overrides) -> Result<bool, Rejection> {
        let cluster = (*self.layers.cluster).clone();
        let (altered, _) = self.with_dynamic(cluster, overrides.clone());
        let read = altered.read_listeners();
        let listeners = read.map_err(|error| Rejection::request(error.to_string()))?;
        if altered.broker.is_controller() && listeners.controller().next().is_none() {
            return Err(Rejection::request(
                "requirement failed: controller.listener.names must contain at least one value \
                 appearing in the 'listeners' configuration when running the KRaft controller role",
            ));
        }
        Ok(listeners.bound != self.listeners.bound)
    }

    /// With ZooKeeper a broker's address could be altered while it runs.
    fn may_alter_advertised(&self, name: &str) -> bool {
        name == "advertised.listeners" && self.broker.network.klamm_advertised_dynamic
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

fn listed(names: Vec<&String>) -> String {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    names.join(", ")
}

fn check_security(overrides: &Overrides) -> Result<(), Rejection> {
    let of_listeners: Vec<&String> = overrides
        .keys()
        .filter(|name| name.starts_with("ssl.") && broker_row(name).is_some())
        .collect();
    match of_listeners.is_empty() {
        true => Ok(()),
        false => Err(Rejection::request(format!(
            "These security configs can be dynamically updated only per-listener using the \
             listener prefix: [{}]",
            listed(of_listeners)
        ))),
    }
}

/// Kafka changes these while it runs; here the sockets are bound once, at start.
fn is_bound(name: &str) -> bool {
    matches!(name, "listeners" | "listener.security.protocol.map")
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
