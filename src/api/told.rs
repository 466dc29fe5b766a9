//! Where a client is told that this broker is.
//!
//! ```text
//! klamm.advertised.mode=follow      the way a client came      told
//!   a loopback address advertised   loopback                   as advertised
//!                                   port of the host           as advertised
//!                                   anything else              the address that it reached
//!   no host advertised              port of the host           localhost
//!                                   anything else              the name of this host
//! ```
//!
//! 1. What somebody has advertised on purpose is told to everyone (`fixed`, the default).
//! 2. Of other brokers it is told what they have registered.

use std::net::{IpAddr, SocketAddr};

use kafka_protocol::protocol::StrBytes;

use super::context::Connection;
use super::{Node, view};
use crate::config::{Listener, NodeConfig};
use crate::host::network;
use crate::metadata::RegisterBrokerRecord;

/// The address of `broker` for a client of `connection`; `None` without such a listener.
pub fn address(
    node: &Node,
    connection: &Connection,
    broker: &RegisterBrokerRecord,
) -> Option<(StrBytes, i32)> {
    let registered = broker.end_point(&connection.listener)?;
    if broker.broker_id == node.broker_id {
        let config = node.config.load();
        let gateway = network::host_of_container();
        let way = Way::of(connection, gateway);
        if let Some((host, port)) = own(&config, connection, way) {
            return Some((StrBytes::from_string(host), i32::from(port)));
        }
    }
    Some((view::text(&registered.host), i32::from(registered.port)))
}

/// How a client came to this broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Loopback,
    /// From the host of this container.
    PublishedPort,
    /// To this address of ours.
    Direct(SocketAddr),
}

impl Way {
    fn of(connection: &Connection, gateway: Option<IpAddr>) -> Way {
        match connection.local {
            Some(local) if !local.ip().is_loopback() => {
                match gateway == Some(connection.peer.ip().to_canonical()) {
                    true => Way::PublishedPort,
                    false => Way::Direct(local),
                }
            }
            _ => Way::Loopback,
        }
    }
}

/// What is told instead of the registered host, if anything.
fn own(config: &NodeConfig, connection: &Connection, way: Way) -> Option<(String, u16)> {
    let of_name = |listener: &&Listener| *listener.name == *connection.listener;
    let advertised = config.listeners.advertised_broker().find(of_name)?;
    if config.tells_the_way() {
        let port = connection
            .local
            .map_or(advertised.port, |local| local.port());
        if advertised.host.is_empty() {
            return (way == Way::PublishedPort).then(|| ("localhost".to_owned(), port));
        }
        if let Way::Direct(local) = way
            && is_loopback(&advertised.host)
        {
            return Some((local.ip().to_string(), local.port()));
        }
    }
    // What was altered since the registration.
    let is_altered = config.advertised_is_altered() && !advertised.host.is_empty();
    is_altered.then(|| (advertised.host.clone(), advertised.port))
}

/// Whether a host is this machine for everyone.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ConnectionKind;
    use crate::config::{Overrides, Sources, parse_properties};

    const BASE: &str = "process.roles=broker,controller\nnode.id=1\n\
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n\
        controller.listener.names=CONTROLLER\n\
        controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs=/tmp/a\n";

    fn config(more: &str) -> NodeConfig {
        let file = parse_properties("f", &format!("{BASE}{more}\n")).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        NodeConfig::load(sources).unwrap().0
    }

    fn connection(local: &str, peer: &str) -> Connection {
        let local = Some(local.parse().unwrap());
        let peer = peer.parse().unwrap();
        Connection::new("PLAINTEXT".into(), peer, local, ConnectionKind::Broker)
    }

    fn told(config: &NodeConfig, local: &str, peer: &str) -> Option<String> {
        let connection = connection(local, peer);
        let gateway = Some(IpAddr::from([172, 18, 0, 1]));
        let (host, port) = own(config, &connection, Way::of(&connection, gateway))?;
        Some(format!("{host}:{port}"))
    }

    #[test]
    fn a_loopback_address_is_told_only_where_it_can_be_right() {
        let follow =
            config("advertised.listeners=PLAINTEXT://localhost:9092\nklamm.advertised.mode=follow");
        let from_network = told(&follow, "172.18.0.5:9092", "172.18.0.7:40000");
        assert_eq!(from_network.as_deref(), Some("172.18.0.5:9092"));
        let mapped = told(
            &follow,
            "[::ffff:172.18.0.5]:9092",
            "[::ffff:172.18.0.7]:40000",
        );
        assert_eq!(mapped.as_deref(), Some("172.18.0.5:9092"));
        // Through the host's port, and from within.
        assert_eq!(told(&follow, "172.18.0.5:9092", "172.18.0.1:40000"), None);
        assert_eq!(told(&follow, "127.0.0.1:9092", "127.0.0.1:40000"), None);
        let fixed = config("advertised.listeners=PLAINTEXT://localhost:9092");
        assert_eq!(told(&fixed, "172.18.0.5:9092", "172.18.0.7:40000"), None);
        let named =
            config("advertised.listeners=PLAINTEXT://kafka:9092\nklamm.advertised.mode=follow");
        assert_eq!(told(&named, "172.18.0.5:9092", "172.18.0.1:40000"), None);
    }

    #[test]
    fn the_host_is_told_localhost_where_no_name_was_said() {
        let follow = config("klamm.advertised.mode=follow");
        let from_host = told(&follow, "172.18.0.5:9092", "172.18.0.1:40000");
        assert_eq!(from_host.as_deref(), Some("localhost:9092"));
        assert_eq!(told(&follow, "172.18.0.5:9092", "172.18.0.7:40000"), None);
    }

    #[test]
    fn an_altered_address_is_told_at_once() {
        let dynamic = config(
            "advertised.listeners=PLAINTEXT://localhost:9092\nklamm.advertised.dynamic=true",
        );
        assert_eq!(told(&dynamic, "172.18.0.5:9092", "172.18.0.1:40000"), None);
        let value = "PLAINTEXT://127.0.0.1:32768".to_owned();
        let overrides = Overrides::from([("advertised.listeners".to_owned(), value)]);
        let (altered, warnings) = dynamic.with_dynamic(Overrides::new(), overrides.clone());
        assert!(warnings.is_empty(), "{warnings:?}");
        let found = told(&altered, "172.18.0.5:9092", "172.18.0.1:40000");
        assert_eq!(found.as_deref(), Some("127.0.0.1:32768"));
        // Kafka has it read-only.
        let fixed = config("advertised.listeners=PLAINTEXT://localhost:9092");
        let (same, _) = fixed.with_dynamic(Overrides::new(), overrides);
        assert_eq!(told(&same, "172.18.0.5:9092", "172.18.0.1:40000"), None);
    }
}
