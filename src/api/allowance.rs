//! How much of a Produce request may be done on the worker that has read it. A batch of a few
//! kilobytes can hold millions of records, and decompress to gigabytes.

use bytes::Bytes;

use crate::record::{
    BatchHeader, Compression, PreparedBatch, ProduceRules, Rejected, Scratch, prepare,
};
use crate::types::TimestampMs;

thread_local! {
    /// Buffers for decompression, kept from batch to batch.
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default();
}

/// What the first stage of a request may cost on the worker that has read it: about a millisecond.
pub struct Allowance {
    records: i32,
    compressed_bytes: usize,
    decompressed_bytes: usize,
}

impl Allowance {
    pub const SHORT: Allowance = Allowance {
        records: 10_000,
        compressed_bytes: 128 << 10,
        decompressed_bytes: 512 << 10,
    };

    pub const ALL: Allowance = Allowance {
        records: i32::MAX,
        compressed_bytes: usize::MAX,
        decompressed_bytes: usize::MAX,
    };

    fn is_all(&self) -> bool {
        self.compressed_bytes == usize::MAX
    }

    /// Checks `records`; `None` when that would be too much. What a header says is cheap to find
    /// out; what a batch decompresses to is not known before, so that is tried.
    pub fn prepare(
        &mut self,
        records: &Bytes,
        rules: &ProduceRules<'_>,
        now: TimestampMs,
    ) -> Option<Result<PreparedBatch, Rejected>> {
        if !self.is_all()
            && let Ok(header) = BatchHeader::read(records)
        {
            let codec = header.attributes.compression().unwrap_or(Compression::None);
            let is_rewritten = rules.compression.is_some_and(|(target, _)| target != codec);
            self.records = self.records.saturating_sub(header.records_count.max(0));
            if codec != Compression::None {
                let bytes = records.len();
                self.compressed_bytes = self.compressed_bytes.checked_sub(bytes)?;
            }
            if is_rewritten || self.records < 0 {
                return None;
            }
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.limit(self.decompressed_bytes);
            let prepared = prepare(records.clone(), rules, now, scratch);
            let room = scratch.room()?;
            if !self.is_all() {
                self.decompressed_bytes = room;
            }
            Some(prepared)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BatchBuilder, TimestampType};
    use crate::types::{LeaderEpoch, TopicPartition};

    const NOW: TimestampMs = TimestampMs(1_795_975_686_000);

    fn batch(compression: Compression, records: usize, value: &[u8]) -> Bytes {
        let mut builder = BatchBuilder::new();
        builder.compression = compression;
        for _ in 0..records {
            builder.append(NOW, None, Some(value));
        }
        let batch = builder.build().unwrap();
        [&batch.header.to_bytes()[..], &batch.body].concat().into()
    }

    /// Whether the batches of one request are all checked at once.
    fn are_short(target: Option<(Compression, i32)>, batches: &[Bytes]) -> bool {
        let topic_partition = TopicPartition {
            topic: "topic".into(),
            partition: 3,
        };
        let rules = ProduceRules {
            topic_partition: &topic_partition,
            leader_epoch: LeaderEpoch(0),
            max_message_bytes: 1 << 30,
            max_decompressed_message_bytes: 1 << 30,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: i64::MAX,
            is_compacted: false,
            compression: target,
            is_zstd_allowed: true,
        };
        let prepare = |mut allowance: Allowance| {
            let mut all = batches.iter();
            all.all(|batch| {
                let prepared = allowance.prepare(batch, &rules, NOW);
                prepared.is_some_and(|prepared| prepared.unwrap().record_count > 0)
            })
        };
        assert!(prepare(Allowance::ALL), "with time it is right");
        prepare(Allowance::SHORT)
    }

    #[test]
    fn ordinary_batches_are_short() {
        for codec in Compression::ALL {
            assert!(are_short(None, &[batch(codec, 1000, &[b'x'; 100])]));
            let several = vec![batch(codec, 10, &[b'x'; 100]); 100];
            assert!(are_short(None, &several));
        }
    }

    #[test]
    fn many_records_and_what_becomes_large_is_long() {
        let many = batch(Compression::None, 20_000, b"");
        assert!(!are_short(None, std::slice::from_ref(&many)));
        for codec in Compression::ALL.into_iter().skip(1) {
            let bomb = batch(codec, 1, &vec![b'x'; 2 << 20]);
            assert!(!are_short(None, &[bomb]), "{codec}");
            let several = vec![batch(codec, 10, &[b'x'; 10_000]); 10];
            assert!(!are_short(None, &several), "{codec}");
        }
    }

    #[test]
    fn compressing_is_long() {
        let plain = [batch(Compression::None, 1, b"x")];
        assert!(are_short(Some((Compression::None, 0)), &plain));
        assert!(!are_short(Some((Compression::Gzip, 6)), &plain));
    }
}
