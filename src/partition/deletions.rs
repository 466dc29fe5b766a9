//! Files that are out of the logs, until their time has come and they are removed; directories
//! with records that are missed (`aside`) stay.

use std::sync::Arc;
use std::time::Duration;

use super::registry::Partitions;
use crate::log::{Deletion, LogDir};
use crate::types::{TimestampMs, TopicPartition, with_causes};

/// For how long files are removed at a time.
const REMOVAL_MAX: Duration = Duration::from_millis(500);

impl Partitions {
    pub(super) fn delete(&self, log_dir: &Arc<LogDir>, topic_partition: &TopicPartition) {
        match log_dir.delete_log(topic_partition, self.clock.now_ms()) {
            Ok(Some(deletion)) => self.delete_later(log_dir.clone(), deletion),
            Ok(None) => {}
            Err(error) => tracing::error!(%topic_partition, "cannot be deleted: {error}"),
        }
    }

    /// Keeps files that may be removed once their time has come.
    pub fn delete_later(&self, log_dir: Arc<LogDir>, deletion: Deletion) {
        self.deletions.lock().push((log_dir, deletion));
    }

    /// Removes files whose time has come, for about half a second: a stop waits for the end of it.
    pub fn run_deletions(&self, now: TimestampMs) {
        let due: Vec<_> = {
            let mut deletions = self.deletions.lock();
            let (due, later) = deletions
                .drain(..)
                .partition(|(_, deletion)| deletion.due <= now && !self.may_be_wanted(deletion));
            *deletions = later;
            due
        };
        let end = self.clock.monotonic() + REMOVAL_MAX;
        let mut due = due.into_iter();
        for (log_dir, deletion) in due.by_ref() {
            // Without space it is the removal that makes some.
            if let Err(error) = log_dir.drop_lines_of_deleted() {
                tracing::warn!("before a removal: {}", with_causes(&error));
            }
            match log_dir.remove(&deletion) {
                Ok(()) => self.set_aside.lock().forget(&deletion),
                Err(error) => {
                    tracing::error!(dir = %log_dir.path().display(), "cannot remove: {error}");
                }
            }
            if self.clock.monotonic() >= end {
                break;
            }
        }
        self.deletions.lock().extend(due);
    }
}
