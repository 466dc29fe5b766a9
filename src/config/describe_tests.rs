//! DescribeConfigs against the recorded answers of a running Kafka 4.4.
//!
//! `testdata/NAME.tsv` holds the answers of a node that was started with
//! `testdata/NAME.properties`. Lines that begin with `set` are values that were set while it ran;
//! the others are resource, name, value, source, read-only, sensitive, type and then a name,
//! value and source for each synonym. `\N` is null.

use super::*;

fn node(properties: &str) -> NodeConfig {
    let file = parse_properties("server.properties", properties).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    NodeConfig::load(sources).unwrap().0
}

fn set_for(recorded: &str, resource: &str) -> Overrides {
    let lines = recorded
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    lines
        .filter(|cells| cells[0] == "set" && cells[1] == resource)
        .map(|cells| (cells[2].to_owned(), cells[3].to_owned()))
        .collect()
}

fn line(resource: &str, described: &Described) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "\\N".to_owned());
    let mut cells = vec![
        resource.to_owned(),
        described.name.clone(),
        shown(&described.value),
        described.source.code().to_string(),
        i32::from(described.read_only).to_string(),
        i32::from(described.sensitive).to_string(),
        described.config_type.to_string(),
    ];
    for synonym in &described.synonyms {
        cells.push(synonym.name.clone());
        cells.push(shown(&synonym.value));
        cells.push(synonym.source.code().to_string());
    }
    cells.join("\t")
}

fn same_as_recorded(properties: &str, recorded: &str) {
    let (brokers, broker) = (set_for(recorded, "brokers"), set_for(recorded, "broker"));
    let (node, warnings) = node(properties).with_dynamic(brokers, broker);
    assert_eq!(warnings, []);
    let topic = set_for(recorded, "topic");
    let group = set_for(recorded, "group");
    let client_metrics = set_for(recorded, "client-metrics");
    let mut compared = 0;
    for (resource, describe) in [
        ("broker", Describe::Broker),
        ("brokers", Describe::Brokers),
        ("topic", Describe::Topic(&topic)),
        ("group", Describe::Group(&group)),
        ("client-metrics", Describe::ClientMetrics(&client_metrics)),
    ] {
        let described = node.describe(describe, None);
        let ours: Vec<String> = described.iter().map(|d| line(resource, d)).collect();
        let start = format!("{resource}\t");
        let theirs: Vec<&str> = recorded.lines().filter(|l| l.starts_with(&start)).collect();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.len(), "{resource}");
        compared += ours.len();
    }
    assert!(compared > 400, "only {compared} were compared");
}

#[test]
fn a_plain_node_describes_itself_as_kafka_does() {
    same_as_recorded(
        include_str!("testdata/plain.properties"),
        include_str!("testdata/plain.tsv"),
    );
}

/// Values set in every layer, names unknown or of one listener, secrets, blanks.
#[test]
fn a_node_with_every_kind_of_value_describes_itself_as_kafka_does() {
    same_as_recorded(
        include_str!("testdata/rich.properties"),
        include_str!("testdata/rich.tsv"),
    );
}

#[test]
fn keys_pick_and_unknown_ones_are_left_out() {
    let node = node(include_str!("testdata/plain.properties"));
    let keys = ["segment.bytes".to_owned(), "no.such.name".to_owned()];
    let overrides = Overrides::new();
    let described = node.describe(Describe::Topic(&overrides), Some(&keys));
    let names: Vec<&str> = described.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["segment.bytes"]);
    assert!(node.describe(Describe::Broker, Some(&[])).is_empty());
}
