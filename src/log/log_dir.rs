//! A log directory: interface first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::host::{Disk, Space};
use crate::types::{BrokerId, Offset, TimestampMs, TopicId, TopicPartition};

use super::config::LogConfig;
use super::error::LogError;
use super::file_cache::FileCache;
use super::log::{Deletion, Log};

/// The content of `meta.properties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: BrokerId,
    pub directory_id: Uuid,
}

/// Why a log directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogDirError {
    #[error(transparent)]
    Storage(#[from] LogError),
    #[error("{path} is locked by another process")]
    Locked { path: PathBuf },
    #[error("{path}: {reason}")]
    Meta { path: PathBuf, reason: String },
}

/// What `LogDir::load` does besides opening.
pub struct LoadOptions<'a> {
    pub now: TimestampMs,
    /// `num.recovery.threads.per.data.dir`
    pub threads: usize,
    pub config_of: &'a (dyn Fn(&TopicPartition) -> Arc<LogConfig> + Sync),
}

/// What became of one partition directory.
pub struct Loaded {
    pub topic_partition: TopicPartition,
    pub log: Result<Arc<Log>, LogError>,
    /// From `replication-offset-checkpoint`.
    pub high_watermark: Option<Offset>,
    /// Bytes read for recovery; 0 after a clean stop.
    pub recovered_bytes: u64,
    /// Bytes cut off the end.
    pub truncated_bytes: u64,
}

/// What `LogDir::load` found.
pub struct LoadReport {
    /// The broker epoch of the last clean stop; `None` after a crash.
    pub clean_stop: Option<i64>,
    pub partitions: Vec<Loaded>,
    /// Entries that are no partition and were left alone.
    pub ignored: Vec<String>,
}

/// One entry of `log.dirs`, locked by this process.
pub struct LogDir {
    path: PathBuf,
}

#[allow(unused_variables)]
impl LogDir {
    /// Makes the directory if need be and takes its lock.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: &Path,
        files: Arc<FileCache>,
    ) -> Result<LogDir, LogDirError> {
        unimplemented!()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `None`: not formatted yet.
    pub fn meta_properties(&self) -> Result<Option<MetaProperties>, LogDirError> {
        unimplemented!()
    }

    /// Writes `meta.properties`.
    pub fn format(&self, meta: &MetaProperties) -> Result<(), LogDirError> {
        unimplemented!()
    }

    /// Opens every partition; after a crash recovers what was not flushed.
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<LoadReport, LogDirError> {
        unimplemented!()
    }

    /// A new, empty log.
    pub fn create_log(
        &self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: Arc<LogConfig>,
        now: TimestampMs,
    ) -> Result<Arc<Log>, LogError> {
        unimplemented!()
    }

    pub fn log(&self, topic_partition: &TopicPartition) -> Option<Arc<Log>> {
        unimplemented!()
    }

    pub fn logs(&self) -> Vec<Arc<Log>> {
        unimplemented!()
    }

    /// Takes a partition out (renamed to `-delete`); its files go when the deletion is run.
    pub fn delete_log(
        &self,
        topic_partition: &TopicPartition,
        now: TimestampMs,
    ) -> Result<Option<Deletion>, LogError> {
        unimplemented!()
    }

    /// Removes files whose time has come.
    pub fn remove(&self, deletion: &Deletion) -> Result<(), LogError> {
        unimplemented!()
    }

    /// `Log::checkpoint` of every log with at least `unflushed_bytes_min` not flushed, then
    /// `recovery-point-offset-checkpoint` and `log-start-offset-checkpoint`.
    pub fn checkpoint(&self, unflushed_bytes_min: u64) -> Result<(), LogError> {
        unimplemented!()
    }

    /// Only the file. Call it after truncating many logs, before they are appended to.
    pub fn write_recovery_points(&self) -> Result<(), LogError> {
        unimplemented!()
    }

    /// `replication-offset-checkpoint`
    pub fn write_high_watermarks(
        &self,
        high_watermarks: &[(TopicPartition, Offset)],
    ) -> Result<(), LogError> {
        unimplemented!()
    }

    /// Why the directory is offline; `None` while it works.
    pub fn offline_reason(&self) -> Option<String> {
        unimplemented!()
    }

    pub fn space(&self) -> Result<Space, LogError> {
        unimplemented!()
    }

    /// Clean stop: closes every log, writes the checkpoints and the marker.
    pub fn close(&self, broker_epoch: i64) -> Result<(), LogError> {
        unimplemented!()
    }
}
