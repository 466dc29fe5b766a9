//! Topics that limit how long records may wait for a flush.

use std::sync::atomic::Ordering;

use super::effective::PartitionConfig;
use super::registry::Partitions;
use crate::log::Log;

impl Partitions {
    /// Flushes what has waited for `flush.ms`.
    pub fn flush_overdue(&self) {
        if !self.has_flush_ms.load(Ordering::Relaxed) {
            return;
        }
        let now = self.clock.now_ms();
        let mut unflushed = self.unflushed.lock();
        let before = std::mem::take(&mut *unflushed);
        for partition in self.all() {
            let flush_ms = partition.topic_config().flush_ms;
            let log = partition.log().clone();
            let is_flushed = log.recovery_point() >= log.log_end_offset();
            if flush_ms == i64::MAX || is_flushed {
                continue;
            }
            let topic_partition = &partition.topic_partition;
            let since = before.get(topic_partition).copied().unwrap_or(now);
            if now.0 - since.0 < flush_ms {
                unflushed.insert(topic_partition.clone(), since);
            } else if let Err(error) = partition.on_log(Log::flush) {
                tracing::error!(%topic_partition, "flush failed: {error}");
            }
        }
    }

    pub(super) fn note_flush_ms(&self, config: &PartitionConfig) {
        if config.topic.flush_ms < i64::MAX {
            self.has_flush_ms.store(true, Ordering::Relaxed);
        }
    }
}
