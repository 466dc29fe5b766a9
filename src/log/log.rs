//! One partition's log. Here is its state; what is done with it lives in `append`, `read`,
//! `timestamps`, `truncate`, `flush`, `retention` and `recovery`.
//!
//! Locks, in the order they are taken:
//!
//! 1. `flushing`: held by flush, truncation, retention, replacing and close, over slow calls.
//!    Nobody else waits for it.
//! 2. `swapping`: held while a compacted segment gets its names. A reader that finds a file missing
//!    waits for it, and holds no other lock then.
//! 3. `writer`: held by an append over its one write. Readers never take it.
//! 4. `view`: held for moments, never over a call to the disk.
//!
//! Invariants:
//!
//! 1. `log_start_offset <= log_end_offset`, `recovery_point <= log_end_offset`.
//! 2. There is at least one segment; base offsets ascend; the last one is active.
//! 3. Everything that `view` shows is in the files, but for the pending index entries.
//! 4. After a failed write the directory is offline and the state is not used any more.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::host::File;
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::types::{TopicId, TopicPartition};

use super::config::LogConfig;
use super::epochs::Epochs;
use super::error::LogError;
use super::partition_dir::PartitionDir;
use super::producer_state::{OpenTransactions, Producers};
use super::segment::{PendingIndex, Segment, Tail};

/// Who wrote a batch, and so which of its fields are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A producer: sequences and epochs are checked, repeats are answered.
    Client,
    /// A producer within a transaction that was verified (KIP-890).
    Transaction(Verified),
    /// A coordinator of this broker (also transaction markers): epochs are checked.
    Coordinator,
    /// WriteTxnMarkers with transaction version 2: an equal producer epoch is refused too.
    MarkerV2,
}

impl Origin {
    pub(super) fn is_client(self) -> bool {
        matches!(self, Origin::Client | Origin::Transaction(_))
    }
}

/// The coordinator has said that the transaction is open. Holds for as long as no marker of the
/// producer is appended after `guard` was taken, which must be before the coordinator is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    pub guard: VerificationGuard,
    /// Transactions v2: a producer that is not known here starts with sequence 0, and the guard
    /// is of no use: each transaction has an epoch of its own.
    pub starts_at_zero: bool,
}

/// How many markers of a producer this log has taken in since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerificationGuard(pub(super) u32);

/// What a log knows of a producer's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerTxn {
    pub guard: VerificationGuard,
    /// NONE: the producer is not known here.
    pub producer_epoch: ProducerEpoch,
    pub is_open: bool,
    /// Nothing of the present epoch was appended but a marker.
    pub ends_with_marker: bool,
}

/// What an append as leader needs besides the batch.
#[derive(Debug, Clone, Copy)]
pub struct AppendContext {
    pub leader_epoch: LeaderEpoch,
    pub origin: Origin,
    pub now: TimestampMs,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub log_start_offset: Offset,
    /// The batch's max timestamp if it carries the broker's time or is a duplicate, else NONE.
    pub log_append_time: TimestampMs,
    /// The batch was in the log already, at `base_offset`; nothing was written.
    pub is_duplicate: bool,
    /// A new segment was begun: flush soon (aside), so that recovery stays short.
    pub rolled: bool,
    /// Records since the last flush, for `flush.messages`.
    pub unflushed_records: i64,
    /// Of the leader who gave the offsets.
    pub leader_epoch: LeaderEpoch,
}

/// A run of batches in one segment's file. A truncation may cut the file shorter while the slice is
/// on its way; whoever sends it must cope with fewer bytes than `len`.
#[derive(Clone)]
pub struct LogSlice {
    /// `None` when `len` is 0.
    pub file: Option<Arc<dyn File>>,
    pub position: u64,
    /// Bytes. The last batch may be cut.
    pub len: u32,
    /// Bytes that a reader without a limit would have got from this segment: `len` or more.
    pub available: u32,
    /// Of the segment.
    pub segment_base_offset: Offset,
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
}

/// Where a timestamp was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    pub timestamp: TimestampMs,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
}

/// The state of one producer, for DescribeProducers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveProducer {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub last_sequence: i32,
    pub last_timestamp: TimestampMs,
    pub coordinator_epoch: i32,
    pub current_txn_start_offset: Option<Offset>,
}

