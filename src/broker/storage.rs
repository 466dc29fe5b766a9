//! The directories of a node: locked, formatted when new, refused when they belong to another.
//!
//! A log directory that cannot be used is offline from the start, and the others serve, as long as
//! it is not the one that holds the metadata and one other works. A node whose metadata is gone
//! does not begin anew beside its old data (`earlier`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::StartError;
use super::directory_ids::known_before;
use super::earlier::{self, Earlier, Trace};
use super::role::Role;
use crate::config::NodeConfig;
use crate::host::{Host, KeyValue, random};
use crate::log::{FileCache, LogDir, LogDirError, MetaProperties};
use crate::quorum::{self, Quorum};
use crate::types::{BrokerId, base64_uuid, with_causes};

/// The part of a log directory that holds the metadata: Kafka's own, and this node's within it.
/// Kafka leaves entries that it does not know alone.
pub(super) const KAFKA_METADATA_DIR: &str = "__cluster_metadata-0";
pub(super) const METADATA_DIR: &str = "klamm";

/// Which part of the process's file handles segment files may take.
const FILE_SHARE: usize = 4;

/// More open files than that are not worth their memory, in the kernel and here: opening one anew
/// takes some microseconds.
const OPEN_FILES_MAX: usize = 768;

/// Handles that are neither segment files nor connections of clients: the store, locks,
/// checkpoints, timers, and up to 32 connections of those who ask for metrics.
const OTHER_HANDLES: usize = 96;

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
    /// The store is empty, and this shows that it was not always.
    pub earlier: Option<Trace>,
    /// What the directories say about whose they are; for new ones what the configuration says.
    pub cluster_id: Option<String>,
    /// How many log directories work.
    pub working: watch::Receiver<usize>,
}

/// Opens and locks everything under `log.dirs` and `metadata.log.dir`.
pub fn open(
    host: &Host,
    config: &NodeConfig,
    node_id: BrokerId,
    file_handles_max: usize,
) -> Result<Storage, StartError> {
    check_distinct(host, config)?;
    let role = Role::of(config)?;
    let kafka_metadata = metadata_dir(config).join(KAFKA_METADATA_DIR);
    let metadata_path = kafka_metadata.join(METADATA_DIR);
    let mut earlier = None;
    let is_there = host.disk.exists(&metadata_path);
    if !is_there {
        earlier = look_for_earlier(host, config, node_id, &role)?;
    }
    let open_files_max = OPEN_FILES_MAX.min(file_handles_max / FILE_SHARE);
    let files = Arc::new(FileCache::new(open_files_max));
    let mut log_dirs = Vec::new();
    let mut cluster_id: Option<(PathBuf, String)> = None;
    let metadata_dir = metadata_dir(config);
    let mut unusable = None;
    for path in config.broker.log_dirs() {
        let path = Path::new(path);
        let has_metadata = config.broker.is_controller() && path == metadata_dir;
        let (dir, meta) = match open_log_dir(host, path, &files) {
            Err(error @ LogDirError::Storage(_)) if !has_metadata => {
                let (disk, reason) = (host.disk.clone(), with_causes(&error));
                let dir = LogDir::unusable(disk, path, files.clone(), &reason);
                unusable.get_or_insert(error);
                (dir, None)
            }
            opened => opened?,
        };
        let reserve_bytes = config.broker.log.klamm_log_dir_reserve_bytes;
        dir.set_reserve_bytes(reserve_bytes.max(0) as u64);
        if let Some(meta) = meta {
            check_node(&dir, &meta, node_id)?;
            check_cluster(&dir, &meta, &cluster_id)?;
            check_copy(&dir, &meta, &log_dirs)?;
            cluster_id.get_or_insert((dir.path().to_owned(), meta.cluster_id));
        }
        log_dirs.push(Arc::new(dir));
    }
    if let Some(error) = unusable
        && !log_dirs.iter().any(works)
    {
        return Err(error.into());
    }
    check_wanted(config, &cluster_id)?;
    let mut working = log_dirs.iter().filter(|dir| works(dir));
    let of_metadata = working.find(|dir| dir.path() == metadata_dir);
    let meta = of_metadata.map(|dir| dir.meta_properties()).transpose()?;
    let metadata_directory_id = meta.flatten().and_then(|meta| meta.directory_id);
    let store = |source| StartError::Store {
        path: metadata_path.clone(),
        source,
    };
    let metadata: Option<Arc<dyn KeyValue>> = if config.broker.is_controller() {
        host.disk.create_dir_all(&metadata_path).map_err(store)?;
        let opened = (host.open_key_value)(&metadata_path).map_err(store)?;
        // A crash at the first start leaves one that is empty.
        if is_there && !quorum::is_formatted(&*opened)? {
            earlier = look_for_earlier(host, config, node_id, &role)?;
        }
        Some(opened)
    } else {
        None
    };
    Ok(Storage {
        working: watch_working(&log_dirs),
        log_dirs,
        metadata,
        kafka_metadata,
        metadata_directory_id,
        earlier,
        cluster_id: cluster_id
            .map(|(_, cluster_id)| cluster_id)
            .or(config.cluster_id().map(|(wanted, _)| wanted.to_owned())),
    })
}

