//! Makes answers comparable: what differs from run to run becomes a word, and arrays without an
//! order are sorted.
//!
//! ```text
//! $a, $a.id          a value that the case has a name for      <id 1>, <producer 1>, <session 1>
//! $t0+5              a time that the case has sent              numbered as they are first seen
//! <now>              a time of this run                         in one run of a case
//! <member 1>         a member id that the broker has made
//! <cluster>, <host>, <port>, <path>, <bytes>, <epoch>, <text>   (some text that is not empty)
//! ```

use std::borrow::Cow;

use klamm::types::base64_uuid;
use klamm::wire::Value;

use crate::batch;
use crate::broker::Broker;
use crate::variables::Variables;

/// Arrays whose order means something in every answer.
const ORDERED: &[&str] = &[
    "aborted_transactions",
    "api_keys",
    "batches",
    "records",
    "record_errors",
    "synonyms",
];
/// `$t0` lies this long before the run, so that its neighbourhood is told from the present.
pub const T0_BEFORE_MS: i64 = 3_600_000;
const T0_RANGE_MS: i64 = 1_000_000;
const NOW_RANGE_MS: i64 = 24 * 3_600_000;

pub struct Placeholders<'a> {
    pub broker: &'a Broker,
    ids: Vec<String>,
    producers: Vec<i64>,
    sessions: Vec<i64>,
    members: Vec<String>,
}

/// The place of a value among those seen, from 1.
fn number_of<T: PartialEq>(seen: &mut Vec<T>, value: T) -> usize {
    let at = seen.iter().position(|s| *s == value).unwrap_or_else(|| {
        seen.push(value);
        seen.len() - 1
    });
    at + 1
}

