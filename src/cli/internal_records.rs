//! Records of the internal topics and of the metadata log as Kafka's tools show them: JSON in one
//! line, as Jackson writes it.
//!
//! ```text
//! key   = type:int16 fields            the type says what key and value are
//! value = version:int16 fields
//! metadata value = frame:uvarint type:uvarint version:uvarint fields
//! ```

use std::fmt::Write;

use bytes::{Buf, Bytes};

use crate::machine::transaction::TransactionState;
use crate::types::base64_uuid;
use crate::wire::{RecordHome, RecordKind, Value, decode_record, record_kind, record_kind_by_name};

/// What a record of a coordinator's topic says.
#[derive(Debug, PartialEq)]
pub enum Decoded {
    Record {
        api_key: i16,
        key: Value,
        /// Version and fields; `None` deletes the key.
        value: Option<(i16, Value)>,
    },
    UnknownType(i16),
    /// In Kafka's words.
    Failed(String),
}

pub fn decode(home: RecordHome, key: &Bytes, value: Option<&Bytes>) -> Decoded {
    let Some((api_key, key_fields)) = int16(key) else {
        return Decoded::Failed("Could not read version from key's buffer.".to_owned());
    };
    let kind = |ending| record_kind(home, api_key, ending);
    let (Some(key_kind), Some(value_kind)) = (kind("Key"), kind("Value")) else {
        return Decoded::UnknownType(api_key);
    };
    // Of keys Kafka names the type where it names the version of values.
    let key = match read(key_kind, 0, api_key, &key_fields, "key") {
        Ok(key) => key,
        Err(reason) => return Decoded::Failed(reason),
    };
    let Some(value) = value else {
        let value = None;
        return Decoded::Record {
            api_key,
            key,
            value,
        };
    };
    let Some((version, fields)) = int16(value) else {
        return Decoded::Failed("Could not read version from value's buffer.".to_owned());
    };
    match read(value_kind, version, version, &fields, "value") {
        Ok(fields) => {
            let value = Some((version, fields));
            Decoded::Record {
                api_key,
                key,
                value,
            }
        }
        Err(reason) => Decoded::Failed(reason),
    }
}

fn read(
    kind: &RecordKind,
    version: i16,
    named: i16,
    fields: &Bytes,
    of: &str,
) -> Result<Value, String> {
    let failed = |why: &str| {
        format!("Could not read record with version {named} from {of}'s buffer due to: {why}.")
    };
    if kind.layout(version).is_none() {
        let name = kind.name;
        return Err(failed(&format!("Can't read version {version} of {name}")));
    }
    // A buffer that ends too early has no message in Java.
    decode_record(kind, version, fields).map_err(|_| failed("null"))
}

fn int16(bytes: &Bytes) -> Option<(i16, Bytes)> {
    let number = i16::from_be_bytes(*bytes.first_chunk()?);
    Some((number, bytes.slice(2..)))
}

/// A metadata record as `{"type":...,"version":...,"data":...}`, or what is wrong with it.
pub fn metadata_json(value: &Bytes) -> Result<String, String> {
    let mut rest = value.clone();
    let mut next = |what| uvarint(&mut rest).ok_or_else(|| format!("Error while reading {what}"));
    let frame = next("frame version")?;
    if frame == 0 {
        return Err(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from \
             the preview release of KRaft in 2.8 to newer versions are not supported."
                .to_owned(),
        );
    }
    if frame != 1 {
        return Err(format!(
            "Could not deserialize metadata record due to unknown frame version {frame}(only frame \
             version 1 is supported)"
        ));
    }
    let api_key = i16::try_from(next("type")?).unwrap_or(-1);
    let version = i16::try_from(next("version")?).unwrap_or(-1);
    let kind = record_kind(RecordHome::Metadata, api_key, "Record")
        .ok_or_else(|| format!("type {api_key} is not known"))?;
    let fields = decode_record(kind, version, &rest).map_err(|error| error.to_string())?;
    let name = constant_name(kind.name);
    let data = json(&fields);
    Ok(format!(
        "{{\"type\":\"{name}\",\"version\":{version},\"data\":{data}}}"
    ))
}

/// The fields of a control record by the name of its layout. Its version stands in front of the
/// fields and is the first of them.
pub fn control_json(name: &str, value: &Bytes) -> Option<String> {
    let version = int16(value)?.0;
    let kind = record_kind_by_name(name)?;
    let version = version.clamp(0, kind.version_max());
    decode_record(kind, version, value)
        .ok()
        .map(|fields| json(&fields))
}

/// What the consumers of a classic group have written into its record.
pub fn with_consumer_protocol(mut group: Value) -> Value {
    let is_of_consumers = group.get("protocol_type").and_then(Value::as_text) == Some("consumer");
    let Value::Struct(fields) = &mut group else {
        return group;
    };
    let members = fields.iter_mut().find(|(name, _)| name == "members");
    if let Some((_, Value::Array(members))) = members.filter(|_| is_of_consumers) {
        members.iter_mut().for_each(open_member);
    }
    group
}

