//! Replicas, elections and followers.

use crate::config::table::config_table;

config_table! {
    /// Replicas, elections and followers.
    ReplicationConfig;

    Int "min.insync.replicas" = "1", [AtLeast(1)], High, ClusterWide
        "How many replicas must have a batch before a producer with acks=all is answered.";
    Boolean "unclean.leader.election.enable" = "false", [Any], High, ClusterWide
        "Let a replica lead that may lack records when no other is left.";
    Long "unclean.leader.election.interval.ms" = "300000", [AtLeast(1)], Medium internal, ReadOnly
        => unclean_leader_election_interval_ms: i64,
        "How often partitions without a leader are looked at for such an election.";
    Boolean "auto.leader.rebalance.enable" = "true", [Any], High, ReadOnly
        => auto_leader_rebalance_enable: bool,
        "Give leadership back to the first replica in the list from time to time.";
    Long "leader.imbalance.check.interval.seconds" = "300", [AtLeast(1)], High, ReadOnly
        => leader_imbalance_check_interval_seconds: i64,
        "How often leadership is looked at for that.";
    Int "num.replica.fetchers" = "1", [AtLeast(1)], High, ClusterWide
        => num_replica_fetchers: i32,
        "Connections on which a follower copies from one leader.";
    Int "replica.fetch.backoff.ms" = "1000", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_backoff_ms: i32,
        "How long a follower waits before it tries a partition again that failed.";
    Int "replica.fetch.max.bytes" = "1048576", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_max_bytes: i32,
        "How much a follower asks for of one partition.";
    Int "replica.fetch.min.bytes" = "1", [Any], High, ReadOnly
        => replica_fetch_min_bytes: i32,
        "How much there should be before the leader answers a follower.";
    Int "replica.fetch.response.max.bytes" = "10485760", [AtLeast(0)], Medium, ReadOnly
        => replica_fetch_response_max_bytes: i32,
        "How much a follower asks for in one request.";
    Int "replica.fetch.wait.max.ms" = "500", [Any], High, ReadOnly
        => replica_fetch_wait_max_ms: i32,
        "How long a leader may hold back the answer to a follower.";
    Long "replica.high.watermark.checkpoint.interval.ms" = "5000", [Any], High, ReadOnly
        => replica_high_watermark_checkpoint_interval_ms: i64,
        "How often the high watermarks are written down.";
    Long "replica.lag.time.max.ms" = "30000", [Any], High, ReadOnly
        => replica_lag_time_max_ms: i64,
        "A follower that has not caught up for this long leaves the in-sync replicas.";
    String "replica.selector.class" = null, [Any], Medium, ReadOnly
        => replica_selector_class: Option<String>,
        "A class that picks the replica a consumer reads from.";
    Int "replica.socket.receive.buffer.bytes" = "65536", [Any], High, ReadOnly
        no_effect "the kernel sizes the buffers of a connection to its need",
        "SO_RCVBUF of the sockets on which a follower copies.";
    Int "replica.socket.timeout.ms" = "30000", [Any], High, ReadOnly
        => replica_socket_timeout_ms: i32,
        "How long a follower waits for an answer of its leader.";
}
