//! Segments, indexes, flushing and retention. Most are the defaults of a topic's own.

use crate::config::table::config_table;

config_table! {
    /// Segments, indexes, flushing and retention. Most are the defaults of a topic's own.
    LogConfig;

    Int "log.segment.bytes" = "1073741824", [AtLeast(1_048_576)], High, ClusterWide
        "";
    Long "log.roll.ms" = null, [Any], High, ClusterWide
        "";
    Int "log.roll.hours" = "168", [AtLeast(1)], High, ReadOnly
        "";
    Long "log.roll.jitter.ms" = null, [Any], High, ClusterWide
        "";
    Int "log.roll.jitter.hours" = "0", [AtLeast(0)], High, ReadOnly
        "";
    Long "log.retention.ms" = null, [Any], High, ClusterWide
        "";
    Int "log.retention.minutes" = null, [Any], High, ReadOnly
        "";
    Int "log.retention.hours" = "168", [Any], High, ReadOnly
        "";
    Long "log.retention.bytes" = "-1", [Any], High, ClusterWide
        "";
    Long "log.retention.check.interval.ms" = "300000", [AtLeast(1)], Medium, ReadOnly
        => log_retention_check_interval_ms: i64,
        "";
    List "log.cleanup.policy" = "delete", [ListOf(&["compact", "delete"])], Medium, ClusterWide
        "";
    Int "log.index.size.max.bytes" = "10485760", [AtLeast(4)], Medium, ClusterWide
        "";
    Int "log.index.interval.bytes" = "4096", [AtLeast(0)], Medium, ClusterWide
        "";
    Long "log.flush.interval.messages" = "9223372036854775807", [AtLeast(1)], High, ClusterWide
        "";
    Long "log.flush.interval.ms" = null, [Any], High, ClusterWide
        "";
    Long "log.flush.scheduler.interval.ms" = "9223372036854775807", [Any], High, ReadOnly
        => log_flush_scheduler_interval_ms: i64,
        "";
    Int "log.flush.offset.checkpoint.interval.ms" = "60000", [AtLeast(0)], High, ReadOnly
        => log_flush_offset_checkpoint_interval_ms: i32,
        "";
    Int "log.flush.start.offset.checkpoint.interval.ms" = "60000", [AtLeast(0)], High, ReadOnly
        => log_flush_start_offset_checkpoint_interval_ms: i32,
        "";
    Long "log.segment.delete.delay.ms" = "60000", [AtLeast(0)], High, ClusterWide
        "";
    Boolean "log.preallocate" = "false", [Any], Medium, ClusterWide
        "";
    String "log.message.timestamp.type" = "CreateTime", [OneOf(&["CreateTime", "LogAppendTime"])],
        Medium, ClusterWide
        "";
    Long "log.message.timestamp.before.max.ms" = "9223372036854775807", [AtLeast(0)],
        Medium, ClusterWide
        "";
    Long "log.message.timestamp.after.max.ms" = "3600000", [AtLeast(0)], Medium, ClusterWide
        "";
    Long "log.initial.task.delay.ms" = "30000", [AtLeast(0)], Low internal, ReadOnly
        => log_initial_task_delay_ms: i64,
        "";
    Long "log.dir.failure.timeout.ms" = "30000", [AtLeast(1)], Low, ReadOnly
        => log_dir_failure_timeout_ms: i64,
        "";
    Int "message.max.bytes" = "1048588", [AtLeast(0)], High, ClusterWide
        "";
    Int "max.decompressed.message.bytes" = "2147483639", [Between(1, 2_147_483_639)],
        Medium, ClusterWide
        "";
    String "compression.type" = "producer", [OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])],
        High, ClusterWide
        "";
    Int "compression.gzip.level" = "-1", [BetweenOr(1, 9, -1)], Medium, ClusterWide
        "";
    Int "compression.lz4.level" = "9", [Between(1, 17)], Medium, ClusterWide
        "";
    Int "compression.zstd.level" = "3", [Between(-131_072, 22)], Medium, ClusterWide
        "";
    Int "num.recovery.threads.per.data.dir" = "2", [AtLeast(1)], High, ClusterWide
        => num_recovery_threads_per_data_dir: i32,
        "";
    Int "num.replica.alter.log.dirs.threads" = null, [Any], High, ReadOnly
        no_effect "replicas are not moved between directories",
        "";
    Int "producer.id.expiration.ms" = "86400000", [AtLeast(1)], Low, ClusterWide
        => producer_id_expiration_ms: i32,
        "";
    Int "producer.id.expiration.check.interval.ms" = "600000", [AtLeast(1)], Low internal, ReadOnly
        => producer_id_expiration_check_interval_ms: i32,
        "";
}
