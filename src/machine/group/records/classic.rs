//! GroupMetadata values (key type 2): a classic group as of its last completed rebalance.
//!
//! ```text
//! protocol_type string, generation int32, protocol string?, leader string?,
//! v2+: current_state_timestamp int64,
//! members: [ member_id string, v3+: group_instance_id string?, client_id string,
//!            client_host string, v1+: rebalance_timeout int32, session_timeout int32,
//!            subscription bytes, assignment bytes ]
//! v4 is the same in compact types with tagged fields.
//! ```

use bytes::Bytes;

use super::RecordError;
use super::codec::{Reader, Writer};
use crate::types::TimestampMs;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadataValue {
    pub protocol_type: String,
    pub generation: i32,
    pub protocol: Option<String>,
    pub leader: Option<String>,
    pub current_state_timestamp: TimestampMs,
    pub members: Vec<GroupMetadataMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadataMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: Bytes,
    pub assignment: Bytes,
}

impl GroupMetadataValue {
    pub(super) fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader::new(value);
        let version = reader.i16()?;
        if !(0..=4).contains(&version) {
            return Err(RecordError::UnknownVersion {
                record_type: 2,
                version,
            });
        }
        let flex = version >= 4;
        let value = GroupMetadataValue {
            protocol_type: reader.string(flex)?,
            generation: reader.i32()?,
            protocol: reader.nullable_string(flex)?,
            leader: reader.nullable_string(flex)?,
            current_state_timestamp: match version {
                2.. => TimestampMs(reader.i64()?),
                _ => TimestampMs::NONE,
            },
            members: reader.vec(flex, |reader| GroupMetadataMember::decode(version, reader))?,
        };
        if flex {
            reader.skip_tagged()?;
        }
        Ok(value)
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut writer = Writer::version(3);
        writer.string(&self.protocol_type);
        writer.i32(self.generation);
        writer.nullable_string(self.protocol.as_deref());
        writer.nullable_string(self.leader.as_deref());
        writer.i64(self.current_state_timestamp.0);
        writer.array_len(self.members.len());
        for member in &self.members {
            writer.string(&member.member_id);
            writer.nullable_string(member.group_instance_id.as_deref());
            writer.string(&member.client_id);
            writer.string(&member.client_host);
            writer.i32(member.rebalance_timeout_ms);
            writer.i32(member.session_timeout_ms);
            writer.bytes(&member.subscription);
            writer.bytes(&member.assignment);
        }
        writer.finish()
    }
}

impl GroupMetadataMember {
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let flex = version >= 4;
        let member_id = reader.string(flex)?;
        let group_instance_id = match version {
            3.. => reader.nullable_string(flex)?,
            _ => None,
        };
        let client_id = reader.string(flex)?;
        let client_host = reader.string(flex)?;
        let rebalance_timeout_ms = match version {
            1.. => reader.i32()?,
            _ => -1,
        };
        let session_timeout_ms = reader.i32()?;
        let member = GroupMetadataMember {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            // Version 0 had one time-out for both.
            rebalance_timeout_ms: match rebalance_timeout_ms {
                -1 => session_timeout_ms,
                timeout_ms => timeout_ms,
            },
            session_timeout_ms,
            subscription: reader.bytes(flex)?,
            assignment: reader.bytes(flex)?,
        };
        if flex {
            reader.skip_tagged()?;
        }
        Ok(member)
    }
}
