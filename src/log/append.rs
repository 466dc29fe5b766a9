//! Appending: as leader, which gives offsets, and as follower, which takes them as they are.
//!
//! What a crash leaves after each step:
//!
//! 1. the batch, or a part of it, at the end of `.log`: recovery keeps it if it is whole. It was
//!    not answered yet, so both are right;
//! 2. an entry in `.txnindex`, if the batch is an abort marker: recovery writes it again;
//! 3. now it is published to readers. Index entries wait in memory; they are written some dozens at
//!    a time, and recovery makes those again that were not.
//!
//! Rolling: the old segment's indexes are completed, then the producer snapshot of the new base
//! offset is written. The new segment's file is made by its first append, so a crash between the
//! two leaves a segment that is the last again, which is fine.

use std::borrow::BorrowMut;
use std::io::{self, IoSlice};
use std::sync::atomic::Ordering;

use crate::host::File;
use crate::record::{Batch, BatchHeader, HEADER_BYTES, Marker, MarkerType, TimestampType};
use crate::types::{LeaderEpoch, Offset, TimestampMs};

use super::config::LogConfig;
use super::error::{AppendError, LogError};
use super::log::{AppendContext, Appended, Log, Origin, Writer};
use super::names::Kind;
use super::producer_snapshot;
use super::producer_state::{TxnChange, Verdict};
use super::scan::{BatchScan, LOOKUP_BYTES};
use super::segment::{PendingIndex, Segment, Tail, TailEntry};
use super::txn_index::AbortedTxn;

/// Batches in one vectored write; two parts each, and the system takes 1024 parts.
const RUN_BATCHES_MAX: usize = 256;

/// What an append decided and did so far.
#[derive(Default)]
struct Progress {
    rolled: bool,
}

impl Log {
    /// Appends one checked batch: gives it offsets and the leader epoch.
    pub fn append_as_leader(
        &self,
        mut batch: impl BorrowMut<Batch>,
        context: &AppendContext,
    ) -> Result<Appended, AppendError> {
        let batch = batch.borrow_mut();
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        if context.leader_epoch < writer.fenced_below {
            return Err(AppendError::Fenced {
                leader_epoch: context.leader_epoch,
                current: writer.fenced_below,
            });
        }
        let config = self.config();
        if batch.size_bytes() as u64 > u64::from(config.segment_bytes) {
            return Err(AppendError::BatchTooLarge {
                batch_bytes: batch.size_bytes(),
                segment_bytes: config.segment_bytes,
            });
        }
        let header = &mut batch.header;
        header.base_offset = self.log_end_offset();
        header.leader_epoch = context.leader_epoch;
        check_place(batch)?;
        if batch.header.has_producer_id() {
            let marker = read_marker(batch)?;
            if let Verdict::Duplicate(old) =
                writer
                    .producers
                    .check(&batch.header, marker, context.origin)?
            {
                return Ok(Appended {
                    base_offset: old.base_offset(),
                    last_offset: old.last_offset,
                    log_start_offset: self.log_start_offset(),
                    log_append_time: old.timestamp,
                    is_duplicate: true,
                    rolled: false,
                    unflushed_records: writer.unflushed_records,
                    leader_epoch: context.leader_epoch,
                });
            }
        }
        if context.origin == Origin::Client {
            self.dir.core.check_room(batch.size_bytes() as u64)?;
        }
        let batches = std::slice::from_ref(batch);
        self.append(&mut writer, &config, batches, context.now)
    }

    /// Appends batches that have their offsets already (gaps are fine). Their CRC was checked. All
    /// or none are refused.
    pub fn append_as_follower(
        &self,
        batches: &[Batch],
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        let config = self.config();
        let mut log_end_offset = self.log_end_offset();
        for batch in batches {
            let header = &batch.header;
            check_place(batch)?;
            if header.base_offset < log_end_offset {
                return Err(AppendError::UnexpectedOffset {
                    base_offset: header.base_offset,
                    log_end_offset,
                });
            }
            read_marker(batch)?;
            log_end_offset = header.next_offset();
        }
        self.append(&mut writer, &config, batches, now)
    }

