//! Chooses which log is compacted next, and sees to it that compaction goes on whatever happens.
//!
//! 1. A log is compacted by one thread at a time; the dirtiest one that is due comes first.
//! 2. A log that fails is left alone for a while, twice as long each time up to an hour, and said
//!    so. The others do not notice.
//! 3. Logs that have not changed cost one look at memory.
//! 4. A log that is gone, or is not to be compacted any more, is not counted among the failed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::metrics::Counter;
use crate::types::{Offset, TimestampMs, TopicPartition};

pub use super::clean::Cleaned;
use super::clean::Pace;
use super::cleaner_plan::Cleanable;
use super::error::LogError;
use super::log::Log;

const RETRY_MS_MIN: i64 = 15_000;
const RETRY_MS_MAX: i64 = 3_600_000;

/// What one compaction may use.
pub struct CleanerLimits<'a> {
    pub now: TimestampMs,
    /// For keys: this thread's share of `log.cleaner.dedupe.buffer.size`.
    pub map_bytes_max: u64,
    /// Told of bytes that were read or written; waits where that was too fast. `false`: stop.
    pub pace: Pace<'a>,
}

#[derive(Debug, Clone, Copy)]
struct Failure {
    count: u32,
    retry_at: TimestampMs,
}

#[derive(Default)]
struct State {
    in_progress: BTreeSet<TopicPartition>,
    failed: BTreeMap<TopicPartition, Failure>,
}

/// Shared by the threads that compact.
#[derive(Default)]
pub struct Cleaner {
    state: Mutex<State>,
    pub runs: Counter,
    pub failures: Counter,
    pub read_bytes: Counter,
    pub written_bytes: Counter,
}

/// Held while a log is compacted: a panic lets it go too.
struct Claim<'a> {
    cleaner: &'a Cleaner,
    topic_partition: TopicPartition,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.cleaner.failures.increment();
        }
        let mut state = self.cleaner.state.lock();
        state.in_progress.remove(&self.topic_partition);
    }
}

impl Cleaner {
    /// Compacts the one of `logs`, given with their high watermarks, that needs it most. `None`:
    /// none does.
    pub fn clean_next(
        &self,
        logs: impl Iterator<Item = (Arc<Log>, Offset)>,
        limits: &CleanerLimits<'_>,
    ) -> Option<(Arc<Log>, Result<Cleaned, LogError>)> {
        let (log, cleanable) = self.dirtiest(logs, limits.now)?;
        let topic_partition = log.topic_partition().clone();
        let is_free = self
            .state
            .lock()
            .in_progress
            .insert(topic_partition.clone());
        if !is_free {
            return None;
        }
        let claim = Claim {
            cleaner: self,
            topic_partition,
        };
        // Until the work is done it counts as a failure: it is one if it panics.
        let before = self.note_failure(&claim.topic_partition, limits.now);
        let result = log.clean(&cleanable, limits.now, limits.map_bytes_max, limits.pace);
        let result = result.and_then(|cleaned| {
            log.write_clean_points(&cleaned)?;
            Ok(cleaned)
        });
        match &result {
            Ok(cleaned) => {
                self.runs.increment();
                self.read_bytes.add(cleaned.read_bytes);
                self.written_bytes.add(cleaned.written_bytes);
                self.state.lock().failed.remove(&claim.topic_partition);
            }
            // Stopped or deleted meanwhile: nobody's fault.
            Err(LogError::Closed { .. } | LogError::Offline { .. }) => {
                self.state.lock().failed.remove(&claim.topic_partition);
            }
            Err(error) => {
                self.failures.increment();
                tracing::error!(
                    topic_partition = %claim.topic_partition,
                    retry_ms = retry_ms(before + 1),
                    "compaction failed: {error}"
                );
            }
        }
        drop(claim);
        Some((log, result))
    }

    /// How many logs could not be compacted and wait for another try.
    pub fn failed_count(&self) -> usize {
        let State {
            in_progress,
            failed,
        } = &*self.state.lock();
        // Its first try is not a failure yet.
        let waits = |(log, failure): &(&TopicPartition, &Failure)| {
            failure.count > 1 || !in_progress.contains(*log)
        };
        failed.iter().filter(waits).count()
    }

    fn dirtiest(
        &self,
        logs: impl Iterator<Item = (Arc<Log>, Offset)>,
        now: TimestampMs,
    ) -> Option<(Arc<Log>, Cleanable)> {
        let mut dirtiest: Option<(Arc<Log>, Cleanable)> = None;
        let mut gone: BTreeSet<_> = self.state.lock().failed.keys().cloned().collect();
        for (log, high_watermark) in logs {
            let config = log.config();
            if config.compact {
                gone.remove(log.topic_partition());
            }
            if !config.compact || self.is_left_alone(log.topic_partition(), now) {
                continue;
            }
            let cleanable = match log.cleanable(now, high_watermark) {
                Ok(Some(cleanable)) if cleanable.is_due(&config) => cleanable,
                Ok(_) => continue,
                Err(error) => {
                    self.failures.increment();
                    self.note_failure(log.topic_partition(), now);
                    let topic_partition = log.topic_partition();
                    tracing::error!(%topic_partition, "compaction is not possible: {error}");
                    continue;
                }
            };
            let is_dirtier = dirtiest
                .as_ref()
                .is_none_or(|(_, other)| cleanable.ratio() > other.ratio());
            if is_dirtier {
                dirtiest = Some((log, cleanable));
            }
        }
        if !gone.is_empty() {
            let mut state = self.state.lock();
            state.failed.retain(|log, _| !gone.contains(log));
        }
        dirtiest
    }

    fn is_left_alone(&self, topic_partition: &TopicPartition, now: TimestampMs) -> bool {
        let state = self.state.lock();
        let waits = |f: &Failure| now < f.retry_at;
        state.in_progress.contains(topic_partition)
            || state.failed.get(topic_partition).is_some_and(waits)
    }

    /// How often it failed before.
    fn note_failure(&self, topic_partition: &TopicPartition, now: TimestampMs) -> u32 {
        let mut state = self.state.lock();
        let before = state.failed.get(topic_partition).map_or(0, |f| f.count);
        let failure = Failure {
            count: before + 1,
            retry_at: TimestampMs(now.0.saturating_add(retry_ms(before + 1))),
        };
        state.failed.insert(topic_partition.clone(), failure);
        before
    }
}

fn retry_ms(failures: u32) -> i64 {
    (RETRY_MS_MIN << failures.saturating_sub(1).min(20)).min(RETRY_MS_MAX)
}

impl Log {
    fn write_clean_points(&self, cleaned: &Cleaned) -> Result<(), LogError> {
        match cleaned.clean_point {
            Some(_) => self.dir.core.write_clean_points(),
            None => Ok(()),
        }
    }
}
