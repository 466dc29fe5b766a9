//! Start and stop order of one node.
//!
//! ```text
//! start   listeners bound -> health and metrics served -> log directories locked -> quorum
//!         -> partitions recovered -> broker registered -> accepting -> ready
//! stop    connections closed -> background work ended -> logs flushed and marked clean -> quorum
//! ```
//!
//! 1. A port that is taken, a locked directory, a wrong cluster id: found before anything is
//!    written.
//! 2. A node whose metadata is gone is no new node (`earlier`).
//! 3. Clients are served only when every partition of theirs is.

mod advertised;
mod background;
mod contested;
mod controller_log;
mod directories;
mod directory_ids;
mod earlier;
mod elections;
mod error;
mod kafka_directory;
mod lifecycle;
mod log_output;
mod monitor;
mod moves;
mod registration;
mod role;
mod scrape;
mod seen;
mod start;
mod storage;
mod transactions;

pub use advertised::doubts;
pub use error::StartError;
pub use log_output::{LogFormat, line as log_line, start_log};
pub use start::{Broker, Ready};

#[cfg(test)]
mod cluster_tests;

#[cfg(test)]
mod directory_tests;

#[cfg(test)]
mod monitor_tests;

#[cfg(test)]
mod tests;
