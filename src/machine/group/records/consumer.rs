//! The records of consumer groups (KIP-848; key types 3-8 and 16). Keys are classic strings,
//! values are in the flexible layout with tagged fields.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::codec::{Reader, Writer};
use super::{Encoded, GroupEpoch, Record, RecordError, TargetAssignmentEpoch};
use crate::types::{TimestampMs, TopicId};

/// Partitions by topic, in order.
pub type TopicPartitions = BTreeMap<TopicId, Vec<i32>>;

/// Partitions with the epoch at which the member got each (Kafka 4.3+; -1: not recorded).
pub type AssignedPartitions = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// How far a member is on its way to its target assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It has all of it.
    Stable = 0,
    /// It has to give partitions back first.
    UnrevokedPartitions = 1,
    /// It waits for partitions that others still have.
    UnreleasedPartitions = 2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMetadataValue {
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub subscribed_topic_names: Vec<String>,
    pub subscribed_topic_regex: Option<String>,
    pub rebalance_timeout_ms: i32,
    pub server_assignor: Option<String>,
    /// Set for a member that speaks the classic protocol to a consumer group.
    pub classic: Option<ClassicMemberMetadata>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicMemberMetadata {
    pub session_timeout_ms: i32,
    pub supported_protocols: Vec<(String, Bytes)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentAssignmentValue {
    pub member_epoch: i32,
    pub previous_member_epoch: i32,
    pub state: MemberState,
    pub assigned: AssignedPartitions,
    pub pending_revocation: AssignedPartitions,
}

/// The topics a regular expression matched, at which metadata version and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegularExpressionValue {
    pub topics: Vec<String>,
    pub version: i64,
    pub timestamp: TimestampMs,
}

pub(super) fn decode(
    record_type: i16,
    key: &mut Reader<'_>,
    value: Option<&[u8]>,
) -> Result<Record, RecordError> {
    let group = key.string(false)?.into();
    let mut value = value.map(Reader::new);
    if let Some(reader) = &mut value {
        let version = reader.i16()?;
        if version != 0 {
            return Err(RecordError::UnknownVersion {
                record_type,
                version,
            });
        }
    }
    let member = |key: &mut Reader<'_>| Ok(key.string(false)?.into());
    let value = value.as_mut();
    Ok(match record_type {
        3 => Record::ConsumerGroupMetadata {
            group,
            value: value.map(group_epoch).transpose()?,
        },
        4 => Record::ConsumerGroupPartitionMetadata {
            group,
            present: value.is_some(),
        },
        5 => Record::ConsumerGroupMemberMetadata {
            group,
            member: member(key)?,
            value: value.map(MemberMetadataValue::decode).transpose()?,
        },
        6 => Record::ConsumerGroupTargetAssignmentMetadata {
            group,
            value: value.map(target_epoch).transpose()?,
        },
        7 => Record::ConsumerGroupTargetAssignmentMember {
            group,
            member: member(key)?,
            value: value.map(topic_partitions).transpose()?,
        },
        8 => Record::ConsumerGroupCurrentMemberAssignment {
            group,
            member: member(key)?,
            value: value.map(CurrentAssignmentValue::decode).transpose()?,
        },
        _ => Record::ConsumerGroupRegularExpression {
            group,
            regex: key.string(false)?,
            value: value.map(RegularExpressionValue::decode).transpose()?,
        },
    })
}

fn group_epoch(reader: &mut Reader<'_>) -> Result<GroupEpoch, RecordError> {
    let epoch = reader.i32()?;
    let mut metadata_hash = 0;
    reader.tagged(|tag, field| {
        if tag == 0 {
            metadata_hash = field.i64()?;
        }
        Ok(())
    })?;
    Ok(GroupEpoch {
        epoch,
        metadata_hash,
    })
}

fn target_epoch(reader: &mut Reader<'_>) -> Result<TargetAssignmentEpoch, RecordError> {
    let epoch = reader.i32()?;
    let mut timestamp = TimestampMs(0);
    reader.tagged(|tag, field| {
        if tag == 0 {
            timestamp = TimestampMs(field.i64()?);
        }
        Ok(())
    })?;
    Ok(TargetAssignmentEpoch { epoch, timestamp })
}

fn topic_partitions(reader: &mut Reader<'_>) -> Result<TopicPartitions, RecordError> {
    let topics = reader.vec(true, |reader| {
        let topic = TopicId(reader.uuid()?);
        let partitions = reader.vec(true, |reader| reader.i32())?;
        reader.skip_tagged()?;
        Ok((topic, partitions))
    })?;
    reader.skip_tagged()?;
    Ok(topics.into_iter().collect())
}

fn assigned_partitions(reader: &mut Reader<'_>) -> Result<AssignedPartitions, RecordError> {
    let topics = reader.vec(true, |reader| {
        let topic = TopicId(reader.uuid()?);
        let partitions = reader.vec(true, |reader| reader.i32())?;
        let mut epochs = None;
        reader.tagged(|tag, field| {
            if tag == 0 {
                epochs = field.nullable_vec(true, |reader| reader.i32())?;
            }
            Ok(())
        })?;
        let epochs = epochs.unwrap_or_default();
        let epoch_of = |i: usize| epochs.get(i).copied().unwrap_or(-1);
        let with_epochs = partitions.iter().enumerate();
        Ok((topic, with_epochs.map(|(i, p)| (*p, epoch_of(i))).collect()))
    })?;
    Ok(topics.into_iter().collect())
}

impl MemberMetadataValue {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let mut value = MemberMetadataValue {
            instance_id: reader.nullable_string(true)?,
            rack_id: reader.nullable_string(true)?,
            client_id: reader.string(true)?,
            client_host: reader.string(true)?,
            subscribed_topic_names: reader.vec(true, |reader| reader.string(true))?,
            subscribed_topic_regex: reader.nullable_string(true)?,
            rebalance_timeout_ms: reader.i32()?,
            server_assignor: reader.nullable_string(true)?,
            classic: None,
        };
        reader.tagged(|tag, field| {
            // A nullable structure starts with 1, or is 0 for null.
            if tag == 0 && field.uvarint()? > 0 {
                value.classic = Some(ClassicMemberMetadata::decode(field)?);
            }
            Ok(())
        })?;
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.compact_nullable_string(self.instance_id.as_deref());
        writer.compact_nullable_string(self.rack_id.as_deref());
        writer.compact_string(&self.client_id);
        writer.compact_string(&self.client_host);
        writer.compact_len(self.subscribed_topic_names.len());
        for topic in &self.subscribed_topic_names {
            writer.compact_string(topic);
        }
        writer.compact_nullable_string(self.subscribed_topic_regex.as_deref());
        writer.i32(self.rebalance_timeout_ms);
        writer.compact_nullable_string(self.server_assignor.as_deref());
        match &self.classic {
            // Kafka writes the null out.
            None => writer.one_tag(0, |field| field.uvarint(0)),
            Some(classic) => writer.one_tag(0, |field| {
                field.uvarint(1);
                classic.encode(field);
            }),
        }
    }
}

