//! Transactions and the log of their states.

use crate::config::table::config_table;

config_table! {
    /// Transactions and the log of their states.
    TransactionConfig;

    Int "transaction.max.timeout.ms" = "900000", [AtLeast(1)], High, ReadOnly
        => transaction_max_timeout_ms: i32,
        "The longest timeout a transactional producer may ask for.";
    Int "transactional.id.expiration.ms" = "604800000", [AtLeast(1)], High, ReadOnly
        => transactional_id_expiration_ms: i32,
        "How long a silent transactional id is remembered.";
    Boolean "transaction.partition.verification.enable" = "true", [Any], Low, ClusterWide
        => transaction_partition_verification_enable: bool,
        "Check before an append that the partition belongs to the transaction.";
    Boolean "transaction.two.phase.commit.enable" = "false", [Any], Low, ReadOnly
        no_effect "a transaction always has a timeout",
        "Let transactions stay open without a timeout for an outside coordinator.";
    Int "transaction.abort.timed.out.transaction.cleanup.interval.ms" = "10000", [AtLeast(1)],
        Low, ReadOnly
        no_effect "a transaction is aborted when its timeout is over",
        "How often transactions are looked at for those past their timeout.";
    Int "transaction.remove.expired.transaction.cleanup.interval.ms" = "3600000", [AtLeast(1)],
        Low, ReadOnly
        no_effect "a transactional id is forgotten when its time is over",
        "How often transactional ids are looked at for those to forget.";
    Int "transaction.state.log.load.buffer.size" = "5242880", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_load_buffer_size: i32,
        "How much is read at once when a coordinator loads its transactions.";
    Int "transaction.state.log.min.isr" = "2", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_min_isr: i32,
        "The min.insync.replicas of __transaction_state.";
    Int "transaction.state.log.num.partitions" = "50", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_num_partitions: i32,
        "Partitions of __transaction_state when it is made.";
    Short "transaction.state.log.replication.factor" = "3", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_replication_factor: i16,
        "Replicas of __transaction_state when it is made.";
    Int "transaction.state.log.segment.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_segment_bytes: i32,
        "The segment size of __transaction_state when it is made.";
    Int "add.partitions.to.txn.retry.backoff.ms" = "20", [AtLeast(1)], High, ReadOnly
        => add_partitions_to_txn_retry_backoff_ms: i32,
        "How long the broker waits before it asks the coordinator again to add a partition.";
    Int "add.partitions.to.txn.retry.backoff.max.ms" = "100", [AtLeast(0)], High, ReadOnly
        => add_partitions_to_txn_retry_backoff_max_ms: i32,
        "How long the broker goes on asking within one request.";
}
