//! Links in the place of partitions' directories. One that leads out of the log directories is as
//! good as the directory itself. One that leads to what another log has too would have two logs
//! write the same files: it is not opened, and the log that is there itself is.
//!
//! 1. Of two links to one place neither is opened: nobody can tell whose the records are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::LogError;
use super::log_dir::LogDir;
use super::meta_properties;
use super::names::DirName;

/// Links that are not to be opened, and what else is where they lead.
#[derive(Debug, Default)]
pub struct SharedLinks(BTreeMap<PathBuf, PathBuf>);

impl SharedLinks {
    /// Of a node's directories. What cannot be looked at is said by who opens it.
    pub fn among<'a>(dirs: impl Iterator<Item = &'a Arc<LogDir>>) -> SharedLinks {
        let mut shared = BTreeMap::new();
        let mut by_target: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for dir in dirs {
            for (path, target) in links_in(dir) {
                if is_in_log_dir(dir, &target) {
                    shared.insert(path, target);
                } else if let Some(other) = by_target.get(&target) {
                    shared.insert(path.clone(), other.clone());
                    shared.insert(other.clone(), path);
                } else {
                    by_target.insert(target, path);
                }
            }
        }
        SharedLinks(shared)
    }

    pub(super) fn refuse(&self, path: &Path) -> Result<(), LogError> {
        match self.0.get(path) {
            None => Ok(()),
            Some(other) => Err(LogError::NoDirectory {
                path: path.to_owned(),
                what: format!(
                    "a link to what another log has too, {}: put the partition's own directory \
                     there, or remove the link",
                    other.display()
                ),
            }),
        }
    }
}

/// The links that have the name of a partition, and where they lead.
fn links_in(dir: &LogDir) -> Vec<(PathBuf, PathBuf)> {
    let core = &dir.core;
    let entries = core.disk.list(&core.path).unwrap_or_default();
    let link = |name: &str| {
        let (DirName::Partition(_) | DirName::Future(_)) = DirName::parse(name) else {
            return None;
        };
        let path = core.path.join(name);
        let is_link = core.disk.is_link(&path);
        is_link.then_some(())?;
        let target = core.disk.real_path(&path).ok()?;
        Some((path, target))
    };
    let dirs = entries.iter().filter(|entry| entry.is_dir);
    dirs.filter_map(|entry| link(&entry.name)).collect()
}

/// Whether `target` is a log directory, of this node or another, or an entry of one.
fn is_in_log_dir(dir: &LogDir, target: &Path) -> bool {
    let is_log_dir = |path: &Path| dir.core.disk.exists(&path.join(meta_properties::FILE));
    is_log_dir(target) || target.parent().is_some_and(is_log_dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::host::{Disk, RealDisk};
    use crate::log::{FileCache, LoadOptions, LogConfig, MetaProperties};
    use crate::types::{BrokerId, TimestampMs, TopicId, TopicPartition};

    /// The directories a and b, with t-0 in a.
    fn dirs(root: &Path) -> Vec<Arc<LogDir>> {
        let open = |(name, number)| {
            let files = Arc::new(FileCache::new(10));
            let dir = LogDir::open(Arc::new(RealDisk), &root.join(name), files).unwrap();
            let meta = MetaProperties {
                cluster_id: "c".to_owned(),
                node_id: BrokerId(1),
                directory_id: Some(uuid::Uuid::from_u128(number)),
            };
            dir.format(&meta).unwrap();
            Arc::new(dir)
        };
        let dirs: Vec<_> = [("a", 1), ("b", 2)].into_iter().map(open).collect();
        let partition = TopicPartition {
            topic: "t".into(),
            partition: 0,
        };
        let (config, now) = (Arc::new(LogConfig::default()), TimestampMs(1));
        let id = TopicId(uuid::Uuid::from_u128(5));
        dirs[0].create_log(partition, id, config, now).unwrap();
        dirs
    }

    /// The partitions in both directories that were opened, and what was said of the others.
    fn loaded(root: &Path) -> (Vec<String>, Vec<String>) {
        let open = |name: &&str| {
            let files = Arc::new(FileCache::new(10));
            let opened = LogDir::open(Arc::new(RealDisk), &root.join(name), files);
            Arc::new(opened.unwrap())
        };
        let dirs: Vec<_> = ["a", "b"].iter().map(open).collect();
        let options = LoadOptions {
            now: TimestampMs(1),
            file_delete_delay_ms: 0,
            threads: 1,
            shared_links: &SharedLinks::among(dirs.iter()),
            config_of: &|_| Arc::new(LogConfig::default()),
            is_known: &|_| true,
        };
        let (mut opened, mut refused) = (Vec::new(), Vec::new());
        for (dir, name) in dirs.iter().zip(["a", "b"]) {
            for loaded in dir.load(&options).unwrap().partitions {
                match loaded.log {
                    Ok(_) => opened.push(format!("{name}/{}", loaded.topic_partition)),
                    Err(error) => refused.push(error.to_string()),
                }
            }
        }
        (opened, refused)
    }

    #[test]
    fn a_link_to_another_logs_directory_is_refused_and_that_log_is_opened() {
        for (link, other) in [("a/t-1", "a/t-0"), ("b/t-0", "a/t-0"), ("a/t-1", "b")] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            drop(dirs(&root));
            symlink(root.join(other), root.join(link)).unwrap();
            let (opened, refused) = loaded(&root);
            assert_eq!(opened, ["a/t-0"], "{link}");
            let [refused] = &refused[..] else {
                panic!("{refused:?}");
            };
            for path in [link, other] {
                let path = root.join(path);
                assert!(refused.contains(path.to_str().unwrap()), "{refused}");
            }
        }
    }

    #[test]
    fn a_link_out_of_the_log_directories_is_opened_unless_two_lead_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        drop(dirs(&root));
        RealDisk
            .rename(&root.join("a/t-0"), &root.join("else"))
            .unwrap();
        symlink(root.join("else"), root.join("a/t-0")).unwrap();
        assert_eq!(loaded(&root), (vec!["a/t-0".to_owned()], Vec::new()));
        symlink(root.join("else"), root.join("b/t-1")).unwrap();
        let (opened, refused) = loaded(&root);
        assert_eq!((opened.len(), refused.len()), (0, 2), "{refused:?}");
    }
}
