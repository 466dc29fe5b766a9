//! What clients are told and probably cannot use. Each line names the way out.

use std::net::SocketAddr;

use crate::api::is_loopback;
use crate::metadata::BrokerEndpoint;

/// Lines for the log about the advertised addresses of a broker that is ready. `follows` says that
/// a loopback address is not told to others, `resolves` whether this machine knows a host.
pub fn doubts(
    advertised: &[BrokerEndpoint],
    bound: &[(String, SocketAddr)],
    follows: bool,
    resolves: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    let has_outside_name = advertised.iter().any(|told| !is_loopback(&told.host));
    for told in advertised {
        let (name, host, port) = (&told.name, &told.host, told.port);
        if is_loopback(host) {
            let is_open = bound
                .iter()
                .any(|(listener, at)| **listener == **name && !at.ip().is_loopback());
            if is_open && !has_outside_name && !follows {
                lines.push(format!(
                    "clients of {name} on other machines and in other containers are told \
                     {host}:{port}, which is themselves; for those set \
                     advertised.listeners={name}://NAME-OF-THIS-HOST:{port} \
                     (KAFKA_ADVERTISED_LISTENERS)"
                ));
            }
        } else if !resolves(host) {
            lines.push(format!(
                "clients of {name} are told {host}:{port}, and {host} is not known on this \
                 machine; unless they know it, set advertised.listeners={name}://HOST:{port} \
                 (KAFKA_ADVERTISED_LISTENERS) to a host that they can reach"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::SecurityProtocol;

    fn told(name: &str, host: &str) -> BrokerEndpoint {
        BrokerEndpoint {
            name: name.into(),
            host: host.into(),
            port: 9092,
            security_protocol: SecurityProtocol::Plaintext,
        }
    }

    fn lines(advertised: &[BrokerEndpoint], bound: &str) -> Vec<String> {
        let bound: Vec<(String, SocketAddr)> = advertised
            .iter()
            .map(|told| (told.name.to_string(), bound.parse().unwrap()))
            .collect();
        doubts(advertised, &bound, false, &|host| host == "known")
    }

    #[test]
    fn an_address_that_only_this_machine_can_use_is_told_with_the_fix() {
        let found = lines(&[told("PLAINTEXT", "localhost")], "0.0.0.0:9092");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("set advertised.listeners=PLAINTEXT://"));
        assert!(lines(&[told("PLAINTEXT", "localhost")], "127.0.0.1:9092").is_empty());
        assert!(lines(&[told("PLAINTEXT", "known")], "0.0.0.0:9092").is_empty());
        let two = [told("A", "known"), told("HOST", "localhost")];
        assert!(lines(&two, "0.0.0.0:9092").is_empty());
        assert!(lines(&[told("A", "nobody")], "0.0.0.0:9092")[0].contains("not known"));
        let bound = [("PLAINTEXT".to_owned(), "0.0.0.0:9092".parse().unwrap())];
        let follows = doubts(&[told("PLAINTEXT", "localhost")], &bound, true, &|_| true);
        assert!(follows.is_empty());
    }
}
