//! Rules between the configurations of a node: roles, listeners and quorum. Each error names the
//! way out.

use super::listener::split_host_port;
use super::{BrokerConfig, ConfigError, Listener, Listeners, SecurityProtocol};

type IsSet<'a> = &'a dyn Fn(&str) -> bool;

/// What to do about a name that must be set.
pub(super) fn hint(name: &str) -> &'static str {
    match name {
        "process.roles" => {
            " Set process.roles=broker,controller for a node of its own, or one of the two in a \
             cluster."
        }
        "node.id" => " Set node.id to a number that no other node of the cluster has.",
        "controller.listener.names" => {
            " Set controller.listener.names=CONTROLLER; a controller also needs \
             CONTROLLER://localhost:9093 in listeners."
        }
        _ => "",
    }
}

/// Everything that does not go together. `alone` says that this node is the quorum.
pub(super) fn start_errors(
    config: &BrokerConfig,
    listeners: &Listeners,
    is_set: IsSet<'_>,
    alone: bool,
) -> Vec<ConfigError> {
    let mut reasons = Vec::new();
    check_identity(config, &mut reasons);
    check_selector(config, &mut reasons);
    check_listeners(config, listeners, is_set, &mut reasons);
    check_quorum(config, listeners, alone, &mut reasons);
    let mut errors: Vec<ConfigError> = reasons
        .into_iter()
        .map(|reason| ConfigError::Conflict { reason })
        .collect();
    errors.extend(listeners.bound.iter().filter_map(secure_listener));
    errors
}

/// Serving a listener in the clear that was meant to be encrypted would be unsafe.
fn secure_listener(listener: &Listener) -> Option<ConfigError> {
    let plain = listener.security_protocol == SecurityProtocol::Plaintext;
    (!plain).then(|| ConfigError::Refused {
        name: "listeners".to_owned(),
        value: listener.to_string(),
        reason: "only PLAINTEXT listeners are served; map the listener to PLAINTEXT in \
                 listener.security.protocol.map",
        origin: None,
    })
}

/// Sends a consumer to a replica in its rack (KIP-392).
pub const RACK_AWARE_SELECTOR: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
/// As if nothing was configured.
const LEADER_SELECTOR: &str = "org.apache.kafka.common.replica.LeaderSelector";

/// Classes cannot be loaded here; those that Kafka has are built in.
fn check_selector(config: &BrokerConfig, reasons: &mut Vec<String>) {
    let selector = config.replication.replica_selector_class.as_deref();
    if let Some(other) = selector.filter(|s| ![RACK_AWARE_SELECTOR, LEADER_SELECTOR].contains(s)) {
        reasons.push(format!(
            "replica.selector.class={other} is not known here; set it to {RACK_AWARE_SELECTOR}, or \
             leave it out."
        ));
    }
}

fn check_identity(config: &BrokerConfig, reasons: &mut Vec<String>) {
    let identity = &config.identity;
    if identity.process_roles.is_empty() {
        reasons.push(format!(
            "process.roles must not be empty.{}",
            hint("process.roles")
        ));
    }
    if identity.broker_id != identity.node_id {
        reasons.push(format!(
            "node.id={} and broker.id={} must be the same; leave out broker.id.",
            identity.node_id, identity.broker_id
        ));
    }
    if config.log_dirs().is_empty() {
        reasons.push("At least one log directory must be defined via log.dirs or log.dir.".into());
    }
}

fn check_listeners(
    config: &BrokerConfig,
    listeners: &Listeners,
    is_set: IsSet<'_>,
    reasons: &mut Vec<String>,
) {
    check_distinct(&listeners.bound, reasons);
    if listeners.bound.is_empty() {
        reasons.push("listeners must not be empty.".into());
    }
    let names = |of: &mut dyn Iterator<Item = &Listener>| {
        of.map(|listener| listener.name.as_str())
            .collect::<Vec<_>>()
            .join(",")
    };
    if is_set("inter.broker.listener.name") && is_set("security.inter.broker.protocol") {
        reasons.push(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be \
             set."
                .into(),
        );
    }
    if config.is_controller() && listeners.controller().next().is_none() {
        reasons.push(format!(
            "controller.listener.names must contain at least one value appearing in the \
             'listeners' configuration when running the KRaft controller role; add \
             {}://localhost:9093 to listeners.",
            listeners
                .controller_names
                .first()
                .map_or("CONTROLLER", String::as_str)
        ));
    }
    if !config.is_broker() {
        if listeners.broker().next().is_some() {
            reasons.push(format!(
                "The listeners config must only contain KRaft controller listeners from \
                 controller.listener.names when process.roles=controller; take {} out of it.",
                names(&mut listeners.broker())
            ));
        }
        return;
    }
    if !config.is_controller() && listeners.controller().next().is_some() {
        reasons.push(format!(
            "{} is in controller.listener.names and in listeners, but this node is no controller; \
             take it out of listeners.",
            names(&mut listeners.controller())
        ));
    }
    let advertised = names(&mut listeners.advertised_broker());
    check_inter_broker(listeners, &advertised, is_set, reasons);
    check_advertised(listeners, reasons);
}

