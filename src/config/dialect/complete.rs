//! What a node needs and nobody has said: the defaults of the family, then working ones.
//!
//! 1. What the environment says is never changed, with one exception that is noted: a broker in a
//!    container that would listen on its own loopback only listens on every address.
//! 2. A node of which nobody says otherwise is broker and controller in one, and alone.

use super::family::{Dialect, Family};
use super::listeners::{Item, bare_host, free_port, join, parse};
use super::names::OwnNames;
use super::{Effective, Place};
use crate::config::Origin;
use crate::config::checks::parse_voter;

pub(super) fn complete(
    made: &mut Effective,
    family: &'static Family,
    own: &OwnNames,
    is_told_nothing: bool,
    place: &Place<'_>,
) {
    let default = || Origin::Image(family.name);
    let is_told_nothing = is_told_nothing && own.host.is_none() && own.port.is_none();
    if is_told_nothing {
        for (name, value) in family.defaults_alone {
            made.fill(name, *value, default());
        }
    }
    identity(made);
    names_of_controllers(made, family);
    let was_advertised = made
        .properties
        .get("advertised.listeners")
        .is_some_and(|told| !matches!(told.origin, Origin::Image(_)));
    broker_listeners(made, family, own);
    if !made.properties.contains_key("advertised.listeners") {
        advertise(made, family, own);
    }
    for (name, value) in family.defaults {
        made.fill(name, *value, default());
    }
    follow_clients(made, was_advertised);
    quorum(made);
    open_authorizer(made);
    log_dirs(made, family, place);
    neighbours(made, family);
}

fn made_up() -> Origin {
    Origin::BuiltIn
}

fn list(text: &str) -> Vec<&str> {
    let items = text.split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).collect()
}

/// `node.id` and `process.roles`. `broker.id` counts where `node.id` is not set.
fn identity(made: &mut Effective) {
    let broker_id = made.properties.remove("broker.id");
    let is_id = |text: &str| text.parse::<i32>().is_ok_and(|id| id >= 0);
    if made.get("node.id").is_some_and(|id| id.trim() == "-1") {
        made.properties.remove("node.id");
    }
    match broker_id {
        Some(id) if !made.properties.contains_key("node.id") && is_id(&id.value) => {
            made.set("node.id", id.value, id.origin);
        }
        _ => made.fill("node.id", "1", made_up()),
    }
    // debezium/kafka has a word for both.
    if let Some(roles) = made.properties.get_mut("process.roles")
        && roles.value == "combined"
    {
        "broker,controller".clone_into(&mut roles.value);
    }
    made.fill("process.roles", "broker,controller", made_up());
}

fn names_of_controllers(made: &mut Effective, family: &Family) {
    if !made.properties.contains_key("controller.listener.names") {
        let default = family
            .defaults
            .iter()
            .any(|(name, _)| *name == "controller.listener.names");
        let origin = match default {
            true => Origin::Image(family.name),
            false => made_up(),
        };
        made.set("controller.listener.names", "CONTROLLER", origin);
    }
}