    fn append(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        batches: &[Batch],
        now: TimestampMs,
    ) -> Result<Appended, AppendError> {
        if self.log_end.load(Ordering::SeqCst) < self.checkpointed.load(Ordering::SeqCst) {
            self.dir.core.write_recovery_points()?;
        }
        let base_offset = self.log_end_offset();
        let mut progress = Progress::default();
        // Batches that are written in one go end where a segment has to.
        let mut run_start = 0;
        let mut run_bytes = 0;
        for (at, batch) in batches.iter().enumerate() {
            let full = at - run_start == RUN_BATCHES_MAX;
            let roll = self.must_roll(config, &batches[run_start..=at], run_bytes, now)?;
            if full || roll {
                self.append_run(writer, config, &batches[run_start..at])?;
                (run_start, run_bytes) = (at, 0);
            }
            if roll {
                // Where the log ends, even if the batch starts later: recovery takes a gap between
                // new segments for a loss.
                let end = self.log_end_offset();
                let fits = batch.header.last_offset().0 - end.0 <= i64::from(i32::MAX);
                let base_offset = if fits { end } else { batch.header.base_offset };
                self.roll(writer, base_offset, now)?;
                progress.rolled = true;
            }
            run_bytes += batch.size_bytes() as u64;
        }
        self.append_run(writer, config, &batches[run_start..])?;
        let last = batches.last().map(|b| &b.header);
        let log_append_time = last
            .filter(|h| h.attributes.timestamp_type() == TimestampType::LogAppendTime)
            .map_or(TimestampMs::NONE, |h| h.max_timestamp);
        Ok(Appended {
            base_offset: batches
                .first()
                .map_or(base_offset, |b| b.header.base_offset),
            last_offset: last.map_or(base_offset.plus(-1), |h| h.last_offset()),
            log_start_offset: self.log_start_offset(),
            log_append_time,
            is_duplicate: false,
            rolled: progress.rolled,
            unflushed_records: writer.unflushed_records,
            leader_epoch: last.map_or(LeaderEpoch::NONE, |h| h.leader_epoch),
        })
    }

    /// Whether the last batch of `run` belongs into a new segment; `run_bytes` count those before.
    fn must_roll(
        &self,
        config: &LogConfig,
        run: &[Batch],
        run_bytes: u64,
        now: TimestampMs,
    ) -> Result<bool, LogError> {
        let Some(batch) = run.last() else {
            return Ok(false);
        };
        let (segment, is_index_full) = {
            let view = self.view.lock();
            let segment = *view.active();
            let is_full = view.pending.is_full(&segment, config.segment_index_bytes);
            (segment, is_full)
        };
        if segment.relative(batch.header.last_offset()).is_none() {
            return Ok(true);
        }
        let bytes = u64::from(segment.log_bytes) + run_bytes;
        if bytes == 0 {
            return Ok(false);
        }
        let limit = u64::from(config.segment_bytes.min(i32::MAX as u32));
        if is_index_full || bytes + batch.size_bytes() as u64 > limit {
            return Ok(true);
        }
        let first_timestamp = if segment.log_bytes == 0 {
            run[0].header.max_timestamp
        } else {
            self.first_timestamp(&segment)?
        };
        let waited_ms = if first_timestamp.0 >= 0 {
            batch
                .header
                .max_timestamp
                .0
                .saturating_sub(first_timestamp.0)
        } else {
            now.0.saturating_sub(segment.opened.0)
        };
        Ok(waited_ms > config.segment_ms_max() - self.jitter_ms(config, &segment))
    }

