//! The transaction coordinator's state machine for one partition of `__transaction_state`: which
//! producer owns a transactional id, which partitions its transaction wrote to, how it ends.
//!
//! ```text
//!                      add partitions                 all markers written
//!   Empty ───────────────────────► Ongoing ─► PrepareCommit ─► CompleteCommit ─┐
//!     │ ▲                           │  ▲ │                                     │
//!     │ │ init producer id          │  │ └──► PrepareAbort ──► CompleteAbort ──┤
//!     │ │              time-out or  │  │           ▲  ▲                        │
//!     │ │              a new owner  ▼  │           │  │                        │
//!     │ │               PrepareEpochFence ─────────┘  │ an abort of nothing    │
//!     │ │                              │              │ (version 2 only)       │
//!     │ └──────────────────────────────┴──────────────┴────────────────────────┤
//!     └────────► Dead (expired: a tombstone) ◄─────────────────────────────────┘
//! ```
//!
//! Invariants:
//! 1. `decide` never changes the machine; `apply` is the only change of what the log holds, and
//!    replay at start runs the same `apply`.
//! 2. One record per transactional id is under way at a time (`begin` .. `apply`); meanwhile, and
//!    while markers are being written, requests for that id get CONCURRENT_TRANSACTIONS.
//! 3. An epoch of a producer id never goes back, and an outcome never changes once it is prepared.
//! 4. `last_update_timestamp` of a transactional id never goes back, and is different for each of
//!    its prepared transactions: that is what names a set of markers, before and after a reload.
//! 5. A machine whose append failed is dropped and loaded again: there is no undo.

mod add_partitions;
mod answer;
mod command;
mod end_txn;
mod init_producer_id;
mod machine;
mod metadata;
mod producer_ids;
mod queries;
mod records;
mod state;
#[cfg(test)]
mod tests;

pub use add_partitions::VerifyPartitions;
pub use answer::{TransactionApi, error_in_version, partition_errors};
pub use command::{
    AddPartitions, Command, CompleteTxn, Decision, EndTxn, InitProducerId, MarkersWritten,
    NextProducerId, ProducerIdAndEpoch, Reply, TransactionResult, TxnMarkers,
};
pub use machine::{TransactionConfig, TransactionMachine};
pub use metadata::TransactionMetadata;
pub use producer_ids::{PRODUCER_ID_BLOCK_LEN, ProducerIdBlock, ProducerIds};
pub use queries::{TransactionFilters, TransactionListing, TransactionStates, known_states};
pub use records::{RecordError, TransactionRecord};
pub use state::{TransactionState, TransactionVersion};

use std::sync::Arc;

/// A transactional id, shared rather than copied.
pub type TransactionalId = Arc<str>;

/// The partition of `__transaction_state` that owns a transactional id: Java's `String.hashCode`
/// (over UTF-16 units) without its sign, modulo the partition count.
pub fn partition_for(transactional_id: &str, partition_count: i32) -> i32 {
    let hash = transactional_id.encode_utf16().fold(0i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    // The one value without a positive counterpart counts as 0 (Kafka's `Utils.abs`).
    hash.checked_abs().unwrap_or(0) % partition_count
}