impl ClassicMemberMetadata {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let session_timeout_ms = reader.i32()?;
        let supported_protocols = reader.vec(true, |reader| {
            let protocol = (reader.string(true)?, reader.bytes(true)?);
            reader.skip_tagged()?;
            Ok(protocol)
        })?;
        reader.skip_tagged()?;
        Ok(ClassicMemberMetadata {
            session_timeout_ms,
            supported_protocols,
        })
    }

    fn encode(&self, writer: &mut Writer) {
        writer.i32(self.session_timeout_ms);
        writer.compact_len(self.supported_protocols.len());
        for (name, metadata) in &self.supported_protocols {
            writer.compact_string(name);
            writer.compact_bytes(metadata);
            writer.no_tags();
        }
        writer.no_tags();
    }
}

impl CurrentAssignmentValue {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let value = CurrentAssignmentValue {
            member_epoch: reader.i32()?,
            previous_member_epoch: reader.i32()?,
            state: match reader.i8()? {
                0 => MemberState::Stable,
                1 => MemberState::UnrevokedPartitions,
                2 => MemberState::UnreleasedPartitions,
                other => return Err(RecordError::UnknownMemberState(other)),
            },
            assigned: assigned_partitions(reader)?,
            pending_revocation: assigned_partitions(reader)?,
        };
        reader.skip_tagged()?;
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.i32(self.member_epoch);
        writer.i32(self.previous_member_epoch);
        writer.i8(self.state as i8);
        encode_assigned(&self.assigned, writer);
        encode_assigned(&self.pending_revocation, writer);
        writer.no_tags();
    }
}

