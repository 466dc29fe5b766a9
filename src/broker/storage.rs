//! The directories of a node: locked, formatted when new, refused when they belong to another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use uuid::Uuid;

use super::StartError;
use crate::config::NodeConfig;
use crate::host::{Host, KeyValue, random};
use crate::log::{FileCache, LogDir, LogDirError, MetaProperties};
use crate::quorum::Quorum;
use crate::types::BrokerId;

/// The part of a log directory that holds the metadata: Kafka's own, and this node's within it.
/// Kafka leaves entries that it does not know alone.
const KAFKA_METADATA_DIR: &str = "__cluster_metadata-0";
const METADATA_DIR: &str = "klamm";

/// Which part of the process's file handles segment files may take.
const FILE_SHARE: usize = 4;

/// More open files than that are not worth their memory, in the kernel and here: opening one anew
/// takes some microseconds.
const OPEN_FILES_MAX: usize = 768;

/// Handles that are neither segment files nor connections: the store, locks, checkpoints, timers.
const OTHER_HANDLES: usize = 64;

/// How many connections leave handles for the files: without one to open a file with, a log
/// directory could not work.
pub fn connections_max(file_handles_max: usize) -> usize {
    let files = OPEN_FILES_MAX.min(file_handles_max / FILE_SHARE) + OTHER_HANDLES;
    file_handles_max.saturating_sub(files).max(8)
}

/// The directories, locked.
pub struct Storage {
    pub log_dirs: Vec<Arc<LogDir>>,
    /// `None`: this node keeps no metadata of its own.
    pub metadata: Option<Arc<dyn KeyValue>>,
    /// Where a Kafka that ran here keeps its metadata.
    pub kafka_metadata: PathBuf,
    /// The id of the directory that holds the metadata, if it has one.
    pub metadata_directory_id: Option<Uuid>,
    /// What the directories say about whose they are; for new ones what the configuration says.
    pub cluster_id: Option<String>,
    /// Becomes true when no log directory works any more.
    pub all_offline: watch::Receiver<bool>,
}

/// Opens and locks everything under `log.dirs` and `metadata.log.dir`.
pub fn open(
    host: &Host,
    config: &NodeConfig,
    node_id: BrokerId,
    file_handles_max: usize,
) -> Result<Storage, StartError> {
    let open_files_max = OPEN_FILES_MAX.min(file_handles_max / FILE_SHARE);
    let files = Arc::new(FileCache::new(open_files_max));
    let mut log_dirs = Vec::new();
    let mut cluster_id: Option<(PathBuf, String)> = None;
    for path in config.broker.log_dirs() {
        let dir = LogDir::open(host.disk.clone(), Path::new(path), files.clone())?;
        let reserve_bytes = config.broker.log.klamm_log_dir_reserve_bytes;
        dir.set_reserve_bytes(reserve_bytes.max(0) as u64);
        if let Some(meta) = dir.meta_properties()? {
            check_node(&dir, &meta, node_id)?;
            check_cluster(&dir, &meta, &cluster_id)?;
            cluster_id.get_or_insert((dir.path().to_owned(), meta.cluster_id));
        }
        log_dirs.push(Arc::new(dir));
    }
    check_wanted(config, &cluster_id)?;
    let metadata_dir = metadata_dir(config);
    let kafka_metadata = metadata_dir.join(KAFKA_METADATA_DIR);
    let metadata_path = kafka_metadata.join(METADATA_DIR);
    let of_metadata = log_dirs.iter().find(|dir| dir.path() == metadata_dir);
    let meta = of_metadata.map(|dir| dir.meta_properties()).transpose()?;
    let metadata_directory_id = meta.flatten().and_then(|meta| meta.directory_id);
    let store = |source| StartError::Store {
        path: metadata_path.clone(),
        source,
    };
    let metadata: Option<Arc<dyn KeyValue>> = if config.broker.is_controller() {
        host.disk.create_dir_all(&metadata_path).map_err(store)?;
        Some((host.open_key_value)(&metadata_path).map_err(store)?)
    } else {
        None
    };
    Ok(Storage {
        all_offline: watch_offline(&log_dirs),
        log_dirs,
        metadata,
        kafka_metadata,
        metadata_directory_id,
        cluster_id: cluster_id
            .map(|(_, cluster_id)| cluster_id)
            .or(config.cluster_id().map(|(wanted, _)| wanted.to_owned())),
    })
}

