//! PURE state machines: replica set, fetch sessions, groups, transactions.

pub mod transaction;
