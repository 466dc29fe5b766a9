//! Open files, at most so many.

/// The open files of all logs.
pub struct FileCache {
    _limit: usize,
}

impl FileCache {
    /// A cache of at most `limit` open files.
    pub fn new(limit: usize) -> FileCache {
        FileCache { _limit: limit }
    }
}
