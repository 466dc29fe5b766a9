//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.
//! Files and bytes are Kafka's own.

mod config;
mod error;
mod file_cache;
#[allow(clippy::module_inception)]
mod log;
mod log_dir;

pub use config::LogConfig;
pub use error::{AppendError, LogError, ReadError};
pub use file_cache::FileCache;
pub use log::{
    AbortedTxn, ActiveProducer, AppendContext, Appended, Deletion, Log, LogSlice, Origin,
    TimestampOffset,
};
pub use log_dir::{LoadOptions, LoadReport, Loaded, LogDir, LogDirError, MetaProperties};
