//! The configuration of this node: its sources in layers, and what they come to.
//!
//! ```text
//! default < built in (no file) < server.properties < KAFKA_* < --override        static
//!         < dynamic, all brokers < dynamic, this broker                          from the cluster
//! ```
//!
//! 1. A static value that is wrong stops the start. A dynamic one was checked when it was set; if
//!    this node cannot read it, the next lower layer counts and a warning says so.
//! 2. `broker.id` and `node.id` are one: where one is set, the other has its value.
//! 3. The typed structs are built from the layers only, so a new dynamic value makes a new
//!    [`NodeConfig`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::broker::{broker_row, broker_rows};
use super::numbers::number_errors;
use super::source::{ONE_REPLICA, SINGLE_NODE};
use super::table::Table;
use super::{
    BrokerConfig, ConfigError, ConfigSource, ConfigValue, ConfigWarning, Conversion, Effect,
    GroupConfig, Listeners, Origin, Overrides, Property, Row, Sources, TopicConfig, Value, checks,
    describe, near,
};

#[derive(Debug, Clone)]
pub struct NodeConfig {
    pub broker: BrokerConfig,
    /// The configuration of a topic without overrides.
    pub topic_defaults: TopicConfig,
    /// The configuration of a group without overrides.
    pub group_defaults: GroupConfig,
    pub listeners: Listeners,
    pub(super) layers: Layers,
}

/// The sources, highest last.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    pub given: Arc<BTreeMap<String, Property>>,
    pub cluster: Arc<Overrides>,
    pub this_broker: Arc<Overrides>,
}

impl NodeConfig {
    /// Whether groups may use the protocol of KIP-848.
    pub fn serves_consumer_groups(&self) -> bool {
        let protocols = &self.broker.group.group_coordinator_rebalance_protocols;
        protocols.iter().any(|protocol| protocol == "consumer")
    }

    /// The configuration at start, and what is worth a line in the log about it; or everything
    /// that is wrong.
    pub fn load(sources: Sources) -> Result<(NodeConfig, Vec<ConfigWarning>), Vec<ConfigError>> {
        let mut warnings = Vec::new();
        match NodeConfig::read(sources, &mut warnings) {
            Ok(node) => Ok((node, warnings)),
            Err(mut errors) => {
                let unknown = |warning: &_| matches!(warning, ConfigWarning::Unknown { .. });
                let unknown = warnings.into_iter().filter(unknown);
                errors.extend(unknown.map(|name| ConfigError::Unknown(Box::new(name))));
                Err(errors)
            }
        }
    }