impl<'a> Placeholders<'a> {
    pub fn new(broker: &'a Broker) -> Self {
        Placeholders {
            broker,
            ids: Vec::new(),
            producers: Vec::new(),
            sessions: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Reads record batches, names known values, sorts, then numbers the unknown ones.
    pub fn apply(&mut self, answer: Value, variables: &Variables, ordered: bool) -> Value {
        let named = self.named("", answer, variables);
        let sorted = if ordered { named } else { sorted("", named) };
        self.numbered("", sorted)
    }

    fn named(&self, name: &str, value: Value, variables: &Variables) -> Value {
        match value {
            Value::Bytes(bytes) if name == "records" => {
                self.named("batches", batch::read_all(&bytes), variables)
            }
            Value::Struct(fields) => Value::Struct(
                fields
                    .into_iter()
                    .map(|(name, value)| {
                        let value = self.named(&name, value, variables);
                        (name, value)
                    })
                    .collect(),
            ),
            Value::Array(elements) if name == "api_keys" => by_api(elements),
            Value::Array(elements) => {
                let named = |element| self.named(name, element, variables);
                Value::Array(elements.into_iter().map(named).collect())
            }
            Value::Text(text) => Value::Text(self.text(name, text, variables)),
            Value::Integer(number) => self.integer(name, number),
            Value::Uuid(id) => {
                let text = base64_uuid(id);
                match variables.hide(&text) {
                    hidden if hidden != text => Value::Text(hidden),
                    _ => Value::Uuid(id),
                }
            }
            other => other,
        }
    }

    fn text(&self, name: &str, text: String, variables: &Variables) -> String {
        let is_message = name.ends_with("error_message") || name == "documentation";
        match name {
            _ if text.is_empty() => text,
            // What FindCoordinator says of a success.
            _ if is_message && text == "NONE" => text,
            _ if is_message => "<text>".to_owned(),
            "cluster_id" if text == self.broker.cluster_id => "<cluster>".to_owned(),
            "host" => "<host>".to_owned(),
            "log_dir" => "<path>".to_owned(),
            _ => variables.hide(&text),
        }
    }

    fn integer(&self, name: &str, number: i64) -> Value {
        let t0_ms = self.broker.now_ms - T0_BEFORE_MS;
        let word = match name {
            "port" if number == i64::from(self.broker.address.port()) => "<port>".to_owned(),
            "finalized_features_epoch" if number >= 0 => "<epoch>".to_owned(),
            "total_bytes" | "usable_bytes" if number > 0 => "<bytes>".to_owned(),
            _ if (t0_ms..t0_ms + T0_RANGE_MS).contains(&number) => {
                format!("$t0+{}", number - t0_ms)
            }
            _ if (number - self.broker.now_ms).abs() < NOW_RANGE_MS => "<now>".to_owned(),
            _ => return Value::Integer(number),
        };
        Value::Text(word)
    }

    fn numbered(&mut self, name: &str, value: Value) -> Value {
        match value {
            Value::Struct(fields) => {
                let mut numbered = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let value = self.numbered(&name, value);
                    numbered.push((name, value));
                }
                Value::Struct(numbered)
            }
            Value::Array(elements) => {
                let numbered = |element| self.numbered(name, element);
                Value::Array(elements.into_iter().map(numbered).collect())
            }
            Value::Uuid(id) if id.as_u128() > 1 => {
                let number = number_of(&mut self.ids, base64_uuid(id));
                Value::Text(format!("<id {number}>"))
            }
            Value::Integer(id) if name == "producer_id" && id >= 0 => {
                Value::Text(format!("<producer {}>", number_of(&mut self.producers, id)))
            }
            Value::Text(text) if matches!(name, "member_id" | "leader") => {
                match made_member_id(&text) {
                    Some(start) => {
                        let number = number_of(&mut self.members, text[start..].to_owned());
                        Value::Text(format!("{}<member {number}>", &text[..start]))
                    }
                    None => Value::Text(text),
                }
            }
            Value::Integer(id) if name == "session_id" && id > 0 => {
                Value::Text(format!("<session {}>", number_of(&mut self.sessions, id)))
            }
            other => other,
        }
    }
}

/// Where in a member id its random part begins: a UUID at the end, in either way of writing. The
/// ids that cases bring begin with `AAAA`.
fn made_member_id(text: &str) -> Option<usize> {
    const UUID_CHARS: usize = 36;
    const BASE64_CHARS: usize = 22;
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if let Some(start) = text.len().checked_sub(UUID_CHARS) {
        return uuid::Uuid::parse_str(text.get(start..)?)
            .ok()
            .map(|_| start);
    }
    let whole = text.len() == BASE64_CHARS && text.chars().all(is_base64);
    (whole && !text.starts_with("AAAA")).then_some(0)
}

/// The list of ApiVersions by name, so that a broker without one API differs in that one.
fn by_api(elements: Vec<Value>) -> Value {
    let key = |e: &Value| e.get("api_key").and_then(Value::as_integer).unwrap_or(-1);
    let is_ascending = elements.is_sorted_by(|a, b| key(a) < key(b));
    let mut fields = vec![(Cow::Borrowed("is_ascending"), Value::Boolean(is_ascending))];
    for element in elements {
        let number = |name| element.get(name).and_then(Value::as_integer).unwrap_or(-1);
        let range = format!("{}-{}", number("min_version"), number("max_version"));
        let api = i16::try_from(key(&element)).ok().and_then(klamm::wire::api);
        let name = api.map_or_else(|| key(&element).to_string(), |api| api.name.to_owned());
        fields.push((Cow::Owned(name), Value::Text(range)));
    }
    Value::Struct(fields)
}

fn sorted(name: &str, value: Value) -> Value {
    match value {
        Value::Struct(fields) => Value::Struct(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let value = sorted(&name, value);
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(elements) => {
            let mut elements: Vec<Value> = elements.into_iter().map(|e| sorted(name, e)).collect();
            let structs = elements.iter().all(|e| matches!(e, Value::Struct(_)));
            if structs && !ORDERED.contains(&name) {
                elements.sort_by_cached_key(sort_key);
            }
            Value::Array(elements)
        }
        other => other,
    }
}

/// What identifies an element first, so that a wrong error code does not move it.
fn sort_key(element: &Value) -> (String, String) {
    const KEYS: &[&str] = &[
        "name",
        "group_id",
        "member_id",
        "key",
        "topic",
        "topic_name",
        "topic_id",
        "resource_name",
        "partition_index",
        "partition",
        "index",
        "node_id",
        "broker_id",
        "config_name",
        "log_dir",
    ];
    let keys = KEYS.iter().filter_map(|key| element.get(key));
    let keys: Vec<String> = keys.map(|value| format!("{value:?}")).collect();
    (keys.join(" "), element.to_string())
}
