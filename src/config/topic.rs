//! The table of topic configurations, and a topic's configuration as the log reads it.
//!
//! A topic's value is its own override, else the broker's (`from`, in order of precedence), else the
//! default.

use super::table::config_table;
use super::{CleanupPolicies, CompressionType, ThrottledReplicas, TimestampType};

config_table! {
    /// The configuration of one topic.
    TopicConfig;

    List "cleanup.policy" = "delete", [ListOf(&["compact", "delete"])], Medium, Resource
        from ["log.cleanup.policy" Same]
        => cleanup_policy: CleanupPolicies,
        "";
    Int "compression.gzip.level" = "-1", [BetweenOr(1, 9, -1)], Medium, Resource
        from ["compression.gzip.level" Same]
        => compression_gzip_level: i32,
        "";
    Int "compression.lz4.level" = "9", [Between(1, 17)], Medium, Resource
        from ["compression.lz4.level" Same]
        => compression_lz4_level: i32,
        "";
    String "compression.type" = "producer", [OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])],
        Medium, Resource
        from ["compression.type" Same]
        => compression_type: CompressionType,
        "";
    Int "compression.zstd.level" = "3", [Between(-131_072, 22)], Medium, Resource
        from ["compression.zstd.level" Same]
        => compression_zstd_level: i32,
        "";
    Long "delete.retention.ms" = "86400000", [AtLeast(0)], Medium, Resource
        from ["log.cleaner.delete.retention.ms" Same]
        => delete_retention_ms: i64,
        "";
    Boolean "errors.deadletterqueue.group.enable" = "false", [Any], Medium, Resource
        => errors_deadletterqueue_group_enable: bool,
        "";
    Long "file.delete.delay.ms" = "60000", [AtLeast(0)], Medium, Resource
        from ["log.segment.delete.delay.ms" Same]
        => file_delete_delay_ms: i64,
        "";
    Long "flush.messages" = "9223372036854775807", [AtLeast(1)], Medium, Resource
        from ["log.flush.interval.messages" Same]
        => flush_messages: i64,
        "";
    Long "flush.ms" = "9223372036854775807", [AtLeast(0)], Medium, Resource
        from ["log.flush.interval.ms" Same, "log.flush.scheduler.interval.ms" Same]
        => flush_ms: i64,
        "";
    List "follower.replication.throttled.replicas" = "", [ThrottledReplicas], Medium, Resource
        => follower_replication_throttled_replicas: ThrottledReplicas,
        "";
    Int "index.interval.bytes" = "4096", [AtLeast(0)], Medium, Resource
        from ["log.index.interval.bytes" Same]
        => index_interval_bytes: i32,
        "";
    Int "internal.segment.bytes" = null, [Any], Medium internal, Resource
        => internal_segment_bytes: Option<i32>,
        "";
    List "leader.replication.throttled.replicas" = "", [ThrottledReplicas], Medium, Resource
        => leader_replication_throttled_replicas: ThrottledReplicas,
        "";
    Long "local.retention.bytes" = "-2", [AtLeast(-2)], Medium, Resource
        from ["log.local.retention.bytes" Same]
        no_effect "there is no tiered storage",
        "";
    Long "local.retention.ms" = "-2", [AtLeast(-2)], Medium, Resource
        from ["log.local.retention.ms" Same]
        no_effect "there is no tiered storage",
        "";
    Long "max.compaction.lag.ms" = "9223372036854775807", [AtLeast(1)], Medium, Resource
        from ["log.cleaner.max.compaction.lag.ms" Same]
        => max_compaction_lag_ms: i64,
        "";
    Int "max.decompressed.message.bytes" = "2147483639", [Between(1, 2_147_483_639)],
        Medium, Resource
        from ["max.decompressed.message.bytes" Same]
        => max_decompressed_message_bytes: i32,
        "";
    Int "max.message.bytes" = "1048588", [AtLeast(0)], Medium, Resource
        from ["message.max.bytes" Same]
        => max_message_bytes: i32,
        "";
    Long "message.timestamp.after.max.ms" = "3600000", [AtLeast(0)], Medium, Resource
        from ["log.message.timestamp.after.max.ms" Same]
        => message_timestamp_after_max_ms: i64,
        "";
    Long "message.timestamp.before.max.ms" = "9223372036854775807", [AtLeast(0)], Medium, Resource
        from ["log.message.timestamp.before.max.ms" Same]
        => message_timestamp_before_max_ms: i64,
        "";
    String "message.timestamp.type" = "CreateTime", [OneOf(&["CreateTime", "LogAppendTime"])],
        Medium, Resource
        from ["log.message.timestamp.type" Same]
        => message_timestamp_type: TimestampType,
        "";
    Double "min.cleanable.dirty.ratio" = "0.5", [Between(0, 1)], Medium, Resource
        from ["log.cleaner.min.cleanable.ratio" Same]
        => min_cleanable_dirty_ratio: f64,
        "";
    Long "min.compaction.lag.ms" = "0", [AtLeast(0)], Medium, Resource
        from ["log.cleaner.min.compaction.lag.ms" Same]
        => min_compaction_lag_ms: i64,
        "";
    Int "min.insync.replicas" = "1", [AtLeast(1)], Medium, Resource
        from ["min.insync.replicas" Same]
        => min_insync_replicas: i32,
        "";
    Boolean "preallocate" = "false", [Any], Medium, Resource
        from ["log.preallocate" Same]
        => preallocate: bool,
        "";
    Long "remote.copy.lag.bytes" = "-1", [AtLeast(-1)], Medium, Resource
        from ["log.remote.copy.lag.bytes" Same]
        no_effect "there is no tiered storage",
        "";
    Long "remote.copy.lag.ms" = "0", [AtLeast(-1)], Medium, Resource
        from ["log.remote.copy.lag.ms" Same]
        no_effect "there is no tiered storage",
        "";
    Boolean "remote.log.copy.disable" = "false", [Any], Medium, Resource
        no_effect "there is no tiered storage",
        "";
    Boolean "remote.log.delete.on.disable" = "false", [Any], Medium, Resource
        no_effect "there is no tiered storage",
        "";
    Boolean "remote.storage.enable" = "false", [Any], Medium, Resource
        => remote_storage_enable: bool,
        "";
    Long "retention.bytes" = "-1", [Any], Medium, Resource
        from ["log.retention.bytes" Same]
        => retention_bytes: i64,
        "";
    Long "retention.ms" = "604800000", [AtLeast(-1)], Medium, Resource
        from ["log.retention.ms" Same, "log.retention.minutes" Minutes, "log.retention.hours" Hours]
        => retention_ms: i64,
        "";
    Int "segment.bytes" = "1073741824", [AtLeast(1_048_576)], Medium, Resource
        from ["log.segment.bytes" Same]
        => segment_bytes: i32,
        "";
    Int "segment.index.bytes" = "10485760", [AtLeast(4)], Medium, Resource
        from ["log.index.size.max.bytes" Same]
        => segment_index_bytes: i32,
        "";
    Long "segment.jitter.ms" = "0", [AtLeast(0)], Medium, Resource
        from ["log.roll.jitter.ms" Same, "log.roll.jitter.hours" Hours]
        => segment_jitter_ms: i64,
        "";
    Long "segment.ms" = "604800000", [AtLeast(1)], Medium, Resource
        from ["log.roll.ms" Same, "log.roll.hours" Hours]
        => segment_ms: i64,
        "";
    Boolean "unclean.leader.election.enable" = "false", [Any], Medium, Resource
        from ["unclean.leader.election.enable" Same]
        => unclean_leader_election_enable: bool,
        "";
}