    fn read(
        sources: Sources,
        warnings: &mut Vec<ConfigWarning>,
    ) -> Result<NodeConfig, Vec<ConfigError>> {
        let alone = sources.file.is_none() && !names_a_quorum(&sources);
        let given = Arc::new(merge(sources, alone));
        let mut errors = Vec::new();
        for property in given.values() {
            match broker_row(&property.name) {
                Some(row) => check_given(row, property, &mut errors, warnings),
                None => warnings.push(unknown(property)),
            }
        }
        for row in broker_rows().filter(|row| row.default == super::DefaultValue::Required) {
            if !given.contains_key(row.name) {
                errors.push(ConfigError::Missing {
                    name: row.name,
                    hint: checks::hint(row.name),
                });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let layers = Layers {
            given,
            cluster: Arc::new(Overrides::new()),
            this_broker: Arc::new(Overrides::new()),
        };
        let broker = BrokerConfig::build(&|row| layers.value(row));
        let is_set = |name: &str| layers.given.contains_key(name);
        let placed = |error: ConfigError| error.placed(&layers.given);
        let listeners = Listeners::read(&broker, &is_set).map_err(|error| vec![placed(error)])?;
        errors.extend(checks::start_errors(&broker, &listeners, &is_set, alone));
        let node = NodeConfig::from_layers(layers, listeners);
        let numbers = number_errors(&node).into_iter();
        errors.extend(numbers.map(|reason| ConfigError::Conflict { reason }));
        if errors.is_empty() {
            Ok(node)
        } else {
            let placed = |error: ConfigError| error.placed(&node.layers.given);
            Err(errors.into_iter().map(placed).collect())
        }
    }

    /// The same node under other dynamic values: those of all brokers and those of this one.
    pub fn with_dynamic(
        &self,
        cluster: Overrides,
        this_broker: Overrides,
    ) -> (NodeConfig, Vec<ConfigWarning>) {
        let mut warnings = Vec::new();
        for (name, text) in cluster.iter().chain(&this_broker) {
            let parsed = broker_row(name).map(|row| parse(row, text));
            if let Some(Err(error)) = parsed {
                warnings.push(ConfigWarning::Dynamic(error));
            }
        }
        let layers = Layers {
            given: self.layers.given.clone(),
            cluster: Arc::new(cluster),
            this_broker: Arc::new(this_broker),
        };
        let mut node = NodeConfig::from_layers(layers, self.listeners.clone());
        if node.advertised_is_altered() {
            match node.read_listeners() {
                Ok(listeners) => node.listeners = listeners,
                Err(error) => warnings.push(ConfigWarning::Dynamic(error)),
            }
        }
        (node, warnings)
    }

    /// Whether clients are told what fits the way they came.
    pub fn tells_the_way(&self) -> bool {
        self.broker.network.klamm_advertised_mode == "follow"
    }

    /// The cluster that the directories have to belong to, and where that is said.
    pub fn cluster_id(&self) -> Option<(&str, &Origin)> {
        let cluster_id = self.broker.identity.klamm_cluster_id.as_deref()?;
        let given = self.layers.given.get("klamm.cluster.id")?;
        Some((cluster_id, &given.origin))
    }

    /// Whether `advertised.listeners` is no longer that of the start.
    pub fn advertised_is_altered(&self) -> bool {
        let is_set = self.layers.this_broker.contains_key("advertised.listeners");
        is_set && self.broker.network.klamm_advertised_dynamic
    }

    /// The listeners that the present values come to.
    pub(super) fn read_listeners(&self) -> Result<Listeners, ConfigError> {
        Listeners::read(&self.broker, &|name| self.layers.given.contains_key(name))
    }

    fn from_layers(layers: Layers, listeners: Listeners) -> NodeConfig {
        NodeConfig {
            broker: BrokerConfig::build(&|row| layers.value(row)),
            topic_defaults: TopicConfig::build(&|row| layers.inherited(row)),
            group_defaults: GroupConfig::build(&|row| layers.inherited(row)),
            listeners,
            layers,
        }
    }

    /// The configuration of a topic. Overrides were checked when they were set; one that this node
    /// cannot read counts as not set.
    pub fn topic(&self, overrides: &Overrides) -> TopicConfig {
        with_overrides(&self.topic_defaults, overrides)
    }

    pub fn group(&self, overrides: &Overrides) -> GroupConfig {
        with_overrides(&self.group_defaults, overrides)
    }

    /// What a broker configuration is now, and where that was said; `None` for a name that is
    /// neither known nor set.
    pub fn value(&self, name: &str) -> Option<ConfigValue> {
        self.layers.written(name)
    }

    /// Whether the operator has set this name.
    pub fn is_given(&self, name: &str) -> bool {
        self.layers.given.contains_key(name)
    }

    /// The static values by name, each with its origin: what the start logs. Secrets are hidden,
    /// and strangers too, since they may be secrets.
    pub fn given(&self) -> impl Iterator<Item = (&str, &str, &Origin)> {
        self.layers.given.values().map(|property| {
            let row = broker_row(&property.name);
            let value = shown(row.is_none_or(Row::sensitive), &property.value);
            (property.name.as_str(), value, &property.origin)
        })
    }
}

fn shown(hidden: bool, value: &str) -> &str {
    if hidden { "(hidden)" } else { value }
}

fn with_overrides<T: Table + Clone>(defaults: &T, overrides: &Overrides) -> T {
    let mut config = defaults.clone();
    for (name, text) in overrides {
        if let Some(row) = T::ROWS.iter().find(|row| row.name == name)
            && let Ok(value) = parse(row, text)
        {
            config.set(name, value);
        }
    }
    config
}

impl Layers {
    /// The text of the highest layer that has `name`.
    pub fn written(&self, name: &str) -> Option<ConfigValue> {
        let text = |text: &String| Some(text.clone());
        if let Some(value) = self.this_broker.get(name) {
            return Some(ConfigValue {
                value: text(value),
                source: ConfigSource::DynamicBroker,
            });
        }
        if let Some(value) = self.cluster.get(name) {
            let source = ConfigSource::DynamicDefaultBroker;
            return Some(ConfigValue {
                value: text(value),
                source,
            });
        }
        if let Some(property) = self.given.get(name) {
            let source = ConfigSource::StaticBroker;
            return Some(ConfigValue {
                value: text(&property.value),
                source,
            });
        }
        broker_row(name).map(|row| ConfigValue {
            value: row.default.text().map(str::to_owned),
            source: ConfigSource::Default,
        })
    }

    /// The value of a broker row.
    pub fn value(&self, row: &'static Row) -> Value {
        let given = self.given.get(row.name).map(|property| &property.value);
        let given = given.filter(|_| !self.sibling_is_dynamic(row.name));
        let texts = [
            self.this_broker.get(row.name),
            self.cluster.get(row.name),
            given,
        ];
        let set = texts
            .into_iter()
            .flatten()
            .find_map(|text| parse(row, text).ok());
        set.unwrap_or_else(|| default_value(row))
    }

    /// As Kafka has it: a dynamic `log.retention.ms` takes the static values of its whole family
    /// out, so that `log.retention.minutes` cannot come before it.
    fn sibling_is_dynamic(&self, name: &str) -> bool {
        let is_dynamic =
            |name: &&str| self.cluster.contains_key(*name) || self.this_broker.contains_key(*name);
        describe::family(name).iter().any(is_dynamic)
    }

    /// The value of a topic's or a group's row without an override: that of the first broker name
    /// that has one.
    pub fn inherited(&self, row: &'static Row) -> Value {
        for fallback in row.fallbacks {
            let source = broker_row(fallback.name).expect("a fallback is a broker's row");
            let value = convert(self.value(source), fallback.conversion);
            if value != Value::Null {
                return widened(value, row);
            }
        }
        default_value(row)
    }
}

/// The value of a row that nobody has set. Null where it must be set, which the start has checked.
pub(super) fn default_value(row: &Row) -> Value {
    row.default.text().map_or(Value::Null, |text| {
        Value::parse(row.config_type, text).expect("a test parses every default")
    })
}

/// Reads and checks the value of a row. Blank and repeated items of a list are dropped.
pub(super) fn parse(row: &Row, text: &str) -> Result<Value, ConfigError> {
    let invalid = |value: String, reason: String| {
        let name = row.name.to_owned();
        ConfigError::Invalid {
            name,
            value,
            reason,
            origin: None,
        }
    };
    let value = Value::parse(row.config_type, text)
        .map_err(|reason| invalid(text.to_owned(), reason))?
        .tidied();
    let checked = row.valid.check(row.name, &value);
    checked.map_err(|wrong| invalid(wrong.value, wrong.reason))?;
    Ok(value)
}

fn convert(value: Value, conversion: Conversion) -> Value {
    const MINUTE_MS: i64 = 60 * 1000;
    match (conversion, value) {
        (Conversion::Minutes, Value::Int(minutes)) => to_ms(minutes, MINUTE_MS),
        (Conversion::Hours, Value::Int(hours)) => to_ms(hours, 60 * MINUTE_MS),
        (Conversion::FirstItem, Value::List(items)) => {
            items.into_iter().next().map_or(Value::Null, Value::Text)
        }
        (_, value) => value,
    }
}

/// Anything below zero is "no limit", which is -1 in milliseconds too.
fn to_ms(count: i32, unit_ms: i64) -> Value {
    Value::Long(if count < 0 {
        -1
    } else {
        i64::from(count) * unit_ms
    })
}

/// An int of the broker where the topic has a long.
fn widened(value: Value, row: &Row) -> Value {
    match (row.config_type, value) {
        (super::ConfigType::Long, Value::Int(value)) => Value::Long(i64::from(value)),
        (_, value) => value,
    }
}

fn names_a_quorum(sources: &Sources) -> bool {
    let given = sources.environment.iter().chain(&sources.arguments);
    let quorum = [
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
    ];
    given
        .into_iter()
        .any(|property| quorum.contains(&property.name.as_str()))
}

/// The static layers in one, later ones over earlier ones.
fn merge(sources: Sources, alone: bool) -> BTreeMap<String, Property> {
    let built_in = |pairs: &'static [(&str, &str)]| {
        pairs.iter().map(|(name, value)| Property {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            origin: Origin::BuiltIn,
        })
    };
    let mut given = BTreeMap::new();
    let mut add = |property: Property| given.insert(property.name.clone(), property);
    let is_given = |name: &str| {
        let all = sources.environment.iter().chain(&sources.arguments);
        all.into_iter().any(|property| property.name == name)
    };
    if sources.file.is_none() {
        // What is given by its other name is given.
        let others = [("node.id", "broker.id"), ("log.dirs", "log.dir")];
        let is_given_otherwise = |name: &str| {
            let mut others = others.iter();
            others.any(|(one, other)| *one == name && is_given(other))
        };
        built_in(SINGLE_NODE)
            .filter(|property| !is_given_otherwise(&property.name))
            .for_each(|property| {
                add(property);
            });
    }
    if alone {
        built_in(ONE_REPLICA).for_each(|property| {
            add(property);
        });
    }
    let file = sources.file.into_iter().flatten();
    for property in file.chain(sources.environment).chain(sources.arguments) {
        add(property);
    }
    for (one, other) in [("broker.id", "node.id"), ("node.id", "broker.id")] {
        if !given.contains_key(other)
            && let Some(property) = given.get(one).cloned()
        {
            given.insert(
                other.to_owned(),
                Property {
                    name: other.to_owned(),
                    ..property
                },
            );
        }
    }
    given
}

fn check_given(
    row: &'static Row,
    property: &Property,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<ConfigWarning>,
) {
    let value = match parse(row, &property.value) {
        Ok(value) => value,
        Err(error) => return errors.push(error.at(&property.origin)),
    };
    if value == default_value(row) {
        return;
    }
    let shown = shown(row.sensitive(), &property.value).to_owned();
    let (name, origin) = (row.name.to_owned(), property.origin.clone());
    match row.effect {
        Effect::Applied => {}
        // Nobody asked for what is built in.
        Effect::NoEffect(_) if matches!(origin, Origin::BuiltIn) => {}
        Effect::NoEffect(reason) => {
            warnings.push(ConfigWarning::NoEffect {
                name,
                value: shown,
                reason,
                origin,
            });
        }
        Effect::Refused(reason) => {
            let origin = Some(origin);
            errors.push(ConfigError::Refused {
                name,
                value: shown,
                reason,
                origin,
            });
        }
    }
}

/// A name that is in no table: one of a listener's own, or a stranger.
fn unknown(property: &Property) -> ConfigWarning {
    let (name, origin) = (property.name.clone(), property.origin.clone());
    match describe::listener_base(&name) {
        Some(row) => {
            let value = shown(row.sensitive(), &property.value).to_owned();
            let reason = "a listener has no configuration of its own";
            ConfigWarning::NoEffect {
                name,
                value,
                reason,
                origin,
            }
        }
        None => {
            let similar = near::nearest(&name, broker_rows().map(|row| row.name));
            ConfigWarning::Unknown {
                name,
                similar,
                origin,
            }
        }
    }
}