/// Links may lead two entries of `log.dirs` to one directory.
fn check_distinct(host: &Host, config: &NodeConfig) -> Result<(), StartError> {
    let mut before: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    for path in config.broker.log_dirs().iter().map(Path::new) {
        let Ok(real) = host.disk.real_path(path) else {
            continue;
        };
        if let Some(other) = before.insert(real, path) {
            return Err(StartError::SameLogDir {
                dir: path.to_owned(),
                other: other.to_owned(),
            });
        }
    }
    Ok(())
}

/// For a node whose store is empty.
fn look_for_earlier(
    host: &Host,
    config: &NodeConfig,
    node_id: BrokerId,
    role: &Role,
) -> Result<Option<Trace>, StartError> {
    let metadata_dir = metadata_dir(config);
    match earlier::look(&*host.disk, config, node_id, role, metadata_dir) {
        Earlier::Nothing => Ok(None),
        Earlier::LeftToOthers(trace) => Ok(Some(trace)),
        Earlier::Refused(trace) => Err(StartError::NoMetadata {
            metadata_dir: metadata_dir.to_owned(),
            trace,
        }),
    }
}

/// The directory, and what it says of itself.
fn open_log_dir(
    host: &Host,
    path: &Path,
    files: &Arc<FileCache>,
) -> Result<(LogDir, Option<MetaProperties>), LogDirError> {
    let dir = LogDir::open(host.disk.clone(), path, files.clone())?;
    let meta = dir.meta_properties()?;
    Ok((dir, meta))
}

fn works(dir: &Arc<LogDir>) -> bool {
    dir.offline_reason().is_none()
}

fn watch_working(log_dirs: &[Arc<LogDir>]) -> watch::Receiver<usize> {
    let count = log_dirs.iter().filter(|dir| works(dir)).count();
    let (sender, working) = watch::channel(count);
    let sender = Arc::new(sender);
    for dir in log_dirs {
        let sender = sender.clone();
        dir.on_offline(move || sender.send_modify(|working| *working -= 1));
    }
    working
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
    let without_id = log_dirs
        .iter()
        .filter(|dir| works(dir) && dir.id().is_none());
    let is_of_voter =
        |dir: &LogDir| dir.path() == metadata_dir(config) && !quorum.directory_id().is_nil();
    let logs = without_id.clone().map(|dir| match is_of_voter(dir) {
        true => Vec::new(),
        // One that cannot be read fails when it is loaded.
        false => dir.contents().unwrap_or_default().partitions,
    });
    let logs: Vec<_> = logs.collect();
    let present = log_dirs.iter().filter_map(|dir| dir.id());
    let present = present.chain([quorum.directory_id()]).collect();
    let known = known_before(&quorum.image(), quorum.node_id(), &present, &logs);
    for (dir, known) in without_id.zip(known) {
        let formatted = match (is_of_voter(dir), known) {
            (true, _) => format(dir, quorum, quorum.directory_id(), false),
            (false, Some(id)) => format(dir, quorum, id, true),
            (false, None) => format(dir, quorum, random::uuid(), false),
        };
        let Err(error) = formatted else {
            continue;
        };
        dir.fail(&with_causes(&error));
        if dir.path() == metadata_dir(config) || !log_dirs.iter().any(works) {
            return Err(error);
        }
    }
    Ok(())
}

