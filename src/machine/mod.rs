//! PURE state machines: fetch sessions, groups, transactions.

pub mod fetch_session;
pub mod group;
pub mod transaction;