fn is_controller_name(made: &Effective, name: &str) -> bool {
    let names = made.get("controller.listener.names").unwrap_or_default();
    list(names)
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

fn has_role(made: &Effective, role: &str) -> bool {
    list(made.get("process.roles").unwrap_or_default()).contains(&role)
}

/// `listeners`: as said, or those that are advertised, or one of an old host and port.
fn broker_listeners(made: &mut Effective, family: &'static Family, own: &OwnNames) {
    let is_broker = has_role(made, "broker");
    if !made.properties.contains_key("listeners") {
        let default = family
            .defaults
            .iter()
            .find(|(name, _)| *name == "listeners");
        let (text, origin) = match (made.get("advertised.listeners"), default) {
            // confluent-local goes name by name: its own list stands, whatever is advertised.
            (_, Some((_, text))) => ((*text).to_owned(), Origin::Image(family.name)),
            _ if !is_broker => (String::new(), made_up()),
            (Some(advertised), None) => {
                let mut items = parse(advertised);
                items.retain(|item| !is_controller_name(made, &item.name));
                items
                    .iter_mut()
                    .for_each(|item| "0.0.0.0".clone_into(&mut item.host));
                (join(&items), Origin::From("advertised.listeners"))
            }
            (None, None) => from_port(family, own),
        };
        if !text.is_empty() {
            made.set("listeners", text, origin);
        }
    }
    if is_broker && !made.properties.contains_key("advertised.listeners") {
        open_loopback(made);
    }
    controller_listener(made);
    protocol_map(made);
    inter_broker(made);
}

fn from_port(family: &'static Family, own: &OwnNames) -> (String, Origin) {
    // With ADVERTISED_PORT the inner port is KAFKA_PORT's or the usual one.
    match &own.port {
        Some(port) if port.origin.to_string().ends_with("_PORT") && !is_advertised(port) => {
            (format!("PLAINTEXT://:{}", port.value), port.origin.clone())
        }
        _ => (family.listeners.to_owned(), Origin::Image(family.name)),
    }
}

fn is_advertised(port: &crate::config::Property) -> bool {
    port.origin.to_string().contains("ADVERTISED")
}

/// A single list of loopback addresses in `listeners`, with nothing advertised: reachable from
/// nowhere outside of the container. It is bound everywhere and advertised as written.
fn open_loopback(made: &mut Effective) {
    let Some(text) = made.get("listeners").map(str::to_owned) else {
        return;
    };
    let items = parse(&text);
    let is_loopback = |item: &Item| item.host == "localhost" || item.host == "127.0.0.1";
    let brokers: Vec<&Item> = items
        .iter()
        .filter(|item| !is_controller_name(made, &item.name))
        .collect();
    if brokers.is_empty() || !brokers.iter().all(|item| is_loopback(item)) {
        return;
    }
    let told: Vec<Item> = brokers.into_iter().cloned().collect();
    let opened: Vec<Item> = items
        .iter()
        .map(|item| match is_controller_name(made, &item.name) {
            true => item.clone(),
            false => Item {
                host: String::new(),
                ..item.clone()
            },
        })
        .collect();
    let origin = made.properties["listeners"].origin.clone();
    made.note(format!(
        "listeners={text} would be reachable from this container only: it listens on every \
         address and tells clients {}",
        join(&told)
    ));
    made.set("listeners", join(&opened), origin);
    made.set(
        "advertised.listeners",
        join(&told),
        Origin::From("listeners"),
    );
}

/// A controller needs a listener; one that nobody asked for is for this node alone.
fn controller_listener(made: &mut Effective) {
    let text = made.get("listeners").unwrap_or_default().to_owned();
    let mut items = parse(&text);
    let has_one = items
        .iter()
        .any(|item| is_controller_name(made, &item.name));
    if has_one || !has_role(made, "controller") || items.is_empty() && has_role(made, "broker") {
        return;
    }
    let names = made.get("controller.listener.names").unwrap_or_default();
    let name = list(names)
        .first()
        .map_or("CONTROLLER", |name| *name)
        .to_owned();
    let voters = made.get("controller.quorum.voters").unwrap_or_default();
    let id = made.get("node.id").and_then(|id| id.trim().parse().ok());
    let own = list(voters)
        .into_iter()
        .filter_map(parse_voter)
        .find(|(voter, _, _)| Some(*voter) == id);
    let (host, port) = match own {
        Some((_, _, port)) => ("", port),
        None => ("localhost", free_port(&items, 9093)),
    };
    items.push(Item {
        name,
        host: host.to_owned(),
        port: port.to_string(),
    });
    let origin = match made.properties.get("listeners") {
        Some(property) => property.origin.clone(),
        None => made_up(),
    };
    made.set("listeners", join(&items), origin);
}

/// The names that have no protocol although the node itself has made them up.
fn protocol_map(made: &mut Effective) {
    const NAME: &str = "listener.security.protocol.map";
    let Some(text) = made.get(NAME).map(str::to_owned) else {
        return;
    };
    let names = made
        .get("controller.listener.names")
        .unwrap_or_default()
        .to_owned();
    let missing = list(&names).into_iter().filter(|name| {
        !list(&text).iter().any(|entry| {
            let known = entry.rsplit_once(':').map_or(*entry, |(known, _)| known);
            known.trim().eq_ignore_ascii_case(name)
        })
    });
    let added: Vec<String> = missing.map(|name| format!("{name}:PLAINTEXT")).collect();
    if !added.is_empty() {
        let origin = made.properties[NAME].origin.clone();
        made.set(NAME, format!("{text},{}", added.join(",")), origin);
    }
}

/// Where no listener is called PLAINTEXT, the first one is for brokers too.
fn inter_broker(made: &mut Effective) {
    let is_said = made.properties.contains_key("inter.broker.listener.name")
        || made
            .properties
            .contains_key("security.inter.broker.protocol");
    if is_said || !has_role(made, "broker") {
        return;
    }
    let items = parse(made.get("listeners").unwrap_or_default());
    let mut brokers = items
        .iter()
        .filter(|item| !is_controller_name(made, &item.name));
    if brokers.clone().any(|item| item.name == "PLAINTEXT") {
        return;
    }
    if let Some(first) = brokers.next().map(|item| item.name.clone()) {
        made.set(
            "inter.broker.listener.name",
            first,
            Origin::From("listeners"),
        );
    }
}

/// `advertised.listeners` where nobody has said it.
fn advertise(made: &mut Effective, family: &'static Family, own: &OwnNames) {
    if !has_role(made, "broker") || made.properties.contains_key("advertised.listeners") {
        return;
    }
    let items = parse(made.get("listeners").unwrap_or_default());
    let mut brokers = items
        .iter()
        .filter(|item| !is_controller_name(made, &item.name));
    let (Some(first), others) = (brokers.next().cloned(), brokers.next()) else {
        return;
    };
    let port = own
        .port
        .as_ref()
        .map_or(first.port.as_str(), |port| port.value.as_str());
    if let Some(host) = &own.host
        && others.is_none()
    {
        let text = format!("{}://{}:{port}", first.name, bare_host(&host.value));
        made.set("advertised.listeners", text, host.origin.clone());
        return;
    }
    if let Some(advertised) = family.advertised
        && first.name == "PLAINTEXT"
        && first.port == "9092"
        && others.is_none()
    {
        made.set(
            "advertised.listeners",
            advertised,
            Origin::Image(family.name),
        );
    }
}

/// Nobody has said what clients are told: they are told what fits the way they came.
fn follow_clients(made: &mut Effective, was_advertised: bool) {
    let is_said = was_advertised
        || made
            .properties
            .get("advertised.listeners")
            .is_some_and(|told| matches!(told.origin, Origin::Environment(_)));
    if !is_said && has_role(made, "broker") {
        made.fill("klamm.advertised.mode", "follow", made_up());
    }
}

/// The voters of a node that nobody gives any: itself. Voters without this controller are left
/// over from a file for another mode.
fn quorum(made: &mut Effective) {
    const VOTERS: &str = "controller.quorum.voters";
    let id = made.get("node.id").unwrap_or("1").trim().to_owned();
    let is_controller = has_role(made, "controller");
    let roles_are_said = made
        .properties
        .get("process.roles")
        .is_some_and(|roles| roles.origin != made_up());
    if let Some(text) = made.get(VOTERS) {
        let ids: Vec<i32> = list(text)
            .into_iter()
            .filter_map(parse_voter)
            .map(|(id, _, _)| id)
            .collect();
        let is_left_over = is_controller
            && !roles_are_said
            && !ids.is_empty()
            && !ids.iter().any(|voter| voter.to_string() == id);
        if is_left_over {
            made.properties.remove(VOTERS);
        }
    }
    if made.properties.contains_key(VOTERS)
        || made
            .properties
            .contains_key("controller.quorum.bootstrap.servers")
        || !is_controller
    {
        return;
    }
    let items = parse(made.get("listeners").unwrap_or_default());
    let own = items
        .iter()
        .find(|item| is_controller_name(made, &item.name));
    let port = own.map_or("9093", |item| item.port.as_str());
    let voters = format!("{id}@localhost:{port}");
    made.set(VOTERS, voters, made_up());
    // Nobody else can come, so there is no second replica to wait for.
    for (name, value) in crate::config::ONE_REPLICA {
        made.fill(name, *value, made_up());
    }
}

fn log_dirs(made: &mut Effective, family: &'static Family, place: &Place<'_>) {
    if made.properties.contains_key("log.dirs") || made.properties.contains_key("log.dir") {
        return;
    }
    let id = made.get("node.id").unwrap_or("1").trim().to_owned();
    let dir = family
        .log_dirs
        .replace("$HOST", place.host_name)
        .replace("$ID", &id);
    made.set("log.dirs", dir, Origin::Image(family.name));
}

/// What a family's image has beside the broker, and this one has not.
fn neighbours(made: &mut Effective, family: &Family) {
    match family.dialect {
        Dialect::ConfluentLocal => {
            made.note("the REST proxy of confluent-local (port 8082) is not part of a broker");
        }
        Dialect::FastDataDev => made.note(
            "of fast-data-dev only the broker is here: no Schema Registry, REST proxy, Connect or \
             web pages",
        ),
        _ => {}
    }
}

/// An authorizer that lets everyone in while there are no ACLs: there are none here.
fn open_authorizer(made: &mut Effective) {
    const ALLOW: &str = "allow.everyone.if.no.acl.found";
    let allows_all = made
        .get(ALLOW)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if !allows_all || made.properties.remove("authorizer.class.name").is_none() {
        return;
    }
    made.properties.remove(ALLOW);
    made.properties.remove("super.users");
    made.note(format!(
        "{ALLOW}=true and no ACLs: everyone is let in, and none can be added yet"
    ));
}
