//! What goes through the partitions of a broker.

use crate::metrics::Counter;
use crate::record::Batch;

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Traffic {
    pub appended_records: Counter,
    pub appended_bytes: Counter,
    pub fetched_bytes: Counter,
    pub replicated_in_bytes: Counter,
    pub replicated_out_bytes: Counter,
    pub isr_shrinks: Counter,
    pub isr_expands: Counter,
}

/// The same of one topic, for its partitions on this broker.
#[derive(Debug, Default)]
pub struct TopicTraffic {
    pub appended_records: Counter,
    pub appended_bytes: Counter,
    pub fetched_bytes: Counter,
}

impl Traffic {
    /// A leader has appended `batch`.
    pub(super) fn appended(&self, topic: &TopicTraffic, batch: &Batch) {
        let records = u64::try_from(batch.header.records_count).unwrap_or(0);
        let bytes = batch.size_bytes() as u64;
        self.appended_records.add(records);
        self.appended_bytes.add(bytes);
        topic.appended_records.add(records);
        topic.appended_bytes.add(bytes);
    }

    /// From so many in-sync replicas to so many.
    pub(super) fn isr_changed(&self, before: usize, after: usize) {
        match after.cmp(&before) {
            std::cmp::Ordering::Less => self.isr_shrinks.increment(),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.isr_expands.increment(),
        }
    }
}
