//! Directories that were taken out of the logs (`-stray`, `-delete`) and that have records.
//!
//! 1. Whose records they are, their `partition.metadata` and the number in their name say: the
//!    topic's name may be cut, and another topic may have it by now.
//! 2. Nothing is opened, changed or brought back here, and what cannot be read is nobody's.

use std::path::{Path, PathBuf};

use crate::types::{Offset, TopicId};

use super::dir_core::DirCore;
use super::names::{self, Kind};
use super::partition_metadata;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub topic_id: TopicId,
    pub partition: i32,
    pub path: PathBuf,
}

impl SetAside {
    /// What the directory `name` is, if it has records, or had some and begins after them.
    pub(super) fn read(core: &DirCore, name: &str) -> Option<SetAside> {
        let partition = names::partition_set_aside(name)?;
        let path = core.path.join(name);
        let content = core.disk.read(&path.join(names::PARTITION_METADATA)).ok()?;
        let topic_id = partition_metadata::parse(&content)?;
        has_records(core, &path).then_some(SetAside {
            topic_id,
            partition,
            path,
        })
    }
}

fn has_records(core: &DirCore, path: &Path) -> bool {
    let entries = core.disk.list(path).unwrap_or_default();
    entries.iter().any(|entry| {
        let segment = names::split_offset(&entry.name);
        let base_offset = segment.filter(|(_, suffix)| *suffix == Kind::Log.suffix());
        base_offset.is_some_and(|(base, _)| entry.len > 0 || base > Offset::ZERO)
    })
}
