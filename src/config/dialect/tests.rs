//! The table of `testdata/dialects.table`: environments, and the configurations they come to.

use super::*;
use crate::config::{NodeConfig, Sources, parse_properties};

const TABLE: &str = include_str!("../testdata/dialects.table");
const HOST: &str = "c0ffee";

/// One row of the table, its lines by their first character.
#[derive(Default)]
struct Row {
    name: String,
    word: String,
    variables: Vec<(String, String)>,
    file: Option<String>,
    expected: Vec<String>,
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(head) = line.strip_prefix("== ") {
            let (word, name) = head.split_once(": ").expect("== family: what");
            rows.push(Row {
                name: name.to_owned(),
                word: word.to_owned(),
                ..Row::default()
            });
            continue;
        }
        let row = rows.last_mut().expect("a line before the first row");
        if let Some(expected) = line.strip_prefix("> ") {
            row.expected.push(expected.to_owned());
        } else if let Some(pair) = line.strip_prefix("file ") {
            let text = row.file.get_or_insert_default();
            text.push_str(pair);
            text.push('\n');
        } else {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            row.variables
                .push((name.to_owned(), value.replace("\\n", "\n")));
        }
    }
    rows
}

fn read(path: &str) -> Option<String> {
    (path == "/run/secrets/id").then(|| "from-a-file\n".to_owned())
}

fn run(line: &str) -> Option<String> {
    line.strip_prefix("echo ").map(str::to_owned)
}

/// What is wrong with a row.
fn check(row: &Row) -> Vec<String> {
    let dialect = detect(&row.variables, &[]);
    let family = Dialect::from_word(&row.word).expect(&row.word).family();
    let mut wrong = Vec::new();
    let asked = row.expected.iter().any(|line| line == "detected");
    if asked && dialect != family.dialect {
        wrong.push(format!("detected {dialect:?}"));
    }
    let file = row
        .file
        .as_ref()
        .map(|text| parse_properties("mounted", text).unwrap());
    let place = Place {
        host_name: HOST,
        file,
        read: &read,
        run: &run,
    };
    let made = match resolve(family, &row.variables, &place) {
        Ok(made) => made,
        Err(refusal) => {
            let text = format!("refused {refusal}");
            let is_expected = |line: &String| {
                line.strip_prefix("refused ")
                    .is_some_and(|part| text.contains(part))
            };
            if !row.expected.iter().any(is_expected) {
                wrong.push(text);
            }
            return wrong;
        }
    };
    for line in &row.expected {
        if let Some(fault) = differs(line, &made) {
            wrong.push(fault);
        }
    }
    // The node takes what was written, and a file says the same as the environment.
    let text = made.file_text(family);
    let written = parse_properties("written", &text).unwrap();
    let pairs = |properties: &[Property]| -> Vec<(String, String)> {
        properties
            .iter()
            .map(|p| (p.name.clone(), p.value.clone()))
            .collect()
    };
    let is_written = |p: &&Property| {
        let is_made_up = matches!(p.origin, Origin::BuiltIn | Origin::Image(_));
        !(is_made_up && has_no_effect(&p.name))
    };
    let given: Vec<Property> = made
        .properties
        .values()
        .filter(is_written)
        .cloned()
        .collect();
    if pairs(&given) != pairs(&written) {
        wrong.push(format!("the file differs:\n{text}"));
    }
    let sources = Sources {
        file: Some(written),
        ..Sources::default()
    };
    if let Err(errors) = NodeConfig::load(sources) {
        let is_expected = row
            .expected
            .iter()
            .any(|line| line.starts_with("not started"));
        if !is_expected {
            wrong.push(format!("does not start: {errors:?}"));
        }
    }
    wrong
}

