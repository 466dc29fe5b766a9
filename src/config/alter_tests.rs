//! Altering against the recorded answers of a running Kafka 4.4 (`testdata/alter.tsv`), started
//! with `testdata/plain.properties`, where nothing was set.
//!
//! A line is what was altered, the error code, the message, and then an operation, a name and a
//! value for each change. `\N` is null.

use super::*;
use crate::types::ErrorCode;

fn node() -> NodeConfig {
    let properties = include_str!("testdata/plain.properties");
    let file = parse_properties("server.properties", properties).unwrap();
    NodeConfig::load(Sources {
        file: Some(file),
        ..Sources::default()
    })
    .unwrap()
    .0
}

fn nullable(cell: &str) -> Option<String> {
    (cell != "\\N").then(|| cell.to_owned())
}

/// Kafka shows names of Java's own around some of its sentences.
fn sentence(message: &str) -> &str {
    let message = message
        .strip_prefix("requirement failed: ")
        .unwrap_or(message);
    message
        .strip_prefix("Invalid value org.apache.kafka.common.config.ConfigException: ")
        .and_then(|rest| rest.strip_suffix(" for configuration Invalid dynamic configuration"))
        .unwrap_or(message)
}

fn answer(node: &NodeConfig, what: &str, alterations: &[Alteration]) -> Result<(), Rejection> {
    use ResourceType::{Broker, ClientMetrics, Group, Topic};
    let pair = |a: &Alteration| (a.name.clone(), a.value.clone());
    let pairs: Vec<_> = alterations.iter().map(pair).collect();
    if what == "create" {
        return node.topic_overrides(&pairs).map(|_| ());
    }
    let (resource, name) = match what.strip_prefix("legacy-").unwrap_or(what) {
        "topic" => (Topic, "t"),
        "topics" => (Topic, ""),
        "broker" => (Broker, "1"),
        "brokers" => (Broker, ""),
        "group" => (Group, "g"),
        "groups" => (Group, ""),
        "client-metrics" => (ClientMetrics, "c"),
        "all-client-metrics" => (ClientMetrics, ""),
        other => panic!("{other}"),
    };
    // A cluster with eligible leader replicas has this set from its first day.
    let set = (what.ends_with("brokers")).then(|| ("min.insync.replicas".into(), "1".into()));
    let current = Overrides::from_iter(set);
    let changes = match what.starts_with("legacy-") {
        true => node.replace(resource, name, &current, &pairs, true),
        false => node.alter(resource, name, &current, alterations, true),
    };
    changes.map(|_| ())
}

#[test]
fn alterations_are_answered_as_kafka_answers() {
    let node = node();
    let mut compared = 0;
    for line in include_str!("testdata/alter.tsv").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let alterations: Vec<Alteration> = cells[3..]
            .chunks(3)
            .map(|c| Alteration {
                op: c[0].parse().unwrap(),
                name: c[1].to_owned(),
                value: nullable(c[2]),
            })
            .collect();
        let message = nullable(cells[2]);
        let theirs = (
            cells[1].parse::<i16>().unwrap(),
            message.as_deref().map(sentence),
        );
        let ours = answer(&node, cells[0], &alterations);
        let ours = match &ours {
            Ok(()) => (0, None),
            Err(rejection) => (rejection.code.code(), rejection.message.as_deref()),
        };
        // Of two wrong values, Kafka names the one that comes first in a hash map.
        let any = alterations.len() > 1 && cells[2].starts_with("Invalid value");
        let same = if any {
            ours.0 == theirs.0
        } else {
            ours == theirs
        };
        assert!(same, "{ours:?} for {line}");
        compared += 1;
    }
    assert!(compared > 250, "only {compared} were compared");
}

fn alter(current: &[(&str, &str)], op: AlterOp, name: &str, value: &str) -> Changes {
    let current: Overrides = current
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    let alteration = Alteration {
        op: op as i8,
        name: name.to_owned(),
        value: Some(value.to_owned()),
    };
    node()
        .alter(ResourceType::Topic, "t", &current, &[alteration], false)
        .unwrap()
}

#[test]
fn changes_are_only_what_changes() {
    let set = [("cleanup.policy", "compact"), ("segment.bytes", "2097152")];
    let changed = |name: &str, value: Option<&str>| {
        Changes::from([(name.to_owned(), value.map(str::to_owned))])
    };
    assert_eq!(
        alter(&set, AlterOp::Set, "cleanup.policy", "compact"),
        Changes::new()
    );
    assert_eq!(
        alter(&set, AlterOp::Delete, "retention.ms", ""),
        Changes::new()
    );
    let deleted = alter(&set, AlterOp::Delete, "segment.bytes", "");
    assert_eq!(deleted, changed("segment.bytes", None));
    let appended = alter(&set, AlterOp::Append, "cleanup.policy", "delete,compact");
    assert_eq!(appended, changed("cleanup.policy", Some("compact,delete")));
    // Without an override, Kafka appends to the default of the table.
    let appended = alter(&[], AlterOp::Append, "cleanup.policy", "compact");
    assert_eq!(appended, changed("cleanup.policy", Some("delete,compact")));
    let subtracted = alter(&set, AlterOp::Subtract, "cleanup.policy", "compact");
    assert_eq!(subtracted, changed("cleanup.policy", Some("")));
}

