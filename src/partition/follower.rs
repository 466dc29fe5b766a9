//! A replica that copies its leader's log.
//!
//! 1. Everything here happens under the role's lock, and only while the partition follows in the
//!    leader epoch that the caller names: what a leader of an earlier epoch sent is not appended
//!    after the log was cut for a later one, and nothing is cut once this broker leads.
//! 2. The log is always a beginning of the leader's, once the leader has answered a fetch that
//!    names the newest epoch in it without a divergence. Offsets and epochs are the leader's own.
//! 3. The high watermark is the leader's, but never above the log's end. It goes back only with the
//!    log's end.
//! 4. What is cut was never committed, unless an unclean election said so.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::leader::{Partition, Role};
use crate::log::{AppendError, Log, LogError};
use crate::machine::replica_set::{EpochEnds, truncation_offset};
use crate::record::{Batch, BatchError, Batches};
use crate::types::{LeaderEpoch, Offset, TimestampMs};

/// Where a follower is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerPosition {
    pub fetch_offset: Offset,
    pub last_fetched_epoch: LeaderEpoch,
    pub log_start_offset: Offset,
}

/// What a leader answered for one partition.
#[derive(Debug, Clone)]
pub struct FromLeader {
    /// What was asked for.
    pub fetch_offset: Offset,
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub records: Bytes,
}

/// Why an answer was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the partition does not follow in leader epoch {leader_epoch} any more")]
    Outdated { leader_epoch: LeaderEpoch },
    #[error("the records are not what the leader has: {reason}")]
    Damaged { reason: String },
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Storage(#[from] LogError),
}

struct OwnEpochs<'a>(&'a Log);

impl EpochEnds for OwnEpochs<'_> {
    fn log_end_offset(&self) -> Offset {
        self.0.log_end_offset()
    }

    fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.0.end_offset_for_epoch(epoch)
    }
}

impl Partition {
    /// Does `work` if the partition follows in `leader_epoch`.
    fn as_follower<T>(
        &self,
        leader_epoch: LeaderEpoch,
        work: impl FnOnce() -> Result<T, CopyError>,
    ) -> Result<T, CopyError> {
        match &*self.role.lock() {
            Role::Follower {
                leader_epoch: known,
            } if *known == leader_epoch => work(),
            _ => Err(CopyError::Outdated { leader_epoch }),
        }
    }

    /// Where to fetch from.
    pub fn follower_position(&self, leader_epoch: LeaderEpoch) -> Option<FollowerPosition> {
        let position = || {
            Ok(FollowerPosition {
                fetch_offset: self.log().log_end_offset(),
                last_fetched_epoch: self.log().latest_epoch().unwrap_or(LeaderEpoch::NONE),
                log_start_offset: self.log().log_start_offset(),
            })
        };
        self.as_follower(leader_epoch, position).ok()
    }

    /// Cuts a log that has no epochs where nobody could find a divergence (of a Kafka before 0.11):
    /// what lies above the high watermark may not be the leader's.
    pub fn cut_without_epochs(
        &self,
        leader_epoch: LeaderEpoch,
        now: TimestampMs,
    ) -> Result<(), CopyError> {
        self.as_follower(leader_epoch, || {
            if self.log().latest_epoch().is_none() {
                self.cut(self.high_watermark(), now)?;
            }
            Ok(())
        })
    }

    /// Appends what the leader sent; returns the bytes.
    pub fn copy(
        &self,
        leader_epoch: LeaderEpoch,
        from_leader: FromLeader,
        now: TimestampMs,
    ) -> Result<usize, CopyError> {
        self.as_follower(leader_epoch, || {
            let end = self.log().log_end_offset();
            if from_leader.fetch_offset != end {
                let reason = format!("asked from {}, at {end} now", from_leader.fetch_offset);
                return Err(CopyError::Damaged { reason });
            }
            let batches = whole_batches(from_leader.records, leader_epoch)?;
            let bytes = batches.iter().map(Batch::size_bytes).sum();
            if let Some(first) = batches.first() {
                self.begin_inside_batch(first, now)?;
                let appended = self.log().append_as_follower(&batches, now)?;
                let traffic = &self.surroundings.traffic;
                traffic.replicated_in_bytes.add(bytes as u64);
                self.note_rolled(&appended);
                match self.needs_flush(&appended) {
                    true => self.on_log(Log::flush)?,
                    false => self.note_unflushed(),
                }
            }
            self.take_watermarks(from_leader.high_watermark, from_leader.log_start_offset)?;
            Ok(bytes)
        })
    }

