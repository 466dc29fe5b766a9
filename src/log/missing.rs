//! Logs that a checkpoint of their directory names and that are not there, or cannot be opened.
//!
//! 1. A line in `recovery-point-offset-checkpoint` above 0 says that the log of that name had so
//!    many flushed records in this directory. Its directory had been synced by then: no crash takes
//!    it away.
//! 2. Such a line stays, and with it the one in `log-start-offset-checkpoint`, until a log of
//!    that name is made, or somebody knows that there is none to wait for
//!    ([`LogDir::forget_missing`]).
//! 3. Every directory that is in use has the file. Where it is not there, or cannot be read, nobody
//!    can tell which logs were here; the metadata can. Until it has (`remembers_its_logs`), a file
//!    that is written has only what is left: [`FORGOT`] beside it says so at the next start.
//! 4. A log that was deleted may have left its line, for as long as its files are there
//!    (`-delete`): that one is not missing.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::host::random;
use crate::types::{Offset, TopicPartition};

use super::checkpoint;
use super::dir_core::DirCore;
use super::error::LogError;
use super::listing::Place;
use super::log_dir::LogDir;
use super::names;

/// Is there from the first checkpoint of a directory that has forgotten its logs (3) until it
/// remembers. Kafka passes over it.
pub(super) const FORGOT: &str = ".klamm_forgot_logs";

/// The lines of a log that is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub recovery_point: Offset,
    pub log_start: Option<Offset>,
}

impl LogDir {
    /// Up to which offset there were flushed records of a log that is missing.
    pub fn missing_log(&self, topic_partition: &TopicPartition) -> Option<Offset> {
        let missing = self.core.missing.lock();
        missing.get(topic_partition).map(|m| m.recovery_point)
    }

    /// Whether it cannot be told which logs were in this directory at the start (3).
    pub fn forgot_its_logs(&self) -> bool {
        self.core.points_unknown.load(Ordering::SeqCst)
    }

    /// From now on it can: all that was here is known to the metadata and to those who wait.
    pub fn remembers_its_logs(&self) -> Result<(), LogError> {
        if !self.core.points_unknown.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        self.core.write_recovery_points()?;
        if self.core.has_sign_that_it_forgot() {
            self.core.remove_if_there(&self.core.path.join(FORGOT))?;
            self.core.sync_dir(&self.core.path)?;
        }
        Ok(())
    }

    /// Makes the names of new logs durable: that they are there, not yet what is in them.
    pub fn sync_names(&self) -> Result<(), LogError> {
        match self.core.has_new_names.swap(false, Ordering::SeqCst) {
            true => self.core.sync_dir(&self.core.path),
            false => Ok(()),
        }
    }

    /// By name.
    pub fn missing_logs(&self) -> Vec<TopicPartition> {
        self.core.missing.lock().keys().cloned().collect()
    }

    /// Nobody waits for a log of this name to come back.
    pub fn forget_missing(&self, topic_partition: &TopicPartition) {
        self.core.missing.lock().remove(topic_partition);
    }

    /// Takes the place of a log away that could not be opened (renamed to `-stray`); where it is
    /// then, if anything was there.
    pub fn set_aside_unopened(
        &self,
        topic_partition: &TopicPartition,
    ) -> Result<Option<PathBuf>, LogError> {
        let core = &self.core;
        let from = core.path.join(topic_partition.to_string());
        let entries = core.disk.list(&core.path);
        let entries = entries.map_err(|e| core.read_failed(&core.path, e))?;
        if !entries.iter().any(|entry| from.ends_with(&entry.name)) {
            return Ok(None);
        }
        let name = names::stray_dir(topic_partition, random::uuid());
        let to = core.path.join(name);
        core.change("rename", &from, || core.disk.rename(&from, &to))?;
        core.sync_dir(&core.path)?;
        Ok(Some(to))
    }

    /// At the start, before anything is written.
    pub(super) fn note_what_it_forgot(&self, are_points_unknown: bool) {
        let has_forgotten = are_points_unknown || self.core.has_sign_that_it_forgot();
        self.core
            .points_unknown
            .store(has_forgotten, Ordering::SeqCst);
    }

