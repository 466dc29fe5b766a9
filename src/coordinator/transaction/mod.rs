//! The transaction coordinator of a broker: finds the partition of a transactional id, drives its
//! machine through the runtime, and writes the markers that end a transaction.
//!
//! ```text
//!   EndTxn -> [decide, apply, append PrepareCommit] -> committed -> reply
//!                                                   -> committed -> markers -> all partitions
//!             [append CompleteCommit] <- the last marker is written  <-------------'
//! ```
//!
//! 1. Nothing is shown, and no marker is written, before the record behind it is committed: both
//!    are replies of the runtime, which waits for that.
//! 2. Markers do not depend on the client: a connection that ends, or an answer that comes too
//!    late, changes nothing about them. After a reload those that are still to be written come
//!    from the log.
//! 3. A marker is tried until it is written, its partition is gone, or a newer coordinator or
//!    producer is found.
//! 4. Where nothing has to be waited for (one replica, partitions on this broker) the markers and
//!    the completion are written by the task of the EndTxn, before its answer leaves: the next
//!    transaction of the client never meets CONCURRENT_TRANSACTIONS.

mod cluster_markers;
mod coordinator;
mod local_markers;
mod machine;
mod markers;
mod observer;
mod producer_ids;
#[cfg(test)]
mod tests;

pub use cluster_markers::ClusterMarkers;
pub use coordinator::{TransactionCoordinator, TransactionSettings};
pub use local_markers::{LocalMarkers, Marker};
pub use machine::{ListTransactions, ProducerIdSource};
pub use markers::MarkerTargets;
pub use producer_ids::{BlockProducerIds, NoProducerId};
