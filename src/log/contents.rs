//! What a log directory holds, by the names of its entries. Nothing is opened, made or changed.

use std::io;
use std::path::Path;

use crate::host::{Disk, PathKind};
use crate::types::TopicPartition;

use super::checkpoint;
use super::log_dir::CLEAN_SHUTDOWN;
use super::meta_properties::{self, MetaProperties};
use super::missing;
use super::names::DirName;

/// Files that a broker writes and a format does not.
const OF_USE: [&str; 6] = [
    checkpoint::RECOVERY_POINT,
    checkpoint::LOG_START,
    checkpoint::REPLICATION,
    checkpoint::CLEANER,
    CLEAN_SHUTDOWN,
    missing::FORGOT,
];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct DirContents {
    /// `None`: there is none, or none that can be read.
    pub meta: Option<MetaProperties>,
    /// Whose logs are there, by name.
    pub partitions: Vec<TopicPartition>,
    /// A broker has had it before.
    pub was_used: bool,
}

impl DirContents {
    /// Of a directory that is not there: nothing.
    pub fn read(disk: &dyn Disk, path: &Path) -> io::Result<DirContents> {
        let entries = match disk.list(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match disk.kind(path) {
                    PathKind::LinkToNothing => Err(e),
                    _ => Ok(DirContents::default()),
                };
            }
            Err(e) => return Err(e),
        };
        let meta = disk.read(&path.join(meta_properties::FILE)).ok();
        let mut contents = DirContents {
            meta: meta.and_then(|text| MetaProperties::parse(&text).ok()),
            ..DirContents::default()
        };
        for entry in entries {
            if entry.is_dir {
                if let DirName::Partition(partition) = DirName::parse(&entry.name) {
                    contents.partitions.push(partition);
                }
            } else if OF_USE.contains(&entry.name.as_str()) {
                contents.was_used = true;
            }
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{OpenMode, RealDisk};
    use crate::types::BrokerId;

    #[test]
    fn names_tell_a_used_directory_from_a_formatted_one() {
        let dir = tempfile::tempdir().unwrap();
        let read = || DirContents::read(&RealDisk, dir.path()).unwrap();
        let nothing = DirContents::read(&RealDisk, &dir.path().join("none")).unwrap();
        assert_eq!(nothing, DirContents::default());
        assert_eq!(read(), DirContents::default());
        let meta = MetaProperties {
            cluster_id: "c".to_owned(),
            node_id: BrokerId(1),
            directory_id: None,
        };
        let path = dir.path().join(meta_properties::FILE);
        RealDisk.replace(&path, meta.to_text().as_bytes()).unwrap();
        let formatted = read();
        assert_eq!(formatted.meta, Some(meta));
        assert!(formatted.partitions.is_empty() && !formatted.was_used);
        let id = "0123456789abcdef0123456789abcdef";
        let names = ["t-1", "t-0", "lost+found", "__cluster_metadata-0"];
        let suffixed = ["delete", "future", "stray"].map(|what| format!("t-2.{id}-{what}"));
        for name in names.iter().copied().chain(suffixed.iter().map(|n| &**n)) {
            RealDisk.create_dir_all(&dir.path().join(name)).unwrap();
        }
        let file = dir.path().join("t-9");
        RealDisk.open(&file, OpenMode::Create).unwrap();
        let partitions: Vec<_> = read().partitions.iter().map(|p| p.to_string()).collect();
        assert_eq!(partitions, ["t-0", "t-1"]);
        assert!(!read().was_used);
        let marker = dir.path().join(CLEAN_SHUTDOWN);
        RealDisk.open(&marker, OpenMode::Create).unwrap();
        assert!(read().was_used);
        assert!(DirContents::read(&RealDisk, &marker).is_err());
    }
}
