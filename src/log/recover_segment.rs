//! Recovers one segment: reads its batches and makes anew what is told by them.
//!
//! Index entries below the snapshot that recovery began with are kept, all others are written
//! again, just as the appends had written them.

use std::io::IoSlice;

use crate::record::Marker;
use crate::types::{Offset, TimestampMs};

use super::error::LogError;
use super::names::Kind;
use super::offset_index::{self, OffsetEntry, OffsetIndex};
use super::recovery::Opener;
use super::replay::{Replay, marker_of};
use super::scan::{BatchScan, Found, RECOVERY_BYTES, ScanError, find_offset};
use super::segment::{MaxTimestamp, PendingIndex, Segment};
use super::time_index::{self, TimeIndex};
use super::txn_index;

impl Opener<'_> {
    /// Reads a segment from the last index entry below `from` on (all of it without) and makes what
    /// is above anew. Where it ends, and whether something was cut off.
    pub(super) fn recover_segment(
        &mut self,
        at: usize,
        from: Option<Offset>,
        replay: &mut Replay,
    ) -> Result<(Offset, bool), LogError> {
        let mut segment = self.segments[at];
        let made_from = self.made_from.unwrap_or(segment.base_offset);
        self.made_from = Some(made_from.min(segment.base_offset));
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
                Err(ScanError::Invalid { position, reason })
                    if end < self.opening.recovery_point =>
                {
                    let path = self.dir.segment_file(base_offset, Kind::Log);
                    return Err(LogError::Corrupt {
                        path,
                        position,
                        reason,
                    });
                }
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
            // Those below the snapshot are in the file, and out of order they would confuse it.
            if replay.from.is_none_or(|f| header.base_offset >= f) {
                self.epochs.assign(header.leader_epoch, header.base_offset);
            }
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
        if let Some(relative) = relative
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
            }
        }
        // Whatever became of the other two: markers below the snapshot are not replayed.
        if let Some(from) = from
            && segment.txn_index_bytes > 0
        {
            let file = self.dir.open(segment, Kind::TxnIndex)?;
            let below = txn_index::count_below(&*file, segment.txn_index_bytes, from);
            bytes[2] = self.dir.read(segment, Kind::TxnIndex, below)? * txn_index::ENTRY_BYTES;
        }
        let kinds = [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex];
        for (kind, bytes) in kinds.into_iter().zip(bytes) {
            *segment.bytes_mut(kind) = bytes;
        }
        segment.max_timestamp = Some(MaxTimestamp {
            timestamp: last.map_or(TimestampMs::NONE, |e| e.timestamp),
            offset: last.map_or(segment.base_offset, |e| segment.absolute(e.relative_offset)),
        });
        Ok((position, last.map(|e| e.timestamp)))
    }

    /// Whether the log has what an index entry says.
    fn is_true(&self, segment: &Segment, position: u32, entry: OffsetEntry) -> bool {
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
            // Cut last: what was cut to nothing is written back at once by ext4.
            self.dir.change("write", segment, kind, || {
                if !bytes.is_empty() {
                    file.write_at(&mut [IoSlice::new(bytes)], keep_bytes)?;
                }
                file.set_len(keep_bytes + bytes.len() as u64)
            })?;
            *segment.bytes_mut(kind) += bytes.len() as u32;
        }
        Ok(())
    }
}

/// The next batch that is right in itself and fits the segment, with its marker.
fn next_sound(
    scan: &mut BatchScan<'_>,
    segment: &Segment,
) -> Result<Option<(Found, Option<Marker>)>, ScanError> {
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
