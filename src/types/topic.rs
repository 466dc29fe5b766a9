//! Topics and partitions by name and by id.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A topic's name, shared rather than copied.
pub type TopicName = Arc<str>;

/// A topic's id (KIP-516). The nil id is "none". Shown in Kafka's URL-safe base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicId(pub Uuid);

impl TopicId {
    pub const NONE: TopicId = TopicId(Uuid::nil());

    pub fn is_none(self) -> bool {
        self.0.is_nil()
    }
}

impl std::fmt::Display for TopicId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&base64_uuid(self.0))
    }
}

impl std::fmt::Debug for TopicId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// One partition of one topic, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    pub topic: TopicName,
    pub partition: i32,
}

impl std::fmt::Display for TopicPartition {
    /// The directory name of the partition: `<topic>-<partition>`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The 22 characters that Kafka prints for a UUID: URL-safe base64 without padding
/// (`org.apache.kafka.common.Uuid.toString`).
pub fn base64_uuid(uuid: Uuid) -> String {
    let number = uuid.as_u128();
    // 128 bits are 21 digits of 6 bits and one of 2 bits, which is shifted up to fill its place.
    (0..22)
        .map(|i| {
            let digit = if i < 21 {
                number >> (122 - 6 * i)
            } else {
                number << 4
            };
            ALPHABET[(digit & 63) as usize] as char
        })
        .collect()
}

/// The reverse of [`base64_uuid`]; `None` unless `text` is 22 characters of that alphabet.
pub fn parse_base64_uuid(text: &str) -> Option<Uuid> {
    if text.len() != 22 {
        return None;
    }
    let mut number: u128 = 0;
    for (i, byte) in text.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|&a| a == byte)? as u128;
        number = if i < 21 {
            (number << 6) | digit
        } else {
            (number << 2) | (digit >> 4)
        };
    }
    Some(Uuid::from_u128(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_kafka() {
        // Kafka's METADATA_TOPIC_ID is new Uuid(0, 1).
        assert_eq!(base64_uuid(Uuid::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        let uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        assert_eq!(parse_base64_uuid(&base64_uuid(uuid)), Some(uuid));
        assert_eq!(parse_base64_uuid("not a uuid"), None);
    }
}