/// Files that are out of the log and may be removed from `due` on (`LogDir::remove`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub due: TimestampMs,
    pub paths: Vec<PathBuf>,
}

/// What only the one who appends needs.
#[derive(Debug)]
pub(super) struct Writer {
    pub producers: Producers,
    /// Up to where write-back of the active segment was started.
    pub written_back_bytes: u32,
    pub unflushed_records: i64,
    pub uncheckpointed_bytes: u64,
    /// Names in the directory are not durable yet.
    pub is_dir_dirty: bool,
    /// The directory's own name is not durable yet.
    pub is_parent_dirty: bool,
    /// The directory was given another name, and its parent was not synced since.
    pub is_renamed: bool,
    /// The base offset of the first segment whose indexes are not synced.
    pub unsynced_from: Offset,
    /// Where the last batch ends, if the log was cut between two batches that leave a gap. What is
    /// above is not in the files.
    pub gap_from: Option<Offset>,
    /// Producer snapshots that are not at a segment's base offset, ascending.
    pub snapshots: Vec<Offset>,
    pub is_closed: bool,
    /// Leaders of older epochs append nothing any more.
    pub fenced_below: LeaderEpoch,
}

impl Writer {
    pub fn new(producers: Producers, snapshots: Vec<Offset>, unsynced_from: Offset) -> Writer {
        Writer {
            producers,
            written_back_bytes: 0,
            unflushed_records: 0,
            uncheckpointed_bytes: 0,
            is_dir_dirty: false,
            is_parent_dirty: false,
            is_renamed: false,
            unsynced_from,
            gap_from: None,
            snapshots,
            is_closed: false,
            fenced_below: LeaderEpoch::NONE,
        }
    }
}

/// What readers see.
#[derive(Debug)]
pub(super) struct View {
    /// Never empty.
    pub segments: Vec<Segment>,
    pub tail: Tail,
    pub pending: PendingIndex,
    pub transactions: OpenTransactions,
    pub epochs: Epochs,
}

impl View {
    pub fn new(segments: Vec<Segment>, epochs: Epochs, producers: &Producers) -> View {
        assert!(!segments.is_empty(), "a log has a segment");
        View {
            segments,
            tail: Tail::default(),
            pending: PendingIndex::default(),
            transactions: OpenTransactions::of(producers),
            epochs,
        }
    }

    pub fn active(&self) -> &Segment {
        self.segments.last().expect("a log has a segment")
    }

    pub fn active_mut(&mut self) -> &mut Segment {
        self.segments.last_mut().expect("a log has a segment")
    }

    /// The place of the segment that holds `offset`, if any does.
    pub fn segment_of(&self, offset: Offset) -> Option<usize> {
        let above = self.segments.partition_point(|s| s.base_offset <= offset);
        above.checked_sub(1)
    }

    /// Where the segment after this one starts; the log's end after the last.
    pub fn next_base_offset(&self, index: usize, log_end_offset: Offset) -> Offset {
        let next = self.segments.get(index + 1);
        next.map_or(log_end_offset, |s| s.base_offset)
    }
}

/// One partition's log. All methods may be called from any thread.
pub struct Log {
    pub(super) dir: PartitionDir,
    topic_id: TopicId,
    config: RwLock<Arc<LogConfig>>,
    pub(super) flushing: Mutex<()>,
    /// Held while files change their names under the readers (`replace`).
    pub(super) swapping: Mutex<()>,
    pub(super) writer: Mutex<Writer>,
    pub(super) view: Mutex<View>,
    pub(super) log_start: AtomicI64,
    pub(super) log_end: AtomicI64,
    pub(super) recovery: AtomicI64,
    /// The highest recovery point that may be written to disk. Below the log's end only between a
    /// roll and the next flush: at the base offset of a new segment is a producer snapshot, which
    /// the recovery point must not reach before the indexes of the old segment are synced.
    pub(super) recovery_max: AtomicI64,
    /// The highest recovery point that may be on disk (`DirCore::write_recovery_points`).
    pub(super) checkpointed: AtomicI64,
    /// The line on disk that is not to be changed; -1: it is.
    pub(super) held_point: AtomicI64,
    /// How often the log was cut. What a compaction has read is not to replace what came after.
    pub(super) cuts: AtomicU64,
    /// Compaction has seen what lies below; -1: nothing.
    clean_point: AtomicI64,
}

