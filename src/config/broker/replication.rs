//! Replicas, elections and followers.

use crate::config::table::config_table;

config_table! {
    /// Replicas, elections and followers.
    ReplicationConfig;

    Int "min.insync.replicas" = "1", [AtLeast(1)], High, ClusterWide
        "";
    Boolean "unclean.leader.election.enable" = "false", [Any], High, ClusterWide
        "";
    Long "unclean.leader.election.interval.ms" = "300000", [AtLeast(1)], Medium internal, ReadOnly
        => unclean_leader_election_interval_ms: i64,
        "";
    Boolean "auto.leader.rebalance.enable" = "true", [Any], High, ReadOnly
        => auto_leader_rebalance_enable: bool,
        "";
    Long "leader.imbalance.check.interval.seconds" = "300", [AtLeast(1)], High, ReadOnly
        => leader_imbalance_check_interval_seconds: i64,
        "";
    Int "num.replica.fetchers" = "1", [AtLeast(1)], High, ClusterWide
        => num_replica_fetchers: i32,
        "";
    Int "replica.fetch.backoff.ms" = "1000", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_backoff_ms: i32,
        "";
    Int "replica.fetch.max.bytes" = "1048576", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_max_bytes: i32,
        "";
    Int "replica.fetch.min.bytes" = "1", [Any], High, ReadOnly
        => replica_fetch_min_bytes: i32,
        "";
    Int "replica.fetch.response.max.bytes" = "10485760", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_response_max_bytes: i32,
        "";
    Int "replica.fetch.wait.max.ms" = "500", [Any], High, ReadOnly
        => replica_fetch_wait_max_ms: i32,
        "";
    Long "replica.high.watermark.checkpoint.interval.ms" = "5000", [Any], High, ReadOnly
        => replica_high_watermark_checkpoint_interval_ms: i64,
        "";
    Long "replica.lag.time.max.ms" = "30000", [Any], High, ReadOnly
        => replica_lag_time_max_ms: i64,
        "";
    String "replica.selector.class" = null, [Any], Medium, ReadOnly
        no_effect "consumers read from the leader",
        "";
    Int "replica.socket.receive.buffer.bytes" = "65536", [Any], High, ReadOnly
        => replica_socket_receive_buffer_bytes: i32,
        "";
    Int "replica.socket.timeout.ms" = "30000", [Any], High, ReadOnly
        => replica_socket_timeout_ms: i32,
        "";
}
