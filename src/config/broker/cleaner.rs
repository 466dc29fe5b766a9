//! Compaction.

use crate::config::table::config_table;

config_table! {
    /// Compaction.
    CleanerConfig;

    Boolean "log.cleaner.enable" = "true", [Any], Medium, ReadOnly
        no_effect "compaction of a topic is switched by its cleanup.policy",
        "";
    Int "log.cleaner.threads" = "1", [AtLeast(0)], Medium, ClusterWide
        => log_cleaner_threads: i32,
        "";
    Long "log.cleaner.backoff.ms" = "15000", [AtLeast(0)], Medium, ClusterWide
        => log_cleaner_backoff_ms: i64,
        "";
    Long "log.cleaner.dedupe.buffer.size" = "134217728", [Any], Medium, ClusterWide
        => log_cleaner_dedupe_buffer_size: i64,
        "";
    Int "log.cleaner.io.buffer.size" = "524288", [AtLeast(0)], Medium, ClusterWide
        no_effect "the cleaner reads one batch at a time",
        "";
    Double "log.cleaner.io.buffer.load.factor" = "0.9", [Any], Medium, ClusterWide
        no_effect "the map of keys grows with them",
        "";
    Double "log.cleaner.io.max.bytes.per.second" = "1.7976931348623157E308", [Any],
        Medium, ClusterWide
        => log_cleaner_io_max_bytes_per_second: f64,
        "";
    Long "log.cleaner.delete.retention.ms" = "86400000", [AtLeast(0)], Medium, ClusterWide
        "";
    Double "log.cleaner.min.cleanable.ratio" = "0.5", [Between(0, 1)], Medium, ClusterWide
        "";
    Long "log.cleaner.min.compaction.lag.ms" = "0", [AtLeast(0)], Medium, ClusterWide
        "";
    Long "log.cleaner.max.compaction.lag.ms" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        "";
}