fn encode_assigned(assigned: &AssignedPartitions, writer: &mut Writer) {
    writer.compact_len(assigned.len());
    for (topic, partitions) in assigned {
        writer.uuid(topic.0);
        writer.compact_len(partitions.len());
        for partition in partitions.keys() {
            writer.i32(*partition);
        }
        writer.one_tag(0, |field| {
            field.compact_len(partitions.len());
            for epoch in partitions.values() {
                field.i32(*epoch);
            }
        });
    }
}

impl RegularExpressionValue {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let value = RegularExpressionValue {
            topics: reader.vec(true, |reader| reader.string(true))?,
            version: reader.i64()?,
            timestamp: TimestampMs(reader.i64()?),
        };
        reader.skip_tagged()?;
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.compact_len(self.topics.len());
        for topic in &self.topics {
            writer.compact_string(topic);
        }
        writer.i64(self.version);
        writer.i64(self.timestamp.0);
        writer.no_tags();
    }
}

fn encode_topic_partitions(partitions: &TopicPartitions, writer: &mut Writer) {
    writer.compact_len(partitions.len());
    for (topic, partitions) in partitions {
        writer.uuid(topic.0);
        writer.compact_len(partitions.len());
        for partition in partitions {
            writer.i32(*partition);
        }
        writer.no_tags();
    }
    writer.no_tags();
}

/// A value of version 0, unless it is a tombstone.
fn value_of<T>(value: &Option<T>, encode: impl FnOnce(&T, &mut Writer)) -> Option<Bytes> {
    let value = value.as_ref()?;
    let mut writer = Writer::version(0);
    encode(value, &mut writer);
    Some(writer.finish())
}

pub(super) fn encode(record: &Record) -> Encoded {
    let (record_type, member, value) = match record {
        Record::ConsumerGroupMetadata { value, .. } => (3, None, value_of(value, encode_epoch)),
        // Only tombstones are written (see the table in mod.rs).
        Record::ConsumerGroupPartitionMetadata { .. } => (4, None, None),
        Record::ConsumerGroupMemberMetadata { member, value, .. } => {
            let value = value_of(value, MemberMetadataValue::encode);
            (5, Some(member.as_ref()), value)
        }
        Record::ConsumerGroupTargetAssignmentMetadata { value, .. } => {
            (6, None, value_of(value, encode_target))
        }
        Record::ConsumerGroupTargetAssignmentMember { member, value, .. } => {
            let value = value_of(value, encode_topic_partitions);
            (7, Some(member.as_ref()), value)
        }
        Record::ConsumerGroupCurrentMemberAssignment { member, value, .. } => {
            let value = value_of(value, CurrentAssignmentValue::encode);
            (8, Some(member.as_ref()), value)
        }
        Record::ConsumerGroupRegularExpression { regex, value, .. } => {
            let value = value_of(value, RegularExpressionValue::encode);
            (16, Some(regex.as_str()), value)
        }
        Record::OffsetCommit { .. } | Record::GroupMetadata { .. } => {
            unreachable!("encoded by Record::encode itself")
        }
    };
    let mut key = Writer::version(record_type);
    key.string(record.group());
    if let Some(member) = member {
        key.string(member);
    }
    Encoded {
        key: key.finish(),
        value,
    }
}

fn encode_epoch(value: &GroupEpoch, writer: &mut Writer) {
    writer.i32(value.epoch);
    match value.metadata_hash {
        0 => writer.no_tags(),
        hash => writer.one_tag(0, |field| field.i64(hash)),
    }
}

fn encode_target(value: &TargetAssignmentEpoch, writer: &mut Writer) {
    writer.i32(value.epoch);
    match value.timestamp.0 {
        0 => writer.no_tags(),
        timestamp => writer.one_tag(0, |field| field.i64(timestamp)),
    }
}
