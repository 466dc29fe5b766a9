//! Compacts one log: looks at what is new in it, then writes its segments anew without what is
//! superseded.
//!
//! 1. Nobody waits for it. The segments it reads are done and flushed; a truncation, a deletion or
//!    a stop that comes in between is noticed before the result goes in.
//! 2. The recovery point on disk is at or above everything that is compacted: recovery does not
//!    read there, so it needs none of what is dropped.
//! 3. Each group of segments goes in by itself. A crash between two leaves a log that is compacted
//!    in part, which is as good as one that is not: a record is dropped only if one that stays is
//!    newer.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::record::{Batch, Marker};
use crate::types::{Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::append::read_marker;
use super::cleaned_segment::{self, CleanedSegment};
use super::cleaner_filter::{self, BatchRule, Filter, Kept, delete_horizon, offset_of};
use super::cleaner_map::OffsetMap;
use super::cleaner_plan::{self, Cleanable, SegmentSize};
use super::cleaner_transactions::{CleanedTransactions, Control};
use super::config::LogConfig;
use super::error::LogError;
use super::log::{Deletion, Log};
use super::names::Kind;
use super::scan::{BatchScan, Found, RECOVERY_BYTES};
use super::segment::Segment;
use super::txn_index::{self, AbortedTxn};

/// Told of bytes that were read or written; waits where that was too fast. `false`: stop.
pub(super) type Pace<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// What one compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub keys: usize,
    /// The log is clean below.
    pub clean_point: Option<Offset>,
    pub deletions: Vec<Deletion>,
}

/// The last data batch of a producer, and its epoch: what must not be forgotten of it.
struct LastBatches(Vec<(ProducerId, ProducerEpoch, Option<Offset>)>);

impl LastBatches {
    fn has(&self, batch: &Batch) -> bool {
        let header = &batch.header;
        let found = self.0.binary_search_by_key(&header.producer_id, |l| l.0);
        let Ok(at) = found else { return false };
        match self.0[at] {
            (_, _, Some(last_offset)) => header.last_offset() == last_offset,
            (_, epoch, None) => header.attributes.is_control() && header.producer_epoch == epoch,
        }
    }
}

/// A round: one pass over a log.
struct Round<'a> {
    log: &'a Log,
    config: &'a LogConfig,
    filter: Filter<'a>,
    transactions: CleanedTransactions,
    last_batches: LastBatches,
    /// Markers may lie behind what is compacted.
    all: &'a [Segment],
    cuts: u64,
    pace: Pace<'a>,
    done: Cleaned,
}

