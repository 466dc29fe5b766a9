//! Tiered storage.

use crate::config::table::config_table;

config_table! {
    /// Tiered storage.
    RemoteConfig;

    Boolean "follower.fetch.last.tiered.offset.enable" = "false", [Any], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "log.local.retention.bytes" = "-2", [AtLeast(-2)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "log.local.retention.ms" = "-2", [AtLeast(-2)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "log.remote.copy.lag.bytes" = "-1", [AtLeast(-1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "log.remote.copy.lag.ms" = "0", [AtLeast(-1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Int "remote.fetch.max.wait.ms" = "500", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.list.offsets.request.timeout.ms" = "30000", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.index.file.cache.total.size.bytes" = "1073741824", [AtLeast(1)],
        Low, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.index.file.cache.ttl.ms" = "900000", [AtLeast(-1)], Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.copier.thread.pool.size" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.manager.copy.max.bytes.per.second" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.copy.quota.window.num" = "11", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.copy.quota.window.size.seconds" = "1", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.expiration.thread.pool.size" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.manager.fetch.max.bytes.per.second" = "9223372036854775807", [AtLeast(1)],
        Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.fetch.quota.window.num" = "11", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.fetch.quota.window.size.seconds" = "1", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.follower.thread.pool.size" = "2", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.manager.task.interval.ms" = "30000", [AtLeast(1)], Low, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.manager.task.retry.backoff.max.ms" = "30000", [AtLeast(1)],
        Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Long "remote.log.manager.task.retry.backoff.ms" = "500", [AtLeast(1)], Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Double "remote.log.manager.task.retry.jitter" = "0.2", [BetweenDouble(0.0, 0.5)],
        Low internal, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.manager.thread.pool.size" = "2", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.metadata.custom.metadata.max.bytes" = "128", [AtLeast(0)], Low, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.metadata.manager.class.name" = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.metadata.manager.class.path" = null, [Any], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.metadata.manager.impl.prefix" = "rlmm.config.", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.metadata.manager.listener.name" = null, [NonEmptyText], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.reader.max.pending.tasks" = "100", [AtLeast(1)], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Int "remote.log.reader.threads" = "10", [AtLeast(1)], Medium, ClusterWide
        no_effect "there is no tiered storage",
        "";
    String "remote.log.storage.manager.class.name" = null, [NonEmptyText], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.storage.manager.class.path" = null, [Any], Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    String "remote.log.storage.manager.impl.prefix" = "rsm.config.", [NonEmptyText],
        Medium, ReadOnly
        no_effect "there is no tiered storage",
        "";
    Boolean "remote.log.storage.system.enable" = "false", [Any], Medium, ReadOnly
        refused "data would not be moved to the remote storage",
        "";
}
