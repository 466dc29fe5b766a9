//! What Klamm's own nodes ask one another and no client of Kafka does: the messages of the
//! metadata quorum, and forwarded requests. They share Kafka's framing and its listeners.
//!
//! ```text
//! request = api_key:int16 api_version:int16 correlation_id:int32 client_id:nullable_string body
//! answer  = correlation_id:int32 body
//! ```
//!
//! 1. The keys lie far above Kafka's, and ApiVersions lists them where they are answered.
//! 2. A body is opaque here; whoever owns the API bounds and reads it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::versions::{Range, Versions};

/// An API of Klamm's own.
#[derive(Debug, PartialEq, Eq)]
pub struct PrivateApi {
    pub key: i16,
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
}

const fn api(key: i16, name: &'static str) -> PrivateApi {
    let (min, max) = (0, 0);
    PrivateApi {
        key,
        name,
        min,
        max,
    }
}

/// Who is there, and of which cluster.
pub const QUORUM_HELLO: PrivateApi = api(20000, "QuorumHello");
pub const RAFT_APPEND_ENTRIES: PrivateApi = api(20001, "RaftAppendEntries");
pub const RAFT_VOTE: PrivateApi = api(20002, "RaftVote");
pub const RAFT_INSTALL_SNAPSHOT: PrivateApi = api(20003, "RaftInstallSnapshot");
/// The metadata from an offset on, for nodes that do not vote.
pub const METADATA_FETCH: PrivateApi = api(20004, "MetadataFetch");
/// A controller asks to be taken among the voters (again).
pub const QUORUM_JOIN: PrivateApi = api(20005, "QuorumJoin");
/// A client's request, passed on to the active controller.
pub const FORWARD: PrivateApi = api(20006, "Forward");

/// Which versions of these the other side speaks; the first thing on a connection that is for them
/// only. An empty body is answered with key, lowest and highest version of each.
pub const OWN_VERSIONS: PrivateApi = api(20007, "OwnVersions");

/// Whether a voter would be voted for, before it stands for election.
pub const QUORUM_PRE_VOTE: PrivateApi = api(20008, "QuorumPreVote");

/// Where the logs of contested partitions end ([`super::LogEnds`]), for the active controller.
pub const LOG_ENDS: PrivateApi = api(20009, "LogEnds");

/// By key.
pub const PRIVATE_APIS: [&PrivateApi; 10] = [
    &QUORUM_HELLO,
    &RAFT_APPEND_ENTRIES,
    &RAFT_VOTE,
    &RAFT_INSTALL_SNAPSHOT,
    &METADATA_FETCH,
    &QUORUM_JOIN,
    &FORWARD,
    &OWN_VERSIONS,
    &QUORUM_PRE_VOTE,
    &LOG_ENDS,
];

pub fn private_api(key: i16) -> Option<&'static PrivateApi> {
    PRIVATE_APIS.into_iter().find(|api| api.key == key)
}

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateRequest {
    pub api: &'static PrivateApi,
    pub version: i16,
    pub correlation_id: i32,
    pub body: Bytes,
}

impl PrivateRequest {
    /// Reads a frame without its length. `None`: it is no request of these APIs.
    pub fn read(frame: &Bytes) -> Option<PrivateRequest> {
        let mut rest = frame.clone();
        let api = private_api(rest.try_get_i16().ok()?)?;
        let version = rest.try_get_i16().ok()?;
        let correlation_id = rest.try_get_i32().ok()?;
        let client_id_bytes = usize::try_from(rest.try_get_i16().ok()?.max(0)).ok()?;
        if !(api.min..=api.max).contains(&version) || client_id_bytes > rest.len() {
            return None;
        }
        rest.advance(client_id_bytes);
        Some(PrivateRequest {
            api,
            version,
            correlation_id,
            body: rest,
        })
    }

    /// The frame of the answer, its length in front. `None`: it is too long for a frame.
    pub fn answer(&self, body: &[u8]) -> Option<Bytes> {
        let mut frame = BytesMut::with_capacity(8 + body.len());
        frame.put_i32(i32::try_from(4 + body.len()).ok()?);
        frame.put_i32(self.correlation_id);
        frame.put_slice(body);
        Some(frame.freeze())
    }
}

/// The answer to [`OWN_VERSIONS`].
pub fn own_versions() -> Vec<u8> {
    let rows = PRIVATE_APIS
        .iter()
        .flat_map(|api| [api.key, api.min, api.max]);
    rows.flat_map(i16::to_be_bytes).collect()
}

/// Reads the answer to [`OWN_VERSIONS`].
pub(super) fn read_own_versions(body: &[u8]) -> Versions {
    let number = |bytes: &[u8]| i16::from_be_bytes([bytes[0], bytes[1]]);
    let row = |row: &[u8]| {
        let (min, max) = (number(&row[2..]), number(&row[4..]));
        (number(row), Range { min, max })
    };
    Versions {
        apis: body.chunks_exact(6).map(row).collect(),
        answer: None,
    }
}

/// The frame of a request, its length in front. `None`: it is too long for a frame.
pub(super) fn frame(
    api: &PrivateApi,
    version: i16,
    correlation_id: i32,
    client_id: &str,
    body: &[u8],
) -> Option<Bytes> {
    let client_id = &client_id.as_bytes()[..client_id.len().min(i16::MAX as usize)];
    let length = 10 + client_id.len() + body.len();
    let mut frame = BytesMut::with_capacity(4 + length);
    frame.put_i32(i32::try_from(length).ok()?);
    frame.put_i16(api.key);
    frame.put_i16(version);
    frame.put_i32(correlation_id);
    frame.put_i16(client_id.len() as i16);
    frame.put_slice(client_id);
    frame.put_slice(body);
    Some(frame.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let written = frame(&RAFT_VOTE, 0, 7, "me", b"body").unwrap();
        let read = PrivateRequest::read(&written.slice(4..)).unwrap();
        assert_eq!(read.api, &RAFT_VOTE);
        assert_eq!((read.correlation_id, &*read.body), (7, &b"body"[..]));
        assert_eq!(&*read.answer(b"x").unwrap(), b"\0\0\0\x05\0\0\0\x07x");
    }

    #[test]
    fn what_is_cut_short_or_strange_is_none() {
        let whole = frame(&FORWARD, 0, 7, "me", b"").unwrap().slice(4..);
        for end in 0..whole.len() {
            assert_eq!(PrivateRequest::read(&whole.slice(..end)), None, "{end}");
        }
        let newer = frame(&FORWARD, 1, 7, "me", b"").unwrap().slice(4..);
        assert_eq!(PrivateRequest::read(&newer), None);
        assert_eq!(PrivateRequest::read(&Bytes::from_static(&[0; 20])), None);
    }
}
