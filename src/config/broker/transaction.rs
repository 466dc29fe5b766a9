//! Transactions and the log of their states.

use crate::config::table::config_table;

config_table! {
    /// Transactions and the log of their states.
    TransactionConfig;

    Int "transaction.max.timeout.ms" = "900000", [AtLeast(1)], High, ReadOnly
        => transaction_max_timeout_ms: i32,
        "";
    Int "transactional.id.expiration.ms" = "604800000", [AtLeast(1)], High, ReadOnly
        => transactional_id_expiration_ms: i32,
        "";
    Boolean "transaction.partition.verification.enable" = "true", [Any], Low, ClusterWide
        => transaction_partition_verification_enable: bool,
        "";
    Boolean "transaction.two.phase.commit.enable" = "false", [Any], Low, ReadOnly
        no_effect "a transaction always has a timeout",
        "";
    Int "transaction.abort.timed.out.transaction.cleanup.interval.ms" = "10000", [AtLeast(1)],
        Low, ReadOnly
        => transaction_abort_timed_out_transaction_cleanup_interval_ms: i32,
        "";
    Int "transaction.remove.expired.transaction.cleanup.interval.ms" = "3600000", [AtLeast(1)],
        Low, ReadOnly
        => transaction_remove_expired_transaction_cleanup_interval_ms: i32,
        "";
    Int "transaction.state.log.load.buffer.size" = "5242880", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_load_buffer_size: i32,
        "";
    Int "transaction.state.log.min.isr" = "2", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_min_isr: i32,
        "";
    Int "transaction.state.log.num.partitions" = "50", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_num_partitions: i32,
        "";
    Short "transaction.state.log.replication.factor" = "3", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_replication_factor: i16,
        "";
    Int "transaction.state.log.segment.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => transaction_state_log_segment_bytes: i32,
        "";
    Int "add.partitions.to.txn.retry.backoff.ms" = "20", [AtLeast(1)], High, ReadOnly
        => add_partitions_to_txn_retry_backoff_ms: i32,
        "";
    Int "add.partitions.to.txn.retry.backoff.max.ms" = "100", [AtLeast(0)], High, ReadOnly
        => add_partitions_to_txn_retry_backoff_max_ms: i32,
        "";
}
