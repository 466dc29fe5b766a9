//! Any message as a tree, for tests and for tools: named fields, whatever the API.
//!
//! As JSON, bytes and records are text that starts with `hex:`, and ids are Kafka's base64. The
//! encoder takes these texts back by what the layout says, so a tree read from JSON can be sent.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use uuid::Uuid;

use crate::types::base64_uuid;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Bytes(Bytes),
    Uuid(Uuid),
    Array(Vec<Value>),
    /// Fields in the order of the wire. A tagged field is there when it was on the wire; one that
    /// the layout does not know is named `_tag_<tag>`.
    Struct(Vec<(Cow<'static, str>, Value)>),
}

impl Value {
    /// A struct of these fields.
    pub fn fields<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
        let named = fields.map(|(name, value)| (Cow::Borrowed(name), value));
        Value::Struct(named.into())
    }

    /// The field of a struct.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    pub fn elements(&self) -> &[Value] {
        match self {
            Value::Array(elements) => elements,
            _ => &[],
        }
    }

    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Value::Null => Json::Null,
            Value::Boolean(value) => Json::from(*value),
            Value::Integer(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Text(text) => Json::from(text.as_str()),
            Value::Bytes(bytes) => Json::from(hex(bytes)),
            Value::Uuid(uuid) => Json::from(base64_uuid(*uuid)),
            Value::Array(elements) => elements.iter().map(Value::to_json).collect(),
            Value::Struct(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone().into_owned(), value.to_json()))
                .collect(),
        }
    }

    /// JSON as a tree. A number outside of the range of int64 becomes a float.
    pub fn from_json(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Boolean(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Integer(value),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(elements) => Value::Array(elements.iter().map(Value::from_json).collect()),
            Json::Object(fields) => Value::Struct(
                fields
                    .iter()
                    .map(|(name, value)| (Cow::Owned(name.clone()), Value::from_json(value)))
                    .collect(),
            ),
        }
    }

    /// One line a leaf, as `topics[0].name: "a"`. An empty array is `[]`, an empty struct `{}`.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        self.add_lines(String::new(), &mut lines);
        lines
    }

    fn add_lines(&self, path: String, lines: &mut Vec<(String, String)>) {
        match self {
            Value::Array(elements) if !elements.is_empty() => {
                for (i, element) in elements.iter().enumerate() {
                    element.add_lines(format!("{path}[{i}]"), lines);
                }
            }
            Value::Struct(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    value.add_lines(format!("{path}{dot}{name}"), lines);
                }
            }
            leaf => lines.push((path, leaf.leaf_text())),
        }
    }

    fn leaf_text(&self) -> String {
        match self {
            Value::Null => "null".to_owned(),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Text(text) => format!("{text:?}"),
            Value::Bytes(bytes) => hex(bytes),
            Value::Uuid(uuid) => base64_uuid(*uuid),
            Value::Array(_) => "[]".to_owned(),
            Value::Struct(_) => "{}".to_owned(),
        }
    }
}

/// One line a leaf.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, text) in self.lines() {
            writeln!(f, "{path}: {text}")?;
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(4 + 2 * bytes.len());
    text.push_str("hex:");
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of a text that starts with `hex:`.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("hex:")?;
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|n| n as u8);
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((nibble(*high)? << 4) | nibble(*low)?),
            _ => None,
        })
        .collect()
}
