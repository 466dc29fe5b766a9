//! The Fetch answer as a list of chunks: what is known in memory, and ranges of segment files in
//! place of the records, so that they leave with sendfile. Encoded here and not by kafka-protocol,
//! which wants the records in memory.
//!
//! ```text
//! [prefix .. partition .. records length] [file range] [tags, next partition ..] [file range] ..
//! ```

use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use super::answer::{Chunk, Frame};
use super::codec::{AnswerHeader, put_varint};
use super::leader_hint::LeaderEndpoint;
use crate::host::File;
use crate::log::LogSlice;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset, TopicId, TopicName};

/// One aborted transaction, for consumers that read committed data only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: Offset,
}

/// What is answered for one partition.
pub struct FetchedPartition {
    pub partition: i32,
    pub error: ErrorCode,
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    pub log_start_offset: Offset,
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// -1 unless the consumer should read from another replica (KIP-392).
    pub preferred_read_replica: BrokerId,
    /// Where the fetcher's log and the leader's part: the end of the last common epoch.
    pub diverging_epoch: Option<(LeaderEpoch, Offset)>,
    /// The leader to turn to instead (KIP-951).
    pub current_leader: Option<(BrokerId, LeaderEpoch)>,
    pub records: Option<LogSlice>,
}

impl FetchedPartition {
    /// An answer with nothing but an error.
    pub fn failed(partition: i32, error: ErrorCode) -> Self {
        FetchedPartition {
            partition,
            error,
            high_watermark: Offset::NONE,
            last_stable_offset: Offset::NONE,
            log_start_offset: Offset::NONE,
            aborted_transactions: None,
            preferred_read_replica: BrokerId::NONE,
            diverging_epoch: None,
            current_leader: None,
            records: None,
        }
    }

    /// Whether it is said at once, and in a session each time: an error, a divergence, another
    /// replica to read from.
    pub fn must_say(&self) -> bool {
        self.error != ErrorCode::None
            || self.diverging_epoch.is_some()
            || self.preferred_read_replica != BrokerId::NONE
    }

    pub fn records_bytes(&self) -> usize {
        self.records.as_ref().map_or(0, |slice| slice.len as usize)
    }
}

/// A topic's share of the answer. Up to v12 it goes by name, from v13 by id.
pub struct FetchedTopic {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partitions: Vec<FetchedPartition>,
}

/// The whole answer.
pub struct FetchAnswer {
    pub error: ErrorCode,
    pub session_id: i32,
    pub topics: Vec<FetchedTopic>,
    /// Where the leaders are that `current_leader` names; from v16 on.
    pub node_endpoints: Vec<LeaderEndpoint>,
}

/// Encodes `answer` at the version that `header` names.
pub fn encode(header: AnswerHeader, answer: FetchAnswer) -> Frame {
    let flexible = header.api_version >= 12;
    let mut encoder = Encoder {
        version: header.api_version,
        flexible,
        buffer: BytesMut::with_capacity(256),
        chunks: Vec::new(),
    };
    // The length is filled in when it is known.
    header.put_prefix(&mut encoder.buffer, flexible, 0);
    encoder.body(answer);
    encoder.finish()
}

enum Piece {
    Memory(BytesMut),
    File {
        file: Arc<dyn File>,
        position: u64,
        len: usize,
    },
}

struct Encoder {
    version: i16,
    flexible: bool,
    buffer: BytesMut,
    chunks: Vec<Piece>,
}

impl Encoder {
    fn body(&mut self, answer: FetchAnswer) {
        self.buffer.put_i32(0); // throttle_time_ms
        if self.version >= 7 {
            self.buffer.put_i16(answer.error.code());
            self.buffer.put_i32(answer.session_id);
        }
        self.array_len(answer.topics.len());
        for topic in answer.topics {
            self.topic(topic);
        }
        self.endpoints(&answer.node_endpoints);
    }

    fn endpoints(&mut self, endpoints: &[LeaderEndpoint]) {
        if endpoints.is_empty() || self.version < 16 {
            return self.no_tags();
        }
        let mut content = Encoder {
            version: self.version,
            flexible: true,
            buffer: BytesMut::new(),
            chunks: Vec::new(),
        };
        content.array_len(endpoints.len());
        for endpoint in endpoints {
            content.buffer.put_i32(endpoint.id.0);
            content.text(Some(&endpoint.host));
            content.buffer.put_i32(endpoint.port);
            content.text(endpoint.rack.as_deref());
            content.no_tags();
        }
        self.buffer.put_slice(&[1, 0]); // one tag: 0
        self.varint(content.buffer.len() as u32);
        self.buffer.put_slice(&content.buffer);
    }

