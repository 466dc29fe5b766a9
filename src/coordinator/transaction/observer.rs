//! The transaction coordinator follows the partitions of `__transaction_state`.

use super::TransactionCoordinator;
use crate::coordinator::runtime::CoordinatorLog;
use crate::partition::PartitionObserver;
use crate::types::{LeaderEpoch, Offset};

impl<L: CoordinatorLog> PartitionObserver for TransactionCoordinator<L> {
    fn on_leader(&self, partition: i32, leader_epoch: LeaderEpoch) {
        self.elect(partition, leader_epoch);
    }

    fn on_not_leader(&self, partition: i32) {
        self.resign(partition);
    }

    fn on_high_watermark(&self, partition: i32, high_watermark: Offset) {
        TransactionCoordinator::on_high_watermark(self, partition, high_watermark);
    }
}
