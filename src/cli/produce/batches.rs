//! The batches of one partition: one that is filled, those that wait, those in flight, those that
//! failed and go again.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::cli::admin::AdminError;
use crate::record::{BatchBuilder, Compression};
use crate::types::{ErrorCode, ProducerEpoch, ProducerId, TimestampMs};

use super::{Delivered, Outgoing};

/// A batch that records are still added to.
pub struct OpenBatch {
    pub builder: BatchBuilder,
    pub tags: Vec<u64>,
    pub opened: Duration,
}

/// A batch that does not change any more.
pub struct ClosedBatch {
    pub bytes: Bytes,
    pub tags: Vec<u64>,
    pub opened: Duration,
    pub uncompressed_bytes: usize,
    pub base_sequence: i32,
    pub tries: u32,
}

#[derive(Default)]
pub struct Lane {
    pub open: Option<OpenBatch>,
    pub waiting: VecDeque<ClosedBatch>,
    pub in_flight: usize,
    /// By sequence.
    pub failed: Vec<ClosedBatch>,
    next_sequence: i32,
}

impl OpenBatch {
    pub fn new(compression: Compression, opened: Duration) -> OpenBatch {
        let mut builder = BatchBuilder::new();
        builder.compression = compression;
        builder.level = compression.default_level();
        let tags = Vec::new();
        OpenBatch {
            builder,
            tags,
            opened,
        }
    }

    pub fn append(&mut self, record: &Outgoing, now_ms: i64) {
        let headers: Vec<(&[u8], Option<&[u8]>)> = record
            .headers
            .iter()
            .map(|(key, value)| (&key[..], value.as_deref()))
            .collect();
        self.builder.append_with_headers(
            TimestampMs(record.timestamp_ms.unwrap_or(now_ms)),
            record.key.as_deref(),
            record.value.as_deref(),
            &headers,
        );
        self.tags.push(record.tag);
    }
}

impl Lane {
    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.waiting.is_empty() && self.failed.is_empty()
    }

    /// Closes the open batch and lets it wait for its turn.
    pub fn close(&mut self, identity: Option<(i64, i16)>, delivered: &mut VecDeque<Delivered>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let mut base_sequence = -1;
        if let Some((id, epoch)) = identity {
            base_sequence = self.next_sequence;
            open.builder.producer_id = ProducerId(id);
            open.builder.producer_epoch = ProducerEpoch(epoch);
            open.builder.base_sequence = base_sequence;
            let count = open.builder.records_count();
            self.next_sequence = crate::record::sequence_plus(base_sequence, count);
        }
        let uncompressed_bytes = open.builder.uncompressed_bytes();
        match open.builder.build() {
            Ok(batch) => self.waiting.push_back(ClosedBatch {
                bytes: batch.to_bytes(),
                tags: open.tags,
                opened: open.opened,
                uncompressed_bytes,
                base_sequence,
                tries: 0,
            }),
            Err(_) => {
                let failed = || AdminError::answer(ErrorCode::UnknownServerError, None);
                let ends = open.tags.into_iter().map(|tag| Delivered {
                    tag,
                    result: Err(failed()),
                });
                delivered.extend(ends);
            }
        }
    }

    /// The next batch that may be sent.
    pub fn next(&mut self, in_flight_max: usize) -> Option<ClosedBatch> {
        if !self.failed.is_empty() {
            return match self.in_flight {
                0 => Some(self.failed.remove(0)),
                _ => None,
            };
        }
        match self.in_flight < in_flight_max {
            true => self.waiting.pop_front(),
            false => None,
        }
    }

    /// Puts a batch back that is to be sent again.
    pub fn fail(&mut self, batch: ClosedBatch) {
        let before = |other: &ClosedBatch| other.base_sequence <= batch.base_sequence;
        let at = self.failed.iter().filter(|other| before(other)).count();
        self.failed.insert(at, batch);
    }
}
