//! The table of group configurations, and a group's configuration as its coordinator reads it.
//!
//! A group's value is its own override, else the broker's (`from`), else the default.

use super::ShareAutoOffsetReset;
use super::table::config_table;

config_table! {
    /// The configuration of one group.
    GroupConfig;

    Int "consumer.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, Resource
        from ["group.consumer.assignment.interval.ms" Same]
        => consumer_assignment_interval_ms: i32,
        "How long at least lies between two assignments of the consumer group.";
    Boolean "consumer.assignor.offload.enable" = "true", [Any], Medium internal, Resource
        from ["group.consumer.assignor.offload.enable" Same]
        no_effect "assignments are computed where the group is",
        "Compute assignments of the consumer group beside the coordinator's threads.";
    Int "consumer.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, Resource
        from ["group.consumer.heartbeat.interval.ms" Same]
        => consumer_heartbeat_interval_ms: i32,
        "How often a member of the consumer group sends a heartbeat.";
    Int "consumer.session.timeout.ms" = "45000", [AtLeast(1)], Medium, Resource
        from ["group.consumer.session.timeout.ms" Same]
        => consumer_session_timeout_ms: i32,
        "A member of the consumer group that is silent for this long is removed.";
    Boolean "errors.deadletterqueue.copy.record.enable" = "false", [Any], Medium, Resource
        no_effect "there are no errors groups yet",
        "Copy a failed record to the dead letter queue, not only its place.";
    String "errors.deadletterqueue.topic.name" = "", [Any], Medium, Resource
        => errors_deadletterqueue_topic_name: String,
        "The dead letter topic of the share group; empty for none.";
    Int "share.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, Resource
        from ["group.share.assignment.interval.ms" Same]
        no_effect "there are no share groups yet",
        "How long at least lies between two assignments of the share group.";
    Boolean "share.assignor.offload.enable" = "true", [Any], Medium internal, Resource
        from ["group.share.assignor.offload.enable" Same]
        no_effect "assignments are computed where the group is",
        "Compute assignments of the share group beside the coordinator's threads.";
    String "share.auto.offset.reset" = "latest", [ShareOffsetReset], Medium, Resource
        => share_auto_offset_reset: ShareAutoOffsetReset,
        no_effect "there are no share groups yet",
        "Where the share group begins to read a partition that it has not read.";
    Int "share.delivery.count.limit" = "5", [AtLeast(2)], Medium, Resource
        from ["group.share.delivery.count.limit" Same]
        no_effect "there are no share groups yet",
        "How often a record is delivered to the share group at most.";
    Int "share.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, Resource
        from ["group.share.heartbeat.interval.ms" Same]
        => share_heartbeat_interval_ms: i32,
        no_effect "there are no share groups yet",
        "How often a member of the share group sends a heartbeat.";
    String "share.isolation.level" = "read_uncommitted", [OneOf(&["read_committed", "read_uncommitted"])],
        Medium, Resource
        no_effect "there are no share groups yet",
        "Whether the share group sees records of open or aborted transactions.";
    Int "share.partition.max.record.locks" = "2000", [AtLeast(100)], Medium, Resource
        from ["group.share.partition.max.record.locks" Same]
        no_effect "there are no share groups yet",
        "How many records of a partition may be out to the share group at once.";
    Int "share.record.lock.duration.ms" = "30000", [AtLeast(1000)], Medium, Resource
        from ["group.share.record.lock.duration.ms" Same]
        no_effect "there are no share groups yet",
        "How long a member of the share group has a record for itself.";
    Boolean "share.renew.acknowledge.enable" = "true", [Any], Medium, Resource
        no_effect "there are no share groups yet",
        "Let members of the share group lengthen their lock on a record.";
    Int "share.session.timeout.ms" = "45000", [AtLeast(1)], Medium, Resource
        from ["group.share.session.timeout.ms" Same]
        => share_session_timeout_ms: i32,
        no_effect "there are no share groups yet",
        "A member of the share group that is silent for this long is removed.";
    Long "streams.acceptable.recovery.lag" = "10000", [AtLeast(0)], Medium internal, Resource
        from ["group.streams.acceptable.recovery.lag" Same]
        no_effect "there are no streams groups yet",
        "How far behind a copy of state may be and still count as caught up.";
    Int "streams.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, Resource
        from ["group.streams.assignment.interval.ms" Same]
        no_effect "there are no streams groups yet",
        "How long at least lies between two assignments of the streams group.";
    String "streams.assignor.name" = null, [Any], Medium, Resource
        from ["group.streams.assignors" FirstItem]
        => streams_assignor_name: Option<String>,
        no_effect "there are no streams groups yet",
        "The assignor of the streams group.";
    Boolean "streams.assignor.offload.enable" = "true", [Any], Medium internal, Resource
        from ["group.streams.assignor.offload.enable" Same]
        no_effect "assignments are computed where the group is",
        "Compute assignments of the streams group beside the coordinator's threads.";
    Int "streams.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, Resource
        from ["group.streams.heartbeat.interval.ms" Same]
        => streams_heartbeat_interval_ms: i32,
        no_effect "there are no streams groups yet",
        "How often a member of the streams group sends a heartbeat.";
    Int "streams.initial.rebalance.delay.ms" = "3000", [AtLeast(0)], Medium, Resource
        from ["group.streams.initial.rebalance.delay.ms" Same]
        no_effect "there are no streams groups yet",
        "How long the empty streams group waits for more members before its first assignment.";
    Int "streams.num.standby.replicas" = "0", [AtLeast(0)], Medium, Resource
        from ["group.streams.num.standby.replicas" Same]
        no_effect "there are no streams groups yet",
        "How many standby copies of its state the streams group keeps.";
    Int "streams.num.warmup.replicas" = "2", [AtLeast(0)], Medium internal, Resource
        from ["group.streams.num.warmup.replicas" Same]
        no_effect "there are no streams groups yet",
        "How many copies of state the streams group may warm up at once.";
    List "streams.rack.aware.assignment.tags" = "", [Any], Low, Resource
        from ["group.streams.rack.aware.assignment.tags" Same]
        no_effect "there are no streams groups yet",
        "The client tags over which the streams group spreads its standby copies.";
    Int "streams.session.timeout.ms" = "45000", [AtLeast(1)], Medium, Resource
        from ["group.streams.session.timeout.ms" Same]
        => streams_session_timeout_ms: i32,
        no_effect "there are no streams groups yet",
        "A member of the streams group that is silent for this long is removed.";
    Int "streams.task.offset.interval.ms" = "60000", [AtLeast(1)], Medium internal, Resource
        from ["group.streams.task.offset.interval.ms" Same]
        no_effect "there are no streams groups yet",
        "How often members of the streams group report how far their tasks are.";
}
