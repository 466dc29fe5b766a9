//! Compaction.

use crate::config::table::config_table;

config_table! {
    /// Compaction.
    CleanerConfig;

    Boolean "log.cleaner.enable" = "true", [Any], Medium, ReadOnly
        no_effect "compaction of a topic is switched by its cleanup.policy",
        "Run the threads that compact.";
    Int "log.cleaner.threads" = "1", [AtLeast(0)], Medium, ClusterWide
        => log_cleaner_threads: i32,
        "How many partitions are compacted at once.";
    Long "log.cleaner.backoff.ms" = "15000", [AtLeast(0)], Medium, ClusterWide
        => log_cleaner_backoff_ms: i64,
        "How long compaction rests when no partition needs it.";
    Long "log.cleaner.dedupe.buffer.size" = "134217728", [Any], Medium, ClusterWide
        => log_cleaner_dedupe_buffer_size: i64,
        "How much memory all compactions together may use for keys.";
    Int "log.cleaner.io.buffer.size" = "524288", [AtLeast(0)], Medium, ClusterWide
        no_effect "the cleaner reads one batch at a time",
        "How much memory all compactions together may use to read and write.";
    Double "log.cleaner.io.buffer.load.factor" = "0.9", [Any], Medium, ClusterWide
        no_effect "the map of keys grows with them",
        "How full the table of keys may get in one pass.";
    Double "log.cleaner.io.max.bytes.per.second" = "1.7976931348623157E308", [Any],
        Medium, ClusterWide
        => log_cleaner_io_max_bytes_per_second: f64,
        "How many bytes compaction may read and write in a second.";
    Long "log.cleaner.delete.retention.ms" = "86400000", [AtLeast(0)], Medium, ClusterWide
        "How long a tombstone stays in a compacted partition.";
    Double "log.cleaner.min.cleanable.ratio" = "0.5", [Between(0, 1)], Medium, ClusterWide
        "What share of a partition must be uncompacted before it is compacted.";
    Long "log.cleaner.min.compaction.lag.ms" = "0", [AtLeast(0)], Medium, ClusterWide
        "How long a record is safe from compaction.";
    Long "log.cleaner.max.compaction.lag.ms" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        "How long a record may wait for compaction.";
}
