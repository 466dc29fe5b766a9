//! Reads any message into a [`Value`].

use std::borrow::Cow;

use bytes::Bytes;
use uuid::Uuid;

use super::conform::{api_and_version, text_as_java};
use super::header::RequestHeader;
use super::layout::{Api, Field, Kind, Struct, TaggedField, api};
use super::malformed::{Malformed, Reason};
use super::reader::{Read, Reader};
use super::record_layout::RecordKind;
use super::value::Value;

/// A tree takes some forty bytes an element, so its bound may be that of the frame.
const NO_LIMIT: usize = usize::MAX;

/// Reads a request (header and body).
pub fn decode_request(frame: &Bytes) -> Result<(RequestHeader, Value), Malformed> {
    let (header, body_start) = RequestHeader::read(frame)?;
    let (api, version) = api_and_version(frame).map_err(|malformed| *malformed)?;
    let layout = layout_of(api, version, api.request(version))?;
    let body = Decode::new(frame, body_start).whole(layout);
    Ok((header, body.map_err(|malformed| *malformed)?))
}

/// Reads the body of a request, which is all that is left of its frame.
pub fn decode_request_body(api_key: i16, version: i16, body: &Bytes) -> Result<Value, Malformed> {
    let api = api(api_key).ok_or_else(|| *Malformed::at(0, Reason::UnknownApi(api_key)))?;
    let layout = layout_of(api, version, api.request(version))?;
    let body = Decode::new(body, 0).whole(layout);
    body.map_err(|malformed| *malformed)
}

/// Reads a response (header and body): its correlation id and its body. The answer to a request of
/// `version`; a broker answers an ApiVersions request of a version it lacks with version 0.
pub fn decode_response(
    api_key: i16,
    version: i16,
    frame: &Bytes,
) -> Result<(i32, Value), Malformed> {
    let api = api(api_key).ok_or_else(|| *Malformed::at(0, Reason::UnknownApi(api_key)))?;
    let layout = layout_of(api, version, api.response(version))?;
    let mut decode = Decode::new(frame, 0);
    decode
        .header_of_response(api.response_header_version(version))
        .and_then(|correlation_id| Ok((correlation_id, decode.whole(layout)?)))
        .map_err(|malformed| *malformed)
}

/// Reads a record of the table from the front of `body`; what follows it is left.
pub fn decode_record(kind: &RecordKind, version: i16, body: &Bytes) -> Result<Value, Malformed> {
    let api = kind.name;
    let unknown = || *Malformed::at(0, Reason::UnknownVersion { api, version });
    let layout = kind.layout(version).ok_or_else(unknown)?;
    let fields = Decode::new(body, 0).fields(layout);
    fields.map_err(|malformed| *malformed)
}

fn layout_of<'t>(
    api: &Api,
    version: i16,
    layout: Option<&'t Struct>,
) -> Result<&'t Struct, Malformed> {
    let name = api.name;
    let unknown = || *Malformed::at(0, Reason::UnknownVersion { api: name, version });
    layout.ok_or_else(unknown)
}

struct Decode<'a> {
    reader: Reader<'a>,
    frame: &'a Bytes,
}

type Fields = Vec<(Cow<'static, str>, Value)>;

impl<'a> Decode<'a> {
    fn new(frame: &'a Bytes, start: usize) -> Self {
        let mut reader = Reader::new(frame, NO_LIMIT);
        reader.skip_to(start);
        Decode { reader, frame }
    }

    fn header_of_response(&mut self, header_version: i16) -> Read<i32> {
        let correlation_id = self.reader.int32()?;
        if header_version >= 1 {
            self.tagged(&[], &mut Vec::new())?;
        }
        Ok(correlation_id)
    }

    /// Reads to the end of the frame.
    fn whole(mut self, layout: &Struct) -> Read<Value> {
        let value = self.fields(layout)?;
        match self.reader.left() {
            0 => Ok(value),
            bytes => Err(Malformed::at(
                self.reader.position(),
                Reason::LeftOver { bytes },
            )),
        }
    }

    fn fields(&mut self, layout: &Struct) -> Read<Value> {
        let mut fields = Fields::with_capacity(layout.fields.len());
        for field in &layout.fields {
            fields.push((Cow::Borrowed(field.name), self.field(field)?));
        }
        if let Some(tagged) = &layout.tagged {
            self.tagged(tagged, &mut fields)?;
        }
        Ok(Value::Struct(fields))
    }

    fn field(&mut self, field: &Field) -> Read<Value> {
        self.value(&field.kind).map_err(|e| e.within(field.name))
    }

    fn value(&mut self, kind: &Kind) -> Read<Value> {
        let reader = &mut self.reader;
        Ok(match kind {
            Kind::Boolean => Value::Boolean(reader.int8()? != 0),
            Kind::Int8 => Value::Integer(reader.int8()?.into()),
            Kind::Int16 => Value::Integer(reader.int16()?.into()),
            Kind::Uint16 => Value::Integer((reader.int16()? as u16).into()),
            Kind::Int32 => Value::Integer(reader.int32()?.into()),
            Kind::Int64 => Value::Integer(reader.int64()?),
            Kind::Float64 => Value::Float(f64::from_bits(reader.int64()? as u64)),
            Kind::Uuid => {
                let high = reader.int64()? as u64;
                Value::Uuid(Uuid::from_u64_pair(high, reader.int64()? as u64))
            }
            Kind::Text(length) => match reader.text(*length)? {
                Some(text) => Value::Text(text_as_java(text).into_owned()),
                None => Value::Null,
            },
            Kind::Bytes(length) | Kind::Records(length) => match reader.bytes(*length)? {
                Some(bytes) => Value::Bytes(self.frame.slice_ref(bytes)),
                None => Value::Null,
            },
            Kind::Array(length, element) => match reader.count(*length)? {
                Some(count) => self.array(count, element)?,
                None => Value::Null,
            },
            Kind::Struct { nullable, layout } => match reader.presence(*nullable)? {
                true => self.fields(layout)?,
                false => Value::Null,
            },
        })
    }

    fn array(&mut self, count: usize, element: &Kind) -> Read<Value> {
        // Not `with_capacity`: the count is checked against bytes, not against trees.
        let mut elements = Vec::new();
        for index in 0..count {
            elements.push(self.value(element).map_err(|e| e.within_element(index))?);
        }
        Ok(Value::Array(elements))
    }

    /// Whether a nullable structure is there is a varint within a tagged field, not a byte: Kafka
    /// writes a null out as 0.
    fn tagged_field(&mut self, known: &TaggedField) -> Read<Value> {
        match &known.field.kind {
            Kind::Struct {
                nullable: true,
                layout,
            } => match self.reader.varint()? {
                0 => Ok(Value::Null),
                _ => self.fields(layout).map_err(|e| e.within(known.field.name)),
            },
            _ => self.field(&known.field),
        }
    }

    fn tagged(&mut self, known: &[TaggedField], fields: &mut Fields) -> Read<()> {
        for _ in 0..self.reader.varint()? {
            let (tag, stated) = self.reader.tag()?;
            fields.push(match known.iter().find(|known| known.tag == tag) {
                Some(known) => (Cow::Borrowed(known.field.name), self.tagged_field(known)?),
                None => {
                    let content = Value::Bytes(self.frame.slice_ref(self.reader.take(stated)?));
                    (Cow::Owned(format!("_tag_{tag}")), content)
                }
            });
        }
        Ok(())
    }
}
