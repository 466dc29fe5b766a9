//! The group coordinator of a broker: finds the partition of a group, drives its machine through
//! the runtime, and turns what went wrong there into the errors that clients know.

mod coordinator;
mod machine;
mod observer;
mod source;
#[cfg(test)]
mod tests;

pub use coordinator::GroupCoordinator;
pub(super) use coordinator::client_error;
pub use machine::{ClusterView, GroupMachine};
pub use source::{ClusterSource, group_config};
