//! Tiered storage.

use crate::config::table::config_table;

config_table! {
    /// Tiered storage.
    RemoteConfig;

    Boolean "follower.fetch.last.tiered.offset.enable" = "false", [Any], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "Let a new follower begin after what is in the remote storage already.";
    Long "log.local.retention.bytes" = "-2", [AtLeast(-2)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How much of a tiered partition stays on the local disk; -2 as much as log.retention.bytes.";
    Long "log.local.retention.ms" = "-2", [AtLeast(-2)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How long segments of a tiered partition stay on the local disk; -2 as long as log.retention.ms.";
    Long "log.remote.copy.lag.bytes" = "-1", [AtLeast(-1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How large the local part of a tiered partition may be before it is copied.";
    Long "log.remote.copy.lag.ms" = "0", [AtLeast(-1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How old a segment must be before it is copied to the remote storage.";
    Int "remote.fetch.max.wait.ms" = "500", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How long a Fetch waits for the remote storage.";
    Long "remote.list.offsets.request.timeout.ms" = "30000", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How long ListOffsets waits for the remote storage.";
    Long "remote.log.index.file.cache.total.size.bytes" = "1073741824", [AtLeast(1)],
        Low, ClusterWide
        no_effect "there is no tiered storage",
        "How much local disk the indexes of remote segments may use.";
    Long "remote.log.index.file.cache.ttl.ms" = "900000", [AtLeast(-1)], Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "How long an unused index of a remote segment stays on the local disk.";
    Int "remote.log.manager.copier.thread.pool.size" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "Threads that copy segments to the remote storage.";
    Long "remote.log.manager.copy.max.bytes.per.second" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How many bytes a second are copied to the remote storage.";
    Int "remote.log.manager.copy.quota.window.num" = "11", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How many windows that rate is measured over.";
    Int "remote.log.manager.copy.quota.window.size.seconds" = "1", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How long such a window is.";
    Int "remote.log.manager.expiration.thread.pool.size" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "Threads that delete old segments from the remote storage.";
    Long "remote.log.manager.fetch.max.bytes.per.second" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        no_effect "there is no tiered storage",
        "How many bytes a second are read from the remote storage.";
    Int "remote.log.manager.fetch.quota.window.num" = "11", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How many windows that rate is measured over.";
    Int "remote.log.manager.fetch.quota.window.size.seconds" = "1", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How long such a window is.";
    Int "remote.log.manager.follower.thread.pool.size" = "2", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "Threads that follow remote segments of partitions led elsewhere.";
    Long "remote.log.manager.task.interval.ms" = "30000", [AtLeast(1)], Low, ReadOnly
        no_effect "there is no tiered storage",
        "How often tiered partitions are looked at.";
    Long "remote.log.manager.task.retry.backoff.max.ms" = "30000", [AtLeast(1)],
        Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "The longest wait before a remote task is tried again.";
    Long "remote.log.manager.task.retry.backoff.ms" = "500", [AtLeast(1)], Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "The first wait before a remote task is tried again.";
    Double "remote.log.manager.task.retry.jitter" = "0.2", [BetweenDouble(0.0, 0.5)],
        Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "How much that wait varies at random.";
    Int "remote.log.manager.thread.pool.size" = "2", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "Threads for the rest of the work on tiered partitions.";
    Int "remote.log.metadata.custom.metadata.max.bytes" = "128", [AtLeast(0)], Low, ReadOnly
        no_effect "there is no tiered storage",
        "The most that a storage plug-in may note about a remote segment.";
    String "remote.log.metadata.manager.class.name" = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "The class that keeps the list of remote segments.";
    String "remote.log.metadata.manager.class.path" = null, [Any], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "Where that class is found.";
    String "remote.log.metadata.manager.impl.prefix" = "rlmm.config.", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How the names of that class's own configurations begin.";
    String "remote.log.metadata.manager.listener.name" = null, [NonEmptyText], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "The listener on which that class reaches the brokers.";
    Int "remote.log.reader.max.pending.tasks" = "100", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How many reads of the remote storage may wait.";
    Int "remote.log.reader.threads" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "Threads that read from the remote storage.";
    String "remote.log.storage.manager.class.name" = null, [NonEmptyText], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "The class that reads and writes the remote storage.";
    String "remote.log.storage.manager.class.path" = null, [Any], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "Where that class is found.";
    String "remote.log.storage.manager.impl.prefix" = "rsm.config.", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "How the names of that class's own configurations begin.";
    Boolean "remote.log.storage.system.enable" = "false", [Any], Medium, ReadOnly
        refused "data would not be moved to the remote storage",
        "Keep older segments in a remote storage.";
}