#[test]
fn replacing_takes_out_what_is_not_named() {
    let current = Overrides::from([
        ("segment.bytes".to_owned(), "2097152".to_owned()),
        ("retention.ms".to_owned(), "5".to_owned()),
    ]);
    let values = [("retention.ms".to_owned(), Some("6".to_owned()))];
    let changes = node()
        .replace(ResourceType::Topic, "t", &current, &values, false)
        .unwrap();
    let expected = Changes::from([
        ("segment.bytes".to_owned(), None),
        ("retention.ms".to_owned(), Some("6".to_owned())),
    ]);
    assert_eq!(changes, expected);
}

#[test]
fn an_alteration_is_checked_with_what_is_set_already() {
    let current = Overrides::from([("max.compaction.lag.ms".to_owned(), "50".to_owned())]);
    let alteration = Alteration {
        op: 0,
        name: "min.compaction.lag.ms".into(),
        value: Some("100".into()),
    };
    let answer = node().alter(ResourceType::Topic, "t", &current, &[alteration], false);
    assert_eq!(answer.unwrap_err().code, ErrorCode::InvalidConfig);
}

#[test]
fn broker_names() {
    assert_eq!(check_broker_name("", 1), Ok(()));
    assert_eq!(check_broker_name("1", 1), Ok(()));
    let message = |name| check_broker_name(name, 1).unwrap_err().message.unwrap();
    assert_eq!(
        message("2"),
        "Unexpected broker id, expected 1, but received 2"
    );
    assert_eq!(message("abc"), "Node id must be an integer, but it is: abc");
}

/// Kafka's limits on how fast a pool may grow.
#[test]
fn thread_counts_at_most_double() {
    let alter = |count: &str| {
        let value = Some(count.to_owned());
        let alteration = Alteration {
            op: 0,
            name: "num.io.threads".into(),
            value,
        };
        node().alter(
            ResourceType::Broker,
            "1",
            &Overrides::new(),
            &[alteration],
            false,
        )
    };
    assert!(alter("16").is_ok());
    assert_eq!(alter("17").unwrap_err().code, ErrorCode::InvalidRequest);
    assert!(alter("4").is_ok());
    assert_eq!(alter("3").unwrap_err().code, ErrorCode::InvalidRequest);
}

/// A dynamic value is refused where a static one would stop the start, and where Kafka would bind
/// other sockets.
#[test]
fn what_this_broker_cannot_follow_is_refused() {
    for (name, value) in [
        ("principal.builder.class", "a.B"),
        ("config.providers", "file"),
        ("listeners", "PLAINTEXT://:1,CONTROLLER://:2"),
    ] {
        let alteration = Alteration {
            op: 0,
            name: name.into(),
            value: Some(value.into()),
        };
        let none = Overrides::new();
        let answer = node().alter(ResourceType::Broker, "1", &none, &[alteration], false);
        assert_eq!(
            answer.unwrap_err().code,
            ErrorCode::InvalidRequest,
            "{name}"
        );
    }
}

#[test]
fn listeners_that_stay_as_they_are_are_taken() {
    let alter = |value: &str| {
        let alteration = Alteration {
            op: 0,
            name: "listeners".into(),
            value: Some(value.into()),
        };
        let none = Overrides::new();
        let answer = node().alter(ResourceType::Broker, "1", &none, &[alteration], false);
        answer
            .map(|_| ())
            .map_err(|rejection| rejection.message.unwrap_or_default())
    };
    let written = node().value("listeners").unwrap().value.unwrap();
    assert_eq!(alter(&written), Ok(()));
    let without = alter("PLAINTEXT://127.0.0.1:9092").unwrap_err();
    let start = "requirement failed: controller.listener.names must contain at least one value";
    assert!(without.starts_with(start), "{without}");
    assert!(alter("foo").is_err());
}

/// As in ZooKeeper's days, where the configuration is of those.
#[test]
fn an_advertised_address_is_altered_only_where_it_may() {
    let properties = include_str!("testdata/plain.properties");
    let text = format!("{properties}\nklamm.advertised.dynamic=true\n");
    let old = NodeConfig::load(Sources {
        file: Some(parse_properties("server.properties", &text).unwrap()),
        ..Sources::default()
    });
    let old = old.unwrap().0;
    let alter = |node: &NodeConfig, name: &str, value: &str| {
        let alteration = Alteration {
            op: 0,
            name: "advertised.listeners".into(),
            value: Some(value.into()),
        };
        let none = Overrides::new();
        let answer = node.alter(ResourceType::Broker, name, &none, &[alteration], false);
        answer
            .map(|_| ())
            .map_err(|rejection| rejection.message.unwrap_or_default())
    };
    let value = "PLAINTEXT://127.0.0.1:32768";
    assert_eq!(alter(&old, "1", value), Ok(()));
    assert!(alter(&old, "", value).is_err(), "of one broker only");
    assert!(alter(&old, "1", "nonsense").is_err());
    let refused = alter(&node(), "1", value).unwrap_err();
    assert_eq!(
        refused,
        "Cannot update these configs dynamically: [advertised.listeners]"
    );
}
