//! The group coordinator follows the partitions of `__consumer_offsets`.

use super::GroupCoordinator;
use crate::coordinator::runtime::CoordinatorLog;
use crate::partition::PartitionObserver;
use crate::types::{LeaderEpoch, Offset};

impl<L: CoordinatorLog> PartitionObserver for GroupCoordinator<L> {
    fn on_leader(&self, partition: i32, leader_epoch: LeaderEpoch) {
        self.elect(partition, leader_epoch);
    }

    fn on_not_leader(&self, partition: i32) {
        self.resign(partition);
    }

    fn on_high_watermark(&self, partition: i32, high_watermark: Offset) {
        GroupCoordinator::on_high_watermark(self, partition, high_watermark);
    }
}
