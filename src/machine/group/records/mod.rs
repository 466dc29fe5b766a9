//! The records of `__consumer_offsets`: Kafka's own keys and values, byte for byte.
//!
//! A key is its type (int16) and its fields; a value is its version (int16) and its fields; a
//! record without a value (a tombstone) takes back what its key said before.
//!
//! | type | record                                  | versions read | version written |
//! |------|-----------------------------------------|---------------|-----------------|
//! | 0, 1 | OffsetCommit                            | 0-4           | 4               |
//! | 2    | GroupMetadata                           | 0-4           | 3               |
//! | 3    | ConsumerGroupMetadata                   | 0             | 0               |
//! | 4    | ConsumerGroupPartitionMetadata          | 0             | tombstone only  |
//! | 5    | ConsumerGroupMemberMetadata             | 0             | 0               |
//! | 6    | ConsumerGroupTargetAssignmentMetadata   | 0             | 0               |
//! | 7    | ConsumerGroupTargetAssignmentMember     | 0             | 0               |
//! | 8    | ConsumerGroupCurrentMemberAssignment    | 0             | 0               |
//! | 16   | ConsumerGroupRegularExpression          | 0             | 0               |
//!
//! 1. What is written is what Kafka 4.4 writes, so that its tools read it and a broker of its own
//!    can take the topic over.
//! 2. `decode(encode(record)) == record` for every record this module writes.

mod classic;
pub(in crate::machine::group) mod codec;
mod consumer;
mod offset;
#[cfg(test)]
mod tests;

pub use classic::{GroupMetadataMember, GroupMetadataValue};
pub use consumer::{
    AssignedPartitions, ClassicMemberMetadata, CurrentAssignmentValue, MemberMetadataValue,
    MemberState, RegularExpressionValue, TopicPartitions,
};
pub use offset::OffsetCommitValue;

use bytes::Bytes;

use super::{GroupId, MemberId};
use crate::types::{TimestampMs, TopicName};
use codec::{Reader, Writer};

/// Why the bytes of a record could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("{wanted} bytes wanted, {left} left")]
    Truncated { wanted: usize, left: usize },
    #[error("null where the format has none")]
    UnexpectedNull,
    #[error("a variable-length integer of more than five bytes")]
    VarintTooLong,
    #[error("record type {record_type} has no version {version}")]
    UnknownVersion { record_type: i16, version: i16 },
    #[error("member state {0} is not known")]
    UnknownMemberState(i8),
}

/// One record. `value: None` is a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    OffsetCommit {
        group: GroupId,
        topic: TopicName,
        partition: i32,
        value: Option<OffsetCommitValue>,
    },
    GroupMetadata {
        group: GroupId,
        value: Option<GroupMetadataValue>,
    },
    ConsumerGroupMetadata {
        group: GroupId,
        value: Option<GroupEpoch>,
    },
    /// Kafka 4.0 kept the topics of a group here; since 4.1 there is a hash in
    /// ConsumerGroupMetadata, and what is left is taken back.
    ConsumerGroupPartitionMetadata { group: GroupId, present: bool },
    ConsumerGroupMemberMetadata {
        group: GroupId,
        member: MemberId,
        value: Option<MemberMetadataValue>,
    },
    ConsumerGroupTargetAssignmentMetadata {
        group: GroupId,
        value: Option<TargetAssignmentEpoch>,
    },
    ConsumerGroupTargetAssignmentMember {
        group: GroupId,
        member: MemberId,
        value: Option<TopicPartitions>,
    },
    ConsumerGroupCurrentMemberAssignment {
        group: GroupId,
        member: MemberId,
        value: Option<CurrentAssignmentValue>,
    },
    ConsumerGroupRegularExpression {
        group: GroupId,
        regex: String,
        value: Option<RegularExpressionValue>,
    },
}

/// The epoch of a consumer group, and the hash of the topics it subscribes to (0: none yet).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupEpoch {
    pub epoch: i32,
    pub metadata_hash: i64,
}

/// The group epoch a target assignment was computed for, and when (0: not known).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetAssignmentEpoch {
    pub epoch: i32,
    pub timestamp: TimestampMs,
}

/// The bytes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

impl Record {
    /// Reads a record. `None` is a record of a kind of group that this coordinator does not serve
    /// (share and streams groups, or something newer than Kafka 4.4).
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Record>, RecordError> {
        let mut key = Reader::new(key);
        let record_type = key.i16()?;
        let record = match record_type {
            0 | 1 => Record::OffsetCommit {
                group: key.string(false)?.into(),
                topic: key.string(false)?.into(),
                partition: key.i32()?,
                value: value.map(OffsetCommitValue::decode).transpose()?,
            },
            2 => Record::GroupMetadata {
                group: key.string(false)?.into(),
                value: value.map(GroupMetadataValue::decode).transpose()?,
            },
            3..=8 | 16 => consumer::decode(record_type, &mut key, value)?,
            _ => return Ok(None),
        };
        Ok(Some(record))
    }

    pub fn encode(&self) -> Encoded {
        match self {
            Record::OffsetCommit {
                group,
                topic,
                partition,
                value,
            } => {
                let mut key = Writer::version(1);
                key.string(group);
                key.string(topic);
                key.i32(*partition);
                Encoded {
                    key: key.finish(),
                    value: value.as_ref().map(OffsetCommitValue::encode),
                }
            }
            Record::GroupMetadata { group, value } => {
                let mut key = Writer::version(2);
                key.string(group);
                Encoded {
                    key: key.finish(),
                    value: value.as_ref().map(GroupMetadataValue::encode),
                }
            }
            consumer_record => consumer::encode(consumer_record),
        }
    }

    /// Whether the record takes back what its key said.
    pub fn is_tombstone(&self) -> bool {
        match self {
            Record::OffsetCommit { value, .. } => value.is_none(),
            Record::GroupMetadata { value, .. } => value.is_none(),
            Record::ConsumerGroupMetadata { value, .. } => value.is_none(),
            Record::ConsumerGroupPartitionMetadata { present, .. } => !present,
            Record::ConsumerGroupMemberMetadata { value, .. } => value.is_none(),
            Record::ConsumerGroupTargetAssignmentMetadata { value, .. } => value.is_none(),
            Record::ConsumerGroupTargetAssignmentMember { value, .. } => value.is_none(),
            Record::ConsumerGroupCurrentMemberAssignment { value, .. } => value.is_none(),
            Record::ConsumerGroupRegularExpression { value, .. } => value.is_none(),
        }
    }

    /// The group the record belongs to.
    pub fn group(&self) -> &GroupId {
        match self {
            Record::OffsetCommit { group, .. }
            | Record::GroupMetadata { group, .. }
            | Record::ConsumerGroupMetadata { group, .. }
            | Record::ConsumerGroupPartitionMetadata { group, .. }
            | Record::ConsumerGroupMemberMetadata { group, .. }
            | Record::ConsumerGroupTargetAssignmentMetadata { group, .. }
            | Record::ConsumerGroupTargetAssignmentMember { group, .. }
            | Record::ConsumerGroupCurrentMemberAssignment { group, .. }
            | Record::ConsumerGroupRegularExpression { group, .. } => group,
        }
    }
}