    /// A compact nullable string.
    fn text(&mut self, text: Option<&str>) {
        self.varint(text.map_or(0, |text| text.len() as u32 + 1));
        self.buffer.put_slice(text.unwrap_or_default().as_bytes());
    }

    fn topic(&mut self, topic: FetchedTopic) {
        if self.version >= 13 {
            self.buffer.put_slice(topic.topic_id.0.as_bytes());
        } else if self.flexible {
            self.varint(topic.topic.len() as u32 + 1);
            self.buffer.put_slice(topic.topic.as_bytes());
        } else {
            self.buffer.put_i16(topic.topic.len() as i16);
            self.buffer.put_slice(topic.topic.as_bytes());
        }
        self.array_len(topic.partitions.len());
        for partition in topic.partitions {
            self.partition(partition);
        }
        self.no_tags();
    }

    fn partition(&mut self, partition: FetchedPartition) {
        self.buffer.put_i32(partition.partition);
        self.buffer.put_i16(partition.error.code());
        self.buffer.put_i64(partition.high_watermark.0);
        self.buffer.put_i64(partition.last_stable_offset.0);
        if self.version >= 5 {
            self.buffer.put_i64(partition.log_start_offset.0);
        }
        self.aborted(partition.aborted_transactions.as_deref());
        if self.version >= 11 {
            self.buffer.put_i32(partition.preferred_read_replica.0);
        }
        // No records are an empty byte string, never null: librdkafka drops the whole answer.
        self.array_len(partition.records_bytes());
        if let Some(LogSlice {
            file: Some(file),
            position,
            len,
            ..
        }) = partition.records
        {
            self.chunks.push(Piece::Memory(self.buffer.split()));
            self.chunks.push(Piece::File {
                file,
                position,
                len: len as usize,
            });
        }
        self.partition_tags(partition.diverging_epoch, partition.current_leader);
    }

    fn aborted(&mut self, aborted: Option<&[AbortedTransaction]>) {
        let Some(aborted) = aborted else {
            if self.flexible {
                self.buffer.put_u8(0);
            } else {
                self.buffer.put_i32(-1);
            }
            return;
        };
        self.array_len(aborted.len());
        for transaction in aborted {
            self.buffer.put_i64(transaction.producer_id);
            self.buffer.put_i64(transaction.first_offset.0);
            self.no_tags();
        }
    }

    fn partition_tags(
        &mut self,
        diverging_epoch: Option<(LeaderEpoch, Offset)>,
        current_leader: Option<(BrokerId, LeaderEpoch)>,
    ) {
        if !self.flexible {
            return;
        }
        let tags = u8::from(diverging_epoch.is_some()) + u8::from(current_leader.is_some());
        self.buffer.put_u8(tags);
        if let Some((epoch, end_offset)) = diverging_epoch {
            self.buffer.put_slice(&[0, 13]); // tag, size
            self.buffer.put_i32(epoch.0);
            self.buffer.put_i64(end_offset.0);
            self.buffer.put_u8(0);
        }
        if let Some((leader, epoch)) = current_leader {
            self.buffer.put_slice(&[1, 9]);
            self.buffer.put_i32(leader.0);
            self.buffer.put_i32(epoch.0);
            self.buffer.put_u8(0);
        }
    }

    /// The length of an array or of a byte string.
    fn array_len(&mut self, len: usize) {
        if self.flexible {
            self.varint(len as u32 + 1);
        } else {
            self.buffer.put_i32(len as i32);
        }
    }

    fn varint(&mut self, value: u32) {
        put_varint(&mut self.buffer, value);
    }

    fn no_tags(&mut self) {
        if self.flexible {
            self.buffer.put_u8(0);
        }
    }

    fn finish(mut self) -> Frame {
        if !self.buffer.is_empty() {
            self.chunks.push(Piece::Memory(self.buffer.split()));
        }
        let total: usize = self.chunks.iter().map(Piece::len).sum();
        if let Some(Piece::Memory(first)) = self.chunks.first_mut() {
            first[..4].copy_from_slice(&((total - 4) as i32).to_be_bytes());
        }
        Frame {
            chunks: self.chunks.into_iter().map(Chunk::from).collect(),
        }
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Memory(buffer) => buffer.len(),
            Piece::File { len, .. } => *len,
        }
    }
}

impl From<Piece> for Chunk {
    fn from(piece: Piece) -> Chunk {
        match piece {
            Piece::Memory(buffer) => Chunk::Bytes(buffer.freeze()),
            Piece::File {
                file,
                position,
                len,
            } => Chunk::File {
                file,
                position,
                len,
            },
        }
    }
}
