//! The partitions of this broker: the leader's side, the follower's side, those who wait, and the
//! set of all.

mod aside;
mod assignments;
mod deletions;
mod effective;
mod fetcher;
mod fetchers;
mod flush_ms;
mod flusher;
mod follower;
mod found;
mod isr_changes;
mod leader;
mod lost;
mod moves;
mod observer;
mod outbox;
mod places;
mod registry;
mod replication;
mod source;
mod strays;
mod surroundings;
mod throttles;
mod traffic;
mod waiters;
mod waiting;

pub use assignments::{Assignment, AssignmentAnswers, Assignments, DirectoryController};
pub use effective::{PartitionConfig, overrides_of};
pub use fetcher::{FetcherConfig, OutOfRange};
pub use fetchers::{Fetchers, ReplicaSource};
pub use isr_changes::{IsrAnswers, IsrChange, IsrController};
pub use leader::{DeleteRecordsError, Partition, Watermarks};
pub use moves::{LogDirRefused, MoveRefused};
pub use observer::PartitionObserver;
pub use registry::{Partitions, PartitionsError};
pub use replication::{ReplicaFetch, ReplicaFetchError, ReplicaRead};
pub use source::RemoteLeader;
pub use surroundings::{KnownBroker, KnownBrokers, Leadership, Surroundings};
pub use traffic::{TopicTraffic, Traffic};
pub use waiters::Waiter;

#[cfg(test)]
mod tests;
