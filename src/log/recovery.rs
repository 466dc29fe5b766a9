//! Opens a partition's directory.
//!
//! Which files are kept is decided by the table in `inventory`; what of their content is trusted,
//! here. `S` is the newest whole producer snapshot at or below the recovery point; where there is
//! none, the log's first segment.
//!
//! ```text
//! stop    where                         decision
//! ------- ----------------------------- ----------------------------------------------------
//! clean   all segments                  trusted; the end is found from the last index entry
//! clean   indexes damaged               made anew from the log
//! clean   end of the active segment     a batch that is none: as after a crash
//! crash   segments that end below S     trusted
//! crash   batches below S               trusted, and so are index entries below S
//! crash   batches from S on             read, checksum and all; indexes, epochs, producers and
//!                                       transaction index made anew from them
//! crash   first batch that is wrong     the log ends there; later segments are removed
//! crash   a gap between segments, above  the end of the one was lost, the log ends there; later
//!         the recovery point            segments are removed
//! any     log ends below the recovery   not opened, and nothing of it is cut: flushed records are
//!         point                         gone, and what is left is the operator's to judge
//! any     flushed records are gone      the same (`seams` has the signs)
//!         below that
//! any     snapshot above the end        removed
//! any     epoch at or after the end     removed; that of an empty log's end is kept
//! any     log start above the end       everything is removed; the log starts, empty, there
//! ```
//!
//! A gap below the recovery point may be the work of a compaction; `seams` tells. Above there is
//! none, as compaction works on what is flushed, and a new segment starts where the one before
//! ends: unless the system wrote a later file back and not the earlier one.
//!
//! Why index entries below S are good: the snapshot was written after them, and the recovery point
//! passed it only when all were synced. A crash during recovery changes nothing of that: it removes
//! only what is above S, and what it writes counts only once a later checkpoint has synced it.

use std::sync::Arc;

use crate::types::{Offset, TimestampMs, TopicId};

use super::config::LogConfig;
use super::epochs::Epochs;
use super::error::LogError;
use super::inventory::{Inventory, SegmentFiles};
use super::log::{Log, Offsets, View, Writer};
use super::names::{self, Kind};
use super::partition_dir::PartitionDir;
use super::producer_snapshot;
use super::replay::Replay;
use super::seams;
use super::segment::{PendingIndex, Segment};
use super::swap::finish_swaps;

/// What is known about a partition before its directory is looked at.
pub(super) struct Opening {
    pub topic_id: TopicId,
    pub config: Arc<LogConfig>,
    pub now: TimestampMs,
    pub is_clean: bool,
    /// It has a line in `cleaner-offset-checkpoint`.
    pub was_cleaned: bool,
    /// Its topic is, and so whether that is compacted.
    pub is_known: bool,
    /// From the checkpoints; zero if they have no line.
    pub recovery_point: Offset,
    pub log_start: Offset,
}

impl Opening {
    /// Whether its offsets may have gaps.
    pub fn may_be_compacted(&self) -> bool {
        self.config.compact || self.was_cleaned || !self.is_known
    }
}

/// What was done to open it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effort {
    pub recovered_bytes: u64,
    pub truncated_bytes: u64,
}

/// A log in the making.
pub(super) struct Opener<'a> {
    pub dir: &'a PartitionDir,
    pub opening: &'a Opening,
    pub segments: Vec<Segment>,
    pub snapshots: Vec<Offset>,
    pub epochs: Epochs,
    pub pending: PendingIndex,
    pub effort: Effort,
    /// The base offset of the first segment whose indexes were made anew.
    pub made_from: Option<Offset>,
}