fn differs(line: &str, made: &Effective) -> Option<String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let found = match word {
        "detected" | "not" => return None,
        "unset" => {
            let value = made.get(rest)?;
            return Some(format!("{rest} is set to {value}"));
        }
        "note" => made.notes.iter().any(|note| note.contains(rest)),
        "ignored" => made.without_effect.iter().any(|name| name == rest),
        "topics" => {
            let all: Vec<String> = made.topics.iter().map(topic_text).collect();
            let all = all.join(" ");
            return (all != rest).then(|| format!("topics {all}, not {rest}"));
        }
        "cluster" => {
            let id = made.cluster_id.as_ref().map_or("", |id| id.value.as_str());
            return (id != rest).then(|| format!("cluster id {id}, not {rest}"));
        }
        _ => {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            let is = made.get(name);
            return (is != Some(value)).then(|| format!("{name} is {is:?}, not {value}"));
        }
    };
    (!found).then(|| format!("no {line}: {:?} {:?}", made.notes, made.without_effect))
}

fn topic_text(topic: &TopicOrder) -> String {
    let mut text = format!(
        "{}:{}:{}",
        topic.name, topic.partitions, topic.replication_factor
    );
    for (name, value) in &topic.configs {
        text.push_str(&format!(":{name}={value}"));
    }
    text
}

#[test]
fn environments_come_to_what_the_images_make_of_them() {
    let rows = rows();
    assert!(rows.len() >= 100, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        assert!(!row.expected.is_empty(), "{} expects nothing", row.name);
        for fault in check(row) {
            wrong.push(format!("{}: {}: {fault}", row.word, row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_place_of_a_volume_tells_the_family() {
    let none: Vec<(String, String)> = Vec::new();
    let mounted = |at: &str| detect(&none, &[at.to_owned()]);
    assert_eq!(mounted("/bitnami"), Dialect::Bitnami);
    assert_eq!(mounted("/kafka"), Dialect::Wurstmeister);
    assert_eq!(mounted("/mnt/shared/config"), Dialect::Apache);
    assert_eq!(mounted("/somewhere"), Dialect::Apache);
}

#[test]
fn a_value_is_told_with_its_place() {
    let variables = [("KAFKA_NUM_PARTITIONS".to_owned(), "3".to_owned())];
    let place = Place {
        host_name: HOST,
        file: None,
        read: &read,
        run: &run,
    };
    let made = resolve(Dialect::Apache.family(), &variables, &place).unwrap();
    let origin = |name: &str| made.properties[name].origin.to_string();
    assert_eq!(origin("num.partitions"), "environment KAFKA_NUM_PARTITIONS");
    assert_eq!(origin("log.dirs"), "default of apache/kafka");
    assert_eq!(origin("process.roles"), "built in");
    let text = made.file_text(Dialect::Apache.family());
    assert!(text.contains("# environment KAFKA_NUM_PARTITIONS\nnum.partitions=3\n"));
}

#[test]
fn variables_over_a_file_follow_the_rule_of_apache() {
    let variables = [
        ("KAFKA_LOG_RETENTION_MS", "1"),
        ("KAFKA_LISTENER_NAME_A__B_SASL_JAAS_CONFIG", "2"),
        ("KAFKA_X___Y", "3"),
        ("KAFKA_AUTO.CREATE.TOPICS.ENABLE", "4"),
        ("KAFKA_HEAP_OPTS", "no"),
        ("KAFKA_VERSION", "no"),
        ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
        ("KAFKA_PORT_9092_TCP_PORT", "no"),
        ("HOME", "no"),
        ("kafka_num_partitions", "no"),
        ("CLUSTER_ID", "5"),
        ("KAFKA_CLUSTER_ID", ""),
    ];
    let found = environment_properties(variables);
    let pairs: Vec<_> = found
        .iter()
        .map(|p| (p.name.as_str(), p.value.as_str()))
        .collect();
    let expected = [
        ("klamm.cluster.id", "5"),
        ("auto.create.topics.enable", "4"),
        ("listener.name.a_b.sasl.jaas.config", "2"),
        ("log.retention.ms", "1"),
        ("x-y", "3"),
    ];
    assert_eq!(pairs, expected);
    assert_eq!(
        found[3].origin.to_string(),
        "environment KAFKA_LOG_RETENTION_MS"
    );
}
