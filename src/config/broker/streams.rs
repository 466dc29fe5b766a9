//! Streams groups.

use crate::config::table::config_table;

config_table! {
    /// Streams groups.
    StreamsConfig;

    List "group.streams.assignors" = "sticky", [Any], Medium, ReadOnly
        => group_streams_assignors: Vec<String>,
        "";
    Int "group.streams.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        "";
    Int "group.streams.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        "";
    Int "group.streams.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, ClusterWide
        "";
    Int "group.streams.initial.rebalance.delay.ms" = "3000", [AtLeast(0)], Medium, ReadOnly
        "";
    Int "group.streams.num.standby.replicas" = "0", [AtLeast(0)], Medium, ReadOnly
        "";
    Int "group.streams.num.warmup.replicas" = "2", [AtLeast(0)], Medium internal, ReadOnly
        "";
    Long "group.streams.acceptable.recovery.lag" = "10000", [AtLeast(0)], Medium internal, ReadOnly
        "";
    Int "group.streams.task.offset.interval.ms" = "60000", [AtLeast(1)], Medium internal, ReadOnly
        "";
    List "group.streams.rack.aware.assignment.tags" = "", [Any], Low, ReadOnly
        "";
    Int "group.streams.min.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        => group_streams_min_session_timeout_ms: i32,
        "";
    Int "group.streams.max.session.timeout.ms" = "60000", [AtLeast(1)], Medium, ReadOnly
        => group_streams_max_session_timeout_ms: i32,
        "";
    Int "group.streams.min.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        => group_streams_min_heartbeat_interval_ms: i32,
        "";
    Int "group.streams.max.heartbeat.interval.ms" = "15000", [AtLeast(1)], Medium, ReadOnly
        => group_streams_max_heartbeat_interval_ms: i32,
        "";
    Int "group.streams.min.assignment.interval.ms" = "0", [AtLeast(0)], Medium, ReadOnly
        => group_streams_min_assignment_interval_ms: i32,
        "";
    Int "group.streams.max.assignment.interval.ms" = "15000", [AtLeast(0)], Medium, ReadOnly
        => group_streams_max_assignment_interval_ms: i32,
        "";
    Int "group.streams.min.task.offset.interval.ms" = "15000", [AtLeast(1)],
        Medium internal, ReadOnly
        => group_streams_min_task_offset_interval_ms: i32,
        "";
    Int "group.streams.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        => group_streams_max_size: i32,
        "";
    Int "group.streams.max.standby.replicas" = "2", [AtLeast(0)], Medium, ReadOnly
        => group_streams_max_standby_replicas: i32,
        "";
    Int "group.streams.max.warmup.replicas" = "20", [AtLeast(0)], Medium internal, ReadOnly
        => group_streams_max_warmup_replicas: i32,
        "";
    Boolean "group.streams.assignor.offload.enable" = "true", [Any], Medium internal, ClusterWide
        no_effect "assignments are computed where the group is",
        "";
    Class "group.streams.topology.description.plugin.class" = null, [Any], Medium, ReadOnly
        no_effect "topology descriptions are not kept",
        "";
}
