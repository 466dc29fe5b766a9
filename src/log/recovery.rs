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
//! crash   log ends below S              the snapshot is ahead of the log (a truncation was cut
//!                                       short): it is removed, and the next older one is S
//! any     snapshot above the end        removed
//! any     epoch at or after the end     removed
//! any     log start above the end       everything is removed; the log starts, empty, there
//! ```
//!
//! Why index entries below S are good: the snapshot was written after them, and the recovery point
//! passed it only when all were synced. A crash during recovery changes nothing of that: it removes
//! only what is above S, and what it writes counts only once a later checkpoint has synced it.

use std::io::IoSlice;
use std::sync::Arc;

use crate::types::{Offset, TimestampMs, TopicId};

use super::config::LogConfig;
use super::epochs::Epochs;
use super::error::LogError;
use super::inventory::{Inventory, SegmentFiles};
use super::log::{Log, Offsets, View, Writer};
use super::names::{self, Kind};
use super::offset_index::{self, OffsetIndex};
use super::partition_dir::PartitionDir;
use super::producer_snapshot;
use super::replay::{Replay, marker_of};
use super::scan::{BatchScan, Found, RECOVERY_BYTES, ScanError, find_offset};
use super::segment::{PendingIndex, Segment};
use super::time_index::{self, TimeIndex};
use super::txn_index;

/// What is known about a partition before its directory is looked at.
pub(super) struct Opening {
    pub topic_id: TopicId,
    pub config: Arc<LogConfig>,
    pub now: TimestampMs,
    pub is_clean: bool,
    /// From the checkpoints; zero if they have no line.
    pub recovery_point: Offset,
    pub log_start: Offset,
}

/// What was done to open it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effort {
    pub recovered_bytes: u64,
    pub truncated_bytes: u64,
}

/// A log in the making.
struct Opener<'a> {
    dir: &'a PartitionDir,
    opening: &'a Opening,
    segments: Vec<Segment>,
    snapshots: Vec<Offset>,
    epochs: Epochs,
    pending: PendingIndex,
    effort: Effort,
}

/// Opens, and where it must be recovers, the log in `dir`.
pub(super) fn open(dir: PartitionDir, opening: &Opening) -> Result<(Log, Effort), LogError> {
    let inventory = take_inventory(&dir)?;
    let mut opener = Opener {
        dir: &dir,
        opening,
        segments: Vec::new(),
        snapshots: inventory.snapshots.clone(),
        epochs: read_epochs(&dir)?,
        pending: PendingIndex::default(),
        effort: Effort::default(),
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
        ..
    } = opener;
    let first = segments[0].base_offset;
    let log_start = opening.log_start.max(first);
    let writer = Writer {
        producers: replay.producers,
        snapshots: strays(&snapshots, &segments),
        uncheckpointed_bytes: effort.recovered_bytes,
        is_dir_dirty: effort != Effort::default(),
        ..Writer::default()
    };
    let mut view = View::new(segments, epochs, &writer.producers);
    view.transactions = replay.transactions;
    view.pending = pending;
    view.epochs.truncate_from_end(log_end);
    view.epochs.truncate_from_start(log_start);
    let offsets = Offsets {
        log_start,
        log_end,
        recovery_point: opening.recovery_point.clamp(log_start, log_end),
        checkpointed: opening.recovery_point,
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
    }
    for name in &inventory.remove {
        dir.core.remove_if_there(&dir.file(name))?;
    }
    Ok(inventory)
}

/// Puts compacted segments in that were whole when the crash came. The segments they replace are
/// removed first; a crash in between leaves the swap file, and the same is done again.
fn finish_swaps(dir: &PartitionDir, inventory: &Inventory) -> Result<(), LogError> {
    for base_offset in &inventory.swaps {
        let swap = |kind| {
            let name = names::segment_file(*base_offset, kind);
            dir.file(&format!("{name}{}", names::SWAP_SUFFIX))
        };
        let path = swap(Kind::Log);
        let end = end_of_file(dir, &path, *base_offset)?;
        let replaced = inventory.segments.iter().map(|s| s.base_offset);
        for replaced in replaced.filter(|b| b >= base_offset && *b < end) {
            for kind in Kind::ALL {
                dir.core
                    .remove_if_there(&dir.segment_file(replaced, kind))?;
            }
        }
        // The log last: while it has its old name, all of this is done again.
        for kind in Kind::ALL.iter().rev() {
            let to = dir.segment_file(*base_offset, *kind);
            dir.core.rename_if_there(&swap(*kind), &to)?;
        }
    }
    dir.core.sync_dir(&dir.path())
}