    /// Spreads the rolls of logs that were begun together. Always the same for a segment, so that
    /// no randomness is needed.
    fn jitter_ms(&self, config: &LogConfig, segment: &Segment) -> i64 {
        let jitter_ms = config.segment_jitter_ms.min(config.segment_ms_max());
        if jitter_ms <= 0 {
            return 0;
        }
        let name = self.topic_partition().to_string();
        let seed = crc32c::crc32c(name.as_bytes());
        let seed = crc32c::crc32c_append(seed, &segment.base_offset.0.to_be_bytes());
        i64::from(seed) % jitter_ms
    }

    pub(super) fn first_timestamp(&self, segment: &Segment) -> Result<TimestampMs, LogError> {
        if let Some(timestamp) = segment.first_timestamp {
            return Ok(timestamp);
        }
        let file = self.dir.open(segment, Kind::Log)?;
        let end = u64::from(segment.log_bytes);
        let mut scan = BatchScan::new(&*file, 0, end, Offset::ZERO, LOOKUP_BYTES);
        let first = self.dir.scanned(segment, scan.next_header())?;
        let timestamp = first.map_or(TimestampMs::NONE, |f| f.header.max_timestamp);
        let mut view = self.view.lock();
        let same = view
            .segments
            .iter_mut()
            .rev()
            .find(|s| s.key == segment.key);
        if let Some(same) = same {
            same.first_timestamp = Some(timestamp);
        }
        Ok(timestamp)
    }

    /// Ends the active segment and begins one at `base_offset`.
    pub(super) fn roll(
        &self,
        writer: &mut Writer,
        base_offset: Offset,
        now: TimestampMs,
    ) -> Result<(), LogError> {
        self.write_pending(true)?;
        // Before the snapshot is there; a roll before this one has set a lower bound.
        self.recovery_max
            .fetch_min(base_offset.0 - 1, Ordering::SeqCst);
        self.write_snapshot(writer, base_offset)?;
        writer.written_back_bytes = 0;
        let segment = Segment::new(base_offset, self.dir.core.files.new_key(), now);
        let mut view = self.view.lock();
        assert!(view.active().base_offset < base_offset, "segments ascend");
        view.segments.push(segment);
        view.tail.clear();
        view.pending = PendingIndex::default();
        Ok(())
    }

    /// Writes the producers as they are now, which is at `offset`.
    pub(super) fn write_snapshot(
        &self,
        writer: &mut Writer,
        offset: Offset,
    ) -> Result<(), LogError> {
        let bytes = producer_snapshot::to_bytes(&writer.producers);
        let path = self.dir.snapshot_file(offset);
        self.dir.core.write_file(&path, &bytes)?;
        writer.is_dir_dirty = true;
        Ok(())
    }

