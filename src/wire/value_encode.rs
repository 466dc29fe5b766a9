//! Writes any message from a [`Value`].
//!
//! A field that the tree does not name is null where the layout allows it, else zero, false, empty
//! or the nil id; a tagged field that is not named is left out. A name the layout does not have is
//! an error, so that a misspelt field of a test does not pass for a default.

use bytes::Bytes;
use uuid::Uuid;

use super::conform::put_length;
use super::layout::{Api, Field, Kind, Length, Struct, TaggedField, api};
use super::reader::TEXT_BYTES_MAX;
use super::value::{Value, parse_hex};
use crate::types::parse_base64_uuid;

/// Why a tree does not fit a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unencodable {
    #[error("no API has the key {0}")]
    UnknownApi(i16),
    #[error("{api} has no version {version}")]
    UnknownVersion { api: &'static str, version: i16 },
    #[error("there is no field {field}")]
    UnknownField { field: String },
    #[error("{field}: {seen} where {wanted} is wanted")]
    WrongKind {
        field: String,
        seen: String,
        wanted: String,
    },
}

/// Writes a request (header and body, without the length before them).
pub fn encode_request(
    api_key: i16,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: &Value,
) -> Result<Bytes, Unencodable> {
    let api = api(api_key).ok_or(Unencodable::UnknownApi(api_key))?;
    let layout = layout_of(api, version, api.request(version))?;
    let mut out = Vec::new();
    out.extend_from_slice(&api_key.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&correlation_id.to_be_bytes());
    let client_id = client_id.map_or(Value::Null, |text| Value::Text(text.to_owned()));
    put_value(&mut out, &Kind::Text(super::conform::CLIENT_ID), &client_id)
        .map_err(|e| e.within("client_id"))?;
    if api.request_header_version(version) >= 2 {
        put_varint(&mut out, 0);
    }
    put_fields(&mut out, layout, body)?;
    Ok(out.into())
}

/// Writes a response (header and body, without the length before them).
pub fn encode_response(
    api_key: i16,
    version: i16,
    correlation_id: i32,
    body: &Value,
) -> Result<Bytes, Unencodable> {
    let api = api(api_key).ok_or(Unencodable::UnknownApi(api_key))?;
    let layout = layout_of(api, version, api.response(version))?;
    let mut out = Vec::new();
    super::header::write_response_header(&mut out, api_key, version, correlation_id);
    put_fields(&mut out, layout, body)?;
    Ok(out.into())
}

fn layout_of<'t>(
    api: &Api,
    version: i16,
    layout: Option<&'t Struct>,
) -> Result<&'t Struct, Unencodable> {
    let name = api.name;
    layout.ok_or(Unencodable::UnknownVersion { api: name, version })
}

impl Unencodable {
    fn wrong(value: &Value, wanted: impl std::fmt::Debug) -> Self {
        Unencodable::WrongKind {
            field: String::new(),
            seen: format!("{value:?}"),
            wanted: format!("{wanted:?}"),
        }
    }

    /// The same, seen from the struct or array around it.
    fn within(mut self, outer: &str) -> Self {
        if let Unencodable::UnknownField { field } | Unencodable::WrongKind { field, .. } =
            &mut self
        {
            let dot = if field.is_empty() || field.starts_with('[') {
                ""
            } else {
                "."
            };
            *field = format!("{outer}{dot}{field}");
        }
        self
    }
}

/// Seven bits a byte, the lowest first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_fields(out: &mut Vec<u8>, layout: &Struct, value: &Value) -> Result<(), Unencodable> {
    let Value::Struct(given) = value else {
        return Err(Unencodable::wrong(value, "a struct"));
    };
    let tagged = layout.tagged.as_deref().unwrap_or_default();
    for (name, _) in given {
        let in_fields = layout.fields.iter().any(|field| field.name == name);
        let in_tagged = tagged.iter().any(|t| t.field.name == name);
        let unknown_tag = layout.tagged.is_some() && unknown_tag(name).is_some();
        if !(in_fields || in_tagged || unknown_tag) {
            let field = name.clone().into_owned();
            return Err(Unencodable::UnknownField { field });
        }
    }
    for field in &layout.fields {
        put_field(out, field, value.get(field.name))?;
    }
    match &layout.tagged {
        Some(known) => put_tagged(out, known, value, given),
        None => Ok(()),
    }
}

fn unknown_tag(name: &str) -> Option<u32> {
    name.strip_prefix("_tag_")?.parse().ok()
}

fn put_field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>) -> Result<(), Unencodable> {
    let default = value.is_none().then(|| default_of(&field.kind));
    let value = value.or(default.as_ref()).expect("given or made");
    put_value(out, &field.kind, value).map_err(|e| e.within(field.name))
}

