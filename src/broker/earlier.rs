//! What shows that a node whose metadata store is empty had one before: its metadata is somewhere
//! else, and an empty cluster of the same id would take its place.
//!
//! 1. A node that is alone does not begin anew beside what is left of an earlier cluster. Clients
//!    would find no topics and make them again, and the old records would be set aside.
//! 2. One of several voters may have lost the disk of its metadata: it learns them from the others.
//!    It begins no cluster with them (`quorum`), and does not pass over a store of its own that
//!    lies in another of its directories.
//! 3. Looking changes nothing on disk, and what another node or cluster has written is left to
//!    those who check that.

use std::fmt;
use std::path::{Path, PathBuf};

use super::kafka_directory;
use super::role::Role;
use super::storage::{KAFKA_METADATA_DIR, METADATA_DIR};
use crate::config::NodeConfig;
use crate::host::Disk;
use crate::log::DirContents;
use crate::types::{BrokerId, TopicPartition, some_of};

/// How many partitions are named.
const NAMES: usize = 3;

/// What was found, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    pub dir: PathBuf,
    pub what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// A metadata store of ours.
    Store,
    /// That of a Kafka.
    KafkaMetadata,
    /// The first of them, and how many there are.
    Partitions(Vec<TopicPartition>, usize),
    Checkpoints,
    /// It cannot be looked at.
    Unknown(String),
}

impl Trace {
    /// The directory is the one that the metadata was kept in.
    pub fn is_metadata(&self) -> bool {
        matches!(self.what, What::Store | What::KafkaMetadata)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = self.dir.display();
        match &self.what {
            What::Store => write!(f, "{dir} has a metadata store ({KAFKA_METADATA_DIR})"),
            What::KafkaMetadata => {
                write!(
                    f,
                    "{dir} has the metadata of a Kafka ({KAFKA_METADATA_DIR})"
                )
            }
            What::Partitions(first, count) => {
                let names = some_of(first, *count, first.len());
                write!(f, "{dir} has partitions ({names})")
            }
            What::Checkpoints => write!(f, "{dir} was used by a broker (its checkpoint files)"),
            What::Unknown(reason) => write!(f, "{dir} cannot be looked at ({reason})"),
        }
    }
}

/// What an empty metadata store means for the node.
#[derive(Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It was never there.
    Nothing,
    /// The others have to have it.
    LeftToOthers(Trace),
    /// It must not start.
    Refused(Trace),
}

/// To be called when the store of `metadata_dir` is not there or empty.
pub fn look(
    disk: &dyn Disk,
    config: &NodeConfig,
    node_id: BrokerId,
    role: &Role,
    metadata_dir: &Path,
) -> Earlier {
    let is_alone = match role {
        Role::Observer { .. } => return Earlier::Nothing,
        Role::Alone => true,
        Role::Voter { voters, .. } => voters.len() == 1,
        Role::Dynamic { .. } => false,
    };
    if kafka_directory::is_there(disk, &metadata_dir.join(KAFKA_METADATA_DIR)) {
        return Earlier::Nothing;
    }
    let dirs = config.broker.log_dirs().iter().map(Path::new);
    let traces: Vec<Trace> = dirs
        .filter_map(|dir| trace(disk, config, node_id, dir, dir == metadata_dir))
        .collect();
    let (of_metadata, others): (Vec<_>, Vec<_>) = traces.into_iter().partition(Trace::is_metadata);
    let (unknown, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|trace| matches!(trace.what, What::Unknown(_)));
    if let Some(trace) = of_metadata.into_iter().next() {
        return Earlier::Refused(trace);
    }
    match (others.into_iter().next(), unknown.into_iter().next()) {
        (Some(trace), _) if !is_alone => Earlier::LeftToOthers(trace),
        (Some(trace), _) => Earlier::Refused(trace),
        // A new cluster does not begin before all its directories can be looked at.
        (None, Some(trace)) if is_alone => Earlier::Refused(trace),
        (None, _) => Earlier::Nothing,
    }
}

fn trace(
    disk: &dyn Disk,
    config: &NodeConfig,
    node_id: BrokerId,
    dir: &Path,
    has_metadata: bool,
) -> Option<Trace> {
    let found = |what| {
        let dir = dir.to_owned();
        Some(Trace { dir, what })
    };
    let contents = match DirContents::read(disk, dir) {
        Ok(contents) => contents,
        // That it has to work is said by who opens it.
        Err(_) if has_metadata => return None,
        Err(error) => return found(What::Unknown(error.to_string())),
    };
    if let Some(meta) = &contents.meta {
        let wanted = config.cluster_id().map(|(wanted, _)| wanted);
        if meta.node_id != node_id || wanted.is_some_and(|wanted| wanted != meta.cluster_id) {
            return None;
        }
    }
    let kafka_metadata = dir.join(KAFKA_METADATA_DIR);
    let store = disk.list(&kafka_metadata.join(METADATA_DIR));
    let count = contents.partitions.len();
    if !has_metadata && store.is_ok_and(|files| !files.is_empty()) {
        found(What::Store)
    } else if !has_metadata && kafka_directory::is_there(disk, &kafka_metadata) {
        found(What::KafkaMetadata)
    } else if count > 0 {
        let first = contents.partitions.into_iter().take(NAMES).collect();
        found(What::Partitions(first, count))
    } else if contents.was_used {
        found(What::Checkpoints)
    } else {
        None
    }
}
