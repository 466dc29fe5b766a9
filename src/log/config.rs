//! What a log wants to know of its topic's configuration. Defaults are Kafka's.

/// The configuration of one log. Logs of one topic share one.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a batch that would make the segment larger goes into a new one.
    pub segment_bytes: u32,
    /// `segment.ms`
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to so much earlier than `segment_ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a full index makes the segment roll.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `retention.ms`; negative is "no limit".
    pub retention_ms: i64,
    /// `retention.bytes`; negative is "no limit".
    pub retention_bytes: i64,
    /// `cleanup.policy` has `delete`.
    pub delete: bool,
    /// `cleanup.policy` has `compact`.
    pub compact: bool,
    /// `min.cleanable.dirty.ratio`
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`
    pub file_delete_delay_ms: i64,
    /// `producer.id.expiration.ms`
    pub producer_id_expiration_ms: i64,
    /// Write-back of appended bytes is started in pieces of so many bytes; 0 leaves it to the
    /// kernel.
    pub write_back_bytes: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            delete: true,
            compact: false,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: 24 * 3_600_000,
            file_delete_delay_ms: 60_000,
            producer_id_expiration_ms: 24 * 3_600_000,
            write_back_bytes: 1 << 20,
        }
    }
}

impl LogConfig {
    /// The age at which a segment is closed. A compacted topic's records must come into the reach
    /// of the cleaner in time.
    pub fn segment_ms_max(&self) -> i64 {
        match self.compact {
            true => self.segment_ms.min(self.max_compaction_lag_ms.max(1)),
            false => self.segment_ms,
        }
    }
}
