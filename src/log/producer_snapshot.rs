//! `<offset>.snapshot`: the producers as they are when everything below the offset is in the log.
//! Big endian.
//!
//! ```text
//! 0 version i16 = 1
//! 2 crc     u32              CRC-32C of everything after it
//! 6 count   i32
//! each: producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32,
//!       timestamp i64, coordinator epoch i32, first offset of the open transaction i64 (-1: none)
//! ```
//!
//! 1. Written when a segment is begun, at a clean stop, and when the recovery point is
//!    checkpointed. By then everything below the offset is in the log's files, the indexes
//!    included.
//! 2. It is not synced: a crash of the machine may leave it torn or missing, which the CRC shows.
//!    Recovery then starts from the one before.
//! 3. One at or below the recovery point says that all index entries below it are on disk:
//!    recovery begins there.

use crate::record::sequence_plus;
use crate::types::{Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::producer_state::{BatchMetadata, Producer, Producers};

const VERSION: i16 = 1;
const CRC_END: usize = 6;
const ENTRY_BYTES: usize = 46;

pub(super) fn to_bytes(producers: &Producers) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CRC_END + 4 + producers.len() * ENTRY_BYTES);
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((producers.len() as i32).to_be_bytes());
    let mut sorted: Vec<_> = producers.iter().collect();
    sorted.sort_by_key(|(id, _)| *id);
    for (id, producer) in sorted {
        let last = producer.last_batch();
        bytes.extend(id.0.to_be_bytes());
        bytes.extend(producer.epoch.0.to_be_bytes());
        bytes.extend(last.map_or(-1, |b| b.last_sequence).to_be_bytes());
        bytes.extend(last.map_or(-1, |b| b.last_offset.0).to_be_bytes());
        bytes.extend(last.map_or(0, |b| b.offset_delta).to_be_bytes());
        bytes.extend(producer.last_timestamp.0.to_be_bytes());
        bytes.extend(producer.coordinator_epoch.to_be_bytes());
        let first_offset = producer.current_txn_first_offset.unwrap_or(Offset::NONE);
        bytes.extend(first_offset.0.to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[CRC_END..]);
    bytes[2..CRC_END].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// `None`: torn or of another version.
pub(super) fn parse(bytes: &[u8]) -> Option<Producers> {
    let mut reader = Reader(bytes);
    if i16::from_be_bytes(reader.take()?) != VERSION {
        return None;
    }
    let crc = u32::from_be_bytes(reader.take()?);
    if crc32c::crc32c(reader.0) != crc {
        return None;
    }
    let count = usize::try_from(i32::from_be_bytes(reader.take()?)).ok()?;
    if reader.0.len() != count.checked_mul(ENTRY_BYTES)? {
        return None;
    }
    let mut producers = Producers::default();
    for _ in 0..count {
        let id = ProducerId(i64::from_be_bytes(reader.take()?));
        producers.insert(id, producer(&mut reader)?);
    }
    Some(producers)
}

fn producer(reader: &mut Reader<'_>) -> Option<Producer> {
    let mut producer = Producer::new(ProducerEpoch(i16::from_be_bytes(reader.take()?)));
    let last_sequence = i32::from_be_bytes(reader.take()?);
    let last_offset = Offset(i64::from_be_bytes(reader.take()?));
    let offset_delta = i32::from_be_bytes(reader.take()?);
    let timestamp = TimestampMs(i64::from_be_bytes(reader.take()?));
    producer.last_timestamp = timestamp;
    producer.coordinator_epoch = i32::from_be_bytes(reader.take()?);
    let first_offset = Offset(i64::from_be_bytes(reader.take()?));
    producer.current_txn_first_offset = (first_offset >= Offset::ZERO).then_some(first_offset);
    if last_offset >= Offset::ZERO {
        producer.add_batch(BatchMetadata {
            first_sequence: sequence_plus(last_sequence, offset_delta.wrapping_neg()),
            last_sequence,
            last_offset,
            offset_delta,
            timestamp,
        });
    }
    Some(producer)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by Kafka 4.4: two transactional producers, the first with an open transaction.
    const KAFKA: &str = concat!(
        "00017591d5ea00000002",
        "000000000000000400000000000200000000000000040000000000000",
        "18bcfe56802ffffffff0000000000000000",
        "000000000000000500000000000200000000000000050000000000000",
        "18bcfe56802ffffffff0000000000000001",
    );

    fn from_hex(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn kafkas_bytes_are_read_and_written_again() {
        let bytes = from_hex(KAFKA);
        let producers = parse(&bytes).unwrap();
        let (id, first) = producers.iter().min_by_key(|(id, _)| *id).unwrap();
        assert_eq!(id, ProducerId(4));
        assert_eq!(first.current_txn_first_offset, Some(Offset(0)));
        assert_eq!(first.last_batch().unwrap().last_sequence, 2);
        assert_eq!(to_bytes(&producers), bytes);
    }

    #[test]
    fn any_damage_is_seen() {
        let bytes = from_hex(KAFKA);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(parse(&damaged), None, "byte {at}");
            assert_eq!(parse(&bytes[..at]), None, "cut at {at}");
        }
    }
}