/// The value of a transaction as Kafka's tool shows it: its state by name, and the fields that are
/// tagged where Java's class has them.
pub fn with_state_name(mut transaction: Value) -> Value {
    let Value::Struct(fields) = &mut transaction else {
        return transaction;
    };
    let status = fields
        .iter_mut()
        .find(|(name, _)| name == "transaction_status");
    if let Some((_, value @ Value::Integer(_))) = status
        && let Some(id) = value.as_integer().and_then(|id| i8::try_from(id).ok())
        && let Some(state) = TransactionState::from_id(id)
    {
        *value = Value::Text(state.name().to_owned());
    }
    for (tagged, before) in [
        ("previous_producer_id", "producer_epoch"),
        ("next_producer_id", "producer_epoch"),
        ("next_producer_epoch", "transaction_timeout_ms"),
    ] {
        let place = |wanted: &str| fields.iter().position(|(name, _)| name == wanted);
        if let (Some(from), Some(to)) = (place(tagged), place(before)) {
            let field = fields.remove(from);
            fields.insert(to, field);
        }
    }
    transaction
}

fn open_member(member: &mut Value) {
    let Value::Struct(fields) = member else {
        return;
    };
    for (name, value) in fields {
        let kind = match &**name {
            "subscription" => "ConsumerProtocolSubscription",
            "assignment" => "ConsumerProtocolAssignment",
            _ => continue,
        };
        if let Value::Bytes(bytes) = value
            && let Some((version, fields)) = int16(bytes)
            && let Some(kind) = record_kind_by_name(kind)
            && let Ok(opened) = decode_record(kind, version.min(kind.version_max()), &fields)
        {
            *value = opened;
        }
    }
}

fn uvarint(bytes: &mut Bytes) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        if !bytes.has_remaining() {
            return None;
        }
        let byte = bytes.get_u8();
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// `FeatureLevelRecord` as `FEATURE_LEVEL_RECORD`.
fn constant_name(name: &str) -> String {
    let mut constant = String::new();
    for (at, c) in name.char_indices() {
        if at > 0 && c.is_ascii_uppercase() {
            constant.push('_');
        }
        constant.push(c.to_ascii_uppercase());
    }
    constant
}

/// Fields in the order of the wire, by their names in Java; tags that nobody knows are left out.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Integer(value) => {
            let _ = write!(out, "{value}");
        }
        Value::Float(value) => {
            let _ = write!(out, "{value:?}");
        }
        Value::Text(text) => write_text(out, text),
        Value::Bytes(bytes) => write_text(out, &base64(bytes)),
        Value::Uuid(uuid) => write_text(out, &base64_uuid(*uuid)),
        Value::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(out, element);
            }
            out.push(']');
        }
        Value::Struct(fields) => {
            out.push('{');
            let known = fields.iter().filter(|(name, _)| !name.starts_with('_'));
            for (at, (name, value)) in known.enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(out, &camel_case(name));
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
    }
}

fn camel_case(name: &str) -> String {
    let mut camel = String::new();
    let mut is_first = false;
    for c in name.chars() {
        match (c, is_first) {
            ('_', _) => is_first = true,
            (c, true) => {
                camel.push(c.to_ascii_uppercase());
                is_first = false;
            }
            (c, false) => camel.push(c),
        }
    }
    match camel.strip_prefix("kraft") {
        Some(rest) => format!("kRaft{rest}"),
        None => camel,
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// With padding, as MIME has it, in one line.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for at in 0..4 {
            match at <= group.len() {
                true => text.push(DIGITS[((number >> (18 - 6 * at)) & 63) as usize] as char),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &'static [u8]) -> Bytes {
        Bytes::from_static(text)
    }

    #[test]
    fn a_commit_is_shown_with_javas_names() {
        let name = key(b"\0\x01\0\x01g\0\x01t\0\0\0\x02");
        let value = key(b"\0\x03\0\0\0\0\0\0\0\x07\0\0\0\x05\0\x02a\"\0\0\0\0\0\0\0\x09");
        let Decoded::Record {
            api_key,
            key: name,
            value: Some((version, value)),
        } = decode(RecordHome::Groups, &name, Some(&value))
        else {
            panic!("a commit");
        };
        assert_eq!((api_key, version), (1, 3));
        assert_eq!(json(&name), r#"{"group":"g","topic":"t","partition":2}"#);
        assert_eq!(
            json(&value),
            r#"{"offset":7,"leaderEpoch":5,"metadata":"a\"","commitTimestamp":9}"#
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_in_kafkas_words() {
        let found = decode(RecordHome::Groups, &key(b"\0\0\0\x04tx-1"), None);
        let reason = "Could not read record with version 0 from key's buffer due to: null.";
        assert_eq!(found, Decoded::Failed(reason.to_owned()));
        let unknown = decode(RecordHome::Groups, &key(b"\0\x63"), None);
        assert_eq!(unknown, Decoded::UnknownType(99));
        let short = decode(RecordHome::Groups, &key(b"\0"), None);
        assert!(matches!(short, Decoded::Failed(_)));
    }

    #[test]
    fn metadata_records_have_a_frame() {
        let level = key(b"\x01\x0c\0\x0egroup.version\0\x01\0");
        assert_eq!(
            metadata_json(&level).unwrap(),
            "{\"type\":\"FEATURE_LEVEL_RECORD\",\"version\":0,\
             \"data\":{\"name\":\"group.version\",\"featureLevel\":1}}"
        );
        assert!(metadata_json(&key(b"\x02\x0c\0")).is_err());
        assert!(metadata_json(&key(b"\x01\x7f\0")).is_err());
    }

    #[test]
    fn bytes_are_base64() {
        let texts = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="];
        for (bytes, text) in [&b""[..], b"f", b"fo", b"foo", b"foob"].iter().zip(texts) {
            assert_eq!(base64(bytes), text);
        }
    }
}
