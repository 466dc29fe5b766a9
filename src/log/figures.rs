//! What can be measured of a log directory.

use std::sync::atomic::Ordering;

use super::log_dir::LogDir;
use crate::metrics::Times;

impl LogDir {
    /// How long flushes waited for the disk.
    pub fn flush_times(&self) -> &Times {
        &self.core.flush_times
    }

    /// Logs that [`LogDir::load`] has still to open.
    pub fn unopened_count(&self) -> usize {
        self.core.unopened.load(Ordering::Relaxed)
    }

    /// Files of segments that are open, in all directories that share the cache.
    pub fn open_files(&self) -> usize {
        self.core.files.count()
    }
}
