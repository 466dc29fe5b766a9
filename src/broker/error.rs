//! Why a node does not start, in words that name the cause, and the exit code that goes with it.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::ConfigError;
use crate::log::{LogDirError, LogError};
use crate::partition::PartitionsError;
use crate::quorum::QuorumError;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{}", lines(.0))]
    Config(Vec<ConfigError>),
    #[error("cannot read {path}: {source}{}", no_command(path, source))]
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
    #[error("{dir} belongs to {found}, this node is {expected}")]
    ForeignLogDir {
        dir: PathBuf,
        found: String,
        expected: String,
    },
    #[error("cannot open the metadata store {path}: {source}")]
    Store {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Quorum(#[from] QuorumError),
    #[error("{0}")]
    Partitions(#[from] PartitionsError),
    #[error("the controller refused this broker: {0}")]
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
            | StartError::Store { .. }
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
        let StartError::LogDir(LogDirError::Storage(LogError::Io { path, source, .. })) = self
        else {
            return None;
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

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A single word that is no file was perhaps meant as a command.
fn no_command(path: &Path, error: &io::Error) -> &'static str {
    let is_word = path.components().count() == 1 && path.extension().is_none();
    match error.kind() {
        io::ErrorKind::NotFound if is_word => "; nor is it a command (klamm --help lists them)",
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
