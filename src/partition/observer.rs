//! Who is told of what happens to the partitions of one topic: the coordinator that keeps its
//! state there.

use crate::types::{LeaderEpoch, Offset};

/// Called on the task that brought the event about; must not wait.
pub trait PartitionObserver: Send + Sync {
    /// This broker leads the partition from now on, with this epoch.
    fn on_leader(&self, partition: i32, leader_epoch: LeaderEpoch);

    /// This broker no longer leads the partition.
    fn on_not_leader(&self, partition: i32);

    /// The high watermark has moved. May be called from within an append.
    fn on_high_watermark(&self, partition: i32, high_watermark: Offset);
}