impl Log {
    /// What could be compacted; `None`: nothing. Costs one lock while nothing has happened.
    pub(super) fn cleanable(
        &self,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<Option<Cleanable>, LogError> {
        let config = self.config();
        let clean_point = self.clean_point();
        let (start, end) = (self.log_start_offset(), self.log_end_offset());
        let first_dirty = cleaner_plan::first_dirty(clean_point, start, end);
        let segments = {
            let view = self.view.lock();
            if !config.compact || view.active().base_offset <= first_dirty {
                return Ok(None);
            }
            view.segments.clone()
        };
        let sizes: Vec<_> = segments.iter().map(size_of).collect();
        let stable = self.last_stable_offset(high_watermark);
        let lag_ms = config.min_compaction_lag_ms;
        let min_cleaned = (lag_ms > 0).then(|| TimestampMs(now.0.saturating_sub(lag_ms)));
        let max = |at: usize| Ok(self.max_timestamp(&segments[at])?.timestamp);
        let first = cleaner_plan::first_uncleanable(&sizes, first_dirty, stable, min_cleaned, max)?;
        let first_uncleanable = segments[first].base_offset;
        let sum = |part: &[Segment]| part.iter().map(|s| u64::from(s.log_bytes)).sum();
        let dirty_from = segments[..first].partition_point(|s| s.base_offset <= first_dirty);
        let dirty_from = dirty_from.saturating_sub(1);
        // A segment that is dirty in part counts as dirty.
        let clean_bytes = sum(&segments[..dirty_from]);
        let cleanable_bytes = match first_uncleanable > first_dirty {
            true => sum(&segments[dirty_from..first]),
            false => 0,
        };
        let is_overdue =
            cleanable_bytes > 0 && self.is_overdue(&config, &segments[dirty_from..first], now)?;
        Ok(Some(Cleanable {
            first_dirty,
            first_uncleanable,
            clean_bytes,
            cleanable_bytes,
            is_overdue,
        }))
    }

    /// Whether one of the segments begins with a record older than `max.compaction.lag.ms`.
    fn is_overdue(
        &self,
        config: &LogConfig,
        segments: &[Segment],
        now: TimestampMs,
    ) -> Result<bool, LogError> {
        if config.max_compaction_lag_ms == i64::MAX {
            return Ok(false);
        }
        let until = now.0.saturating_sub(config.max_compaction_lag_ms.max(0));
        for segment in segments.iter().filter(|s| s.log_bytes > 0) {
            let first = self.first_timestamp(segment)?;
            if first.0 > 0 && first.0 < until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compacts what `cleanable` says. The caller holds no lock, and nobody else compacts this log.
    pub(super) fn clean(
        &self,
        cleanable: &Cleanable,
        now: TimestampMs,
        map_bytes_max: u64,
        pace: Pace<'_>,
    ) -> Result<Cleaned, LogError> {
        let cuts = self.cuts.load(Ordering::SeqCst);
        self.make_recoverable(cleanable.first_uncleanable)?;
        let all = self.view.lock().segments.clone();
        match self.clean_segments(&all, cuts, cleanable, (now, map_bytes_max, pace)) {
            // Files that were cut or deleted under us are no fault.
            Err(LogError::Io { .. } | LogError::Corrupt { .. })
                if self.cuts.load(Ordering::SeqCst) != cuts
                    || self.first_segment_offset() > all[0].base_offset =>
            {
                Ok(Cleaned::default())
            }
            cleaned => cleaned,
        }
    }

    fn clean_segments(
        &self,
        all: &[Segment],
        cuts: u64,
        cleanable: &Cleanable,
        (now, map_bytes_max, pace): (TimestampMs, u64, Pace<'_>),
    ) -> Result<Cleaned, LogError> {
        let config = self.config();
        let mut map = OffsetMap::new(map_bytes_max);
        let Some(read_bytes) = self.read_keys(all, cleanable, &mut map, pace)? else {
            return Ok(Cleaned::default());
        };
        let end = map.latest_offset().next();
        let in_reach = all.partition_point(|s| s.base_offset < end);
        let mut round = Round {
            log: self,
            config: &config,
            filter: Filter {
                map: &map,
                now,
                delete_retention_ms: config.delete_retention_ms,
            },
            transactions: CleanedTransactions::default(),
            last_batches: self.last_batches(),
            all,
            cuts,
            pace,
            done: Cleaned {
                read_bytes,
                keys: map.keys(),
                ..Cleaned::default()
            },
        };
        if round.segments(&all[..in_reach], end)? {
            round.done.clean_point = Some(end);
            self.clean_up_to(end, cuts);
        }
        Ok(round.done)
    }

    fn clean_up_to(&self, end: Offset, cuts: u64) {
        // Truncations come under this lock.
        let _writer = self.writer.lock();
        if self.cuts.load(Ordering::SeqCst) == cuts {
            self.set_clean_point(end);
        }
    }

    /// Invariant 2.
    fn make_recoverable(&self, end: Offset) -> Result<(), LogError> {
        if self.recovery_point() < end {
            self.flush()?;
        }
        if Offset(self.checkpointed.load(Ordering::SeqCst)) < end {
            self.dir.core.write_recovery_points()?;
        }
        Ok(())
    }

    fn last_batches(&self) -> LastBatches {
        let writer = self.writer.lock();
        let producers = writer.producers.iter();
        let mut last: Vec<_> = producers
            .map(|(id, p)| (id, p.epoch, p.last_batch().map(|b| b.last_offset)))
            .collect();
        last.sort_by_key(|(id, _, _)| *id);
        LastBatches(last)
    }

    /// Puts the dirty part's keys into the map, as many as fit. How much was read; `None`: stopped.
    fn read_keys(
        &self,
        all: &[Segment],
        cleanable: &Cleanable,
        map: &mut OffsetMap,
        pace: Pace<'_>,
    ) -> Result<Option<u64>, LogError> {
        let first_dirty = cleanable.first_dirty;
        let from = all.partition_point(|s| s.base_offset <= first_dirty);
        let to = all.partition_point(|s| s.base_offset < cleanable.first_uncleanable);
        let dirty = &all[from.saturating_sub(1)..to];
        let mut transactions = CleanedTransactions::default();
        let mut read_bytes = 0;
        for (at, segment) in dirty.iter().enumerate() {
            transactions.add_aborted(&self.aborted_of(segment, all)?);
            let mut is_full = false;
            let mut is_stopped = false;
            self.each_batch(segment, |batch, marker| {
                let bytes = batch.size_bytes() as u64;
                read_bytes += bytes;
                if !pace(bytes) {
                    is_stopped = true;
                    return Ok(false);
                }
                if !self.put_keys(&batch, marker, first_dirty, &mut transactions, map)? {
                    is_full = true;
                    return Ok(false);
                }
                if batch.header.last_offset() >= first_dirty {
                    map.set_latest_offset(batch.header.last_offset());
                }
                Ok(true)
            })?;
            if is_stopped {
                return Ok(None);
            }
            if is_full {
                break;
            }
            let next = dirty.get(at + 1).map(|s| s.base_offset);
            map.set_latest_offset(next.unwrap_or(cleanable.first_uncleanable).plus(-1));
        }
        Ok(Some(read_bytes))
    }

    /// `false`: there is no room.
    fn put_keys(
        &self,
        batch: &Batch,
        marker: Option<Marker>,
        first_dirty: Offset,
        transactions: &mut CleanedTransactions,
        map: &mut OffsetMap,
    ) -> Result<bool, LogError> {
        if batch.header.attributes.is_control() {
            transactions.on_control(&batch.header, Control::of(&batch.header, marker));
            return Ok(true);
        }
        if transactions.on_data(&batch.header) || batch.header.last_offset() < first_dirty {
            return Ok(true);
        }
        for record in batch.records() {
            let record = record.map_err(|_| self.unreadable(batch))?;
            let offset = offset_of(batch, &record);
            if let Some(key) = &record.key
                && offset >= first_dirty
                && !map.put(key, offset)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Every batch of a segment that is done, with its marker, until `visit` says `false`.
    fn each_batch(
        &self,
        segment: &Segment,
        mut visit: impl FnMut(Batch, Option<Marker>) -> Result<bool, LogError>,
    ) -> Result<(), LogError> {
        if segment.log_bytes == 0 {
            return Ok(());
        }
        let file = self.dir.open(segment, Kind::Log)?;
        let end = u64::from(segment.log_bytes);
        let mut scan = BatchScan::new(&*file, 0, end, segment.base_offset, RECOVERY_BYTES);
        while let Some(found) = self.dir.scanned(segment, scan.next_checked())? {
            let body = scan.body(&found).map(Bytes::copy_from_slice);
            let body = self.dir.scanned(segment, body)?;
            let Found { header, .. } = found;
            let batch = Batch { header, body };
            let marker = match header.records_count {
                0 => None,
                _ => read_marker(&batch).map_err(|_| self.unreadable(&batch))?,
            };
            if !visit(batch, marker)? {
                break;
            }
        }
        Ok(())
    }

    fn unreadable(&self, batch: &Batch) -> LogError {
        LogError::Corrupt {
            path: self.dir.path(),
            position: batch.header.base_offset.0 as u64,
            reason: "the records of the batch at this offset cannot be read",
        }
    }

    /// The aborted transactions with data in `segment`; their markers may lie in later ones.
    fn aborted_of(&self, segment: &Segment, all: &[Segment]) -> Result<Vec<AbortedTxn>, LogError> {
        let from = all.partition_point(|s| s.base_offset < segment.base_offset);
        let end = all.get(from + 1).map(|s| s.base_offset);
        let mut aborted = Vec::new();
        for later in all[from..].iter().filter(|s| s.txn_index_bytes > 0) {
            let file = self.dir.open(later, Kind::TxnIndex)?;
            let visited = txn_index::visit(&*file, later.txn_index_bytes, |_, txn| {
                if end.is_none_or(|end| txn.first_offset < end) {
                    aborted.push(txn);
                }
                end.is_none_or(|end| txn.last_stable_offset < end)
            });
            if !self.dir.read(later, Kind::TxnIndex, visited)? {
                break;
            }
        }
        Ok(aborted)
    }
}

impl Round<'_> {
    /// `false`: the log was cut, or the work was stopped.
    fn segments(&mut self, segments: &[Segment], end: Offset) -> Result<bool, LogError> {
        let sizes: Vec<_> = segments.iter().map(size_of).collect();
        let mut at = 0;
        for count in cleaner_plan::group_by_size(&sizes, end, self.config) {
            let group = &segments[at..at + count];
            at += count;
            if group.iter().all(|s| s.log_bytes == 0) {
                continue;
            }
            if !self.group(group)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn group(&mut self, group: &[Segment]) -> Result<bool, LogError> {
        let log = self.log;
        let (now, interval) = (self.filter.now, self.config.index_interval_bytes);
        let base_offset = group[0].base_offset;
        let mut cleaned = CleanedSegment::create(&log.dir, base_offset, interval, now)?;
        let mut dropped = None;
        for segment in group {
            self.transactions
                .add_aborted(&log.aborted_of(segment, self.all)?);
            let mut is_stopped = false;
            log.each_batch(segment, |batch, marker| {
                let bytes_before = self.done.read_bytes + cleaned.log_bytes();
                dropped = self.batch(batch, marker, &mut cleaned)?;
                let bytes = self.done.read_bytes + cleaned.log_bytes() - bytes_before;
                is_stopped = !(self.pace)(bytes);
                Ok(!is_stopped)
            })?;
            if is_stopped {
                cleaned_segment::remove(&log.dir, base_offset)?;
                return Ok(false);
            }
        }
        if let Some(batch) = dropped {
            let header = cleaner_filter::header_only(&batch);
            cleaned.append(&header.map_err(|_| log.unreadable(&batch))?)?;
        }
        let segment = cleaned.finish()?;
        self.done.written_bytes += u64::from(segment.log_bytes);
        let replaced = log.replace_segments(segment, group, (self.cuts, now))?;
        let is_replaced = replaced.is_some();
        self.done.deletions.extend(replaced);
        Ok(is_replaced)
    }

    /// The batch, if nothing is left of it.
    fn batch(
        &mut self,
        batch: Batch,
        marker: Option<Marker>,
        cleaned: &mut CleanedSegment<'_>,
    ) -> Result<Option<Batch>, LogError> {
        let header = &batch.header;
        self.done.read_bytes += batch.size_bytes() as u64;
        let is_control = header.attributes.is_control();
        let (may_go, is_over) = if is_control {
            let control = Control::of(header, marker);
            let fate = self.transactions.on_control(header, control);
            if let Some(txn) = fate.index {
                cleaned.add_aborted(txn);
            }
            let horizon = delete_horizon(&batch);
            (fate.may_go, horizon.is_some_and(|h| h <= self.filter.now))
        } else {
            (self.transactions.on_data(header), true)
        };
        let rule = BatchRule {
            drop_records: may_go && is_over,
            keep_empty: header.has_producer_id() && self.last_batches.has(&batch),
            is_doomed_marker: may_go && is_control,
        };
        let kept = self.filter.batch(&batch, rule);
        match kept.map_err(|_| self.log.unreadable(&batch))? {
            Kept::Nothing => return Ok(Some(batch)),
            Kept::Same => cleaned.append(&batch)?,
            Kept::Changed(changed) => cleaned.append(&changed)?,
        }
        Ok(None)
    }
}

fn size_of(segment: &Segment) -> SegmentSize {
    SegmentSize {
        base_offset: segment.base_offset,
        log_bytes: segment.log_bytes,
        offset_index_bytes: segment.offset_index_bytes,
        time_index_bytes: segment.time_index_bytes,
    }
}
