//! Topics that limit how long records may wait for a flush (`flush.ms`).
//!
//! 1. A partition of such a topic has a deadline while it has records that are not flushed:
//!    `flush.ms` after the first of them was appended.
//! 2. Nobody looks at partitions to find who is due: the deadlines are in order, and the task that
//!    flushes sleeps until the first of them. Without any it sleeps.
//! 3. A deadline is taken back before the flush begins. What is appended after that gets one of its
//!    own, what was appended before is flushed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::leader::Partition;
use super::registry::Partitions;
use crate::host::{in_parallel, tasks};
use crate::log::{Log, LogError};
use crate::types::TopicId;

/// How many partitions are flushed at the same time.
const AT_ONCE: usize = 16;

const NONE: u64 = u64::MAX;

/// When a partition is to be flushed, in microseconds of the monotonic clock.
pub(super) struct FlushDeadline(AtomicU64);

impl Default for FlushDeadline {
    fn default() -> Self {
        FlushDeadline(AtomicU64::new(NONE))
    }
}

/// Those of all partitions, the first one first. One that was brought forward is in it twice; the
/// partition knows which of them counts.
#[derive(Default)]
pub struct FlushDeadlines {
    waiting: Mutex<BTreeSet<(u64, TopicId, i32)>>,
    brought_forward: Notify,
}

fn micros(time: Duration) -> u64 {
    // Below NONE.
    u64::try_from(time.as_micros()).map_or(NONE - 1, |micros| micros.min(NONE - 1))
}

impl FlushDeadlines {
    /// The time from `now` until the first one; `None` while there is none.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        let (due, ..) = *self.waiting.lock().first()?;
        Some(Duration::from_micros(due.saturating_sub(micros(now))))
    }

    /// Ready when the first deadline has become an earlier one since the last time.
    async fn brought_forward(&self) {
        self.brought_forward.notified().await;
    }

    fn add(&self, due: u64, topic_id: TopicId, partition: i32) {
        let is_first = {
            let mut waiting = self.waiting.lock();
            waiting.insert((due, topic_id, partition));
            waiting.first().is_some_and(|(first, ..)| *first == due)
        };
        if is_first {
            self.brought_forward.notify_one();
        }
    }

    fn take_due(&self, now: Duration) -> BTreeSet<(u64, TopicId, i32)> {
        let mut waiting = self.waiting.lock();
        let after = (micros(now).saturating_add(1), TopicId::NONE, i32::MIN);
        let later = waiting.split_off(&after);
        std::mem::replace(&mut *waiting, later)
    }
}

impl Partition {
    /// Something was appended that nobody is about to flush.
    pub(super) fn note_unflushed(&self) {
        let is_noted = || self.flush_deadline.0.load(Ordering::SeqCst) != NONE;
        if self.topic_config.load().flush_ms < i64::MAX && !is_noted() {
            self.bring_flush_forward();
        }
    }

    /// `flush.ms` may have been set or lowered, or the log was found with records to flush.
    pub(super) fn note_flush_ms(&self) {
        let log = self.log();
        if log.recovery_point() < log.log_end_offset() {
            self.bring_flush_forward();
        }
    }

    fn bring_flush_forward(&self) {
        let flush_ms = self.topic_config.load().flush_ms;
        if flush_ms == i64::MAX {
            return;
        }
        let wait = Duration::from_millis(flush_ms.max(0) as u64);
        let now = self.surroundings.clock.monotonic();
        let due = micros(now.saturating_add(wait));
        if due < self.flush_deadline.0.fetch_min(due, Ordering::SeqCst) {
            let deadlines = &self.surroundings.flush_deadlines;
            deadlines.add(due, self.topic_id, self.topic_partition.partition);
        }
    }

    /// Whether `due` is still the partition's deadline; it has none then.
    fn take_deadline(&self, due: u64) -> bool {
        let (ours, order) = (&self.flush_deadline.0, Ordering::SeqCst);
        ours.compare_exchange(due, NONE, order, order).is_ok()
    }

    fn flush_in_time(&self) {
        // It may have been taken away from the topic.
        if self.topic_config.load().flush_ms == i64::MAX {
            return;
        }
        match self.on_log(Log::flush) {
            // Deleted meanwhile.
            Ok(()) | Err(LogError::Closed { .. }) => {}
            Err(error) => {
                let topic_partition = &self.topic_partition;
                tracing::error!(%topic_partition, "flush failed: {error}");
            }
        }
    }
}

impl Partitions {
    /// Flushes what has waited for `flush.ms`, each time it has; without an end.
    pub async fn flush_in_time(self: Arc<Self>) {
        let deadlines = &self.surroundings().flush_deadlines;
        loop {
            let Some(wait) = deadlines.wait(self.clock.monotonic()) else {
                deadlines.brought_forward().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = deadlines.brought_forward() => continue,
            }
            let this = self.clone();
            if let Err(error) = tasks::spawn_blocking(move || this.flush_overdue()).await {
                tracing::error!("flushing failed: {error}");
            }
        }
    }

    pub(super) fn flush_overdue(&self) {
        let deadlines = &self.surroundings().flush_deadlines;
        let due = deadlines.take_due(self.clock.monotonic());
        let partition = |(due, topic_id, index)| {
            let partition = self.get(topic_id, index)?;
            partition.take_deadline(due).then_some(partition)
        };
        let partitions: Vec<_> = due.into_iter().filter_map(partition).collect();
        in_parallel(AT_ONCE, &partitions, |partition| partition.flush_in_time());
    }
}