/// The offsets a log is opened with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    pub log_start: Offset,
    pub log_end: Offset,
    pub recovery_point: Offset,
}

impl Log {
    pub(super) fn new(
        dir: PartitionDir,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        (writer, view): (Writer, View),
        offsets: Offsets,
    ) -> Log {
        Log {
            dir,
            topic_id,
            config: RwLock::new(config),
            flushing: Mutex::new(()),
            swapping: Mutex::new(()),
            writer: Mutex::new(writer),
            view: Mutex::new(view),
            log_start: AtomicI64::new(offsets.log_start.0),
            log_end: AtomicI64::new(offsets.log_end.0),
            recovery: AtomicI64::new(offsets.recovery_point.0),
            recovery_max: AtomicI64::new(i64::MAX),
            checkpointed: AtomicI64::new(offsets.recovery_point.0),
            held_point: AtomicI64::new(-1),
            cuts: AtomicU64::new(0),
            clean_point: AtomicI64::new(Offset::NONE.0),
        }
    }

    pub fn topic_partition(&self) -> &TopicPartition {
        &self.dir.topic_partition
    }

    /// From `partition.metadata`; the nil id if that file is missing.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    pub fn log_start_offset(&self) -> Offset {
        Offset(self.log_start.load(Ordering::SeqCst))
    }

    pub fn log_end_offset(&self) -> Offset {
        Offset(self.log_end.load(Ordering::SeqCst))
    }

    /// What lies below is flushed.
    pub fn recovery_point(&self) -> Offset {
        Offset(self.recovery.load(Ordering::SeqCst))
    }

    /// Compaction has seen what lies below; -1: nothing.
    pub(super) fn clean_point(&self) -> Offset {
        Offset(self.clean_point.load(Ordering::SeqCst))
    }

    pub(super) fn set_clean_point(&self, offset: Offset) {
        self.clean_point.store(offset.0, Ordering::SeqCst);
    }

    /// The log's end was cut to `offset`; under the writer's lock.
    pub(super) fn note_cut(&self, offset: Offset) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        self.clean_point.fetch_min(offset.0, Ordering::SeqCst);
    }

    /// Of the batches, without the indexes.
    pub fn size_bytes(&self) -> u64 {
        let view = self.view.lock();
        view.segments.iter().map(|s| u64::from(s.log_bytes)).sum()
    }

    /// Appended since the last checkpoint: about what recovery would have to read.
    pub fn uncheckpointed_bytes(&self) -> u64 {
        self.writer.lock().uncheckpointed_bytes
    }

    pub fn segment_count(&self) -> usize {
        self.view.lock().segments.len()
    }

    pub fn first_segment_offset(&self) -> Offset {
        self.view.lock().segments[0].base_offset
    }

    pub fn config(&self) -> Arc<LogConfig> {
        Arc::clone(&self.config.read())
    }

    pub fn update_config(&self, config: Arc<LogConfig>) {
        *self.config.write() = config;
    }

    /// The first offset of a transaction that is open, or whose marker is at or above
    /// `high_watermark`.
    pub fn first_unstable_offset(&self, high_watermark: Offset) -> Option<Offset> {
        self.view.lock().transactions.first_unstable(high_watermark)
    }

    /// The smaller of the high watermark and the first unstable offset.
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        let first_unstable = self.first_unstable_offset(high_watermark);
        first_unstable.map_or(high_watermark, |o| o.min(high_watermark))
    }

    /// Where its files are.
    pub fn path(&self) -> PathBuf {
        self.dir.path()
    }

    /// The newest epoch in the log.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.view.lock().epochs.latest()
    }

    /// Notes that `epoch` starts at the end of the log (on becoming leader), which it returns.
    /// Appends of earlier leaders are refused from now on.
    pub fn assign_epoch_at_end(&self, epoch: LeaderEpoch) -> Offset {
        let mut writer = self.writer.lock();
        writer.fenced_below = writer.fenced_below.max(epoch);
        let end = self.log_end_offset();
        self.view.lock().epochs.assign(epoch, end);
        end
    }

    /// Refuses appends as leader of an epoch before `epoch` from now on; one that is under way is
    /// waited for.
    pub fn fence(&self, epoch: LeaderEpoch) {
        let mut writer = self.writer.lock();
        writer.fenced_below = writer.fenced_below.max(epoch);
    }

    /// OffsetForLeaderEpoch: the newest epoch not above `epoch` and where it ends; `None` where
    /// Kafka answers -1 and -1.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        let view = self.view.lock();
        view.epochs.end_offset_for(epoch, self.log_end_offset())
    }

    /// The epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.view.lock().epochs.epoch_at(offset)
    }

    /// The epoch of the last record, also of one that retention has removed since; `None` if there
    /// never was one.
    pub fn last_record_epoch(&self) -> Option<LeaderEpoch> {
        let end = self.log_end_offset();
        if end == Offset::ZERO {
            return None;
        }
        // With the records their epochs go, but for the last one.
        let of_last = self.epoch_at(end.plus(-1));
        let is_emptied = self.log_start_offset() == end;
        of_last.or_else(|| self.latest_epoch().filter(|_| is_emptied))
    }

    /// Forgets producers that were quiet for `producer.id.expiration.ms`; how many.
    pub fn expire_producers(&self, now: TimestampMs) -> usize {
        let expiration_ms = self.config().producer_id_expiration_ms;
        self.writer.lock().producers.expire(now, expiration_ms)
    }

    /// What is known of a producer's transaction in this partition.
    pub fn producer_txn(&self, producer_id: ProducerId) -> ProducerTxn {
        self.writer.lock().producers.transaction_of(producer_id)
    }

    /// By producer id.
    pub fn active_producers(&self) -> Vec<ActiveProducer> {
        let writer = self.writer.lock();
        let mut active: Vec<_> = writer
            .producers
            .iter()
            .map(|(producer_id, producer)| ActiveProducer {
                producer_id,
                producer_epoch: producer.epoch,
                last_sequence: producer.last_batch().map_or(-1, |b| b.last_sequence),
                last_timestamp: producer.last_timestamp,
                coordinator_epoch: producer.coordinator_epoch,
                current_txn_start_offset: producer.current_txn_first_offset,
            })
            .collect();
        active.sort_by_key(|p| p.producer_id);
        active
    }

    /// Refuses what comes after a clean stop, a deletion or a failed write.
    pub(super) fn check_open(&self, writer: &Writer) -> Result<(), LogError> {
        self.dir.core.check_online()?;
        if writer.is_closed {
            return Err(LogError::Closed {
                topic_partition: self.topic_partition().clone(),
            });
        }
        Ok(())
    }

    /// Its directory was just made: the first flush makes that durable.
    pub(super) fn mark_new(&self) {
        let mut writer = self.writer.lock();
        writer.is_dir_dirty = true;
        writer.is_parent_dirty = true;
    }

    /// Deleted: waits for what is going on, and lets nothing follow.
    pub(super) fn stop(&self) {
        let _flushing = self.flushing.lock();
        self.writer.lock().is_closed = true;
    }

    /// Lets the open files go. Readers that have one go on with it.
    pub(super) fn forget_files(&self) {
        for segment in &self.view.lock().segments {
            self.dir.core.files.remove(segment.key);
        }
    }

    /// Until it is known whose log this is, the checkpoint is to say what it said: of the log that
    /// belongs here. To be called before anything is appended.
    pub fn hold_recovery_point(&self) {
        let on_disk = self.checkpointed.load(Ordering::SeqCst);
        self.held_point.store(on_disk, Ordering::SeqCst);
    }

    pub fn release_recovery_point(&self) {
        self.held_point.store(-1, Ordering::SeqCst);
    }

    /// See `DirCore::write_recovery_points`.
    pub(super) fn announce_recovery_point(&self) -> Offset {
        let held = self.held_point.load(Ordering::SeqCst);
        if held >= 0 {
            return Offset(held);
        }
        let max = self.recovery_max.load(Ordering::SeqCst);
        let point = self.recovery.load(Ordering::SeqCst).min(max);
        self.checkpointed.fetch_max(point, Ordering::SeqCst);
        Offset(point.min(self.recovery.load(Ordering::SeqCst)))
    }

    pub(super) fn recovery_point_is_on_disk(&self, point: Offset) {
        self.checkpointed.store(point.0, Ordering::SeqCst);
    }
}
