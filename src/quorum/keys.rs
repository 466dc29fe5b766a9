//! Where everything lies in the key-value store.
//!
//! ```text
//! key                          value
//! 'c'                          the last committed log id, or an earlier one
//! 'd'                          the directory id, from before there is an identity
//! 'i'                          Identity: whose store this is
//! 'l' index(8) part(4)         a log entry, packed
//! 'p'                          the last purged log id
//! 'S'                          SnapshotHeader: the snapshot that counts
//! 's' generation(8) part(4)    a snapshot, packed
//! 'v'                          the vote
//! ```
//!
//! 1. Numbers in keys are big-endian, so that keys sort as the numbers do.
//! 2. Values are MessagePack with field names.
//! 3. A long value is cut into parts of [`PART_BYTES`]: the store keeps long values in files of
//!    their own, which it does not sync. All parts of a log entry are written in one commit.
//! 4. A snapshot counts from the commit on that writes its header; parts of another generation are
//!    left over from a crash and are deleted with the next snapshot.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host::KeyValue;
use crate::host::key_value::Change;

use super::QuorumError;

pub(super) const COMMITTED: &[u8] = b"c";
pub(super) const DIRECTORY: &[u8] = b"d";
pub(super) const IDENTITY: &[u8] = b"i";
pub(super) const PURGED: &[u8] = b"p";
pub(super) const SNAPSHOT: &[u8] = b"S";
pub(super) const VOTE: &[u8] = b"v";

/// A value of this size stays inside the store's own pages, of which one holds up to 17 values.
pub(super) const PART_BYTES: usize = 4096;

/// How many parts are read at a time.
const READ_PARTS: usize = 256;

/// The two things that come in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    Log = b'l' as isize,
    Snapshot = b's' as isize,
}

impl Parts {
    /// The key of one part of value `number`.
    pub(super) fn key(self, number: u64, part: u32) -> Vec<u8> {
        let mut key = Vec::with_capacity(13);
        key.push(self as u8);
        key.extend(number.to_be_bytes());
        key.extend(part.to_be_bytes());
        key
    }

    /// The key behind all parts of value `last`.
    pub(super) fn end(self, last: u64) -> Vec<u8> {
        match last.checked_add(1) {
            Some(next) => self.key(next, 0),
            None => vec![self as u8 + 1],
        }
    }

    pub(super) fn number(self, key: &[u8]) -> Result<u64, QuorumError> {
        match key {
            [kind, rest @ ..] if *kind == self as u8 && rest.len() == 12 => {
                let (number, _) = rest.split_first_chunk::<8>().expect("12 bytes are enough");
                Ok(u64::from_be_bytes(*number))
            }
            _ => Err(damaged("a numbered key", format!("{key:?}"))),
        }
    }

    /// The changes that write `value` under `number`, beginning with part `first`.
    pub(super) fn put(self, number: u64, first: u32, value: &[u8]) -> Vec<Change> {
        let parts = value.chunks(PART_BYTES);
        (first..)
            .zip(parts)
            .map(|(part, bytes)| Change::Put {
                key: self.key(number, part),
                value: bytes.to_vec(),
            })
            .collect()
    }

    /// The keys of `numbers`, for deletion.
    pub(super) fn keys(
        self,
        store: &dyn KeyValue,
        start: u64,
        end: &[u8],
    ) -> Result<Vec<Vec<u8>>, QuorumError> {
        let mut keys = Vec::new();
        let mut from = self.key(start, 0);
        loop {
            let page = store
                .range(&from, end, READ_PARTS)
                .map_err(QuorumError::Store)?;
            let full = page.len() == READ_PARTS;
            keys.extend(page.into_iter().map(|(key, _)| key));
            match keys.last() {
                Some(last) if full => from = after(last),
                _ => return Ok(keys),
            }
        }
    }

    /// Reads the values from `start` up to the key `end`, and gives each with its number to `each`.
    pub(super) fn read(
        self,
        store: &dyn KeyValue,
        start: u64,
        end: &[u8],
        mut each: impl FnMut(u64, &[u8]) -> Result<(), QuorumError>,
    ) -> Result<(), QuorumError> {
        let mut from = self.key(start, 0);
        let mut open: Option<(u64, Vec<u8>)> = None;
        while from.as_slice() < end {
            let page = store
                .range(&from, end, READ_PARTS)
                .map_err(QuorumError::Store)?;
            let Some((last, _)) = page.last() else {
                break;
            };
            from = after(last);
            for (key, bytes) in page {
                let number = self.number(&key)?;
                match &mut open {
                    Some((known, value)) if *known == number => value.extend(bytes),
                    other => {
                        if let Some((known, value)) = other.replace((number, bytes)) {
                            each(known, &value)?;
                        }
                    }
                }
            }
        }
        match open {
            Some((number, value)) => each(number, &value),
            None => Ok(()),
        }
    }
}

/// The first key behind `key`.
fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("what is stored has no value MessagePack cannot hold")
}

pub(super) fn decode<T: DeserializeOwned>(
    place: &'static str,
    bytes: &[u8],
) -> Result<T, QuorumError> {
    rmp_serde::from_slice(bytes).map_err(|error| damaged(place, error.to_string()))
}

pub(super) fn damaged(place: &'static str, reason: String) -> QuorumError {
    QuorumError::Damaged { place, reason }
}

pub(super) fn put<T: Serialize>(key: &[u8], value: &T) -> Change {
    Change::Put {
        key: key.to_vec(),
        value: encode(value),
    }
}

pub(super) fn get<T: DeserializeOwned>(
    store: &dyn KeyValue,
    key: &[u8],
    place: &'static str,
) -> Result<Option<T>, QuorumError> {
    let bytes: io::Result<Option<Vec<u8>>> = store.get(key);
    match bytes.map_err(QuorumError::Store)? {
        Some(bytes) => decode(place, &bytes).map(Some),
        None => Ok(None),
    }
}
