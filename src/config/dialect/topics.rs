//! Topics that the environment orders: `name:partitions:replication factor[:policy]`.

use super::family::{Dialect, Family};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOrder {
    pub name: String,
    pub partitions: i32,
    pub replication_factor: i16,
    pub configs: Vec<(String, String)>,
}

pub(super) fn ordered(
    family: &Family,
    variables: &[(String, String)],
    notes: &mut Vec<String>,
) -> Vec<TopicOrder> {
    let get = |name: &str| {
        let found = variables.iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.as_str())
    };
    let names = match family.dialect {
        Dialect::Debezium => ["CREATE_TOPICS", "KAFKA_CREATE_TOPICS"],
        _ => ["KAFKA_CREATE_TOPICS", "CREATE_TOPICS"],
    };
    let Some(text) = names.into_iter().find_map(get) else {
        return Vec::new();
    };
    let separator = get("KAFKA_CREATE_TOPICS_SEPARATOR").unwrap_or(",");
    let (topics, wrong) = parse_topics(text, separator);
    notes.extend(wrong.iter().map(|item| {
        format!("\"{item}\" is no topic: it is name:partitions:replicas[:cleanup.policy]")
    }));
    topics
}

/// The topics of a list, and the items that are none.
pub fn parse_topics(text: &str, separator: &str) -> (Vec<TopicOrder>, Vec<String>) {
    let separator = shell_literal(separator);
    let (mut topics, mut wrong) = (Vec::new(), Vec::new());
    for item in text
        .split(separator.as_str())
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        match topic(item) {
            Some(topic) => topics.push(topic),
            None => wrong.push(item.to_owned()),
        }
    }
    (topics, wrong)
}

/// `$'\n'` as a shell reads it: people pass the separator quoted for `eval`.
fn shell_literal(text: &str) -> String {
    let inner = text
        .strip_prefix("$'")
        .or(text.strip_prefix("$$'"))
        .or(text.strip_prefix('\''))
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(text);
    let literal = inner.replace("\\n", "\n").replace("\\t", "\t");
    if literal.is_empty() {
        ",".to_owned()
    } else {
        literal
    }
}

fn topic(item: &str) -> Option<TopicOrder> {
    // Words of the command line may follow the policy.
    let (spec, options) = match item.split_once(char::is_whitespace) {
        Some((spec, options)) => (spec, options),
        None => (item, ""),
    };
    let mut parts = spec.split(':').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?.to_owned();
    let mut number = || match parts.next() {
        None | Some("") => Some(-1),
        Some(text) => text.parse::<i32>().ok(),
    };
    let partitions = number()?;
    let replication_factor = i16::try_from(number()?).ok()?;
    let mut configs = Vec::new();
    if let Some(policy) = parts.next().filter(|policy| !policy.is_empty()) {
        configs.push(("cleanup.policy".to_owned(), policy.to_owned()));
    }
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let pair = match word.split_once('=') {
            Some(("--config", pair)) => pair,
            None if word == "--config" => words.next()?,
            _ => return None,
        };
        let (name, value) = pair.split_once('=')?;
        configs.push((name.to_owned(), value.to_owned()));
    }
    Some(TopicOrder {
        name,
        partitions,
        replication_factor,
        configs,
    })
}