fn put_tagged(
    out: &mut Vec<u8>,
    known: &[TaggedField],
    value: &Value,
    given: &[(std::borrow::Cow<'static, str>, Value)],
) -> Result<(), Unencodable> {
    let mut tagged = Vec::new();
    for TaggedField { tag, field } in known {
        if let Some(value) = value.get(field.name) {
            let mut content = Vec::new();
            put_field(&mut content, field, Some(value))?;
            tagged.push((*tag, content));
        }
    }
    for (name, value) in given {
        if let Some(tag) = unknown_tag(name) {
            let content = bytes_of(value).map_err(|e| e.within(name))?;
            tagged.push((tag, content));
        }
    }
    tagged.sort_by_key(|(tag, _)| *tag);
    put_varint(out, tagged.len() as u32);
    for (tag, content) in tagged {
        put_varint(out, tag);
        put_varint(out, content.len() as u32);
        out.extend_from_slice(&content);
    }
    Ok(())
}

fn default_of(kind: &Kind) -> Value {
    match kind {
        Kind::Boolean => Value::Boolean(false),
        Kind::Int8 | Kind::Int16 | Kind::Uint16 | Kind::Int32 | Kind::Int64 => Value::Integer(0),
        Kind::Float64 => Value::Float(0.0),
        Kind::Uuid => Value::Uuid(Uuid::nil()),
        Kind::Text(length)
        | Kind::Bytes(length)
        | Kind::Records(length)
        | Kind::Array(length, _)
            if length.nullable =>
        {
            Value::Null
        }
        Kind::Text(_) => Value::Text(String::new()),
        Kind::Bytes(_) | Kind::Records(_) => Value::Bytes(Bytes::new()),
        Kind::Array(..) => Value::Array(Vec::new()),
        Kind::Struct { nullable: true, .. } => Value::Null,
        Kind::Struct { .. } => Value::Struct(Vec::new()),
    }
}

fn put_value(out: &mut Vec<u8>, kind: &Kind, value: &Value) -> Result<(), Unencodable> {
    let wrong = || Unencodable::wrong(value, kind);
    let integer = || value.as_integer().ok_or_else(wrong);
    match kind {
        Kind::Boolean => match value {
            Value::Boolean(value) => out.push(u8::from(*value)),
            _ => return Err(wrong()),
        },
        Kind::Int8 | Kind::Int16 | Kind::Uint16 | Kind::Int32 | Kind::Int64 => {
            put_integer(out, kind, integer()?).ok_or_else(wrong)?;
        }
        Kind::Float64 => match value {
            Value::Float(value) => out.extend_from_slice(&value.to_be_bytes()),
            _ => out.extend_from_slice(&(integer()? as f64).to_be_bytes()),
        },
        Kind::Uuid => out.extend_from_slice(uuid_of(value).ok_or_else(wrong)?.as_bytes()),
        Kind::Text(length) => match value {
            Value::Text(text) if text.len() <= TEXT_BYTES_MAX => {
                put_length(out, *length, true, Some(text.len()));
                out.extend_from_slice(text.as_bytes());
            }
            _ => put_null(out, *length, true, value, wrong)?,
        },
        Kind::Bytes(length) | Kind::Records(length) => match value {
            Value::Null => put_null(out, *length, false, value, wrong)?,
            _ => {
                let bytes = bytes_of(value)?;
                put_length(out, *length, false, Some(bytes.len()));
                out.extend_from_slice(&bytes);
            }
        },
        Kind::Array(length, element) => match value {
            Value::Array(elements) => {
                put_length(out, *length, false, Some(elements.len()));
                for (index, value) in elements.iter().enumerate() {
                    put_value(out, element, value).map_err(|e| e.within(&format!("[{index}]")))?;
                }
            }
            _ => put_null(out, *length, false, value, wrong)?,
        },
        Kind::Struct { nullable, layout } => match value {
            Value::Null if *nullable => out.push(0xff),
            _ => {
                out.extend_from_slice(if *nullable { &[1] } else { &[] });
                put_fields(out, layout, value)?;
            }
        },
    }
    Ok(())
}

/// `None` when the number is outside of the range of its kind.
fn put_integer(out: &mut Vec<u8>, kind: &Kind, value: i64) -> Option<()> {
    let bytes = kind.fixed_bytes()?;
    let bits = 8 * bytes as u32;
    let (low, high) = match kind {
        Kind::Uint16 => (0, i64::from(u16::MAX)),
        _ => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
    };
    if !(low..=high).contains(&value) {
        return None;
    }
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
    Some(())
}

/// Null also where the layout has none: a test may want to see what a broker says to it.
fn put_null(
    out: &mut Vec<u8>,
    length: Length,
    short: bool,
    value: &Value,
    wrong: impl Fn() -> Unencodable,
) -> Result<(), Unencodable> {
    if *value != Value::Null {
        return Err(wrong());
    }
    put_length(out, length, short, None);
    Ok(())
}

fn uuid_of(value: &Value) -> Option<Uuid> {
    match value {
        Value::Uuid(uuid) => Some(*uuid),
        Value::Text(text) => parse_base64_uuid(text),
        _ => None,
    }
}

/// Bytes, `hex:...`, or a text's own bytes.
fn bytes_of(value: &Value) -> Result<Vec<u8>, Unencodable> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.to_vec()),
        Value::Text(text) if text.starts_with("hex:") => {
            parse_hex(text).ok_or_else(|| Unencodable::wrong(value, "an even number of hex digits"))
        }
        Value::Text(text) => Ok(text.clone().into_bytes()),
        _ => Err(Unencodable::wrong(value, "bytes")),
    }
}
