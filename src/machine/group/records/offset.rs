//! OffsetCommit values (key types 0 and 1).
//!
//! ```text
//! v0  offset int64, metadata string, commit_timestamp int64
//! v1  as v0, expire_timestamp int64
//! v2  as v0
//! v3  offset int64, leader_epoch int32, metadata string, commit_timestamp int64
//! v4  as v3 with a compact string, tag 0: topic_id uuid
//! ```

use bytes::Bytes;

use super::RecordError;
use super::codec::{Reader, Writer};
use crate::types::{LeaderEpoch, Offset, TimestampMs, TopicId};

/// What a consumer committed for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitValue {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: String,
    pub commit_timestamp: TimestampMs,
    /// When the commit named its own retention (OffsetCommit v2-v4); not stored since v4.
    pub expire_timestamp: TimestampMs,
    pub topic_id: TopicId,
}

impl OffsetCommitValue {
    pub(super) fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader::new(value);
        let version = reader.i16()?;
        if !(0..=4).contains(&version) {
            return Err(RecordError::UnknownVersion {
                record_type: 1,
                version,
            });
        }
        let offset = Offset(reader.i64()?);
        let leader_epoch = match version {
            3.. => LeaderEpoch(reader.i32()?),
            _ => LeaderEpoch::NONE,
        };
        let metadata = reader.string(version >= 4)?;
        let commit_timestamp = TimestampMs(reader.i64()?);
        let expire_timestamp = match version {
            1 => TimestampMs(reader.i64()?),
            _ => TimestampMs::NONE,
        };
        let mut topic_id = TopicId::NONE;
        if version >= 4 {
            reader.tagged(|tag, field| {
                if tag == 0 {
                    topic_id = TopicId(field.uuid()?);
                }
                Ok(())
            })?;
        }
        Ok(OffsetCommitValue {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp,
            expire_timestamp,
            topic_id,
        })
    }

    pub(super) fn encode(&self) -> Bytes {
        // Kafka falls back to version 1 for a commit that names its own retention, because only
        // that version has a place for it.
        if self.expire_timestamp != TimestampMs::NONE {
            return self.encode_v1();
        }
        let mut writer = Writer::version(4);
        writer.i64(self.offset.0);
        writer.i32(self.leader_epoch.0);
        writer.compact_string(&self.metadata);
        writer.i64(self.commit_timestamp.0);
        if self.topic_id.is_none() {
            writer.no_tags();
        } else {
            writer.one_tag(0, |field| field.uuid(self.topic_id.0));
        }
        writer.finish()
    }

    fn encode_v1(&self) -> Bytes {
        let mut writer = Writer::version(1);
        writer.i64(self.offset.0);
        writer.string(&self.metadata);
        writer.i64(self.commit_timestamp.0);
        writer.i64(self.expire_timestamp.0);
        writer.finish()
    }
}
