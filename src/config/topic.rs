//! The table of topic configurations, and a topic's configuration as the log reads it.
//!
//! A topic's value is its own override, else the broker's (`from`, in order of precedence), else
//! the default.

use super::table::config_table;
use super::{CleanupPolicies, CompressionType, ThrottledReplicas, TimestampType};

config_table! {
    /// The configuration of one topic.
    TopicConfig;

    List "cleanup.policy" = "delete", [ListOf(&["compact", "delete"])], Medium, Resource
        from ["log.cleanup.policy" Same]
        => cleanup_policy: CleanupPolicies,
        "What becomes of old records: deleted by age and size, compacted by key, both, or with an empty list nothing.";
    Int "compression.gzip.level" = "-1", [BetweenOr(1, 9, -1)], Medium, Resource
        from ["compression.gzip.level" Same]
        => compression_gzip_level: i32,
        "How hard gzip tries when the broker compresses.";
    Int "compression.lz4.level" = "9", [Between(1, 17)], Medium, Resource
        from ["compression.lz4.level" Same]
        => compression_lz4_level: i32,
        "How hard lz4 tries when the broker compresses.";
    String "compression.type" = "producer", [OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])],
        Medium, Resource
        from ["compression.type" Same]
        => compression_type: CompressionType,
        "The codec that batches are stored in; `producer` keeps what the producer chose.";
    Int "compression.zstd.level" = "3", [Between(-131_072, 22)], Medium, Resource
        from ["compression.zstd.level" Same]
        => compression_zstd_level: i32,
        "How hard zstd tries when the broker compresses.";
    Long "delete.retention.ms" = "86400000", [AtLeast(0)], Medium, Resource
        from ["log.cleaner.delete.retention.ms" Same]
        => delete_retention_ms: i64,
        "How long a tombstone stays in a compacted partition.";
    Boolean "errors.deadletterqueue.group.enable" = "false", [Any], Medium, Resource
        no_effect "there are no share groups yet",
        "Let share groups use this topic as a dead letter queue.";
    Long "file.delete.delay.ms" = "60000", [AtLeast(0)], Medium, Resource
        from ["log.segment.delete.delay.ms" Same]
        => file_delete_delay_ms: i64,
        "How long the files of a deleted segment stay for those who still read them.";
    Long "flush.messages" = "9223372036854775807", [AtLeast(1)], Medium, Resource
        from ["log.flush.interval.messages" Same]
        => flush_messages: i64,
        "How many records may be appended before they are forced to disk.";
    Long "flush.ms" = "9223372036854775807", [AtLeast(0)], Medium, Resource
        from ["log.flush.interval.ms" Same, "log.flush.scheduler.interval.ms" Same]
        => flush_ms: i64,
        "How long a record may wait before it is forced to disk.";
    List "follower.replication.throttled.replicas" = "", [ThrottledReplicas], Medium, Resource
        => follower_replication_throttled_replicas: ThrottledReplicas,
        "Replicas whose copying is throttled at the follower: * or partition:broker pairs.";
    Int "index.interval.bytes" = "4096", [AtLeast(0)], Medium, Resource
        from ["log.index.interval.bytes" Same]
        => index_interval_bytes: i32,
        "How many bytes of records lie between two entries of the offset index.";
    Int "internal.segment.bytes" = null, [Any], Medium internal, Resource
        => internal_segment_bytes: Option<i32>,
        "The segment size without its lower limit, for tests.";
    List "leader.replication.throttled.replicas" = "", [ThrottledReplicas], Medium, Resource
        => leader_replication_throttled_replicas: ThrottledReplicas,
        "Replicas whose copying is throttled at the leader: * or partition:broker pairs.";
    Long "local.retention.bytes" = "-2", [AtLeast(-2)], Medium, Resource
        from ["log.local.retention.bytes" Same]
        no_effect "there is no tiered storage",
        "How much of a tiered partition stays on the local disk; -2 as much as retention.bytes.";
    Long "local.retention.ms" = "-2", [AtLeast(-2)], Medium, Resource
        from ["log.local.retention.ms" Same]
        no_effect "there is no tiered storage",
        "How long segments of a tiered partition stay on the local disk; -2 as long as retention.ms.";
    Long "max.compaction.lag.ms" = "9223372036854775807", [AtLeast(1)], Medium, Resource
        from ["log.cleaner.max.compaction.lag.ms" Same]
        => max_compaction_lag_ms: i64,
        "How long a record may wait for compaction.";
    Int "max.decompressed.message.bytes" = "2147483639", [Between(1, 2_147_483_639)],
        Medium, Resource
        from ["max.decompressed.message.bytes" Same]
        => max_decompressed_message_bytes: i32,
        "The largest batch of records after decompression.";
    Int "max.message.bytes" = "1048588", [AtLeast(0)], Medium, Resource
        from ["message.max.bytes" Same]
        => max_message_bytes: i32,
        "The largest batch of records, as it is stored, that a producer may append.";
    Long "message.timestamp.after.max.ms" = "3600000", [AtLeast(0)], Medium, Resource
        from ["log.message.timestamp.after.max.ms" Same]
        => message_timestamp_after_max_ms: i64,
        "How far ahead of the broker's clock a producer's timestamp may be.";
    Long "message.timestamp.before.max.ms" = "9223372036854775807", [AtLeast(0)], Medium, Resource
        from ["log.message.timestamp.before.max.ms" Same]
        => message_timestamp_before_max_ms: i64,
        "How old a producer's timestamp may be.";
    String "message.timestamp.type" = "CreateTime", [OneOf(&["CreateTime", "LogAppendTime"])],
        Medium, Resource
        from ["log.message.timestamp.type" Same]
        => message_timestamp_type: TimestampType,
        "Whether a record keeps the time its producer gave it or gets the time of its append.";
    Double "min.cleanable.dirty.ratio" = "0.5", [Between(0, 1)], Medium, Resource
        from ["log.cleaner.min.cleanable.ratio" Same]
        => min_cleanable_dirty_ratio: f64,
        "What share of a partition must be uncompacted before it is compacted.";
    Long "min.compaction.lag.ms" = "0", [AtLeast(0)], Medium, Resource
        from ["log.cleaner.min.compaction.lag.ms" Same]
        => min_compaction_lag_ms: i64,
        "How long a record is safe from compaction.";
    Int "min.insync.replicas" = "1", [AtLeast(1)], Medium, Resource
        from ["min.insync.replicas" Same]
        => min_insync_replicas: i32,
        "How many replicas must have a batch before a producer with acks=all is answered.";
    Boolean "preallocate" = "false", [Any], Medium, Resource
        from ["log.preallocate" Same]
        => preallocate: bool,
        no_effect "segments grow as records come",
        "Reserve the disk space of a segment when it is begun.";
    Long "remote.copy.lag.bytes" = "-1", [AtLeast(-1)], Medium, Resource
        from ["log.remote.copy.lag.bytes" Same]
        no_effect "there is no tiered storage",
        "How large the local part of a tiered partition may be before it is copied.";
    Long "remote.copy.lag.ms" = "0", [AtLeast(-1)], Medium, Resource
        from ["log.remote.copy.lag.ms" Same]
        no_effect "there is no tiered storage",
        "How old a segment must be before it is copied to the remote storage.";
    Boolean "remote.log.copy.disable" = "false", [Any], Medium, Resource
        no_effect "there is no tiered storage",
        "Copy nothing more of this topic to the remote storage.";
    Boolean "remote.log.delete.on.disable" = "false", [Any], Medium, Resource
        no_effect "there is no tiered storage",
        "Delete the remote segments when the remote storage of this topic is turned off.";
    Boolean "remote.storage.enable" = "false", [Any], Medium, Resource
        => remote_storage_enable: bool,
        "Keep older segments of this topic in a remote storage; only false is taken.";
    Long "retention.bytes" = "-1", [Any], Medium, Resource
        from ["log.retention.bytes" Same]
        => retention_bytes: i64,
        "How large a partition may grow before its oldest segments go; -1 for no limit.";
    Long "retention.ms" = "604800000", [AtLeast(-1)], Medium, Resource
        from ["log.retention.ms" Same, "log.retention.minutes" Minutes, "log.retention.hours" Hours]
        => retention_ms: i64,
        "How long a closed segment is kept; -1 for ever.";
    Int "segment.bytes" = "1073741824", [AtLeast(1_048_576)], Medium, Resource
        from ["log.segment.bytes" Same]
        => segment_bytes: i32,
        "The size at which a segment is closed and the next begun.";
    Int "segment.index.bytes" = "10485760", [AtLeast(4)], Medium, Resource
        from ["log.index.size.max.bytes" Same]
        => segment_index_bytes: i32,
        "The size of an offset index at which its segment is closed.";
    Long "segment.jitter.ms" = "0", [AtLeast(0)], Medium, Resource
        from ["log.roll.jitter.ms" Same, "log.roll.jitter.hours" Hours]
        => segment_jitter_ms: i64,
        "How much earlier, at random, a segment may be closed.";
    Long "segment.ms" = "604800000", [AtLeast(1)], Medium, Resource
        from ["log.roll.ms" Same, "log.roll.hours" Hours]
        => segment_ms: i64,
        "The age at which a segment is closed.";
    Boolean "unclean.leader.election.enable" = "false", [Any], Medium, Resource
        from ["unclean.leader.election.enable" Same]
        => unclean_leader_election_enable: bool,
        "Let a replica lead that may lack records when no other is left.";
}

impl TopicConfig {
    /// The size at which a segment is closed: tests set it below the limit of `segment.bytes`.
    pub fn segment_bytes_max(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }
}