fn end_of_file(
    dir: &PartitionDir,
    path: &std::path::Path,
    base_offset: Offset,
) -> Result<Offset, LogError> {
    let failed = |e| dir.core.read_failed(path, e);
    let file = dir
        .core
        .disk
        .open(path, crate::host::OpenMode::Read)
        .map_err(failed)?;
    let bytes = file.len().map_err(failed)?;
    let mut scan = BatchScan::new(&*file, 0, bytes, base_offset, RECOVERY_BYTES);
    let mut end = base_offset.next();
    loop {
        match scan.next_header() {
            Ok(Some(found)) => end = found.header.next_offset(),
            Ok(None) => return Ok(end),
            Err(ScanError::Io(e)) => return Err(failed(e)),
            Err(ScanError::Invalid { position, reason }) => {
                return Err(LogError::Corrupt {
                    path: path.to_owned(),
                    position,
                    reason,
                });
            }
        }
    }
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
        if self.opening.log_start > log_end {
            return self.restart();
        }
        self.drop_snapshots_above(log_end)?;
        Ok((replay, log_end))
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
                let (end, is_cut) = self.recover_segment(at, None, &mut replay)?;
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

    fn recover(&mut self, damaged: &[Offset]) -> Result<(Replay, Offset), LogError> {
        loop {
            let mut replay = self.replay_from(self.opening.recovery_point)?;
            let snapshot = replay.from;
            let start = snapshot.unwrap_or(Offset::ZERO);
            let first = self.segments.partition_point(|s| s.base_offset <= start);
            let first = first.saturating_sub(1);
            self.rebuild_indexes(damaged, first)?;
            let log_end = self.recover_from(first, snapshot, &mut replay)?;
            match snapshot {
                // It is ahead of the log.
                Some(snapshot) if snapshot > log_end => {
                    self.drop_snapshots_above(log_end)?;
                }
                _ => return Ok((replay, log_end)),
            }
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
        let mut log_end = Offset::ZERO;
        for at in first..self.segments.len() {
            let base_offset = self.segments[at].base_offset;
            let from = snapshot.filter(|s| at == first && *s > base_offset);
            if at > first {
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

    /// Reads a segment from the last index entry below `from` on (all of it without) and makes what
    /// is above anew. Where it ends, and whether something was cut off.
    fn recover_segment(
        &mut self,
        at: usize,
        from: Option<Offset>,
        replay: &mut Replay,
    ) -> Result<(Offset, bool), LogError> {
        let mut segment = self.segments[at];
        let (position, last_timestamp) = self.keep_indexes(&mut segment, from)?;
        let mut pending = PendingIndex {
            last_timestamp,
            ..PendingIndex::default()
        };
        if segment.log_bytes == 0 {
            self.segments[at] = segment;
            self.pending = pending;
            return Ok((segment.base_offset, false));
        }
        let file = self.dir.open(&segment, Kind::Log)?;
        let file_bytes = segment.log_bytes;
        let base_offset = segment.base_offset;
        let file_end = u64::from(file_bytes);
        let mut scan = BatchScan::new(
            &*file,
            u64::from(position),
            file_end,
            base_offset,
            RECOVERY_BYTES,
        );
        let mut end = base_offset;
        let mut aborted = Vec::new();
        loop {
            let (found, marker) = match next_sound(&mut scan, &segment) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(ScanError::Io(e)) => return self.dir.read(&segment, Kind::Log, Err(e)),
                Err(ScanError::Invalid { position, reason }) => {
                    let name = &self.dir.topic_partition;
                    tracing::warn!("{name}: cut at {position} of {base_offset}.log: {reason}");
                    segment.log_bytes = position as u32;
                    break;
                }
            };
            let header = &found.header;
            let interval_bytes = self.opening.config.index_interval_bytes;
            pending.add(&mut segment, header, found.position as u32, interval_bytes);
            self.epochs.assign(header.leader_epoch, header.base_offset);
            aborted.extend(replay.apply(&found, marker));
            end = header.next_offset();
        }
        self.effort.recovered_bytes += u64::from(segment.log_bytes - position);
        let is_cut = segment.log_bytes < file_bytes;
        if is_cut {
            self.effort.truncated_bytes += u64::from(file_bytes - segment.log_bytes);
            self.dir.change("truncate", &segment, Kind::Log, || {
                file.set_len(u64::from(segment.log_bytes))?;
                file.sync()
            })?;
        }
        pending.add_time(&segment);
        let aborted: Vec<u8> = aborted.iter().flat_map(|a| a.to_bytes()).collect();
        self.write_indexes(&mut segment, &mut pending, &aborted)?;
        self.segments[at] = segment;
        self.pending = pending;
        Ok((end, is_cut))
    }

    /// Cuts the indexes to what lies below `from`. Where to read from, and the last timestamp of
    /// what is kept.
    fn keep_indexes(
        &self,
        segment: &mut Segment,
        from: Option<Offset>,
    ) -> Result<(u32, Option<TimestampMs>), LogError> {
        let relative = from.and_then(|f| segment.relative(f));
        let mut bytes = [0, 0, 0];
        let mut position = 0;
        let mut last = None;
        if let (Some(relative), Some(from)) = (relative, from)
            && segment.offset_index_bytes > 0
            && segment.time_index_bytes > 0
        {
            let file = self.dir.open(segment, Kind::OffsetIndex)?;
            let below = OffsetIndex::new(&*file, segment.offset_index_bytes).below(relative);
            let (offsets, entry) = self.dir.read(segment, Kind::OffsetIndex, below)?;
            let file = self.dir.open(segment, Kind::TimeIndex)?;
            let below = TimeIndex::new(&*file, segment.time_index_bytes).below(relative);
            let (times, time_entry) = self.dir.read(segment, Kind::TimeIndex, below)?;
            if let Some(entry) = entry.filter(|e| self.is_true(segment, e.position, *e)) {
                position = entry.position;
                last = time_entry;
                bytes[0] = offsets * offset_index::ENTRY_BYTES;
                bytes[1] = times * time_index::ENTRY_BYTES;
                if segment.txn_index_bytes > 0 {
                    let file = self.dir.open(segment, Kind::TxnIndex)?;
                    let below = txn_index::count_below(&*file, segment.txn_index_bytes, from);
                    bytes[2] =
                        self.dir.read(segment, Kind::TxnIndex, below)? * txn_index::ENTRY_BYTES;
                }
            }
        }
        let kinds = [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex];
        for (kind, bytes) in kinds.into_iter().zip(bytes) {
            *segment.bytes_mut(kind) = bytes;
        }
        segment.max_timestamp = Some(super::segment::MaxTimestamp {
            timestamp: last.map_or(TimestampMs::NONE, |e| e.timestamp),
            offset: last.map_or(segment.base_offset, |e| segment.absolute(e.relative_offset)),
        });
        Ok((position, last.map(|e| e.timestamp)))
    }

    /// Whether the log has what an index entry says.
    fn is_true(&self, segment: &Segment, position: u32, entry: offset_index::OffsetEntry) -> bool {
        let Ok(file) = self.dir.open(segment, Kind::Log) else {
            return false;
        };
        let (position, end) = (u64::from(position), u64::from(segment.log_bytes));
        let offset = segment.absolute(entry.relative_offset);
        let found = find_offset(&*file, position, end, offset);
        matches!(found, Ok(Some(f)) if f.position == position && f.header.last_offset() == offset)
    }

    /// Puts the new entries behind those that were kept.
    fn write_indexes(
        &self,
        segment: &mut Segment,
        pending: &mut PendingIndex,
        aborted: &[u8],
    ) -> Result<(), LogError> {
        let offsets = std::mem::take(&mut pending.offsets);
        let times = std::mem::take(&mut pending.times);
        let offsets: Vec<u8> = offsets.iter().flat_map(|e| e.to_bytes()).collect();
        let times: Vec<u8> = times.iter().flat_map(|e| e.to_bytes()).collect();
        for (kind, bytes) in [
            (Kind::OffsetIndex, &offsets[..]),
            (Kind::TimeIndex, &times),
            (Kind::TxnIndex, aborted),
        ] {
            let path = self.dir.segment_file(segment.base_offset, kind);
            let keep_bytes = u64::from(*segment.bytes_mut(kind));
            if kind == Kind::TxnIndex && keep_bytes == 0 && bytes.is_empty() {
                self.dir.core.remove_if_there(&path)?;
                continue;
            }
            let file = self.dir.create(segment, kind)?;
            self.dir.change("write", segment, kind, || {
                file.set_len(keep_bytes)?;
                file.write_at(&mut [IoSlice::new(bytes)], keep_bytes)
            })?;
            *segment.bytes_mut(kind) += bytes.len() as u32;
        }
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

/// The next batch that is right in itself and fits the segment, with its marker.
fn next_sound(
    scan: &mut BatchScan<'_>,
    segment: &Segment,
) -> Result<Option<(Found, Option<crate::record::Marker>)>, ScanError> {
    let Some(found) = scan.next_checked()? else {
        return Ok(None);
    };
    if segment.relative(found.header.last_offset()).is_none() {
        return Err(ScanError::Invalid {
            position: found.position,
            reason: "its offsets are too large for the segment",
        });
    }
    let marker = marker_of(scan, &found)?;
    Ok(Some((found, marker)))
}