fn check_inter_broker(
    listeners: &Listeners,
    advertised: &str,
    is_set: IsSet<'_>,
    reasons: &mut Vec<String>,
) {
    if advertised.is_empty() {
        reasons.push(
            "A broker needs a listener that is not in controller.listener.names; add \
             PLAINTEXT://localhost:9092 to listeners."
                .into(),
        );
    } else if !listeners
        .advertised_broker()
        .any(|a| a.name == listeners.inter_broker_name)
    {
        reasons.push(format!(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners; \
             {}{} is none. Set it to one of: {advertised}",
            listeners.inter_broker_name,
            match is_set("inter.broker.listener.name") {
                true => "",
                false => " of security.inter.broker.protocol",
            }
        ));
    }
}

fn check_distinct(bound: &[Listener], reasons: &mut Vec<String>) {
    for (i, listener) in bound.iter().enumerate() {
        for earlier in &bound[..i] {
            if earlier.name == listener.name {
                reasons.push(format!(
                    "Each listener must have a different name, listeners: {earlier}, {listener}"
                ));
            } else if earlier.port == listener.port
                && listener.port != 0
                && (earlier.host == listener.host
                    || earlier.host.is_empty()
                    || listener.host.is_empty())
            {
                reasons.push(format!(
                    "Each listener must have a different port, listeners: {earlier}, {listener}"
                ));
            }
        }
    }
}

fn check_advertised(listeners: &Listeners, reasons: &mut Vec<String>) {
    for listener in listeners.advertised_broker() {
        if listener.host == "0.0.0.0" || listener.host == "::" {
            reasons.push(format!(
                "advertised.listeners cannot use the nonroutable meta-address {}. Set \
                 advertised.listeners={}://<an address that clients reach>:{}",
                listener.host, listener.name, listener.port
            ));
        }
        if !listeners
            .bound
            .iter()
            .any(|bound| bound.name == listener.name)
        {
            reasons.push(format!(
                "advertised.listeners names {}, which is not in listeners; add {}://:{} there.",
                listener.name, listener.name, listener.port
            ));
        }
    }
}

fn check_quorum(
    config: &BrokerConfig,
    listeners: &Listeners,
    alone: bool,
    reasons: &mut Vec<String>,
) {
    let quorum = &config.quorum;
    let mut ids = Vec::new();
    for voter in &quorum.controller_quorum_voters {
        match parse_voter(voter) {
            Some((id, _, _)) => ids.push(id),
            None => reasons.push(format!(
                "controller.quorum.voters: \"{voter}\" is not id@host:port, as in 1@localhost:9093"
            )),
        }
    }
    for server in &quorum.controller_quorum_bootstrap_servers {
        if split_host_port(server).is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
            reasons.push(format!(
                "controller.quorum.bootstrap.servers: \"{server}\" is not host:port"
            ));
        }
    }
    let node_id = config.identity.node_id;
    let voters = quorum.controller_quorum_voters.join(",");
    if ids.is_empty() {
        if quorum.controller_quorum_bootstrap_servers.is_empty() && !alone {
            let port = listeners.controller().next().map_or(9093, |own| own.port);
            reasons.push(format!(
                "Either controller.quorum.bootstrap.servers must contain the set of bootstrap \
                 controllers or controller.quorum.voters a set of controllers; for a node of its \
                 own set controller.quorum.bootstrap.servers=localhost:{port}"
            ));
        }
    } else if config.is_controller() && !ids.contains(&node_id) {
        reasons.push(format!(
            "If process.roles contains the 'controller' role, the node id {node_id} must be \
             included in the set of voters controller.quorum.voters={voters}"
        ));
    } else if !config.is_controller() && ids.contains(&node_id) {
        reasons.push(format!(
            "If process.roles contains just the 'broker' role, the node id {node_id} must not be \
             included in the set of voters controller.quorum.voters={voters}"
        ));
    }
}

/// `id@host:port`.
pub fn parse_voter(text: &str) -> Option<(i32, &str, u16)> {
    let (id, address) = text.split_once('@')?;
    let (host, port) = split_host_port(address)?;
    Some((id.parse().ok()?, host, port.parse().ok()?))
}