/// Opens, and where it must be recovers, the log in `dir`.
pub(super) fn open(dir: PartitionDir, opening: &Opening) -> Result<(Log, Effort), LogError> {
    let inventory = take_inventory(&dir)?;
    let epochs = read_epochs(&dir)?;
    seams::check(&dir, opening, &inventory, &epochs)?;
    for name in &inventory.remove {
        dir.core.remove_if_there(&dir.file(name))?;
    }
    let mut opener = Opener {
        dir: &dir,
        opening,
        segments: Vec::new(),
        snapshots: inventory.snapshots.clone(),
        epochs,
        pending: PendingIndex::default(),
        effort: Effort::default(),
        made_from: None,
    };
    for files in &inventory.segments {
        let segment = opener.segment(files)?;
        opener.segments.push(segment);
    }
    let damaged: Vec<Offset> = inventory
        .segments
        .iter()
        .filter(|s| s.is_index_damaged)
        .map(|s| s.base_offset)
        .collect();
    let (replay, log_end) = opener.run(&damaged)?;
    let Opener {
        segments,
        snapshots,
        epochs,
        pending,
        effort,
        made_from,
        ..
    } = opener;
    let first = segments[0].base_offset;
    let log_start = opening.log_start.max(first);
    let active = segments[segments.len() - 1].base_offset;
    let unsynced_from = made_from.map_or(active, |m| m.min(active));
    let strays = strays(&snapshots, &segments);
    let mut writer = Writer::new(replay.producers, strays, unsynced_from);
    writer.uncheckpointed_bytes = effort.recovered_bytes;
    writer.is_dir_dirty = effort != Effort::default();
    let mut view = View::new(segments, epochs, &writer.producers);
    view.transactions = replay.transactions;
    view.pending = pending;
    // What an empty log begins with says when it was begun.
    let is_empty = log_start == log_end;
    view.epochs.truncate_from_end(match is_empty {
        true => log_end.plus(1),
        false => log_end,
    });
    view.epochs.truncate_from_start(log_start);
    let offsets = Offsets {
        log_start,
        log_end,
        recovery_point: opening.recovery_point,
    };
    let config = Arc::clone(&opening.config);
    let log = Log::new(dir, opening.topic_id, config, (writer, view), offsets);
    Ok((log, effort))
}

fn take_inventory(dir: &PartitionDir) -> Result<Inventory, LogError> {
    let list = || {
        let path = dir.path();
        let entries = dir.core.disk.list(&path);
        entries.map_err(|e| dir.core.read_failed(&path, e))
    };
    let mut inventory = Inventory::of(&list()?);
    if !inventory.swaps.is_empty() {
        finish_swaps(dir, &inventory)?;
        inventory = Inventory::of(&list()?);
        // What a swap replaces may have left its indexes, and Kafka's may end below them.
        inventory.emptied.clear();
    }
    Ok(inventory)
}

fn read_epochs(dir: &PartitionDir) -> Result<Epochs, LogError> {
    let path = dir.file(names::LEADER_EPOCH_CHECKPOINT);
    let Some(content) = dir.core.read_if_there(&path)? else {
        return Ok(Epochs::default());
    };
    Epochs::parse(&content).ok_or(LogError::Corrupt {
        path,
        position: 0,
        reason: "not a leader epoch checkpoint",
    })
}

/// The snapshots that belong to no segment.
fn strays(snapshots: &[Offset], segments: &[Segment]) -> Vec<Offset> {
    let is_stray = |s: &&Offset| {
        segments
            .binary_search_by_key(*s, |g| g.base_offset)
            .is_err()
    };
    snapshots.iter().filter(is_stray).copied().collect()
}

