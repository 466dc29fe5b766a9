//! Streams groups.

use crate::config::table::config_table;

config_table! {
    /// Streams groups.
    StreamsConfig;

    List "group.streams.assignors" = "sticky", [Any], Medium, ReadOnly
        => group_streams_assignors: Vec<String>,
        "The assignors of streams groups; the first is the default.";
    Int "group.streams.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "A member of a streams group that is silent for this long is removed.";
    Int "group.streams.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "How often a member of a streams group sends a heartbeat.";
    Int "group.streams.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, ClusterWide
        no_effect "there are no streams groups yet",
        "How long at least lies between two assignments of a streams group.";
    Int "group.streams.initial.rebalance.delay.ms" = "3000", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "How long an empty streams group waits for more members before its first assignment.";
    Int "group.streams.num.standby.replicas" = "0", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "How many standby copies of its state a streams group keeps.";
    Int "group.streams.num.warmup.replicas" = "2", [AtLeast(0)], Medium internal, ReadOnly
        no_effect "there are no streams groups yet",
        "How many copies of state a streams group may warm up at once.";
    Long "group.streams.acceptable.recovery.lag" = "10000", [AtLeast(0)], Medium internal, ReadOnly
        no_effect "there are no streams groups yet",
        "How far behind a copy of state may be and still count as caught up.";
    Int "group.streams.task.offset.interval.ms" = "60000", [AtLeast(1)], Medium internal, ReadOnly
        no_effect "there are no streams groups yet",
        "How often members of a streams group report how far their tasks are.";
    List "group.streams.rack.aware.assignment.tags" = "", [Any], Low, ReadOnly
        no_effect "there are no streams groups yet",
        "The client tags over which a streams group spreads its standby copies.";
    Int "group.streams.min.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The shortest session a streams group may be set to.";
    Int "group.streams.max.session.timeout.ms" = "60000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The longest session a streams group may be set to.";
    Int "group.streams.min.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The shortest heartbeat interval a streams group may be set to.";
    Int "group.streams.max.heartbeat.interval.ms" = "15000", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The longest heartbeat interval a streams group may be set to.";
    Int "group.streams.min.assignment.interval.ms" = "0", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The shortest assignment interval a streams group may be set to.";
    Int "group.streams.max.assignment.interval.ms" = "15000", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The longest assignment interval a streams group may be set to.";
    Int "group.streams.min.task.offset.interval.ms" = "15000", [AtLeast(1)],
        Medium internal, ReadOnly
        no_effect "there are no streams groups yet",
        "The shortest interval of task reports a streams group may be set to.";
    Int "group.streams.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The most members of a streams group.";
    Int "group.streams.max.standby.replicas" = "2", [AtLeast(0)], Medium, ReadOnly
        no_effect "there are no streams groups yet",
        "The most standby copies a streams group may be set to.";
    Int "group.streams.max.warmup.replicas" = "20", [AtLeast(0)], Medium internal, ReadOnly
        no_effect "there are no streams groups yet",
        "The most warm-up copies a streams group may be set to.";
    Boolean "group.streams.assignor.offload.enable" = "true", [Any], Medium internal, ClusterWide
        no_effect "assignments are computed where the group is",
        "Compute assignments of streams groups beside the coordinator's threads.";
    Class "group.streams.topology.description.plugin.class" = null, [Any], Medium, ReadOnly
        no_effect "topology descriptions are not kept",
        "A class that keeps descriptions of topologies.";
}
