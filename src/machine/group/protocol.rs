//! The consumers' embedded protocol: what they put into JoinGroup's metadata and SyncGroup's
//! assignments. The coordinator reads it to know the topics of a classic group, and to let classic
//! members into a consumer group.
//!
//! ```text
//! Subscription: version int16, topics [string], user_data bytes?,
//!               v1+: owned_partitions [topic string, partitions [int32]],
//!               v2+: generation_id int32, v3+: rack_id string?
//! Assignment:   version int16, assigned_partitions [topic string, partitions [int32]],
//!               user_data bytes?
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::records::RecordError;
use super::records::codec::{Reader, Writer};

const VERSION_MAX: i16 = 3;

/// A consumer's subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscription {
    pub version: i16,
    pub topics: Vec<String>,
    pub owned: BTreeMap<String, Vec<i32>>,
    pub rack_id: Option<String>,
}

impl Subscription {
    /// Reads as much of a subscription as its version says; versions to come are read as the
    /// newest known one, since they only add fields at the end.
    pub fn decode(metadata: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader::new(metadata);
        let version = reader.i16()?;
        if version < 0 {
            return Err(RecordError::UnknownVersion {
                record_type: -1,
                version,
            });
        }
        let topics = reader.vec(false, |reader| reader.string(false))?;
        let mut subscription = Subscription {
            version: version.min(VERSION_MAX),
            topics,
            ..Subscription::default()
        };
        if let Some(len) = reader.len_i32()? {
            reader.take(len)?;
        }
        if version >= 1 {
            let owned = reader.vec(false, |reader| {
                let topic = reader.string(false)?;
                Ok((topic, reader.vec(false, |reader| reader.i32())?))
            })?;
            subscription.owned = owned.into_iter().collect();
        }
        if version >= 2 {
            reader.i32()?;
        }
        if version >= 3 {
            subscription.rack_id = reader.nullable_string(false)?;
        }
        Ok(subscription)
    }
}

/// The topics of a subscription, whatever else is in it; `None` if it cannot be read.
pub fn subscribed_topics(metadata: &Bytes) -> Option<BTreeSet<String>> {
    let mut reader = Reader::new(metadata);
    reader.i16().ok()?;
    let topics = reader.vec(false, |reader| reader.string(false)).ok()?;
    Some(topics.into_iter().collect())
}

/// An assignment in the consumers' form.
pub fn encode_assignment(version: i16, assigned: &BTreeMap<String, Vec<i32>>) -> Bytes {
    let mut writer = Writer::version(version.clamp(0, VERSION_MAX));
    writer.array_len(assigned.len());
    for (topic, partitions) in assigned {
        writer.string(topic);
        writer.array_len(partitions.len());
        for partition in partitions {
            writer.i32(*partition);
        }
    }
    writer.i32(-1);
    writer.finish()
}

/// The partitions of an assignment by topic.
pub fn decode_assignment(bytes: &[u8]) -> Result<BTreeMap<String, Vec<i32>>, RecordError> {
    let mut reader = Reader::new(bytes);
    reader.i16()?;
    let topics = reader.vec(false, |reader| {
        let topic = reader.string(false)?;
        Ok((topic, reader.vec(false, |reader| reader.i32())?))
    })?;
    Ok(topics.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_of_the_java_client_is_read() {
        // Version 3: topic "foo", no user data, foo-1 owned, generation 7, rack "r".
        let bytes = b"\x00\x03\x00\x00\x00\x01\x00\x03foo\xff\xff\xff\xff\x00\x00\x00\x01\
            \x00\x03foo\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x07\x00\x01r";
        let subscription = Subscription::decode(bytes).unwrap();
        assert_eq!(subscription.topics, ["foo"]);
        assert_eq!(subscription.owned["foo"], [1]);
        assert_eq!(subscription.rack_id.as_deref(), Some("r"));
        assert!(Subscription::decode(&bytes[..20]).is_err());
        let huge = b"\x00\x00\x7f\xff\xff\xff";
        assert!(Subscription::decode(huge).is_err());
    }
}
