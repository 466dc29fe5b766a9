//! Reading and building the trees of versions that the codec lacks (`values from` in the table).
//!
//! A request was found conforming, so its fields are there and of their kind; what a field lacks
//! all the same reads as its default.

use std::borrow::Cow;

use uuid::Uuid;

use crate::types::TopicId;
use crate::wire::Value;

pub fn integer(value: &Value, name: &str) -> i64 {
    value
        .get(name)
        .and_then(Value::as_integer)
        .unwrap_or_default()
}

pub fn int32(value: &Value, name: &str) -> i32 {
    i32::try_from(integer(value, name)).unwrap_or_default()
}

/// `None`: null.
pub fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_text)
}

pub fn boolean(value: &Value, name: &str) -> bool {
    matches!(value.get(name), Some(Value::Boolean(true)))
}

pub fn uuid(value: &Value, name: &str) -> Uuid {
    match value.get(name) {
        Some(Value::Uuid(id)) => *id,
        _ => Uuid::nil(),
    }
}

pub fn topic_id(value: &Value) -> TopicId {
    TopicId(uuid(value, "topic_id"))
}

/// Of an array that is null as of an empty one: nothing.
pub fn elements<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).map_or(&[], Value::elements)
}

pub fn structure<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::Struct(
        fields
            .into_iter()
            .map(|(name, value)| (Cow::Borrowed(name), value))
            .collect(),
    )
}
