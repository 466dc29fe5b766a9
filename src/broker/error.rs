//! Why a node does not start, in words that name the cause, and the exit code that goes with it.

use std::io;
use std::path::{Path, PathBuf};

use super::earlier::{Trace, What};
use super::kafka_directory::KafkaDirectoryError;
use crate::config::{ConfigError, Origin};
use crate::log::{LogDirError, LogError};
use crate::partition::PartitionsError;
use crate::quorum::QuorumError;
use crate::types::with_causes;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{}", lines(.0))]
    Config(Vec<ConfigError>),
    #[error("cannot read {path}: {source}")]
    ConfigFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on {listener}: {source}{}", hint(source))]
    Bind {
        listener: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot resolve {host} of listener {listener}: {source}")]
    Resolve {
        listener: String,
        host: String,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    LogDir(#[from] LogDirError),
    #[error(
        "log.dirs: {dir} is a copy of {other}: both have the same directory.id in meta.properties; \
         take one of them out (nothing was changed)"
    )]
    CopiedLogDir { dir: PathBuf, other: PathBuf },
    #[error(
        "log.dirs: {dir} and {other} are the same directory, by a link or another name; take one \
         of them out (nothing was changed)"
    )]
    SameLogDir { dir: PathBuf, other: PathBuf },
    #[error(
        "there is no metadata of this node in {metadata_dir}, and {trace}: it would begin an \
         empty cluster beside its old data (nothing was changed)"
    )]
    NoMetadata { metadata_dir: PathBuf, trace: Trace },
    #[error("{dir} belongs to {found}, this node is {expected}")]
    ForeignLogDir {
        dir: PathBuf,
        found: String,
        expected: String,
    },
    #[error("the data in {dir} belongs to cluster {stored}, but {origin} says {configured}", dir = .dir.display())]
    ForeignCluster {
        dir: PathBuf,
        stored: String,
        configured: String,
        origin: Origin,
    },
    #[error("cannot open the metadata store {path}: {source}{}", no_space(source))]
    Store {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot take over Kafka's metadata: {}", with_causes(.0))]
    KafkaDirectory(#[from] KafkaDirectoryError),
    #[error("{0}")]
    Quorum(#[from] QuorumError),
    #[error("{0}")]
    Partitions(#[from] PartitionsError),
    #[error("the controllers refuse this broker: {0}")]
    Refused(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("no log directory works any more; the first error above says why")]
    NoLogDir,
}

impl StartError {
    /// 2: what was asked for is wrong. 1: the machine does not let it.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::Config(_) | StartError::ConfigFile { .. } | StartError::Unsupported(_) => 2,
            StartError::Bind { .. }
            | StartError::Resolve { .. }
            | StartError::LogDir(_)
            | StartError::ForeignLogDir { .. }
            | StartError::CopiedLogDir { .. }
            | StartError::SameLogDir { .. }
            | StartError::NoMetadata { .. }
            | StartError::ForeignCluster { .. }
            | StartError::Store { .. }
            | StartError::KafkaDirectory(_)
            | StartError::Quorum(_)
            | StartError::Partitions(_)
            | StartError::NoLogDir
            | StartError::Refused(_) => 1,
        }
    }
}

impl StartError {
    /// The way out, where the error itself does not name it.
    pub fn advice(&self) -> Option<String> {
        let (path, source) = match self {
            StartError::LogDir(LogDirError::Storage(LogError::Io { path, source, .. })) => {
                (path, source)
            }
            StartError::ForeignCluster { dir, stored, .. } => {
                return Some(format!(
                    "to go on with this data set it to {stored}, or leave it out; for a new \
                     cluster name another directory than {} (log.dirs), or empty it",
                    dir.display()
                ));
            }
            StartError::NoMetadata {
                metadata_dir,
                trace,
            } => return Some(where_metadata_is(metadata_dir, trace)),
            StartError::Quorum(error) => return error.advice(),
            _ => return None,
        };
        let uid = rustix::process::getuid().as_raw();
        (source.kind() == io::ErrorKind::PermissionDenied).then(|| {
            format!(
                "user {uid} may not write to {}: give the directory to that user (chown), or start \
                 as root (in a compose file `user: \"0\"`)",
                path.display()
            )
        })
    }
}

fn where_metadata_is(metadata_dir: &Path, trace: &Trace) -> String {
    let (place, dir) = (metadata_dir.display(), trace.dir.display());
    match &trace.what {
        _ if trace.is_metadata() => format!(
            "log.dirs may be in another order than before: name {dir} first, or set \
             metadata.log.dir={dir}; for a new cluster empty every directory, {dir} too"
        ),
        What::Unknown(_) => {
            "make it work, or take it out of log.dirs if it is to hold nothing".to_owned()
        }
        _ => format!(
            "put back what was in {place} (is its file system mounted?), or the log.dirs or \
             metadata.log.dir of before; for a new cluster empty every directory, {dir} too"
        ),
    }
}

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A start is a change of the metadata: the broker registers anew.
fn no_space(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; a start has to write some KiB of metadata: make room in this file system and start \
             again, nothing was lost"
        }
        _ => "",
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another process has this port (is a broker running?)",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}
