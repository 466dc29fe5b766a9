//! The headers of requests and responses.

use bytes::{BufMut, Bytes};
use kafka_protocol::protocol::StrBytes;

use super::conform::{CLIENT_ID, api_and_version, text_as_java};
use super::layout::api;
use super::malformed::Malformed;
use super::reader::{Read, Reader};

/// The header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    /// A slice of the frame, or a copy when it is not UTF-8.
    pub client_id: Option<StrBytes>,
}

impl RequestHeader {
    /// Reads the header of a frame, and where its body starts. Tagged fields are passed over.
    pub fn read(frame: &Bytes) -> Result<(RequestHeader, usize), Malformed> {
        read(frame).map_err(|malformed| *malformed)
    }
}

fn read(frame: &Bytes) -> Read<(RequestHeader, usize)> {
    let (api, api_version) = api_and_version(frame)?;
    let mut reader = Reader::new(frame, 0);
    reader.take(4)?;
    let correlation_id = reader.int32().map_err(|e| e.within("correlation_id"))?;
    let client_id = reader.text(CLIENT_ID).map_err(|e| e.within("client_id"))?;
    if api.request_header_version(api_version) >= 2 {
        for _ in 0..reader.varint()? {
            let (_, stated) = reader.tag()?;
            reader.take(stated)?;
        }
    }
    let client_id = client_id.map(|text| match StrBytes::from_utf8(frame.slice_ref(text)) {
        Ok(text) => text,
        Err(_) => StrBytes::from_string(text_as_java(text).into_owned()),
    });
    let header = RequestHeader {
        api_key: api.key,
        api_version,
        correlation_id,
        client_id,
    };
    Ok((header, reader.position()))
}

/// The bytes that [`write_response_header`] writes.
pub fn response_header_bytes(api_key: i16, api_version: i16) -> usize {
    4 + usize::from(has_tagged_fields(api_key, api_version))
}

/// Writes the header of a response, without the length of the frame before it.
pub fn write_response_header(
    out: &mut impl BufMut,
    api_key: i16,
    api_version: i16,
    correlation_id: i32,
) {
    out.put_i32(correlation_id);
    if has_tagged_fields(api_key, api_version) {
        out.put_u8(0);
    }
}

fn has_tagged_fields(api_key: i16, api_version: i16) -> bool {
    api(api_key).is_some_and(|api| api.response_header_version(api_version) >= 1)
}
