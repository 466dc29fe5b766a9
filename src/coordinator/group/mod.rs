//! The group coordinator of a broker: finds the partition of a group, drives its machine through
//! the runtime, and turns what went wrong there into the errors that clients know.

mod coordinator;
mod machine;
#[cfg(test)]
mod tests;

pub use coordinator::GroupCoordinator;
pub(super) use coordinator::client_error;
pub use machine::{GroupMachine, TopicsSource};
