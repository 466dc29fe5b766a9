//! Requests to bytes, bytes to answers.
//!
//! 1. An answer is read in pieces as it arrives: the announced length reserves at most
//!    [`CHUNK_BYTES`] ahead of what is there.
//! 2. [`decode`] walks the layout before the crate sees the frame.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::wire;

use super::address::Address;
use super::error::PeerError;

/// What is reserved ahead of the bytes that are there.
const CHUNK_BYTES: usize = 64 * 1024;

/// The API and version of a request, by which its answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spoken {
    pub api: &'static wire::Api,
    pub version: i16,
}

/// The whole frame of a request, its length in front.
pub(super) fn encode<Q: Encodable>(
    spoken: Spoken,
    correlation_id: i32,
    client_id: &str,
    request: &Q,
) -> Result<Bytes, PeerError> {
    let failed = || PeerError::Encode {
        api: spoken.api.name,
        version: spoken.version,
    };
    let codec_version = wire::codec_version(spoken.api.key, spoken.version).ok_or_else(failed)?;
    let body_bytes = request.compute_size(codec_version).map_err(|_| failed())?;
    let client_id = &client_id.as_bytes()[..client_id.len().min(i16::MAX as usize)];
    let has_tags = spoken.api.request_header_version(spoken.version) >= 2;
    let header_bytes = 10 + client_id.len() + usize::from(has_tags);
    let length = i32::try_from(header_bytes + body_bytes).map_err(|_| failed())?;
    let mut frame = BytesMut::with_capacity(4 + header_bytes + body_bytes);
    frame.put_i32(length);
    frame.put_i16(spoken.api.key);
    frame.put_i16(spoken.version);
    frame.put_i32(correlation_id);
    frame.put_i16(client_id.len() as i16);
    frame.put_slice(client_id);
    if has_tags {
        frame.put_u8(0);
    }
    request
        .encode(&mut frame, codec_version)
        .map_err(|_| failed())?;
    Ok(frame.freeze())
}

/// As [`encode`], of a tree.
pub(super) fn encode_value(
    spoken: Spoken,
    correlation_id: i32,
    client_id: &str,
    request: &wire::Value,
) -> Result<Bytes, PeerError> {
    let failed = || PeerError::Encode {
        api: spoken.api.name,
        version: spoken.version,
    };
    let (key, version) = (spoken.api.key, spoken.version);
    let whole = wire::encode_request(key, version, correlation_id, Some(client_id), request);
    let whole = whole.map_err(|_| failed())?;
    let length = i32::try_from(whole.len()).map_err(|_| failed())?;
    let mut frame = BytesMut::with_capacity(4 + whole.len());
    frame.put_i32(length);
    frame.put_slice(&whole);
    Ok(frame.freeze())
}

/// Reads one frame, without its length. `Ok(None)`: the other side has closed.
pub(super) async fn read_frame(
    from: &mut (impl AsyncRead + Unpin),
    address: &Address,
    bytes_max: usize,
) -> Result<Option<Bytes>, PeerError> {
    let gone = || PeerError::Gone {
        address: address.clone(),
    };
    let mut length = [0; 4];
    if from.read_exact(&mut length).await.is_err() {
        return Ok(None);
    }
    let announced = i32::from_be_bytes(length);
    let bytes = usize::try_from(announced).unwrap_or(usize::MAX);
    if !(4..=bytes_max).contains(&bytes) {
        return Err(PeerError::TooLong {
            address: address.clone(),
            bytes: announced.into(),
            bytes_max,
        });
    }
    let mut frame = BytesMut::with_capacity(bytes.min(CHUNK_BYTES));
    while frame.len() < bytes {
        if frame.len() == frame.capacity() {
            // As much again as is there already, so that a large frame is copied a few times only.
            let more = frame.len().max(CHUNK_BYTES).min(bytes - frame.len());
            frame.reserve(more);
        }
        let left = bytes - frame.len();
        let mut room = (&mut frame).limit(left);
        match from.read_buf(&mut room).await {
            Ok(0) | Err(_) => return Err(gone()),
            Ok(_) => {}
        }
    }
    Ok(Some(frame.freeze()))
}

/// The body of the answer in `frame`, whose correlation id has been looked at.
pub(super) fn decode<R: Decodable>(
    spoken: Spoken,
    address: &Address,
    frame: &Bytes,
) -> Result<R, PeerError> {
    let (api, version) = (spoken.api, spoken.version);
    let refused = || PeerError::Decode {
        address: address.clone(),
        api: api.name,
        version,
    };
    let plain = wire::conform_response(api.key, version, frame);
    let mut body = plain.map_err(|source| PeerError::Malformed {
        address: address.clone(),
        api: api.name,
        version,
        source,
    })?;
    let codec_version = wire::codec_version(api.key, version).ok_or_else(refused)?;
    R::decode(&mut body, codec_version).map_err(|_| refused())
}
