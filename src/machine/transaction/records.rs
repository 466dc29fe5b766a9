//! Keys and values of `__transaction_state`, in Kafka's bytes.
//!
//! ```text
//! key    0: int16   transactional_id: string
//! value  0: int16   producer_id: int64   producer_epoch: int16   timeout_ms: int32   state: int8
//!                   [topic: string [partition: int32]]?   last_update: int64   start: int64
//! value  1: int16   the same with compact lengths and tagged fields:
//!                   0 previous_producer_id: int64    1 next_producer_id: int64
//!                   2 client_transaction_version: int16   3 next_producer_epoch: int16
//! ```
//!
//! A null value forgets the transactional id. The partitions of an Empty transaction are null.
//! Tagged fields that hold their default (-1; 0 for the version) are left out, unknown ones are
//! skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{TransactionMetadata, TransactionState, TransactionVersion, TransactionalId};
use crate::types::{ProducerEpoch, ProducerId, TimestampMs, TopicName, TopicPartition};

const KEY_VERSION: i16 = 0;
const VALUE_VERSION_MAX: i16 = 1;

/// Why the bytes of a record cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("transaction record key has the unknown version {0}")]
    KeyVersion(i16),
    #[error("transaction record value has the unknown version {0}")]
    ValueVersion(i16),
    #[error("transaction record has the unknown state {0}")]
    State(i8),
    #[error("transaction record has the unknown transaction version {0}")]
    TransactionVersion(i16),
    #[error("transaction record ends after {0} bytes, within a field")]
    CutShort(usize),
    #[error("transaction record has a length or a string that cannot be, at byte {0}")]
    Malformed(usize),
}

/// One record of `__transaction_state`; without metadata it is a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionRecord {
    pub transactional_id: TransactionalId,
    pub metadata: Option<TransactionMetadata>,
}

