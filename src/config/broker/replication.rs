//! Replicas, elections and followers.

use crate::config::table::config_table;

config_table! {
    /// Replicas, elections and followers.
    ReplicationConfig;

    Int "min.insync.replicas" = "1", [AtLeast(1)], High, ClusterWide
        "How many replicas must have a batch before a producer with acks=all is answered.";
    Boolean "unclean.leader.election.enable" = "false", [Any], High, ClusterWide
        no_effect "there is one broker",
        "Let a replica lead that may lack records when no other is left.";
    Long "unclean.leader.election.interval.ms" = "300000", [AtLeast(1)], Medium internal, ReadOnly
        no_effect "there is one broker",
        "How often partitions without a leader are looked at for such an election.";
    Boolean "auto.leader.rebalance.enable" = "true", [Any], High, ReadOnly
        no_effect "there is one broker",
        "Give leadership back to the first replica in the list from time to time.";
    Long "leader.imbalance.check.interval.seconds" = "300", [AtLeast(1)], High, ReadOnly
        no_effect "there is one broker",
        "How often leadership is looked at for that.";
    Int "num.replica.fetchers" = "1", [AtLeast(1)], High, ClusterWide
        no_effect "there is one broker",
        "Connections on which a follower copies from one leader.";
    Int "replica.fetch.backoff.ms" = "1000", [AtLeast(0)], Medium, ReadOnly
        no_effect "there is one broker",
        "How long a follower waits before it tries a partition again that failed.";
    Int "replica.fetch.max.bytes" = "1048576", [AtLeast(0)], Medium, ReadOnly
        no_effect "there is one broker",
        "How much a follower asks for of one partition.";
    Int "replica.fetch.min.bytes" = "1", [Any], High, ReadOnly
        no_effect "there is one broker",
        "How much there should be before the leader answers a follower.";
    Int "replica.fetch.response.max.bytes" = "10485760", [AtLeast(0)], Medium, ReadOnly
        no_effect "there is one broker",
        "How much a follower asks for in one request.";
    Int "replica.fetch.wait.max.ms" = "500", [Any], High, ReadOnly
        => replica_fetch_wait_max_ms: i32,
        no_effect "there is one broker",
        "How long a leader may hold back the answer to a follower.";
    Long "replica.high.watermark.checkpoint.interval.ms" = "5000", [Any], High, ReadOnly
        no_effect "there is one broker",
        "How often the high watermarks are written down.";
    Long "replica.lag.time.max.ms" = "30000", [Any], High, ReadOnly
        => replica_lag_time_max_ms: i64,
        no_effect "there is one broker",
        "A follower that has not caught up for this long leaves the in-sync replicas.";
    String "replica.selector.class" = null, [Any], Medium, ReadOnly
        no_effect "consumers read from the leader",
        "A class that picks the replica a consumer reads from.";
    Int "replica.socket.receive.buffer.bytes" = "65536", [Any], High, ReadOnly
        no_effect "there is one broker",
        "SO_RCVBUF of the sockets on which a follower copies.";
    Int "replica.socket.timeout.ms" = "30000", [Any], High, ReadOnly
        => replica_socket_timeout_ms: i32,
        no_effect "there is one broker",
        "How long a follower waits for an answer of its leader.";
}
