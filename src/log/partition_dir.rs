//! The directory of one partition: its paths, and its segments' files through the file cache.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::host::{File, OpenMode};
use crate::types::{Offset, TopicPartition};

use super::dir_core::DirCore;
use super::error::LogError;
use super::inventory::Inventory;
use super::names::{self, Kind};
use super::scan::ScanError;
use super::segment::Segment;

pub(super) struct PartitionDir {
    pub core: Arc<DirCore>,
    pub topic_partition: TopicPartition,
    /// The directory's name where it is not the partition's: of a future log.
    future_name: ArcSwapOption<String>,
}

impl PartitionDir {
    pub fn new(
        core: Arc<DirCore>,
        topic_partition: TopicPartition,
        future_name: Option<String>,
    ) -> PartitionDir {
        PartitionDir {
            core,
            topic_partition,
            future_name: ArcSwapOption::new(future_name.map(Arc::new)),
        }
    }

    /// Made when it is needed: a path per partition would cost more memory than all else.
    pub fn path(&self) -> PathBuf {
        match &*self.future_name.load() {
            Some(name) => self.core.path.join(&**name),
            None => self.core.path.join(self.topic_partition.to_string()),
        }
    }

    /// Gives the directory of a future log the partition's own name. Nobody else may be about to
    /// open a file of it.
    pub fn take_plain_name(&self) -> Result<(), LogError> {
        let from = self.path();
        let to = self.core.path.join(self.topic_partition.to_string());
        self.core
            .change("rename", &from, || self.core.disk.rename(&from, &to))?;
        self.future_name.store(None);
        Ok(())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        let mut path = self.path();
        path.push(name);
        path
    }

    pub fn segment_file(&self, base_offset: Offset, kind: Kind) -> PathBuf {
        self.file(&names::segment_file(base_offset, kind))
    }

    pub fn snapshot_file(&self, offset: Offset) -> PathBuf {
        self.file(&names::snapshot_file(offset))
    }

    /// The offsets of the producer snapshots, ascending.
    pub fn snapshots(&self) -> Result<Vec<Offset>, LogError> {
        let path = self.path();
        let entries = self.core.disk.list(&path);
        let entries = entries.map_err(|e| self.core.read_failed(&path, e))?;
        Ok(Inventory::of(&entries).snapshots)
    }

    /// A file of a segment, which must exist.
    pub fn open(&self, segment: &Segment, kind: Kind) -> Result<Arc<dyn File>, LogError> {
        let path = || self.segment_file(segment.base_offset, kind);
        let open = || self.core.disk.open(&path(), OpenMode::Write);
        let file = self.core.files.get(segment.key, kind, open);
        file.map_err(|e| self.core.read_failed(&path(), e))
    }

    /// A file of a segment to write to, made if it holds nothing yet.
    pub fn create(&self, segment: &Segment, kind: Kind) -> Result<Arc<dyn File>, LogError> {
        self.core.check_online()?;
        let path = || self.segment_file(segment.base_offset, kind);
        // In the place of one that was removed there must be no new one with a hole.
        let mode = match *segment.clone().bytes_mut(kind) {
            0 => OpenMode::Create,
            _ => OpenMode::Write,
        };
        let open = || self.core.disk.open(&path(), mode);
        match self.core.files.get(segment.key, kind, open) {
            Ok(file) => Ok(file),
            Err(e) => self.core.change("open", &path(), || Err(e)),
        }
    }

    pub fn change<T>(
        &self,
        operation: &'static str,
        segment: &Segment,
        kind: Kind,
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, LogError> {
        self.core.check_online()?;
        change().or_else(|e| {
            let path = self.segment_file(segment.base_offset, kind);
            self.core.change(operation, &path, || Err(e))
        })
    }

    pub fn read<T>(
        &self,
        segment: &Segment,
        kind: Kind,
        result: io::Result<T>,
    ) -> Result<T, LogError> {
        result.map_err(|e| {
            let path = self.segment_file(segment.base_offset, kind);
            self.core.read_failed(&path, e)
        })
    }

    /// The error of a scan that had to succeed.
    pub fn scanned<T>(
        &self,
        segment: &Segment,
        result: Result<T, ScanError>,
    ) -> Result<T, LogError> {
        let path = || self.segment_file(segment.base_offset, Kind::Log);
        result.map_err(|e| match e {
            ScanError::Io(e) => self.core.read_failed(&path(), e),
            ScanError::Invalid { position, reason } => LogError::Corrupt {
                path: path(),
                position,
                reason,
            },
        })
    }

    /// Renames the files of a segment out of the log; the paths they have now. The log goes first:
    /// an index without one is nothing.
    pub fn take_out(&self, segment: &Segment) -> Result<Vec<PathBuf>, LogError> {
        let mut from: Vec<_> = Kind::ALL
            .iter()
            .map(|kind| self.segment_file(segment.base_offset, *kind))
            .collect();
        from.push(self.snapshot_file(segment.base_offset));
        let mut taken = Vec::with_capacity(from.len());
        for from in from {
            let mut to = from.as_os_str().to_owned();
            to.push(names::DELETED_SUFFIX);
            let to = PathBuf::from(to);
            self.core.rename_if_there(&from, &to)?;
            taken.push(to);
        }
        // Last: until the rename a reader could still have opened it by its name.
        self.core.files.remove(segment.key);
        Ok(taken)
    }
}
