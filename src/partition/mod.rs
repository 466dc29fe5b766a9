//! A partition on this broker: its leader's side, those who wait for it, and the set of all.

mod effective;
mod leader;
mod observer;
mod registry;
mod waiters;

pub use effective::{PartitionConfig, overrides_of};
pub use leader::{DeleteRecordsError, Leadership, Partition, Watermarks};
pub use observer::PartitionObserver;
pub use registry::{Partitions, PartitionsError};
pub use waiters::Waiter;
