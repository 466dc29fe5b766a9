//! Segments, indexes, flushing and retention. Most are the defaults of a topic's own.

use crate::config::table::config_table;

config_table! {
    /// Segments, indexes, flushing and retention. Most are the defaults of a topic's own.
    LogConfig;

    Int "log.segment.bytes" = "1073741824", [AtLeast(1_048_576)], High, ClusterWide
        "The size at which a segment is closed and the next begun.";
    Long "log.roll.ms" = null, [Any], High, ClusterWide
        "The age at which a segment is closed; where it is not set, log.roll.hours counts.";
    Int "log.roll.hours" = "168", [AtLeast(1)], High, ReadOnly
        "The age in hours at which a segment is closed.";
    Long "log.roll.jitter.ms" = null, [Any], High, ClusterWide
        "How much earlier, at random, a segment may be closed; else log.roll.jitter.hours.";
    Int "log.roll.jitter.hours" = "0", [AtLeast(0)], High, ReadOnly
        "How many hours earlier, at random, a segment may be closed.";
    Long "log.retention.ms" = null, [Any], High, ClusterWide
        "How long a closed segment is kept; -1 for ever. Else log.retention.minutes counts.";
    Int "log.retention.minutes" = null, [Any], High, ReadOnly
        "How many minutes a closed segment is kept; else log.retention.hours counts.";
    Int "log.retention.hours" = "168", [Any], High, ReadOnly
        "How many hours a closed segment is kept; -1 for ever.";
    Long "log.retention.bytes" = "-1", [Any], High, ClusterWide
        "How large a partition may grow before its oldest segments go; -1 for no limit.";
    Long "log.retention.check.interval.ms" = "300000", [AtLeast(1)], Medium, ReadOnly
        => log_retention_check_interval_ms: i64,
        "How often partitions are looked at for segments to delete.";
    List "log.cleanup.policy" = "delete", [ListOf(&["compact", "delete"])], Medium, ClusterWide
        "What becomes of old records: deleted by age and size, compacted by key, or both.";
    Int "log.index.size.max.bytes" = "10485760", [AtLeast(4)], Medium, ClusterWide
        "The size of an offset index at which its segment is closed.";
    Int "log.index.interval.bytes" = "4096", [AtLeast(0)], Medium, ClusterWide
        "How many bytes of records lie between two entries of the offset index.";
    Long "log.flush.interval.messages" = "9223372036854775807", [AtLeast(1)], High, ClusterWide
        "How many records may be appended before they are forced to disk.";
    Long "log.flush.interval.ms" = null, [Any], High, ClusterWide
        "How long a record may wait before it is forced to disk; else the scheduler's interval.";
    Long "log.flush.scheduler.interval.ms" = "9223372036854775807", [Any], High, ReadOnly
        "In place of log.flush.interval.ms where that is not set; flushes are not late by it.";
    Int "log.flush.offset.checkpoint.interval.ms" = "60000", [AtLeast(0)], High, ReadOnly
        => log_flush_offset_checkpoint_interval_ms: i32,
        "How often it is written down up to where the logs are on disk.";
    Int "log.flush.start.offset.checkpoint.interval.ms" = "60000", [AtLeast(0)], High, ReadOnly
        => log_flush_start_offset_checkpoint_interval_ms: i32,
        "How often the log start offsets are written down.";
    Long "log.segment.delete.delay.ms" = "60000", [AtLeast(0)], High, ClusterWide
        "How long the files of a deleted segment stay for those who still read them.";
    Boolean "log.preallocate" = "false", [Any], Medium, ClusterWide
        no_effect "segments grow as records come",
        "Reserve the disk space of a segment when it is begun.";
    String "log.message.timestamp.type" = "CreateTime", [OneOf(&["CreateTime", "LogAppendTime"])],
        Medium, ClusterWide
        "Whether a record keeps the time its producer gave it or gets the time of its append.";
    Long "log.message.timestamp.before.max.ms" = "9223372036854775807", [AtLeast(0)],
        Medium, ClusterWide
        "How old a producer's timestamp may be.";
    Long "log.message.timestamp.after.max.ms" = "3600000", [AtLeast(0)], Medium, ClusterWide
        "How far ahead of the broker's clock a producer's timestamp may be.";
    Long "log.initial.task.delay.ms" = "30000", [AtLeast(0)], Low internal, ReadOnly
        => log_initial_task_delay_ms: i64,
        "How long after the start the periodic work on logs begins.";
    Long "log.dir.failure.timeout.ms" = "30000", [AtLeast(1)], Low, ReadOnly
        no_effect "a controller does not hear in which directory a replica is",
        "How long a broker whose directory failed tries to tell the controller before it stops.";
    Long "klamm.log.dir.reserve.bytes" = "67108864", [AtLeast(0)], Medium internal, ReadOnly
        => klamm_log_dir_reserve_bytes: i64,
        "Klamm's own: what producers may not use of a log directory's file system.";
    Int "message.max.bytes" = "1048588", [AtLeast(0)], High, ClusterWide
        "The largest batch of records, as it is stored, that a producer may append.";
    Int "max.decompressed.message.bytes" = "2147483639", [Between(1, 2_147_483_639)],
        Medium, ClusterWide
        "The largest batch of records after decompression.";
    String "compression.type" = "producer", [OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])],
        High, ClusterWide
        "The codec that batches are stored in; `producer` keeps what the producer chose.";
    Int "compression.gzip.level" = "-1", [BetweenOr(1, 9, -1)], Medium, ClusterWide
        "How hard gzip tries when the broker compresses.";
    Int "compression.lz4.level" = "9", [Between(1, 17)], Medium, ClusterWide
        "How hard lz4 tries when the broker compresses.";
    Int "compression.zstd.level" = "3", [Between(-131_072, 22)], Medium, ClusterWide
        "How hard zstd tries when the broker compresses.";
    Int "num.recovery.threads.per.data.dir" = "2", [AtLeast(1)], High, ClusterWide
        => num_recovery_threads_per_data_dir: i32,
        "How many partitions of one directory are recovered at once after a crash.";
    Int "num.replica.alter.log.dirs.threads" = null, [Any], High, ReadOnly
        => num_replica_alter_log_dirs_threads: Option<i32>,
        "Threads that move replicas between the directories of a broker.";
    Int "producer.id.expiration.ms" = "86400000", [AtLeast(1)], Low, ClusterWide
        => producer_id_expiration_ms: i32,
        "How long a silent idempotent producer is remembered.";
    Int "producer.id.expiration.check.interval.ms" = "600000", [AtLeast(1)], Low internal, ReadOnly
        => producer_id_expiration_check_interval_ms: i32,
        "How often silent producers are looked for.";
}
