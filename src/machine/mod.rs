//! PURE state machines: fetch sessions, groups, replica sets, transactions.

pub mod broker_sessions;
pub mod byte_rate;
pub mod fetch_session;
pub mod fetch_session_client;
pub mod group;
pub mod log_comparison;
pub mod replica_place;
pub mod replica_set;
pub mod transaction;
