//! A partition on this broker: its leader's side, those who wait for it, and the set of all.

mod leader;
mod registry;
mod waiters;

pub use leader::{Leadership, Partition, Watermarks};
pub use registry::Partitions;
pub use waiters::Waiter;
