//! Classic and consumer groups, and the offsets they commit.

use crate::config::table::config_table;

config_table! {
    /// Classic and consumer groups, and the offsets they commit.
    GroupsConfig;

    Int "group.initial.rebalance.delay.ms" = "3000", [Any], Medium, ReadOnly
        => group_initial_rebalance_delay_ms: i32,
        "";
    Int "group.min.session.timeout.ms" = "6000", [Any], Medium, ReadOnly
        => group_min_session_timeout_ms: i32,
        "";
    Int "group.max.session.timeout.ms" = "1800000", [Any], Medium, ReadOnly
        => group_max_session_timeout_ms: i32,
        "";
    Int "group.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        => group_max_size: i32,
        "";
    List "group.coordinator.rebalance.protocols" = "classic,consumer,streams", [ListOf(&["consumer", "classic", "share", "streams"])],
        Medium, ReadOnly
        => group_coordinator_rebalance_protocols: Vec<String>,
        "";
    Int "group.coordinator.append.linger.ms" = "-1", [AtLeast(-1)], Medium, ReadOnly
        no_effect "an append is written at once",
        "";
    Int "group.coordinator.cached.buffer.max.bytes" = "1048588", [AtLeast(524_288)],
        Medium, ClusterWide
        no_effect "no buffer is kept between appends",
        "";
    Int "group.coordinator.threads" = "4", [AtLeast(1)], High, ReadOnly
        no_effect "groups share one pool of threads, one a core",
        "";
    Int "group.coordinator.background.threads" = "2", [AtLeast(1)], High, ReadOnly
        no_effect "groups share one pool of threads, one a core",
        "";
    List "group.consumer.assignors" = "uniform,range", [Any], Medium, ReadOnly
        => group_consumer_assignors: Vec<String>,
        "";
    Int "group.consumer.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        "";
    Int "group.consumer.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        "";
    Int "group.consumer.assignment.interval.ms" = "1000", [AtLeast(0)], Medium, ClusterWide
        "";
    Int "group.consumer.min.session.timeout.ms" = "45000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_min_session_timeout_ms: i32,
        "";
    Int "group.consumer.max.session.timeout.ms" = "60000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_session_timeout_ms: i32,
        "";
    Int "group.consumer.min.heartbeat.interval.ms" = "5000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_min_heartbeat_interval_ms: i32,
        "";
    Int "group.consumer.max.heartbeat.interval.ms" = "15000", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_heartbeat_interval_ms: i32,
        "";
    Int "group.consumer.min.assignment.interval.ms" = "0", [AtLeast(0)], Medium, ReadOnly
        => group_consumer_min_assignment_interval_ms: i32,
        "";
    Int "group.consumer.max.assignment.interval.ms" = "15000", [AtLeast(0)], Medium, ReadOnly
        => group_consumer_max_assignment_interval_ms: i32,
        "";
    Int "group.consumer.max.size" = "2147483647", [AtLeast(1)], Medium, ReadOnly
        => group_consumer_max_size: i32,
        "";
    String "group.consumer.migration.policy" = "bidirectional", [OneOfIgnoreCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])],
        Medium, ReadOnly
        => group_consumer_migration_policy: String,
        "";
    Int "group.consumer.regex.refresh.interval.ms" = "600000", [AtLeast(10_000)],
        Medium internal, ReadOnly
        => group_consumer_regex_refresh_interval_ms: i32,
        "";
    Boolean "group.consumer.assignor.offload.enable" = "true", [Any], Medium internal, ClusterWide
        no_effect "assignments are computed where the group is",
        "";
    Int "offset.metadata.max.bytes" = "4096", [Any], High, ReadOnly
        => offset_metadata_max_bytes: i32,
        "";
    Int "offsets.commit.timeout.ms" = "5000", [AtLeast(1)], High, ReadOnly
        => offsets_commit_timeout_ms: i32,
        "";
    Int "offsets.load.buffer.size" = "5242880", [AtLeast(1)], High, ReadOnly
        => offsets_load_buffer_size: i32,
        "";
    Int "offsets.retention.minutes" = "10080", [AtLeast(1)], High, ReadOnly
        => offsets_retention_minutes: i32,
        "";
    Long "offsets.retention.check.interval.ms" = "600000", [AtLeast(1)], High, ReadOnly
        => offsets_retention_check_interval_ms: i64,
        "";
    Int "offsets.topic.compression.codec" = "0", [Any], High, ReadOnly
        => offsets_topic_compression_codec: i32,
        "";
    Int "offsets.topic.num.partitions" = "50", [AtLeast(1)], High, ReadOnly
        => offsets_topic_num_partitions: i32,
        "";
    Short "offsets.topic.replication.factor" = "3", [AtLeast(1)], High, ReadOnly
        => offsets_topic_replication_factor: i16,
        "";
    Int "offsets.topic.segment.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => offsets_topic_segment_bytes: i32,
        "";
}
