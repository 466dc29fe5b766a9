//! How the console consumer prints a record: the classes of `--formatter`.
//!
//! ```text
//! timestamp partition offset epoch delivery headers key value      those that are switched on,
//!                                                                  key.separator between them
//! {"key":{"type":1,"data":{...}},"value":{"version":4,"data":{...}}}   records of internal topics,
//!                                                                      nothing between two
//! ```
//!
//! Classes go by the end of their name: those of older Kafkas had others in front.

use std::io::Write;

use bytes::Bytes;

use super::consume::Incoming;
use super::exit::Exit;
use super::internal_records::{Decoded, decode, json};
use super::settings::Settings;
use crate::wire::RecordHome;

pub struct Formatter {
    kind: Kind,
    print: Print,
    key_separator: Vec<u8>,
    line_separator: Vec<u8>,
    headers_separator: Vec<u8>,
    null_literal: Vec<u8>,
    key: Deserializer,
    value: Deserializer,
    headers: Deserializer,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Columns,
    Nothing,
    /// Records of an internal topic; of these types, or of all.
    Internal(RecordHome, &'static [i16]),
}

impl Kind {
    fn of_class(class: &str) -> Option<Kind> {
        Some(match class.rsplit(['.', '$']).next()? {
            "DefaultMessageFormatter" | "LoggingMessageFormatter" => Kind::Columns,
            "NoOpMessageFormatter" => Kind::Nothing,
            "OffsetsMessageFormatter" => Kind::Internal(RecordHome::Groups, &[0, 1]),
            "GroupMetadataMessageFormatter" => Kind::Internal(RecordHome::Groups, &[2]),
            "TransactionLogMessageFormatter" => Kind::Internal(RecordHome::Transactions, &[]),
            "ShareGroupStateMessageFormatter" => Kind::Internal(RecordHome::ShareGroups, &[]),
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Print {
    timestamp: bool,
    partition: bool,
    offset: bool,
    epoch: bool,
    headers: bool,
    key: bool,
    value: bool,
}

/// Kafka's deserializers, by what they make of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deserializer {
    Raw,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Boolean,
}

const PACKAGE: &str = "org.apache.kafka.common.serialization.";

impl Deserializer {
    fn of_class(class: Option<&str>) -> Result<Deserializer, Exit> {
        let Some(class) = class.map(str::trim).filter(|class| !class.is_empty()) else {
            return Ok(Deserializer::Raw);
        };
        Ok(match class.strip_prefix(PACKAGE) {
            Some("StringDeserializer" | "ByteArrayDeserializer" | "BytesDeserializer") => {
                Deserializer::Raw
            }
            Some("ShortDeserializer") => Deserializer::Short,
            Some("IntegerDeserializer") => Deserializer::Integer,
            Some("LongDeserializer") => Deserializer::Long,
            Some("FloatDeserializer") => Deserializer::Float,
            Some("DoubleDeserializer") => Deserializer::Double,
            Some("BooleanDeserializer") => Deserializer::Boolean,
            _ => {
                return Err(Exit::error(format!(
                    "java.lang.ClassNotFoundException: {class}"
                )));
            }
        })
    }

    /// `None`: the bytes are not of this type.
    fn show(self, bytes: &Bytes) -> Option<Vec<u8>> {
        fn array<const N: usize>(bytes: &Bytes) -> Option<[u8; N]> {
            bytes.as_ref().try_into().ok()
        }
        let text = match self {
            Deserializer::Raw => return Some(bytes.to_vec()),
            Deserializer::Short => i16::from_be_bytes(array(bytes)?).to_string(),
            Deserializer::Integer => i32::from_be_bytes(array(bytes)?).to_string(),
            Deserializer::Long => i64::from_be_bytes(array(bytes)?).to_string(),
            Deserializer::Float => format!("{:?}", f32::from_be_bytes(array(bytes)?)),
            Deserializer::Double => format!("{:?}", f64::from_be_bytes(array(bytes)?)),
            Deserializer::Boolean => match array::<1>(bytes)? {
                [1] => "true".to_owned(),
                [0] => "false".to_owned(),
                _ => return None,
            },
        };
        Some(text.into_bytes())
    }
}

impl Formatter {
    /// `Err` has the name of a class that is not known.
    pub fn new(class: &str, properties: &Settings) -> Result<Formatter, Exit> {
        let kind = Kind::of_class(class).ok_or_else(|| Exit::error(class))?;
        let flag = |name: &str| properties.flag(name, false);
        let bytes =
            |name: &str, default: &str| properties.get(name).unwrap_or(default).as_bytes().to_vec();
        Ok(Formatter {
            kind,
            print: Print {
                timestamp: flag("print.timestamp"),
                partition: flag("print.partition"),
                offset: flag("print.offset"),
                epoch: flag("print.epoch"),
                headers: flag("print.headers"),
                key: flag("print.key"),
                value: properties.flag("print.value", true),
            },
            key_separator: bytes("key.separator", "\t"),
            line_separator: bytes("line.separator", "\n"),
            headers_separator: bytes("headers.separator", ","),
            null_literal: bytes("null.literal", "null"),
            key: Deserializer::of_class(properties.get("key.deserializer"))?,
            value: Deserializer::of_class(properties.get("value.deserializer"))?,
            headers: Deserializer::of_class(properties.get("headers.deserializer"))?,
        })
    }

    /// Writes a record; an error is one of the writer, or says that a field has the wrong type.
    pub fn write(&self, record: &Incoming, out: &mut dyn Write) -> std::io::Result<()> {
        match self.kind {
            Kind::Columns => {}
            Kind::Nothing => return Ok(()),
            Kind::Internal(home, types) => {
                return match internal(record, home, types)? {
                    Some(text) => out.write_all(text.as_bytes()),
                    None => Ok(()),
                };
            }
        }
        let columns = self.columns(record)?;
        let mut first = true;
        for column in columns {
            if !first {
                out.write_all(&self.key_separator)?;
            }
            first = false;
            out.write_all(&column)?;
        }
        match first {
            true => Ok(()),
            false => out.write_all(&self.line_separator),
        }
    }

    fn columns(&self, record: &Incoming) -> std::io::Result<Vec<Vec<u8>>> {
        let mut columns = Vec::new();
        if self.print.timestamp {
            let kind = match record.is_append_time {
                true => "LogAppendTime",
                false => "CreateTime",
            };
            columns.push(format!("{kind}:{}", record.timestamp_ms).into_bytes());
        }
        if self.print.partition {
            columns.push(format!("Partition:{}", record.partition).into_bytes());
        }
        if self.print.offset {
            columns.push(format!("Offset:{}", record.offset).into_bytes());
        }
        if self.print.epoch {
            // Kafka's tool loses the epoch on the way to its formatter.
            columns.push(b"Epoch:NOT_PRESENT".to_vec());
        }
        if self.print.headers {
            columns.push(self.headers_column(record)?);
        }
        if self.print.key {
            columns.push(self.field(self.key, record.key.as_ref())?);
        }
        if self.print.value {
            columns.push(self.field(self.value, record.value.as_ref())?);
        }
        Ok(columns)
    }

    fn headers_column(&self, record: &Incoming) -> std::io::Result<Vec<u8>> {
        if record.headers.is_empty() {
            return Ok(b"NO_HEADERS".to_vec());
        }
        let mut column = Vec::new();
        for (index, header) in record.headers.iter().enumerate() {
            if index > 0 {
                column.extend_from_slice(&self.headers_separator);
            }
            column.extend_from_slice(&header.key);
            column.push(b':');
            column.extend(self.field(self.headers, header.value.as_ref())?);
        }
        Ok(column)
    }

    fn field(&self, deserializer: Deserializer, bytes: Option<&Bytes>) -> std::io::Result<Vec<u8>> {
        match bytes {
            None => Ok(self.null_literal.clone()),
            Some(bytes) => deserializer.show(bytes).ok_or_else(|| {
                let text = "Size of data received by the deserializer is not that of its type";
                std::io::Error::new(std::io::ErrorKind::InvalidData, text)
            }),
        }
    }
}

/// A record of an internal topic; `None` when this formatter does not show it.
fn internal(record: &Incoming, home: RecordHome, types: &[i16]) -> std::io::Result<Option<String>> {
    let Some(key) = &record.key else {
        return Ok(None);
    };
    Ok(match decode(home, key, record.value.as_ref()) {
        Decoded::Record { api_key, .. } if !types.is_empty() && !types.contains(&api_key) => None,
        Decoded::Record {
            api_key,
            key,
            value,
        } => {
            let value = value.map_or("null".to_owned(), |(version, fields)| {
                format!("{{\"version\":{version},\"data\":{}}}", json(&fields))
            });
            let key = json(&key);
            Some(format!(
                "{{\"key\":{{\"type\":{api_key},\"data\":{key}}},\"value\":{value}}}"
            ))
        }
        Decoded::UnknownType(_) => None,
        Decoded::Failed(why) => {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Incoming {
        Incoming {
            topic: "t".to_owned(),
            partition: 2,
            offset: 7,
            leader_epoch: 0,
            timestamp_ms: 99,
            is_append_time: false,
            key: None,
            value: Some(Bytes::from_static(b"v")),
            headers: Vec::new(),
        }
    }

    fn show(properties: &[(&str, &str)], record: &Incoming) -> String {
        let mut settings = Settings::default();
        properties
            .iter()
            .for_each(|(name, value)| settings.set(name, value));
        let formatter = Formatter::new("x.DefaultMessageFormatter", &settings).unwrap();
        let mut out = Vec::new();
        formatter.write(record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_in_kafkas_order() {
        assert_eq!(show(&[], &record()), "v\n");
        let all = [
            "timestamp",
            "partition",
            "offset",
            "epoch",
            "headers",
            "key",
        ];
        let all: Vec<String> = all.iter().map(|name| format!("print.{name}")).collect();
        let all: Vec<(&str, &str)> = all.iter().map(|name| (name.as_str(), "true")).collect();
        assert_eq!(
            show(&all, &record()),
            "CreateTime:99\tPartition:2\tOffset:7\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tv\n"
        );
        let only_key = [
            ("print.key", "true"),
            ("print.value", "false"),
            ("null.literal", "-"),
        ];
        assert_eq!(show(&only_key, &record()), "-\n");
        let mut number = record();
        number.value = Some(Bytes::from_static(&[0, 0, 0, 5]));
        let class = "org.apache.kafka.common.serialization.IntegerDeserializer";
        assert_eq!(show(&[("value.deserializer", class)], &number), "5\n");
    }

    #[test]
    fn records_of_internal_topics_are_json() {
        let commit = Incoming {
            key: Some(Bytes::from_static(b"\0\x01\0\x01g\0\x01t\0\0\0\x02")),
            value: None,
            ..record()
        };
        let show = |class: &str| {
            let formatter = Formatter::new(class, &Settings::default()).unwrap();
            let mut out = Vec::new();
            formatter.write(&commit, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text =
            r#"{"key":{"type":1,"data":{"group":"g","topic":"t","partition":2}},"value":null}"#;
        let package = "org.apache.kafka.tools.consumer.";
        assert_eq!(show(&format!("{package}OffsetsMessageFormatter")), text);
        assert_eq!(
            show("kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"),
            text
        );
        assert_eq!(show(&format!("{package}GroupMetadataMessageFormatter")), "");
        assert!(Formatter::new("x.Unknown", &Settings::default()).is_err());
    }
}
