//! Brings the producer state up to a log's end: the newest snapshot, then the batches after it.
//!
//! A snapshot that is torn is as good as missing: the one before is taken, at last none, and then
//! the whole log is read (its headers).

use crate::record::{Batch, HEADER_BYTES, Marker};
use crate::types::{Offset, TimestampMs};

use super::append::{aborted_txn, read_marker};
use super::error::LogError;
use super::names::Kind;
use super::partition_dir::PartitionDir;
use super::producer_snapshot;
use super::producer_state::{OpenTransactions, Producers};
use super::scan::{BatchScan, Found, LOOKUP_BYTES, ScanError};
use super::segment::Segment;
use super::txn_index::AbortedTxn;

pub(super) struct Replay {
    pub producers: Producers,
    pub transactions: OpenTransactions,
    /// Everything below is in `producers`. `None`: nothing is, there was no snapshot.
    pub from: Option<Offset>,
}

impl Replay {
    /// Starts from the newest whole snapshot at or below `up_to`. Producers that were quiet for
    /// `expiration_ms` are left out.
    pub fn from_snapshot(
        dir: &PartitionDir,
        snapshots: &[Offset],
        up_to: Offset,
        (now, expiration_ms): (TimestampMs, i64),
    ) -> Result<Replay, LogError> {
        for offset in snapshots.iter().rev().filter(|s| **s <= up_to) {
            let content = dir.core.read_if_there(&dir.snapshot_file(*offset))?;
            let Some(mut producers) = content.and_then(|c| producer_snapshot::parse(&c)) else {
                continue;
            };
            producers.expire(now, expiration_ms);
            return Ok(Replay {
                transactions: OpenTransactions::of(&producers),
                producers,
                from: Some(*offset),
            });
        }
        Ok(Replay {
            producers: Producers::default(),
            transactions: OpenTransactions::default(),
            from: None,
        })
    }

    /// Takes in a batch, unless it is in the snapshot. The entry for the transaction index, if it
    /// is an abort marker that ends something.
    pub fn apply(&mut self, batch: &Found, marker: Option<Marker>) -> Option<AbortedTxn> {
        if self.from.is_some_and(|f| batch.header.base_offset < f) {
            return None;
        }
        let change = self.producers.apply(&batch.header, marker);
        self.transactions.apply(change);
        let first_ongoing = self.transactions.first_ongoing();
        aborted_txn(change, &batch.header, marker, first_ongoing)
    }

    /// Takes in what the segments hold from `start` or the snapshot on. They are known to be whole.
    pub fn segments(
        &mut self,
        dir: &PartitionDir,
        segments: &[Segment],
        start: Offset,
    ) -> Result<(), LogError> {
        let start = self.from.map_or(start, |f| f.max(start));
        let first = segments.partition_point(|s| s.base_offset <= start);
        for segment in &segments[first.saturating_sub(1)..] {
            if segment.log_bytes == 0 {
                continue;
            }
            let hint = super::slice::Hint::Unknown;
            let position = match segment.offset_index_bytes {
                0 => 0,
                _ => dir.floor(segment, start, hint)?,
            };
            let file = dir.open(segment, Kind::Log)?;
            let end = u64::from(segment.log_bytes);
            let position = u64::from(position);
            let mut scan = BatchScan::new(&*file, position, end, Offset::ZERO, LOOKUP_BYTES);
            while let Some(found) = dir.scanned(segment, scan.next_header())? {
                if found.header.last_offset() < start {
                    continue;
                }
                let marker = marker_of(&mut scan, &found);
                let marker = dir.scanned(segment, marker)?;
                self.apply(&found, marker);
            }
        }
        Ok(())
    }
}

/// The content of a transaction's end marker; `None` if the batch is none.
pub(super) fn marker_of(
    scan: &mut BatchScan<'_>,
    found: &Found,
) -> Result<Option<Marker>, ScanError> {
    if !found.header.attributes.is_control() || !found.header.has_producer_id() {
        return Ok(None);
    }
    let body = scan.body(found)?;
    assert_eq!(body.len() + HEADER_BYTES, found.header.size_bytes());
    let batch = Batch {
        header: found.header,
        body: bytes::Bytes::copy_from_slice(body),
    };
    read_marker(&batch).map_err(|_| ScanError::Invalid {
        position: found.position,
        reason: "a control batch without a control record",
    })
}
