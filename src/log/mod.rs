//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.
//! Files and bytes are Kafka's own.

mod append;
mod aside;
mod checkpoint;
mod clean;
mod cleaned_segment;
mod cleaner;
mod cleaner_filter;
mod cleaner_map;
mod cleaner_plan;
mod cleaner_transactions;
mod config;
mod contents;
mod dir_core;
mod entries;
mod epochs;
mod error;
mod figures;
mod file_cache;
mod flush;
mod flush_many;
mod future;
mod inventory;
mod links;
mod listing;
#[allow(clippy::module_inception)]
mod log;
mod log_dir;
mod made;
mod meta_properties;
mod missing;
mod names;
mod offset_index;
mod partition_dir;
mod partition_metadata;
mod producer_snapshot;
mod producer_state;
mod read;
mod recover_segment;
mod recovery;
mod replace;
mod replay;
mod retention;
mod room;
mod scan;
mod seams;
mod segment;
mod slice;
mod swap;
mod take_up;
mod time_index;
mod timestamps;
mod truncate;
mod txn_index;

pub use aside::SetAside;
pub use cleaner::{Cleaned, Cleaner, CleanerLimits};
pub use config::LogConfig;
pub use contents::DirContents;
pub use error::{AppendError, LogError, ReadError};
pub use file_cache::FileCache;
pub use future::{Copied, MoveError, Replacing};
pub use links::SharedLinks;
pub use log::{
    ActiveProducer, AppendContext, Appended, Deletion, Log, LogSlice, Origin, ProducerTxn,
    TimestampOffset, VerificationGuard, Verified,
};
pub use log_dir::{LoadOptions, LoadReport, Loaded, LogDir, LogDirError};
pub use meta_properties::MetaProperties;
pub use names::can_have_future;
pub use txn_index::AbortedTxn;

#[cfg(test)]
pub(crate) mod tests;
