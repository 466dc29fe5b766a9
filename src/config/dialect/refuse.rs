//! What cannot be served safely, in one sentence.

use super::Effective;
use super::listeners::parse;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

pub(super) fn check(made: &Effective) -> Result<(), Refusal> {
    let told = made
        .get("listeners")
        .into_iter()
        .chain(made.get("advertised.listeners"));
    let map = made
        .get("listener.security.protocol.map")
        .unwrap_or_default();
    let protocol_of = |name: &str| {
        let entries = map
            .split(',')
            .filter_map(|entry| entry.trim().rsplit_once(':'));
        let mut found = entries.filter(|(known, _)| known.trim().eq_ignore_ascii_case(name));
        let mapped = found
            .next_back()
            .map(|(_, protocol)| protocol.trim().to_uppercase());
        mapped.unwrap_or_else(|| name.to_uppercase())
    };
    for item in told.flat_map(parse) {
        let protocol = protocol_of(&item.name);
        let needs = match protocol.as_str() {
            "SSL" => "TLS",
            "SASL_PLAINTEXT" => "SASL",
            "SASL_SSL" => "TLS and SASL",
            _ => continue,
        };
        return Err(Refusal(format!(
            "the listener {} needs {needs} ({protocol}), which is not supported yet; it is not \
             served in the clear: map it to PLAINTEXT or wait for a release with security",
            item.name
        )));
    }
    let authorizer = made.get("authorizer.class.name").unwrap_or_default();
    if !authorizer.is_empty() {
        return Err(Refusal(format!(
            "authorizer.class.name={authorizer} needs ACLs, which are not supported yet; nothing \
             is served without them: take it out, or set allow.everyone.if.no.acl.found=true"
        )));
    }
    several_brokers_without_names(made)
}

/// Replicas on other brokers, and nothing that says where those are: each would be a cluster of
/// its own.
fn several_brokers_without_names(made: &Effective) -> Result<(), Refusal> {
    let zookeeper = made
        .without_effect
        .iter()
        .find(|name| name.ends_with("ZOOKEEPER_CONNECT"));
    let Some(zookeeper) = zookeeper else {
        return Ok(());
    };
    let is_alone = made
        .properties
        .get("controller.quorum.voters")
        .is_some_and(|voters| voters.origin == crate::config::Origin::BuiltIn);
    let asks = ["default.replication.factor", "min.insync.replicas"];
    let wanted = asks.iter().find_map(|name| {
        let count: u32 = made.get(name)?.parse().ok()?;
        (count > 1).then(|| format!("{name}={count}"))
    });
    match wanted.filter(|_| is_alone) {
        None => Ok(()),
        Some(wanted) => Err(Refusal(format!(
            "{wanted} asks for several brokers, and only {zookeeper} says where they would meet; \
             there is no ZooKeeper here: name the controllers in KAFKA_CONTROLLER_QUORUM_VOTERS"
        ))),
    }
}
