//! Classic and consumer groups, and the offsets they commit.

use crate::config::table::config_table;

config_table! {
    /// Classic and consumer groups, and the offsets they commit.
    GroupsConfig;

    Int "group.initial.rebalance.delay.ms" = "3000", [Any], Medium, ReadOnly
        => group_initial_rebalance_delay_ms: i32,
        "How long an empty classic group waits for more members before its first assignment.";
    Int "group.min.session.timeout.ms" = "6000", [Any], Medium, ReadOnly
        => group_min_session_timeout_ms: i32,
        "The shortest session a member of a classic group may ask for.";
    Int "group.max.session.timeout.ms" = "1800000", [Any], Medium, ReadOnly
        => group_max_session_timeout_ms: i32,
        "The longest session a member of a classic group may ask for.";
    Int "group.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        => group_max_size: i32,
        "The most members of a classic group.";
    List "group.coordinator.rebalance.protocols" = "classic,consumer,streams", [ListOf(&["consumer", "classic", "share", "streams"])],
        Medium, ReadOnly
        => group_coordinator_rebalance_protocols: Vec<String>,
        "The kinds of groups that are served.";
    Int "group.coordinator.append.linger.ms" = "-1", [AtLeast(-1)], Medium, ReadOnly
        no_effect "an append is written at once",
        "How long the coordinator gathers records before it appends them; -1 leaves it to the load.";
    Int "group.coordinator.cached.buffer.max.bytes" = "1048588", [AtLeast(524_288)],
        Medium, ClusterWide
        no_effect "no buffer is kept between appends",
        "The largest buffer that the coordinator keeps for its next append.";
    Int "group.coordinator.threads" = "4", [AtLeast(1)], High, ReadOnly
        no_effect "groups share one pool of threads, one a core",
        "Threads of the coordinator.";
    Int "group.coordinator.background.threads" = "2", [AtLeast(1)], High, ReadOnly
        no_effect "groups share one pool of threads, one a core",
        "Threads that compute assignments beside the coordinator.";
    List "group.consumer.assignors" = "uniform,range", [Any], Medium, ReadOnly
        => group_consumer_assignors: Vec<String>,
        "The assignors consumer groups may choose from; the first is the default.";
    Int "group.consumer.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        "A member of a consumer group that is silent for this long is removed.";
    Int "group.consumer.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        "How often a member of a consumer group sends a heartbeat.";
    Int "group.consumer.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, ClusterWide
        "How long at least lies between two assignments of a consumer group.";
    Int "group.consumer.min.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_min_session_timeout_ms: i32,
        "The shortest session a consumer group may be set to.";
    Int "group.consumer.max.session.timeout.ms" = "60000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_session_timeout_ms: i32,
        "The longest session a consumer group may be set to.";
    Int "group.consumer.min.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_min_heartbeat_interval_ms: i32,
        "The shortest heartbeat interval a consumer group may be set to.";
    Int "group.consumer.max.heartbeat.interval.ms" = "15000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_heartbeat_interval_ms: i32,
        "The longest heartbeat interval a consumer group may be set to.";
    Int "group.consumer.min.assignment.interval.ms" = "0", [AtLeast(0)], Medium, ReadOnly
        => group_consumer_min_assignment_interval_ms: i32,
        "The shortest assignment interval a consumer group may be set to.";
    Int "group.consumer.max.assignment.interval.ms" = "15000", [AtLeast(0)], Medium, ReadOnly
        => group_consumer_max_assignment_interval_ms: i32,
        "The longest assignment interval a consumer group may be set to.";
    Int "group.consumer.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_size: i32,
        "The most members of a consumer group.";
    String "group.consumer.migration.policy" = "bidirectional", [OneOfIgnoreCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])],
        Medium, ReadOnly
        => group_consumer_migration_policy: String,
        "In which directions a group may change between classic and consumer while it lives.";
    Int "group.consumer.regex.refresh.interval.ms" = "600000", [AtLeast(10_000)],
        Medium internal, ReadOnly
        no_effect "a pattern is matched anew whenever topics are made or deleted",
        "How often the topics that match a subscribed pattern are looked up anew.";
    Boolean "group.consumer.assignor.offload.enable" = "true", [Any], Medium internal, ClusterWide
        no_effect "assignments are computed where the group is",
        "Compute assignments of consumer groups beside the coordinator's threads.";
    Int "offset.metadata.max.bytes" = "4096", [Any], High, ReadOnly
        => offset_metadata_max_bytes: i32,
        "The longest text that may go with a committed offset.";
    Int "offsets.commit.timeout.ms" = "5000", [AtLeast(1)], High, ReadOnly
        => offsets_commit_timeout_ms: i32,
        "How long a commit waits for the replicas of its record.";
    Int "offsets.load.buffer.size" = "5242880", [AtLeast(1)], High, ReadOnly
        => offsets_load_buffer_size: i32,
        "How much is read at once when a coordinator loads its groups.";
    Int "offsets.retention.minutes" = "10080", [AtLeast(1)], High, ReadOnly
        => offsets_retention_minutes: i32,
        "How long the offsets of a group without members are kept.";
    Long "offsets.retention.check.interval.ms" = "600000", [AtLeast(1)], High, ReadOnly
        => offsets_retention_check_interval_ms: i64,
        "How often offsets are looked at for those to drop.";
    Int "offsets.topic.compression.codec" = "0", [Any], High, ReadOnly
        => offsets_topic_compression_codec: i32,
        "The codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.";
    Int "offsets.topic.num.partitions" = "50", [AtLeast(1)], High, ReadOnly
        => offsets_topic_num_partitions: i32,
        "Partitions of __consumer_offsets when it is made.";
    Short "offsets.topic.replication.factor" = "3", [AtLeast(1)], High, ReadOnly
        => offsets_topic_replication_factor: i16,
        "Replicas of __consumer_offsets when it is made.";
    Int "offsets.topic.segment.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => offsets_topic_segment_bytes: i32,
        "The segment size of __consumer_offsets when it is made.";
}
