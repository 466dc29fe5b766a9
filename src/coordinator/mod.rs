//! Coordinators: load, decide, append, commit, reply.

pub mod group;
pub mod runtime;
mod runtime_log;
#[cfg(test)]
mod runtime_tests;
mod runtime_timer;
mod runtime_waiting;
mod topic_log;
pub mod transaction;

pub use topic_log::TopicLog;