impl TransactionRecord {
    pub fn encode_key(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.transactional_id.len());
        out.extend(KEY_VERSION.to_be_bytes());
        put_string(&mut out, &self.transactional_id);
        out
    }

    /// The value that a cluster of this `transaction.version` writes.
    pub fn encode_value(&self, transaction_version: TransactionVersion) -> Option<Vec<u8>> {
        let metadata = self.metadata.as_ref()?;
        let version = transaction_version.value_version();
        let mut out = Vec::with_capacity(96);
        out.extend(version.to_be_bytes());
        out.extend(metadata.producer_id.0.to_be_bytes());
        out.extend(metadata.producer_epoch.0.to_be_bytes());
        out.extend(metadata.transaction_timeout_ms.to_be_bytes());
        out.extend(metadata.state.id().to_be_bytes());
        put_partitions(&mut out, metadata, version);
        out.extend(metadata.last_update_timestamp.0.to_be_bytes());
        out.extend(metadata.start_timestamp.0.to_be_bytes());
        if version >= 1 {
            put_tagged_fields(&mut out, metadata);
        }
        Some(out)
    }

    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, RecordError> {
        let mut key = Reader { bytes: key, at: 0 };
        let version = key.int16()?;
        if version != KEY_VERSION {
            return Err(RecordError::KeyVersion(version));
        }
        let transactional_id = key.string()?;
        let metadata = value.map(decode_value).transpose()?;
        Ok(TransactionRecord {
            transactional_id,
            metadata,
        })
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    // Both a topic and a transactional id came in as a string of at most 32,767 bytes.
    let len = i16::try_from(text.len()).expect("a string of the protocol");
    out.extend(len.to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_unsigned_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Kafka's compact length: one more than it is, 0 is null.
fn put_compact_len(out: &mut Vec<u8>, len: usize) {
    put_unsigned_varint(
        out,
        u32::try_from(len + 1).expect("fewer than 2^32 elements"),
    );
}

fn put_partitions(out: &mut Vec<u8>, metadata: &TransactionMetadata, version: i16) {
    if metadata.state == TransactionState::Empty {
        assert!(
            metadata.partitions.is_empty(),
            "an Empty transaction has no partitions"
        );
        match version {
            0 => out.extend((-1i32).to_be_bytes()),
            _ => out.push(0),
        }
        return;
    }
    let mut topics: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
    for partition in &metadata.partitions {
        topics
            .entry(&partition.topic)
            .or_default()
            .push(partition.partition);
    }
    put_array_len(out, topics.len(), version);
    for (topic, partition_ids) in topics {
        match version {
            0 => put_string(out, topic),
            _ => {
                put_compact_len(out, topic.len());
                out.extend(topic.as_bytes());
            }
        }
        put_array_len(out, partition_ids.len(), version);
        out.extend(partition_ids.iter().flat_map(|id| id.to_be_bytes()));
        if version >= 1 {
            out.push(0); // no tagged fields
        }
    }
}

fn put_array_len(out: &mut Vec<u8>, len: usize, version: i16) {
    match version {
        0 => out.extend(
            i32::try_from(len)
                .expect("fewer than 2^31 elements")
                .to_be_bytes(),
        ),
        _ => put_compact_len(out, len),
    }
}

fn put_tagged_fields(out: &mut Vec<u8>, metadata: &TransactionMetadata) {
    let mut fields: Vec<(u8, Vec<u8>)> = Vec::new();
    if metadata.previous_producer_id != ProducerId::NONE {
        fields.push((0, metadata.previous_producer_id.0.to_be_bytes().to_vec()));
    }
    if metadata.next_producer_id != ProducerId::NONE {
        fields.push((1, metadata.next_producer_id.0.to_be_bytes().to_vec()));
    }
    if metadata.client_transaction_version != TransactionVersion::V0 {
        fields.push((
            2,
            metadata
                .client_transaction_version
                .level()
                .to_be_bytes()
                .to_vec(),
        ));
    }
    if metadata.next_producer_epoch != ProducerEpoch::NONE {
        fields.push((3, metadata.next_producer_epoch.0.to_be_bytes().to_vec()));
    }
    out.push(fields.len() as u8);
    for (tag, bytes) in fields {
        out.push(tag);
        out.push(bytes.len() as u8);
        out.extend(bytes);
    }
}

fn decode_value(bytes: &[u8]) -> Result<TransactionMetadata, RecordError> {
    let mut value = Reader { bytes, at: 0 };
    let version = value.int16()?;
    if !(0..=VALUE_VERSION_MAX).contains(&version) {
        return Err(RecordError::ValueVersion(version));
    }
    let mut metadata = TransactionMetadata::new(ProducerId(value.int64()?));
    metadata.producer_epoch = ProducerEpoch(value.int16()?);
    metadata.transaction_timeout_ms = value.int32()?;
    let state = value.int8()?;
    metadata.state = TransactionState::from_id(state).ok_or(RecordError::State(state))?;
    let partitions = value.partitions(version)?;
    if metadata.state != TransactionState::Empty {
        metadata.partitions = partitions;
    }
    metadata.last_update_timestamp = TimestampMs(value.int64()?);
    metadata.start_timestamp = TimestampMs(value.int64()?);
    if version >= 1 {
        value.tagged_fields(|tag, field| {
            match tag {
                0 => metadata.previous_producer_id = ProducerId(field.int64()?),
                1 => metadata.next_producer_id = ProducerId(field.int64()?),
                2 => {
                    let level = field.int16()?;
                    metadata.client_transaction_version = TransactionVersion::from_level(level)
                        .ok_or(RecordError::TransactionVersion(level))?;
                }
                3 => metadata.next_producer_epoch = ProducerEpoch(field.int16()?),
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(metadata)
}

/// Reads what Kafka wrote; nothing is allocated for a length that the bytes cannot hold.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let end = self
            .at
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(RecordError::CutShort(self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        Ok(self.take(N)?.try_into().expect("take gives N bytes"))
    }

    fn int8(&mut self) -> Result<i8, RecordError> {
        Ok(i8::from_be_bytes(self.fixed()?))
    }

    fn int16(&mut self) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.fixed()?))
    }

    fn int32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.fixed()?))
    }

    fn int64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.fixed()?))
    }

    fn unsigned_varint(&mut self) -> Result<usize, RecordError> {
        let mut number = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.fixed::<1>()?[0];
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number as usize);
            }
        }
        Err(RecordError::Malformed(self.at))
    }

    fn text(&mut self, len: usize) -> Result<Arc<str>, RecordError> {
        let at = self.at;
        let text = std::str::from_utf8(self.take(len)?);
        Ok(text.map_err(|_| RecordError::Malformed(at))?.into())
    }

    fn string(&mut self) -> Result<Arc<str>, RecordError> {
        let len = self.int16()?;
        let len = usize::try_from(len).map_err(|_| RecordError::Malformed(self.at))?;
        self.text(len)
    }

    /// A length that may be null, of elements that take at least one byte each.
    fn array_len(&mut self, version: i16) -> Result<Option<usize>, RecordError> {
        let len = match version {
            0 => usize::try_from(self.int32()?).ok(),
            _ => self.unsigned_varint()?.checked_sub(1),
        };
        match len {
            Some(len) if len > self.bytes.len() - self.at => Err(RecordError::Malformed(self.at)),
            len => Ok(len),
        }
    }

    fn partitions(&mut self, version: i16) -> Result<BTreeSet<TopicPartition>, RecordError> {
        let mut partitions = BTreeSet::new();
        for _ in 0..self.array_len(version)?.unwrap_or(0) {
            let topic = match version {
                0 => self.string()?,
                _ => {
                    let len = self.unsigned_varint()?.checked_sub(1);
                    let len = len.ok_or(RecordError::Malformed(self.at))?;
                    self.text(len)?
                }
            };
            for _ in 0..self
                .array_len(version)?
                .ok_or(RecordError::Malformed(self.at))?
            {
                let partition = self.int32()?;
                partitions.insert(TopicPartition {
                    topic: topic.clone(),
                    partition,
                });
            }
            if version >= 1 {
                self.tagged_fields(|_, _| Ok(()))?;
            }
        }
        Ok(partitions)
    }

    fn tagged_fields(
        &mut self,
        mut each: impl FnMut(usize, &mut Reader<'a>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let len = self.unsigned_varint()?;
            each(
                tag,
                &mut Reader {
                    bytes: self.take(len)?,
                    at: 0,
                },
            )?;
        }
        Ok(())
    }
}
