//! The tables against the lists of a real Kafka 4.4, and against themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::node::{default_value, parse};
use super::*;

/// `testdata/*-configs.tsv`: name, type, default, valid, importance and, for brokers, update mode.
fn listed(text: &str) -> BTreeMap<String, Vec<String>> {
    let lines = text
        .lines()
        .skip(1)
        .map(|line| line.split('\t').map(str::to_owned).collect());
    lines
        .map(|cells: Vec<String>| (cells[0].clone(), cells))
        .collect()
}

fn cells(row: &Row, with_scope: bool) -> Vec<String> {
    let default = match row.default {
        super::DefaultValue::Required => "(none, required)",
        super::DefaultValue::Null => "null",
        super::DefaultValue::Text(text) => text,
    };
    let internal = if row.internal { " internal" } else { "" };
    let mut cells = vec![
        row.name.to_owned(),
        row.config_type.name().to_owned(),
        default.to_owned(),
        row.valid.to_string(),
        format!("{}{internal}", row.importance.name()),
    ];
    if with_scope {
        cells.push(row.scope.name().to_owned());
    }
    cells
}

fn same_as_listed<'a>(rows: impl Iterator<Item = &'a Row>, text: &str, with_scope: bool) {
    let ours: BTreeMap<_, _> = rows
        .filter(|row| !row.name.starts_with("klamm."))
        .map(|row| (row.name.to_owned(), cells(row, with_scope)))
        .collect();
    assert_eq!(ours, listed(text));
}

#[test]
fn every_row_is_kafkas() {
    same_as_listed(
        broker_rows(),
        include_str!("testdata/broker-configs.tsv"),
        true,
    );
    same_as_listed(
        TopicConfig::ROWS.iter(),
        include_str!("testdata/topic-configs.tsv"),
        false,
    );
    same_as_listed(
        GroupConfig::ROWS.iter(),
        include_str!("testdata/group-configs.tsv"),
        false,
    );
    let client_metrics = include_str!("testdata/client-metrics-configs.tsv");
    same_as_listed(ClientMetricsConfig::ROWS.iter(), client_metrics, false);
    let quotas = include_str!("testdata/user-quota-configs.tsv");
    same_as_listed(ClientQuotaConfig::ROWS.iter(), quotas, false);
    same_as_listed(
        IpQuotaConfig::ROWS.iter(),
        include_str!("testdata/ip-configs.tsv"),
        false,
    );
    let scram = ScramConfig::ROWS.iter().chain(ClientQuotaConfig::ROWS);
    same_as_listed(
        scram,
        include_str!("testdata/user-scram-configs.tsv"),
        false,
    );
}

fn all_tables() -> Vec<(&'static str, &'static [Row])> {
    let mut tables = AREAS.to_vec();
    tables.extend([
        ("topic", TopicConfig::ROWS),
        ("group", GroupConfig::ROWS),
        ("client metrics", ClientMetricsConfig::ROWS),
        ("client quota", ClientQuotaConfig::ROWS),
        ("ip quota", IpQuotaConfig::ROWS),
        ("scram", ScramConfig::ROWS),
    ]);
    tables
}

#[test]
fn broker_names_are_in_one_area_only() {
    let names: Vec<&str> = AREAS
        .iter()
        .flat_map(|(_, rows)| rows.iter())
        .map(|row| row.name)
        .collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len());
    assert_eq!(names.len(), broker_rows().count());
}

#[test]
fn defaults_are_valid_and_documented() {
    for (table, rows) in all_tables() {
        for row in rows {
            assert!(
                !row.documentation.is_empty(),
                "{table}: {} says nothing",
                row.name
            );
            if let Some(text) = row.default.text() {
                let parsed = parse(row, text);
                assert_eq!(parsed, Ok(default_value(row)), "{table}: {}", row.name);
            }
        }
    }
}

/// Every field is built from its default, so no row has a field of another type.
#[test]
fn every_field_holds_its_row() {
    let value = |row: &'static Row| match row.default {
        super::DefaultValue::Required if row.config_type == ConfigType::Int => Value::Int(1),
        super::DefaultValue::Required => Value::List(vec!["broker".into()]),
        _ => default_value(row),
    };
    BrokerConfig::build(&value);
    let mut topic = TopicConfig::build(&value);
    let mut group = GroupConfig::build(&value);
    for row in TopicConfig::ROWS {
        topic.set(row.name, default_value(row));
    }
    for row in GroupConfig::ROWS {
        group.set(row.name, default_value(row));
    }
    ClientMetricsConfig::build(&value);
    ClientQuotaConfig::build(&value);
    IpQuotaConfig::build(&value);
    ScramConfig::build(&value);
}

/// A row that claims to be applied is read by someone: it has a field, or a topic or a group that
/// applies it takes its value from it.
#[test]
fn applied_rows_without_a_field_are_defaults_of_others() {
    let rows = TopicConfig::ROWS.iter().chain(GroupConfig::ROWS);
    let sources: BTreeSet<&str> = rows
        .filter(|row| row.effect == Effect::Applied)
        .flat_map(|row| row.fallbacks)
        .map(|fallback| fallback.name)
        .collect();
    for source in &sources {
        assert!(broker_row(source).is_some(), "{source} is no broker's row");
    }
    let fields: BTreeSet<&str> = BrokerConfig::FIELDS.concat().into_iter().collect();
    for row in broker_rows().filter(|row| row.effect == Effect::Applied) {
        let is_read = fields.contains(row.name) || sources.contains(row.name);
        assert!(is_read, "{} is read by no one", row.name);
    }
}