fn watch_offline(log_dirs: &[Arc<LogDir>]) -> watch::Receiver<bool> {
    let (sender, all_offline) = watch::channel(false);
    let working = Arc::new(AtomicUsize::new(log_dirs.len()));
    for dir in log_dirs {
        let (sender, working) = (sender.clone(), working.clone());
        dir.on_offline(move || {
            if working.fetch_sub(1, Ordering::SeqCst) == 1 {
                sender.send_replace(true);
            }
        });
    }
    all_offline
}

fn metadata_dir(config: &NodeConfig) -> &Path {
    let first = || config.broker.log_dirs()[0].as_str();
    Path::new(config.broker.metadata_log_dir().unwrap_or_else(first))
}

/// Writes `meta.properties` where it is missing or without an id. The directory of the metadata has
/// the id by which the quorum knows this voter: tools read it there.
pub fn format_new(
    log_dirs: &[Arc<LogDir>],
    config: &NodeConfig,
    quorum: &Quorum,
) -> Result<(), LogDirError> {
    let (cluster_id, node_id) = (quorum.cluster_id(), quorum.node_id());
    for dir in log_dirs {
        // Kafka wrote none before directories had ids.
        let has_id = dir
            .meta_properties()?
            .is_some_and(|meta| meta.directory_id.is_some());
        if !has_id {
            let of_voter = dir.path() == metadata_dir(config) && !quorum.directory_id().is_nil();
            let directory_id = match of_voter {
                true => quorum.directory_id(),
                false => random::uuid(),
            };
            let directory_id = Some(directory_id);
            let cluster_id = cluster_id.to_string();
            dir.format(&MetaProperties {
                cluster_id,
                node_id,
                directory_id,
            })?;
            tracing::info!(dir = %dir.path().display(), "formatted");
        }
    }
    Ok(())
}

fn check_node(dir: &LogDir, meta: &MetaProperties, node_id: BrokerId) -> Result<(), StartError> {
    if meta.node_id == node_id {
        return Ok(());
    }
    Err(StartError::ForeignLogDir {
        dir: dir.path().to_owned(),
        found: format!("node.id={}", meta.node_id),
        expected: format!("node.id={node_id}"),
    })
}

fn check_cluster(
    dir: &LogDir,
    meta: &MetaProperties,
    first: &Option<(PathBuf, String)>,
) -> Result<(), StartError> {
    match first {
        Some((path, cluster_id)) if *cluster_id != meta.cluster_id => {
            Err(StartError::ForeignLogDir {
                dir: dir.path().to_owned(),
                found: format!("cluster {}", meta.cluster_id),
                expected: format!("of cluster {cluster_id} ({})", path.display()),
            })
        }
        _ => Ok(()),
    }
}

/// The cluster of the configuration, if it names one.
fn check_wanted(config: &NodeConfig, found: &Option<(PathBuf, String)>) -> Result<(), StartError> {
    match (found, config.cluster_id()) {
        (Some((dir, stored)), Some((configured, origin))) if stored != configured => {
            Err(StartError::ForeignCluster {
                dir: dir.clone(),
                stored: stored.clone(),
                configured: configured.to_owned(),
                origin: origin.clone(),
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, environment_properties};

    fn opened(dir: &Path, cluster_id: &str) -> Result<Storage, StartError> {
        let log_dirs = dir.to_string_lossy();
        let variables = [("KAFKA_LOG_DIRS", &*log_dirs), ("CLUSTER_ID", cluster_id)];
        let (config, _) = NodeConfig::load(Sources {
            environment: environment_properties(variables),
            ..Sources::default()
        })
        .unwrap();
        open(&Host::real(), &config, BrokerId(1), 1024)
    }

    #[test]
    fn a_directory_of_another_cluster_than_the_named_one_is_refused_with_both_ids() {
        let dir = tempfile::tempdir().unwrap();
        let storage = opened(dir.path(), "A").unwrap();
        assert_eq!(
            storage.cluster_id.as_deref(),
            Some("A"),
            "a new one takes it"
        );
        let directory_id = None;
        storage.log_dirs[0]
            .format(&MetaProperties {
                cluster_id: "A".to_owned(),
                node_id: BrokerId(1),
                directory_id,
            })
            .unwrap();
        drop(storage);
        assert!(opened(dir.path(), "A").is_ok());
        assert!(opened(dir.path(), "").is_ok());
        let error = opened(dir.path(), "B").err().unwrap();
        let place = dir.path().display();
        assert_eq!(
            error.to_string(),
            format!("the data in {place} belongs to cluster A, but environment CLUSTER_ID says B")
        );
        let advice = error.advice().unwrap();
        assert!(advice.contains("set it to A"), "{advice}");
        assert!(advice.contains("log.dirs"), "{advice}");
    }
}