impl Opener<'_> {
    fn segment(&self, files: &SegmentFiles) -> Result<Segment, LogError> {
        let key = self.dir.core.files.new_key();
        let mut segment = Segment::new(files.base_offset, key, self.opening.now);
        if files.log_bytes > i32::MAX as u64 {
            return Err(LogError::Corrupt {
                path: self.dir.segment_file(files.base_offset, Kind::Log),
                position: i32::MAX as u64,
                reason: "a segment of more than 2 GiB",
            });
        }
        segment.log_bytes = files.log_bytes as u32;
        if !files.is_index_damaged {
            segment.offset_index_bytes = files.offset_index_bytes as u32;
            segment.time_index_bytes = files.time_index_bytes as u32;
            segment.txn_index_bytes = files.txn_index_bytes as u32;
        }
        if segment.log_bytes > 0 {
            segment.max_timestamp = None;
        }
        Ok(segment)
    }

    /// Finds the end, repairs what has to be.
    fn run(&mut self, damaged: &[Offset]) -> Result<(Replay, Offset), LogError> {
        if self.segments.is_empty() {
            self.check_end(self.opening.log_start)?;
            return self.restart();
        }
        let opened = if self.opening.is_clean {
            self.open_clean(damaged)?
        } else {
            None
        };
        let (replay, log_end) = match opened {
            Some(opened) => opened,
            None => self.recover(damaged)?,
        };
        self.check_end(log_end)?;
        if self.opening.log_start > log_end {
            return self.restart_above(log_end);
        }
        self.drop_snapshots_above(log_end)?;
        Ok((replay, log_end))
    }

    /// Truncation lowers the recovery point before it cuts, so no crash leaves it above the end.
    fn check_end(&self, log_end: Offset) -> Result<(), LogError> {
        let recovery_point = self.opening.recovery_point;
        match log_end < recovery_point {
            true => Err(LogError::FlushedRecordsGone {
                path: self.dir.path(),
                log_end,
                recovery_point,
            }),
            false => Ok(()),
        }
    }

    /// Records below the log start were deleted by request, and the end of the log was lost with
    /// the system's memory, or lay in a gap.
    fn restart_above(&mut self, log_end: Offset) -> Result<(Replay, Offset), LogError> {
        let log_start = self.opening.log_start;
        tracing::warn!(
            dir = %self.dir.path().display(), %log_end, %log_start,
            "the log ends below its log start offset (log-start-offset-checkpoint): what is left \
             was deleted by request, and is removed"
        );
        self.restart()
    }

    /// An empty log that starts at the log start offset.
    fn restart(&mut self) -> Result<(Replay, Offset), LogError> {
        self.drop_segments_from(0)?;
        self.drop_snapshots_above(Offset(-1))?;
        let base_offset = self.opening.log_start;
        let key = self.dir.core.files.new_key();
        let segment = Segment::new(base_offset, key, self.opening.now);
        self.segments = vec![segment];
        self.pending = PendingIndex::default();
        if base_offset > Offset::ZERO {
            // Its name says where the log starts.
            self.dir.create(&segment, Kind::Log)?;
        }
        let replay = self.replay_from(Offset(-1))?;
        Ok((replay, base_offset))
    }

    fn replay_from(&self, up_to: Offset) -> Result<Replay, LogError> {
        let expiration = (
            self.opening.now,
            self.opening.config.producer_id_expiration_ms,
        );
        Replay::from_snapshot(self.dir, &self.snapshots, up_to, expiration)
    }

    /// `None`: the end of the log is not as a clean stop leaves it.
    fn open_clean(&mut self, damaged: &[Offset]) -> Result<Option<(Replay, Offset)>, LogError> {
        let at = self.segments.len() - 1;
        self.rebuild_indexes(damaged, at)?;
        let active = self.segments[at];
        if damaged.contains(&active.base_offset) {
            return Ok(None);
        }
        let taken = match self.dir.take_up(&active) {
            Ok(taken) => taken,
            Err(LogError::Corrupt { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        self.segments[at] = taken.segment;
        self.pending = taken.pending;
        let log_end = taken.end.unwrap_or(active.base_offset);
        let mut replay = self.replay_from(log_end)?;
        let start = self.segments[0].base_offset.max(self.opening.log_start);
        if replay.from.is_none_or(|f| f < log_end) {
            replay.segments(self.dir, &self.segments, start)?;
        }
        Ok(Some((replay, log_end)))
    }

    /// Makes the indexes anew of those segments below `before` that lost them.
    fn rebuild_indexes(&mut self, damaged: &[Offset], before: usize) -> Result<(), LogError> {
        for at in 0..before {
            if damaged.contains(&self.segments[at].base_offset) {
                // Aborted transactions may have begun before: the state there is needed.
                let base_offset = self.segments[at].base_offset;
                let mut replay = self.replay_from(base_offset)?;
                let start = self.segments[0].base_offset;
                replay.segments(self.dir, &self.segments[..at], start)?;
                replay.from = None;
                let epochs = self.epochs.clone();
                let (end, is_cut) = self.recover_segment(at, None, &mut replay)?;
                self.epochs = epochs;
                self.sync_indexes(at)?;
                if is_cut {
                    return Err(LogError::Corrupt {
                        path: self.dir.segment_file(base_offset, Kind::Log),
                        position: u64::from(self.segments[at].log_bytes),
                        reason: "a batch that was flushed is damaged",
                    });
                }
                tracing::info!(
                    "{}: made the indexes up to {end} anew",
                    self.dir.topic_partition
                );
            }
        }
        Ok(())
    }

    /// What lies below a snapshot is trusted the next time.
    fn sync_indexes(&self, at: usize) -> Result<(), LogError> {
        let segment = &self.segments[at];
        for kind in [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex] {
            if *segment.clone().bytes_mut(kind) > 0 {
                let file = self.dir.open(segment, kind)?;
                self.dir.change("sync", segment, kind, || file.sync())?;
            }
        }
        self.dir.core.sync_dir(&self.dir.path())
    }

    fn recover(&mut self, damaged: &[Offset]) -> Result<(Replay, Offset), LogError> {
        let (mut replay, first) = self.find_start(damaged)?;
        let snapshot = replay.from;
        self.rebuild_indexes(damaged, first)?;
        let log_end = self.recover_from(first, snapshot, &mut replay)?;
        Ok((replay, log_end))
    }

    /// The state to begin with, and the segment to begin in. A segment that lost its indexes is
    /// read from its start, so the state of its start is needed.
    fn find_start(&self, damaged: &[Offset]) -> Result<(Replay, usize), LogError> {
        let mut up_to = self.opening.recovery_point;
        loop {
            let replay = self.replay_from(up_to)?;
            let start = replay.from.unwrap_or(Offset::ZERO);
            let first = self.segments.partition_point(|s| s.base_offset <= start);
            let first = first.saturating_sub(1);
            let base_offset = self.segments[first].base_offset;
            if start <= base_offset || !damaged.contains(&base_offset) {
                return Ok((replay, first));
            }
            up_to = base_offset;
        }
    }

    fn recover_from(
        &mut self,
        first: usize,
        snapshot: Option<Offset>,
        replay: &mut Replay,
    ) -> Result<Offset, LogError> {
        // Those above were written, perhaps, ahead of what the log really has.
        self.drop_snapshots_above(snapshot.unwrap_or(Offset(-1)))?;
        // Of records that retention has removed only the file has the epochs.
        let read_from = self.segments[first].base_offset;
        self.epochs
            .truncate_from_end(snapshot.map_or(read_from, |offset| offset.max(read_from)));
        let mut log_end = Offset::ZERO;
        for at in first..self.segments.len() {
            let base_offset = self.segments[at].base_offset;
            let from = snapshot.filter(|s| at == first && *s > base_offset);
            if at > first && base_offset > log_end && log_end >= self.opening.recovery_point {
                let name = &self.dir.topic_partition;
                tracing::warn!(
                    "{name}: cut at {log_end}: what follows up to {base_offset} is lost"
                );
                self.drop_segments_from(at)?;
                break;
            }
            // One at or below the recovery point would say that the indexes below are synced.
            if at > first && base_offset > self.opening.recovery_point {
                self.write_snapshot(base_offset, replay)?;
            }
            let (end, is_cut) = self.recover_segment(at, from, replay)?;
            log_end = end;
            if is_cut {
                self.drop_segments_from(at + 1)?;
                break;
            }
        }
        Ok(log_end)
    }

    fn write_snapshot(&mut self, offset: Offset, replay: &Replay) -> Result<(), LogError> {
        let bytes = producer_snapshot::to_bytes(&replay.producers);
        self.dir
            .core
            .write_file(&self.dir.snapshot_file(offset), &bytes)?;
        self.snapshots.push(offset);
        Ok(())
    }

    /// Removes segments that are behind the end of the log, the newest first.
    fn drop_segments_from(&mut self, at: usize) -> Result<(), LogError> {
        for segment in self.segments.split_off(at).iter().rev() {
            self.effort.truncated_bytes += u64::from(segment.log_bytes);
            for kind in Kind::ALL {
                let path = self.dir.segment_file(segment.base_offset, kind);
                self.dir.core.remove_if_there(&path)?;
            }
            self.dir.core.files.remove(segment.key);
        }
        Ok(())
    }

    fn drop_snapshots_above(&mut self, offset: Offset) -> Result<(), LogError> {
        let keep = self.snapshots.partition_point(|s| *s <= offset);
        for snapshot in self.snapshots.split_off(keep) {
            self.dir
                .core
                .remove_if_there(&self.dir.snapshot_file(snapshot))?;
        }
        Ok(())
    }
}
