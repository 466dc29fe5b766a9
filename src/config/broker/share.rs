//! Share groups, their coordinator and the dead letter queue.

use crate::config::table::config_table;

config_table! {
    /// Share groups, their coordinator and the dead letter queue.
    ShareConfig;

    List "group.share.assignors" = "simple", [Any], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The assignors of share groups; the first is the default.";
    Int "group.share.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "A member of a share group that is silent for this long is removed.";
    Int "group.share.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How often a member of a share group sends a heartbeat.";
    Int "group.share.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, ClusterWide
        no_effect "there are no share groups yet",
        "How long at least lies between two assignments of a share group.";
    Int "group.share.record.lock.duration.ms" = "30000", [Between(1000, 3_600_000)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How long a member of a share group has a record for itself.";
    Int "group.share.delivery.count.limit" = "5", [Between(2, 10)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How often a record is delivered to a share group at most.";
    Int "group.share.partition.max.record.locks" = "2000", [Between(100, 10_000)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How many records of a partition may be out to a share group at once.";
    Int "group.share.min.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The shortest session a share group may be set to.";
    Int "group.share.max.session.timeout.ms" = "60000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The longest session a share group may be set to.";
    Int "group.share.min.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The shortest heartbeat interval a share group may be set to.";
    Int "group.share.max.heartbeat.interval.ms" = "15000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The longest heartbeat interval a share group may be set to.";
    Int "group.share.min.assignment.interval.ms" = "0", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The shortest assignment interval a share group may be set to.";
    Int "group.share.max.assignment.interval.ms" = "15000", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The longest assignment interval a share group may be set to.";
    Int "group.share.min.record.lock.duration.ms" = "15000", [Between(1000, 30_000)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The shortest lock on a record a share group may be set to.";
    Int "group.share.max.record.lock.duration.ms" = "60000", [Between(30_000, 3_600_000)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The longest lock on a record a share group may be set to.";
    Int "group.share.min.delivery.count.limit" = "2", [Between(2, 5)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The lowest delivery limit a share group may be set to.";
    Int "group.share.max.delivery.count.limit" = "10", [Between(5, 25)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The highest delivery limit a share group may be set to.";
    Int "group.share.min.partition.max.record.locks" = "100", [Between(100, 2000)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The lowest limit of locked records a share group may be set to.";
    Int "group.share.max.partition.max.record.locks" = "4000", [Between(2000, 10_000)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The highest limit of locked records a share group may be set to.";
    Int "group.share.max.share.sessions" = "2000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How many sessions of share consumers are kept at once.";
    Int "group.share.max.size" = "200", [Between(1, 1000)], Medium, ReadOnly
        no_effect "there are no share groups yet",
        "The most members of a share group.";
    Int "group.share.initialize.retry.interval.ms" = "30000", [AtLeast(1)], Low internal, ReadOnly
        no_effect "there are no share groups yet",
        "How long to wait before the state of a share partition is initialized again.";
    Boolean "group.share.assignor.offload.enable" = "true", [Any], Medium internal, ClusterWide
        no_effect "assignments are computed where the group is",
        "Compute assignments of share groups beside the coordinator's threads.";
    String "group.share.persister.class.name" = "org.apache.kafka.server.share.persister.DefaultStatePersister", [Any],
        Medium internal, ReadOnly
        no_effect "share state is kept in __share_group_state",
        "The class that keeps the state of share groups.";
    String "group.share.dlq.manager.class.name" = "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", [Any],
        Medium internal, ReadOnly
        no_effect "the built-in dead letter queue is the only one",
        "The class that writes to dead letter queues.";
    Boolean "errors.deadletterqueue.auto.create.topics.enable" = "false", [Any],
        Medium, ClusterWide
        no_effect "there are no share groups yet",
        "Make a dead letter topic when it is needed and not there.";
    String "errors.deadletterqueue.topic.name.prefix" = "dlq.", [Any], Medium, ClusterWide
        no_effect "there are no share groups yet",
        "How the names of dead letter topics begin.";
    Int "share.coordinator.append.linger.ms" = "-1", [AtLeast(-1)], Medium, ReadOnly
        no_effect "an append is written at once",
        "How long the share coordinator gathers records before it appends them; -1 leaves it to the load.";
    Int "share.coordinator.cached.buffer.max.bytes" = "1048588", [AtLeast(524_288)],
        Medium, ClusterWide
        no_effect "no buffer is kept between appends",
        "The largest buffer that the share coordinator keeps for its next append.";
    Int "share.coordinator.cold.partition.snapshot.interval.ms" = "300000", [AtLeast(1)],
        Low internal, ReadOnly
        no_effect "there are no share groups yet",
        "How often a snapshot is written of share state that does not change.";
    Int "share.coordinator.load.buffer.size" = "5242880", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "How much is read at once when a share coordinator loads its state.";
    Int "share.coordinator.snapshot.update.records.per.snapshot" = "500", [Between(0, 500)],
        Medium, ReadOnly
        no_effect "there are no share groups yet",
        "How many updates follow a snapshot of share state before the next one.";
    Int "share.coordinator.state.topic.compression.codec" = "0", [Any], High, ReadOnly
        no_effect "there are no share groups yet",
        "The codec of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.";
    Short "share.coordinator.state.topic.min.isr" = "2", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "The min.insync.replicas of __share_group_state.";
    Int "share.coordinator.state.topic.num.partitions" = "50", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "Partitions of __share_group_state when it is made.";
    Int "share.coordinator.state.topic.prune.interval.ms" = "300000", [AtLeast(1)],
        Low internal, ReadOnly
        no_effect "there are no share groups yet",
        "How often records that snapshots cover are removed from __share_group_state.";
    Short "share.coordinator.state.topic.replication.factor" = "3", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "Replicas of __share_group_state when it is made.";
    Int "share.coordinator.state.topic.segment.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "The segment size of __share_group_state when it is made.";
    Int "share.coordinator.threads" = "1", [AtLeast(1)], Medium, ReadOnly
        no_effect "share state is kept on one pool of threads, one a core",
        "Threads of the share coordinator.";
    Int "share.coordinator.write.timeout.ms" = "5000", [AtLeast(1)], High, ReadOnly
        no_effect "there are no share groups yet",
        "How long the share coordinator waits for the replicas of its records.";
    Int "share.fetch.purgatory.purge.interval.requests" = "1000", [Any], Medium, ReadOnly
        no_effect "a waiter is removed when it is done",
        "After how many waiting ShareFetches the finished ones are swept up.";
}
