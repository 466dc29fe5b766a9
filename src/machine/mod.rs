//! PURE state machines: fetch sessions, groups.

pub mod fetch_session;
pub mod group;
