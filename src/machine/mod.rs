//! PURE state machines: fetch sessions.

pub mod fetch_session;
