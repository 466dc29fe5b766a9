//! JSON as Kafka's tools read it: field by field, each of the type that is wanted there, and said
//! in their words where it is not. What nobody asks for is passed over.

use serde_json::{Map, Value};

use super::stop::Stop;

fn mismatch(text: String) -> Stop {
    Stop::Thrown {
        class: "com.fasterxml.jackson.databind.JsonMappingException",
        text,
    }
}

/// The first value of a text; what follows it is passed over.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
    let nothing = || serde_json::from_str::<Value>("");
    values.next().unwrap_or_else(nothing)
}

/// The fields of an object.
pub struct Object<'a>(&'a Map<String, Value>);

impl<'a> Object<'a> {
    pub fn new(value: &'a Value) -> Result<Object<'a>, Stop> {
        let wrong = || mismatch(format!("Expected JSON object, received {value}"));
        value.as_object().map(Object).ok_or_else(wrong)
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    pub fn field(&self, name: &str) -> Result<&'a Value, Stop> {
        let missing = || mismatch(format!("No such field exists: `{name}`"));
        self.get(name).ok_or_else(missing)
    }

    /// The objects in the list `name`; none if there is no such field.
    pub fn objects(&self, name: &str) -> Result<Vec<Object<'a>>, Stop> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let wrong = || mismatch(format!("Expected JSON array, received {value}"));
        let rows = value.as_array().ok_or_else(wrong)?;
        rows.iter().map(Object::new).collect()
    }
}

pub fn integer(value: &Value) -> Result<i32, Stop> {
    let found = value.as_i64().and_then(|number| number.try_into().ok());
    found.ok_or_else(|| mismatch(format!("Expected `Integer` value, received {value}")))
}

pub fn text(value: &Value) -> Result<String, Stop> {
    let found = value.as_str().map(str::to_owned);
    found.ok_or_else(|| mismatch(format!("Expected `String` value, received {value}")))
}

pub fn list<T>(value: &Value, element: fn(&Value) -> Result<T, Stop>) -> Result<Vec<T>, Stop> {
    let wrong = || mismatch(format!("Expected `JSON array` value, received {value}"));
    value
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        .map(element)
        .collect()
}
