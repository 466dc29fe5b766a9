//! Checkpoint and clean stop of many logs at once: one call that syncs the whole file system in
//! place of five for each log. A new partition with one record needs a sync for its epochs, its
//! log, an index and two directories; of a hundred thousand such partitions that is a minute.
//!
//! In the order it goes, and what a crash leaves after each step:
//!
//! 1. Of each log the index entries and the producer snapshot, and `leader-epoch-checkpoint.tmp`.
//!    The recovery point on disk is below, so recovery removes what lies above.
//! 2. The file system is synced.
//! 3. The epochs' files get their names, and those are synced. Recovery makes the epochs above the
//!    recovery point anew from the batches, with either file.
//! 4. The recovery points go up, in memory.
//!
//! Others who write to the same file system are waited for as well, so few logs go one by one.

use std::path::PathBuf;

use parking_lot::MutexGuard;

use super::dir_core::DirCore;
use super::error::LogError;
use super::flush::Reach;
use super::log::Log;
use super::names::{self, TMP_SUFFIX};

/// From how many logs on it is worth it.
pub(super) const MANY: usize = 64;
/// How many logs are held at once: none of them can be cut or cleaned meanwhile.
pub(super) const AT_ONCE: usize = 4096;

/// A log whose files are written and not yet synced.
struct Written<'a> {
    log: &'a Log,
    _flushing: MutexGuard<'a, ()>,
    reach: Reach,
    /// Where its epochs are, and where they belong.
    epochs: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Checkpoint,
    CleanStop,
}

impl DirCore {
    /// [`Log::checkpoint`] or [`Log::close`] of each of `logs`. One that was closed before is left
    /// as it is.
    pub fn flush_many<'a>(
        &self,
        logs: impl Iterator<Item = &'a Log>,
        purpose: Purpose,
    ) -> Result<(), LogError> {
        let _syncing = self.syncing();
        let mut written = Vec::new();
        for log in logs {
            match log.write_for(purpose) {
                Ok(None) | Err(LogError::Closed { .. }) => {}
                Ok(Some(one)) => written.push(one),
                Err(error) => return Err(error),
            }
        }
        if written.is_empty() {
            return Ok(());
        }
        self.timed(|| self.sync_all())?;
        let epochs = || written.iter().filter_map(|one| one.epochs.as_ref());
        for (from, to) in epochs() {
            self.change("rename", from, || self.disk.rename(from, to))?;
        }
        if epochs().next().is_some() {
            self.sync_all()?;
        }
        for one in written {
            one.log.note_synced(&one.reach);
            if purpose == Purpose::CleanStop {
                one.log.forget_files();
            }
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<(), LogError> {
        self.change("sync", &self.path, || self.disk.sync_all(&self.path))
    }
}

impl Log {
    /// `None`: there is nothing to do.
    fn write_for(&self, purpose: Purpose) -> Result<Option<Written<'_>>, LogError> {
        let flushing = self.flushing.lock();
        let mut writer = self.writer.lock();
        self.check_open(&writer)?;
        let has_nothing = match purpose {
            Purpose::Checkpoint => writer.uncheckpointed_bytes == 0 && !writer.is_renamed,
            Purpose::CleanStop => {
                writer.is_closed = true;
                self.is_stopped_cleanly(&writer)
            }
        };
        if has_nothing {
            if purpose == Purpose::CleanStop {
                self.forget_files();
            }
            return Ok(None);
        }
        self.prepare_stop(&mut writer)?;
        let active = *self.view.lock().active();
        self.check_files(&[active])?;
        let epochs = match self.take_dirty_epochs() {
            Some(text) => Some(self.write_epochs_beside(&text)?),
            None => None,
        };
        let reach = self.take_reach(&mut writer);
        drop(writer);
        Ok(Some(Written {
            log: self,
            _flushing: flushing,
            reach,
            epochs,
        }))
    }

    fn write_epochs_beside(&self, text: &str) -> Result<(PathBuf, PathBuf), LogError> {
        let path = self.dir.file(names::LEADER_EPOCH_CHECKPOINT);
        let mut beside = path.clone().into_os_string();
        beside.push(TMP_SUFFIX);
        let beside = PathBuf::from(beside);
        self.dir.core.write_file(&beside, text.as_bytes())?;
        Ok((beside, path))
    }
}
