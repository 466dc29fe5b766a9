//! The rates of replication throttles. Kafka keeps them apart from the broker's other
//! configurations: they are set while brokers run, and shown only where they are set.

use super::table::config_table;

config_table! {
    /// Bytes a second.
    ThrottleConfig;

    Long "leader.replication.throttled.rate" = null, [AtLeast(0)], Medium, PerBroker
        => leader_replication_throttled_rate: Option<i64>,
        "How much a broker sends to throttled replicas that are not in sync.";
    Long "follower.replication.throttled.rate" = null, [AtLeast(0)], Medium, PerBroker
        => follower_replication_throttled_rate: Option<i64>,
        "How much a broker copies to throttled replicas that are not in sync.";
    Long "replica.alter.log.dirs.io.max.bytes.per.second" = null, [AtLeast(0)], Medium, PerBroker
        => replica_alter_log_dirs_io_max_bytes_per_second: Option<i64>,
        "How much a broker copies between its directories.";
}