fn format(
    dir: &LogDir,
    quorum: &Quorum,
    directory_id: Uuid,
    is_known: bool,
) -> Result<(), LogDirError> {
    let meta = MetaProperties {
        cluster_id: quorum.cluster_id().to_string(),
        node_id: quorum.node_id(),
        directory_id: Some(directory_id),
    };
    let (path, id) = (dir.path().display(), base64_uuid(directory_id));
    if is_known {
        dir.format_again(&meta)?;
        tracing::warn!(
            dir = %path, %id,
            "meta.properties had no directory.id: it has its old one again, by its partitions"
        );
    } else {
        dir.format(&meta)?;
        tracing::info!(dir = %path, "formatted");
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

/// Two directories of one id are copies: nobody could tell which of two logs of a partition counts.
fn check_copy(
    dir: &LogDir,
    meta: &MetaProperties,
    before: &[Arc<LogDir>],
) -> Result<(), StartError> {
    let same =
        |other: &&Arc<LogDir>| meta.directory_id.is_some() && other.id() == meta.directory_id;
    match before.iter().find(same) {
        None => Ok(()),
        Some(other) => Err(StartError::CopiedLogDir {
            dir: dir.path().to_owned(),
            other: other.path().to_owned(),
        }),
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
    use crate::quorum::{NoTransport, QuorumConfig};

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

    fn config_of(dirs: &[&Path]) -> NodeConfig {
        let dirs: Vec<_> = dirs.iter().map(|dir| dir.to_string_lossy()).collect();
        let (config, _) = NodeConfig::load(Sources {
            environment: environment_properties([("KAFKA_LOG_DIRS", &*dirs.join(","))]),
            ..Sources::default()
        })
        .unwrap();
        config
    }

    #[test]
    fn a_directory_and_its_copy_are_refused_before_anything_is_changed() {
        let temporary = tempfile::tempdir().unwrap();
        let [first, second, copy] = ["a", "b", "c"].map(|name| temporary.path().join(name));
        let dirs: [&Path; 3] = [&first, &second, &copy];
        let open = || open(&Host::real(), &config_of(&dirs), BrokerId(1), 1024);
        let storage = open().unwrap();
        for (dir, id) in storage.log_dirs.iter().zip([1, 2, 2]) {
            let meta = MetaProperties {
                cluster_id: "c".to_owned(),
                node_id: BrokerId(1),
                directory_id: Some(Uuid::from_u128(1000 + id)),
            };
            dir.format(&meta).unwrap();
        }
        drop(storage);
        let error = open().err().unwrap().to_string();
        for path in [&second, &copy] {
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_used_is_offline_unless_it_has_to_work() {
        let temporary = tempfile::tempdir().unwrap();
        let [good, file, other] = ["good", "file", "other"].map(|n| temporary.path().join(n));
        let mode = crate::host::OpenMode::Create;
        Host::real().disk.open(&file, mode).unwrap();
        let open = |dirs: &[&Path]| open(&Host::real(), &config_of(dirs), BrokerId(1), 1024);
        // A new node wants them all.
        let error = open(&[&good, &file, &other]).err().unwrap();
        assert!(matches!(error, StartError::NoMetadata { .. }), "{error}");
        let storage = open(&[&good, &other]).unwrap();
        let metadata = storage.metadata.clone().unwrap();
        drop(storage);
        let config = QuorumConfig::single(BrokerId(1), None);
        Quorum::start(config, metadata, Arc::new(NoTransport))
            .await
            .unwrap()
            .shutdown()
            .await;
        let storage = open(&[&good, &file, &other]).unwrap();
        let reasons = storage.log_dirs.iter().map(|dir| dir.offline_reason());
        let reasons: Vec<_> = reasons.collect();
        assert!(matches!(&reasons[..], [None, Some(_), None]), "{reasons:?}");
        assert_eq!(*storage.working.borrow(), 2);
        storage.log_dirs[2].fail("for a test");
        assert_eq!(*storage.working.borrow(), 1);
        drop(storage);
        // The first one has the metadata.
        let error = open(&[&file, &other]).err().unwrap();
        assert!(matches!(error, StartError::LogDir(_)), "{error}");
        let error = open(&[&file]).err().unwrap();
        assert!(matches!(error, StartError::LogDir(_)), "{error}");
    }
}
