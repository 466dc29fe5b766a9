//! The body of [`super::LOG_ENDS`]: where logs of a broker end.
//!
//! ```text
//! request = broker_id:int32 broker_epoch:int64 log*
//! log     = topic_id:uuid partition:int32 epoch:int32 offset:int64
//! answer  = 0: heard, 1: this is not the active controller
//! ```

use bytes::{Buf, BufMut, Bytes};
use uuid::Uuid;

use crate::types::{BrokerId, LeaderEpoch, Offset, TopicId};

const LOG_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEnds {
    pub broker_id: BrokerId,
    pub broker_epoch: i64,
    /// Partition, the epoch of its last record, its end.
    pub logs: Vec<(TopicId, i32, LeaderEpoch, Offset)>,
}

impl LogEnds {
    pub const HEARD: u8 = 0;
    pub const NOT_CONTROLLER: u8 = 1;

    pub fn write(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(12 + self.logs.len() * LOG_BYTES);
        body.put_i32(self.broker_id.0);
        body.put_i64(self.broker_epoch);
        for (topic_id, partition, epoch, offset) in &self.logs {
            body.put_slice(topic_id.0.as_bytes());
            body.put_i32(*partition);
            body.put_i32(epoch.0);
            body.put_i64(offset.0);
        }
        body
    }

    /// `None`: it cannot be read.
    pub fn read(body: &Bytes) -> Option<LogEnds> {
        let mut rest = body.clone();
        let broker_id = BrokerId(rest.try_get_i32().ok()?);
        let broker_epoch = rest.try_get_i64().ok()?;
        if !rest.len().is_multiple_of(LOG_BYTES) {
            return None;
        }
        let mut logs = Vec::with_capacity(rest.len() / LOG_BYTES);
        while rest.has_remaining() {
            let topic_id = TopicId(Uuid::from_u128(rest.try_get_u128().ok()?));
            let partition = rest.try_get_i32().ok()?;
            let epoch = LeaderEpoch(rest.try_get_i32().ok()?);
            logs.push((topic_id, partition, epoch, Offset(rest.try_get_i64().ok()?)));
        }
        Some(LogEnds {
            broker_id,
            broker_epoch,
            logs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let topic_id = TopicId(Uuid::from_u128(0x1234_5678));
        let log = |partition| (topic_id, partition, LeaderEpoch(4), Offset(1 << 40));
        let ends = LogEnds {
            broker_id: BrokerId(3),
            broker_epoch: 99,
            logs: vec![log(0), log(7)],
        };
        let body = Bytes::from(ends.write());
        assert_eq!(LogEnds::read(&body), Some(ends));
        for length in (0..body.len()).filter(|length| *length != 12 && *length != 12 + LOG_BYTES) {
            assert_eq!(LogEnds::read(&body.slice(..length)), None, "{length} bytes");
        }
    }
}