    /// The leader's log may start inside a batch, since records before were deleted. A log that is
    /// empty there begins with that batch.
    fn begin_inside_batch(&self, first: &Batch, now: TimestampMs) -> Result<(), CopyError> {
        let end = self.log().log_end_offset();
        let is_empty = self.log().log_start_offset() == end;
        if is_empty && first.header.base_offset < end && first.header.last_offset() >= end {
            let base_offset = first.header.base_offset;
            self.log().truncate_fully_and_start_at(base_offset, now)?;
        }
        Ok(())
    }

    fn take_watermarks(
        &self,
        leader_high_watermark: Offset,
        leader_log_start_offset: Offset,
    ) -> Result<(), CopyError> {
        let high_watermark = leader_high_watermark.min(self.log().log_end_offset());
        let before = self
            .high_watermark
            .fetch_max(high_watermark.0, Ordering::SeqCst);
        if leader_log_start_offset <= self.high_watermark() {
            self.log()
                .advance_log_start_offset(leader_log_start_offset)?;
        }
        if before < high_watermark.0 {
            // Consumers may read from followers.
            self.tell_high_watermark();
        }
        Ok(())
    }

    /// The leader's log parts from this one: cuts what the leader has not.
    pub fn cut_at_divergence(
        &self,
        leader_epoch: LeaderEpoch,
        diverging: (LeaderEpoch, Offset),
        now: TimestampMs,
    ) -> Result<(), CopyError> {
        self.as_follower(leader_epoch, || {
            let offset = truncation_offset(&OwnEpochs(&self.log()), diverging);
            tracing::info!(
                topic_partition = %self.topic_partition,
                "cut from {} to {offset}: the leader's epoch {} ends at {}",
                self.log().log_end_offset(), diverging.0, diverging.1
            );
            self.cut(offset, now)
        })
    }

    /// What was asked for is not in the leader's log, which goes from `leader_start` to
    /// `leader_end`: cuts what is beyond its end, or starts anew at its start.
    pub fn on_out_of_range(
        &self,
        leader_epoch: LeaderEpoch,
        (leader_start, leader_end): (Offset, Offset),
        now: TimestampMs,
    ) -> Result<(), CopyError> {
        self.as_follower(leader_epoch, || {
            let end = self.log().log_end_offset();
            tracing::warn!(
                topic_partition = %self.topic_partition,
                "offset {end} is not in the leader's log, {leader_start} to {leader_end}"
            );
            if leader_end < end {
                return self.cut(leader_end, now);
            }
            if leader_start > end {
                self.log().truncate_fully_and_start_at(leader_start, now)?;
                self.high_watermark.store(leader_start.0, Ordering::SeqCst);
            }
            Ok(())
        })
    }

    fn cut(&self, offset: Offset, now: TimestampMs) -> Result<(), CopyError> {
        self.log().truncate_to(offset, now)?;
        let end = self.log().log_end_offset().0;
        self.high_watermark.fetch_min(end, Ordering::SeqCst);
        Ok(())
    }
}

/// The batches that are whole, each of them checked. The last one may be cut by the limit of the
/// fetch.
fn whole_batches(records: Bytes, leader_epoch: LeaderEpoch) -> Result<Vec<Batch>, CopyError> {
    let mut whole = Vec::new();
    for batch in Batches::new(records) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(BatchError::Torn { .. }) => break,
            Err(error) => {
                let reason = error.to_string();
                return Err(CopyError::Damaged { reason });
            }
        };
        let header = &batch.header;
        if header.leader_epoch > leader_epoch {
            // Of a leader that came after the one we asked: the next fetch will tell.
            break;
        }
        if !batch.is_crc_right() {
            let reason = format!("wrong checksum at offset {}", header.base_offset);
            return Err(CopyError::Damaged { reason });
        }
        whole.push(batch);
    }
    Ok(whole)
}