    /// The recovery points of logs that were stopped cleanly, where no checkpoint says them: each
    /// that has records has a producer snapshot of its end, and all of it was flushed.
    pub(super) fn points_of_clean_stop(&self, places: &[Place]) -> checkpoint::Offsets {
        let point_of = |(topic_partition, future_name): &Place| {
            let dir = self.partition_dir(topic_partition.clone(), future_name.clone());
            // What cannot be listed cannot be opened either.
            let end = dir.snapshots().ok()?.pop()?;
            Some((topic_partition.clone(), end))
        };
        places.iter().filter_map(point_of).collect()
    }

    /// At the start, when all was opened that could be.
    pub(super) fn note_missing(
        &self,
        recovery_points: &checkpoint::Offsets,
        log_starts: &checkpoint::Offsets,
    ) -> Result<(), LogError> {
        let core = &self.core;
        let flushed = recovery_points.iter().filter(|(_, o)| **o > Offset::ZERO);
        let mut absent = flushed.filter(|(p, _)| !core.has_log(p)).peekable();
        if absent.peek().is_none() {
            return Ok(());
        }
        let entries = core.disk.list(&core.path);
        let entries = entries.map_err(|e| core.read_failed(&core.path, e))?;
        let absent: Vec<_> = absent.collect();
        let mut missing = core.missing.lock();
        for (topic_partition, recovery_point) in absent {
            let mut names = entries.iter().map(|entry| &entry.name);
            if !names.any(|name| names::is_deleted_of(name, topic_partition)) {
                let lines = Missing {
                    recovery_point: *recovery_point,
                    log_start: log_starts.get(topic_partition).copied(),
                };
                missing.insert(topic_partition.clone(), lines);
            }
        }
        Ok(())
    }

    /// A line of a partition that is gone must not be taken for one of a later partition of that
    /// name.
    pub(super) fn drop_stale_lines(
        &self,
        recovery_points: &checkpoint::Offsets,
        log_starts: &checkpoint::Offsets,
    ) -> Result<(), LogError> {
        let is_stale =
            |offsets: &checkpoint::Offsets| offsets.keys().any(|p| !self.core.has_line(p));
        if is_stale(recovery_points) {
            self.core.write_recovery_points()?;
        }
        if is_stale(log_starts) {
            self.core.write_log_starts()?;
        }
        Ok(())
    }

    /// Lines of a deleted log of this name: after a power cut the new one's files, not flushed yet,
    /// would be called damaged.
    pub(super) fn drop_lines_of(&self, topic_partition: &TopicPartition) -> Result<(), LogError> {
        let was_missing = self.core.missing.lock().remove(topic_partition).is_some();
        if was_missing || self.core.has_stale_point(topic_partition) {
            self.core.write_recovery_points()?;
            self.core.write_log_starts()?;
        }
        Ok(())
    }

    /// To be called before the files of deleted logs are removed (4).
    pub fn drop_lines_of_deleted(&self) -> Result<(), LogError> {
        match self.core.has_stale_points() {
            true => self.core.write_recovery_points(),
            false => Ok(()),
        }
    }
}

impl DirCore {
    /// To be called before a checkpoint is written that would pass for one of all logs.
    pub fn sign_that_it_forgot(&self) -> Result<(), LogError> {
        match self.points_unknown.load(Ordering::SeqCst) && !self.has_sign_that_it_forgot() {
            true => self.replace(&self.path.join(FORGOT), b""),
            false => Ok(()),
        }
    }

    fn has_sign_that_it_forgot(&self) -> bool {
        self.disk.exists(&self.path.join(FORGOT))
    }

    /// The lines that logs have left that are missing.
    pub fn lines_of_missing(
        &self,
        offset: impl Fn(&Missing) -> Option<Offset>,
    ) -> Vec<(TopicPartition, Offset)> {
        let missing = self.missing.lock();
        let lines = missing
            .iter()
            .filter_map(|(name, missing)| Some((name.clone(), offset(missing)?)));
        lines.filter(|(name, _)| !self.has_log(name)).collect()
    }

    /// Whether a line in a checkpoint file is one to keep.
    fn has_line(&self, topic_partition: &TopicPartition) -> bool {
        self.has_log(topic_partition) || self.missing.lock().contains_key(topic_partition)
    }
}
