//! Open files of all logs, at most so many: 100,000 partitions with two files each are more than a
//! process may have open.
//!
//! 1. A file is opened when it is first used. When the cache is full, one that was not used lately
//!    is let go (the clock algorithm). Who still holds its `Arc` goes on using it.
//! 2. Letting a file go loses nothing: what was written to it is in the page cache, and a sync over
//!    another descriptor of the same file covers it.
//! 3. Keys are never given out twice, so a file that was renamed or removed cannot be mistaken for
//!    its successor of the same name.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::host::File;

use super::names::Kind;

const SHARDS: usize = 16;

/// The files of one segment in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileKey(u64);

impl FileKey {
    fn of(self, kind: Kind) -> u64 {
        self.0 * Kind::ALL.len() as u64 + kind as u64
    }
}

/// The open files of all logs.
pub struct FileCache {
    shards: Vec<Mutex<Shard>>,
    next_key: AtomicU64,
}

impl FileCache {
    /// A cache of at most `limit` open files.
    pub fn new(limit: usize) -> FileCache {
        let shards = SHARDS.min(limit.max(1));
        FileCache {
            shards: (0..shards)
                .map(|_| Mutex::new(Shard::new(limit.max(1) / shards)))
                .collect(),
            next_key: AtomicU64::new(0),
        }
    }

    pub(super) fn new_key(&self) -> FileKey {
        FileKey(self.next_key.fetch_add(1, Ordering::Relaxed))
    }

    /// The file, opened by `open` if it is not in the cache. No lock is held over `open`.
    pub(super) fn get(
        &self,
        key: FileKey,
        kind: Kind,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let key = key.of(kind);
        let shard = self.shard(key);
        if let Some(file) = shard.lock().get(key) {
            return Ok(file);
        }
        let opened = open()?;
        let mut shard = shard.lock();
        // Two threads may have opened it at once: the first one in wins.
        if let Some(file) = shard.get(key) {
            return Ok(file);
        }
        let evicted = shard.insert(key, Arc::clone(&opened));
        drop(shard);
        // Closing may take a while: not under the lock.
        drop(evicted);
        Ok(opened)
    }

    /// Lets the segment's files go.
    pub(super) fn remove(&self, key: FileKey) {
        for kind in Kind::ALL {
            let key = key.of(kind);
            let removed = self.shard(key).lock().remove(key);
            drop(removed);
        }
    }

    /// Keys of one kind lie four apart: they are mixed, or all logs would share a few shards.
    fn shard(&self, key: u64) -> &Mutex<Shard> {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.shards[(mixed % self.shards.len() as u64) as usize]
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|s| s.lock().slots.len()).sum()
    }
}

struct Slot {
    key: u64,
    file: Arc<dyn File>,
    is_referenced: bool,
}

struct Shard {
    limit: usize,
    places: HashMap<u64, usize>,
    slots: Vec<Slot>,
    hand: usize,
}

impl Shard {
    fn new(limit: usize) -> Shard {
        Shard {
            limit,
            places: HashMap::new(),
            slots: Vec::new(),
            hand: 0,
        }
    }

    fn get(&mut self, key: u64) -> Option<Arc<dyn File>> {
        let slot = &mut self.slots[*self.places.get(&key)?];
        slot.is_referenced = true;
        Some(Arc::clone(&slot.file))
    }

    fn insert(&mut self, key: u64, file: Arc<dyn File>) -> Option<Arc<dyn File>> {
        let slot = Slot {
            key,
            file,
            is_referenced: false,
        };
        if self.slots.len() < self.limit {
            self.places.insert(key, self.slots.len());
            self.slots.push(slot);
            return None;
        }
        // Ends after two rounds at most: the first one clears every mark.
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let victim = &mut self.slots[self.hand];
            if !std::mem::take(&mut victim.is_referenced) {
                break;
            }
        }
        let victim = std::mem::replace(&mut self.slots[self.hand], slot);
        self.places.remove(&victim.key);
        self.places.insert(key, self.hand);
        Some(victim.file)
    }

    fn remove(&mut self, key: u64) -> Option<Arc<dyn File>> {
        let place = self.places.remove(&key)?;
        let slot = self.slots.swap_remove(place);
        if let Some(moved) = self.slots.get(place) {
            self.places.insert(moved.key, place);
        }
        Some(slot.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Disk, OpenMode, RealDisk};

    #[test]
    fn the_limit_holds_and_hot_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = FileCache::new(2 * SHARDS);
        let mut opened = 0;
        let get = |key, opened: &mut usize| {
            let open = || {
                *opened += 1;
                RealDisk.open(&dir.path().join("f"), OpenMode::Create)
            };
            cache.get(key, Kind::Log, open).unwrap();
        };
        let hot = cache.new_key();
        get(hot, &mut opened);
        for _ in 0..200 {
            get(hot, &mut opened);
            let cold = cache.new_key();
            get(cold, &mut opened);
        }
        assert_eq!(opened, 201);
        assert!(cache.count() <= 2 * SHARDS);
        cache.remove(hot);
        get(hot, &mut opened);
        assert_eq!(opened, 202);
    }
}
