//! Listeners: what `listeners`, `advertised.listeners` and the names that belong to them say.
//!
//! ```text
//! NAME://host:port     NAME://:port (every address)     NAME://[::1]:port
//! ```
//!
//! 1. Names are compared in capitals, as Kafka normalizes them.
//! 2. A listener that is not advertised is advertised as it is.
//! 3. A controller listener without an entry in the map is PLAINTEXT, unless the map was set.

use super::{BrokerConfig, ConfigError, checks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    pub const fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// The number that Metadata records and DescribeCluster carry.
    pub const fn code(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }

    pub fn from_name(name: &str) -> Option<SecurityProtocol> {
        use SecurityProtocol::{Plaintext, SaslPlaintext, SaslSsl, Ssl};
        let all = [Plaintext, Ssl, SaslPlaintext, SaslSsl];
        all.into_iter().find(|protocol| protocol.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    pub security_protocol: SecurityProtocol,
    /// Empty for every address; advertised, for the node's own host name. An IPv6 address is
    /// without its brackets.
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.name, self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.name, self.host, self.port)
        }
    }
}

/// The listeners of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    /// What to bind, in the order written.
    pub bound: Vec<Listener>,
    /// What others are told, one for each that is bound, plus those that only are advertised.
    pub advertised: Vec<Listener>,
    /// `controller.listener.names`.
    pub controller_names: Vec<String>,
    pub inter_broker_name: String,
}

impl Listeners {
    /// Reads the names of the network area. `is_set` tells a value that was given from a default.
    pub fn read(
        config: &BrokerConfig,
        is_set: &dyn Fn(&str) -> bool,
    ) -> Result<Listeners, ConfigError> {
        let network = &config.network;
        let names = network.controller_listener_names.iter();
        let controller_names: Vec<String> = names.map(|name| name.to_uppercase()).collect();
        if controller_names.is_empty() {
            let hint = checks::hint("controller.listener.names");
            let reason = format!("controller.listener.names must not be empty.{hint}");
            return Err(ConfigError::Conflict { reason });
        }
        let map = ProtocolMap::read(config, &controller_names, is_set)?;
        let parse = |name: &'static str, entries: &[String]| -> Result<Vec<_>, ConfigError> {
            entries
                .iter()
                .map(|entry| parse_listener(name, entry, &map))
                .collect()
        };
        let bound = parse("listeners", &network.listeners)?;
        let told = network.advertised_listeners.as_deref().unwrap_or_default();
        let mut advertised = parse("advertised.listeners", told)?;
        // What advertised.listeners leaves out: all when it is not set, else the controllers'.
        let left_out = bound
            .iter()
            .filter(|listener| told.is_empty() || controller_names.contains(&listener.name));
        for listener in left_out {
            if !advertised.iter().any(|a| a.name == listener.name) {
                advertised.push(listener.clone());
            }
        }
        let inter_broker_name = match &network.inter_broker_listener_name {
            Some(name) => name.to_uppercase(),
            None => network.security_inter_broker_protocol.clone(),
        };
        Ok(Listeners {
            bound,
            advertised,
            controller_names,
            inter_broker_name,
        })
    }

    pub fn is_controller(&self, name: &str) -> bool {
        self.controller_names
            .iter()
            .any(|controller| controller == name)
    }

    /// The listeners that serve clients and other brokers.
    pub fn broker(&self) -> impl Iterator<Item = &Listener> {
        self.bound
            .iter()
            .filter(|listener| !self.is_controller(&listener.name))
    }

    /// The listeners that serve the quorum.
    pub fn controller(&self) -> impl Iterator<Item = &Listener> {
        self.bound
            .iter()
            .filter(|listener| self.is_controller(&listener.name))
    }

    /// What clients and other brokers are told.
    pub fn advertised_broker(&self) -> impl Iterator<Item = &Listener> {
        self.advertised
            .iter()
            .filter(|listener| !self.is_controller(&listener.name))
    }

    pub fn advertised_controller(&self) -> impl Iterator<Item = &Listener> {
        self.advertised
            .iter()
            .filter(|listener| self.is_controller(&listener.name))
    }
}

/// Which protocol each listener name speaks.
struct ProtocolMap(Vec<(String, SecurityProtocol)>);

impl ProtocolMap {
    fn read(
        config: &BrokerConfig,
        controller_names: &[String],
        is_set: &dyn Fn(&str) -> bool,
    ) -> Result<ProtocolMap, ConfigError> {
        const NAME: &str = "listener.security.protocol.map";
        let text = &config.network.listener_security_protocol_map;
        let mut map = Vec::new();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let (name, protocol) = entry
                .rsplit_once(':')
                .ok_or_else(|| invalid(NAME, text, format!("\"{entry}\" is not NAME:PROTOCOL")))?;
            let protocol = protocol.trim().to_uppercase();
            let protocol = SecurityProtocol::from_name(&protocol).ok_or_else(|| {
                let known = "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
                invalid(
                    NAME,
                    text,
                    format!("{protocol} is no security protocol; use {known}"),
                )
            })?;
            map.push((name.trim().to_uppercase(), protocol));
        }
        if !is_set(NAME) {
            for name in controller_names {
                if !map.iter().any(|(known, _)| known == name) {
                    map.push((name.clone(), SecurityProtocol::Plaintext));
                }
            }
        }
        Ok(ProtocolMap(map))
    }

    /// The last entry of a name counts.
    fn get(&self, name: &str) -> Option<SecurityProtocol> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, protocol)| *protocol)
    }
}

fn parse_listener(
    config_name: &str,
    entry: &str,
    map: &ProtocolMap,
) -> Result<Listener, ConfigError> {
    let wrong = |reason: String| invalid(config_name, entry, reason);
    let shape = || wrong("a listener is NAME://host:port, where the host may be empty".to_owned());
    let (name, address) = entry.split_once("://").ok_or_else(shape)?;
    let (host, port) = split_host_port(address).ok_or_else(shape)?;
    if name.is_empty() {
        return Err(shape());
    }
    let name = name.to_uppercase();
    let security_protocol = map.get(&name).ok_or_else(|| {
        wrong(format!(
            "No security protocol defined for listener {name}; add {name}:PLAINTEXT to \
             listener.security.protocol.map"
        ))
    })?;
    let port = port
        .parse()
        .map_err(|_| wrong(format!("{port} is no port")))?;
    Ok(Listener {
        name,
        security_protocol,
        host: host.to_owned(),
        port,
    })
}

/// `host:port`, `:port` or `[address]:port`; `None` for anything else.
pub fn split_host_port(address: &str) -> Option<(&str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = bracketed.unwrap_or(host);
    let fits = |c: char| c.is_ascii_alphanumeric() || "-%._:".contains(c);
    (host.chars().all(fits) && !port.is_empty()).then_some((host, port))
}

fn invalid(name: &str, value: &str, reason: String) -> ConfigError {
    ConfigError::Invalid {
        name: name.to_owned(),
        value: value.to_owned(),
        reason,
        origin: None,
    }
}