    fn append_run(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        run: &[Batch],
    ) -> Result<(), LogError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        assert!(
            first.header.base_offset >= self.log_end_offset(),
            "offsets ascend"
        );
        let segment = *self.view.lock().active();
        let file = self.dir.create(&segment, Kind::Log)?;
        if segment.log_bytes == 0 {
            writer.is_dir_dirty = true;
        }
        let position = u64::from(segment.log_bytes);
        self.dir.core.check_online()?;
        match write_run(&*file, run, position) {
            Err(error) if is_no_space(&error) => {
                return Err(self.take_back(&segment, &*file, error));
            }
            written => self.dir.change("write", &segment, Kind::Log, || written)?,
        }
        let mut aborted = Vec::new();
        for batch in run {
            // A marker that cannot be read was refused before.
            let marker = read_marker(batch).unwrap_or(None);
            let change = writer.producers.apply(&batch.header, marker);
            aborted.extend(self.apply_change(change, &batch.header, marker));
        }
        let txn_bytes = self.write_aborted(writer, &segment, &aborted)?;
        writer.gap_from = None;
        let records = last.header.next_offset().0 - self.log_end_offset().0;
        writer.unflushed_records += records;
        writer.uncheckpointed_bytes += run.iter().map(|b| b.size_bytes() as u64).sum::<u64>();
        let is_due = self.publish(run, config, txn_bytes);
        if is_due {
            self.write_pending(false)?;
        }
        self.start_write_back(writer, config, &*file);
        Ok(())
    }

    /// A write for which there was no space. Nothing of it was shown or counted, so the log is what
    /// it was once the file is: then producers are refused until there is space. Cutting a file
    /// needs none. If that fails too, the directory is offline.
    fn take_back(&self, segment: &Segment, file: &dyn File, error: io::Error) -> LogError {
        let cut = || {
            file.set_len(u64::from(segment.log_bytes))
                .map_err(|_| error)
        };
        match self.dir.change("write", segment, Kind::Log, cut) {
            Ok(()) => {
                self.dir.core.room.is_used_up();
                self.dir.core.full()
            }
            Err(error) => error,
        }
    }

    /// Keeps the open transactions up to date; the entry of the transaction index, if it is one.
    fn apply_change(
        &self,
        change: TxnChange,
        header: &BatchHeader,
        marker: Option<Marker>,
    ) -> Option<AbortedTxn> {
        if change == TxnChange::None {
            return None;
        }
        let mut view = self.view.lock();
        view.transactions.apply(change);
        aborted_txn(change, header, marker, view.transactions.first_ongoing())
    }

    fn write_aborted(
        &self,
        writer: &mut Writer,
        segment: &Segment,
        aborted: &[AbortedTxn],
    ) -> Result<u32, LogError> {
        if aborted.is_empty() {
            return Ok(0);
        }
        writer.is_dir_dirty |= segment.txn_index_bytes == 0;
        let bytes: Vec<u8> = aborted.iter().flat_map(|a| a.to_bytes()).collect();
        let file = self.dir.create(segment, Kind::TxnIndex)?;
        let position = u64::from(segment.txn_index_bytes);
        self.dir.change("write", segment, Kind::TxnIndex, || {
            file.write_at(&mut [IoSlice::new(&bytes)], position)
        })?;
        Ok(bytes.len() as u32)
    }

    /// Shows the run, which is written, to readers. Whether index entries are to be written.
    fn publish(&self, run: &[Batch], config: &LogConfig, txn_bytes: u32) -> bool {
        let mut view = self.view.lock();
        let view = &mut *view;
        let segment = view.segments.last_mut().expect("a log has a segment");
        segment.txn_index_bytes += txn_bytes;
        for batch in run {
            let header = &batch.header;
            let position = segment.log_bytes;
            view.epochs.assign(header.leader_epoch, header.base_offset);
            let interval_bytes = config.index_interval_bytes;
            view.pending.add(segment, header, position, interval_bytes);
            push_tail(&mut view.tail, segment, header, position);
            segment.log_bytes += header.size_bytes() as u32;
            self.log_end.store(header.next_offset().0, Ordering::SeqCst);
        }
        view.pending.is_due()
    }

    /// Writes the index entries that wait; `is_last`: the segment, or the log, is done.
    pub(super) fn write_pending(&self, is_last: bool) -> Result<(), LogError> {
        let (segment, offsets, times) = {
            let mut view = self.view.lock();
            let segment = *view.active();
            if is_last {
                view.pending.add_time(&segment);
            }
            let offsets: Vec<u8> = view
                .pending
                .offsets
                .iter()
                .flat_map(|e| e.to_bytes())
                .collect();
            let times: Vec<u8> = view
                .pending
                .times
                .iter()
                .flat_map(|e| e.to_bytes())
                .collect();
            (segment, offsets, times)
        };
        let write = |kind, bytes: &[u8], position: u32| {
            // Kafka's tools expect the files to be there, be they empty.
            if bytes.is_empty() && (!is_last || segment.log_bytes == 0) {
                return Ok(());
            }
            let file = self.dir.create(&segment, kind)?;
            self.dir.change("write", &segment, kind, || {
                file.write_at(&mut [IoSlice::new(bytes)], u64::from(position))
            })
        };
        write(Kind::OffsetIndex, &offsets, segment.offset_index_bytes)?;
        write(Kind::TimeIndex, &times, segment.time_index_bytes)?;
        let mut view = self.view.lock();
        view.pending.offsets = Vec::new();
        view.pending.times = Vec::new();
        let active = view.active_mut();
        active.offset_index_bytes += offsets.len() as u32;
        active.time_index_bytes += times.len() as u32;
        Ok(())
    }

    /// Asks for write-back of the appended bytes in even pieces: a burst of dirty pages would make
    /// a later write wait for all of them.
    fn start_write_back(&self, writer: &mut Writer, config: &LogConfig, file: &dyn File) {
        let log_bytes = self.view.lock().active().log_bytes;
        let dirty_bytes = log_bytes.saturating_sub(writer.written_back_bytes);
        if config.write_back_bytes > 0 && dirty_bytes >= config.write_back_bytes {
            // A hint: a file system that does not know it loses nothing.
            let position = u64::from(writer.written_back_bytes);
            let _ = file.start_write_back(position, u64::from(dirty_bytes));
            writer.written_back_bytes = log_bytes;
        }
    }
}

fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// One vectored write.
fn write_run(file: &dyn File, run: &[Batch], position: u64) -> io::Result<()> {
    if let [batch] = run {
        let header = batch.header.to_bytes();
        let mut parts = [IoSlice::new(&header), IoSlice::new(&batch.body)];
        return file.write_at(&mut parts, position);
    }
    let headers: Vec<[u8; HEADER_BYTES]> = run.iter().map(|b| b.header.to_bytes()).collect();
    let mut parts: Vec<_> = headers
        .iter()
        .zip(run)
        .flat_map(|(h, b)| [IoSlice::new(h), IoSlice::new(&b.body)])
        .collect();
    file.write_at(&mut parts, position)
}

fn push_tail(tail: &mut Tail, segment: &Segment, header: &BatchHeader, position: u32) {
    if let (Some(base), Some(last)) = (
        segment.relative(header.base_offset),
        segment.relative(header.last_offset()),
    ) {
        tail.push(TailEntry {
            base,
            last,
            position,
        });
    }
}

/// The entry of the transaction index that a batch brings; `first_ongoing` is without its own.
pub(super) fn aborted_txn(
    change: TxnChange,
    header: &BatchHeader,
    marker: Option<Marker>,
    first_ongoing: Option<Offset>,
) -> Option<AbortedTxn> {
    let TxnChange::Ended {
        first_offset,
        last_offset,
    } = change
    else {
        return None;
    };
    let is_abort = marker.is_some_and(|m| m.marker_type == MarkerType::Abort);
    is_abort.then(|| AbortedTxn {
        producer_id: header.producer_id,
        first_offset,
        last_offset,
        last_stable_offset: first_ongoing.unwrap_or(last_offset.next()),
    })
}

/// The content of a transaction's end marker; `None` if the batch is none.
pub(super) fn read_marker(batch: &Batch) -> Result<Option<Marker>, AppendError> {
    if !batch.header.attributes.is_control() || !batch.header.has_producer_id() {
        return Ok(None);
    }
    match batch.records().next() {
        Some(Ok(record)) => Ok(Marker::read(&record)),
        _ => Err(AppendError::Malformed {
            base_offset: batch.header.base_offset,
            reason: "a control batch without a control record",
        }),
    }
}

/// What must hold for a batch to have a place in a segment.
fn check_place(batch: &Batch) -> Result<(), AppendError> {
    let header = &batch.header;
    assert_eq!(header.size_bytes(), batch.size_bytes(), "a batch is whole");
    let delta = i64::from(header.last_offset_delta);
    let last_offset = header.base_offset.0.checked_add(delta);
    let reason = if header.base_offset < Offset::ZERO || delta < 0 {
        "its offsets are negative"
    } else if last_offset.is_none_or(|o| o == i64::MAX) {
        "its offsets are too large"
    } else if header.size_bytes() > i32::MAX as usize {
        "it is too large for any segment"
    } else {
        return Ok(());
    };
    Err(AppendError::Malformed {
        base_offset: header.base_offset,
        reason,
    })
}
