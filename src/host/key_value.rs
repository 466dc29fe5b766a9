//! A small ordered store with atomic, durable batches: where the Raft log, vote and snapshots live.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parking_lot::Mutex;

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Put { key: Vec<u8>, value: Vec<u8> },
    Delete { key: Vec<u8> },
}

/// An ordered map from bytes to bytes. Keys compare byte by byte.
pub trait KeyValue: Send + Sync {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// Every pair with `start <= key < end`, ascending, at most `limit` of them.
    fn range(&self, start: &[u8], end: &[u8], limit: usize) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>>;

    /// The pair with the largest key in `start <= key < end`.
    fn last(&self, start: &[u8], end: &[u8]) -> io::Result<Option<(Vec<u8>, Vec<u8>)>>;

    /// Applies all changes or none, and returns once they would survive a power cut.
    fn commit(&self, changes: Vec<Change>) -> io::Result<()>;
}

/// [`KeyValue`] on sled (docs/decisions/0002-openraft-and-sled.md).
///
/// 1. sled's own flush starts and awaits write-back (`sync_file_range`), which a power cut can
///    undo: neither the file's length nor the device's cache is covered. So a commit syncs the file
///    again.
/// 2. sled takes a damaged place for the torn end of a crash and begins before it. So every commit
///    has a number, which is also kept beside sled: a store that opens with an older one than was
///    acknowledged is refused.
/// 3. sled never syncs values that it keeps in files of their own. It does so for pages of more
///    than a quarter of a segment, and a page holds up to 17 values: values must stay under
///    [`VALUE_BYTES_MAX`].
pub struct SledKeyValue {
    db: sled::Db,
    /// The file behind `db`, opened once more to be synced.
    file: std::fs::File,
    commits: Mutex<CommitCount>,
}

/// The key of the commit number; behind all keys that anybody uses.
const COMMITS_KEY: &[u8] = b"\xff\xffcommits";

/// The file beside sled's that holds the number of the last acknowledged commit: 8 bytes, and 4 of
/// their CRC32C, big endian. It is not synced: after a power cut it may be behind, never ahead.
const COMMITS_FILE: &str = "commits";

struct CommitCount {
    count: u64,
    file: std::fs::File,
}

impl CommitCount {
    /// Compares what the store has with what was acknowledged.
    fn open(path: &Path, stored: u64) -> io::Result<CommitCount> {
        let mut options = std::fs::OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path)?;
        let mut bytes = [0; 12];
        if file.read_exact_at(&mut bytes, 0).is_ok() {
            let [count @ .., a, b, c, d] = bytes;
            let is_whole = crc32c::crc32c(&count) == u32::from_be_bytes([a, b, c, d]);
            let acknowledged = u64::from_be_bytes(count);
            if is_whole && stored < acknowledged {
                return Err(io::Error::other(format!(
                    "it is damaged: it ends with change {stored}, and {acknowledged} were \
                     acknowledged; bring back a copy, or remove {} to go on with what is left",
                    path.display()
                )));
            }
        }
        Ok(CommitCount {
            count: stored,
            file,
        })
    }

    fn write(&self) -> io::Result<()> {
        let count = self.count.to_be_bytes();
        let crc = crc32c::crc32c(&count).to_be_bytes();
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&count);
        bytes[8..].copy_from_slice(&crc);
        self.file.write_all_at(&bytes, 0)
    }
}

/// The longest value that [`SledKeyValue`] takes.
pub const VALUE_BYTES_MAX: usize = 6 * 1024;

impl SledKeyValue {
    /// Opens the store in `dir`, making it if need be. Fails when another process has it open or
    /// when its files are damaged.
    pub fn open(dir: &Path) -> io::Result<Self> {
        // The store holds metadata only: a small cache is plenty, and sled's own flush timer is off
        // because every commit is flushed before it is acknowledged.
        let db = sled::Config::new()
            .path(dir)
            .cache_capacity(8 << 20)
            .flush_every_ms(None)
            .open()
            .map_err(from_sled)?;
        let file = std::fs::File::open(dir.join("db"))?;
        // The names of the files that were just made.
        std::fs::File::open(dir)?.sync_all()?;
        let stored = db.get(COMMITS_KEY).map_err(from_sled)?;
        let stored = stored.and_then(|count| Some(u64::from_be_bytes((*count).try_into().ok()?)));
        let commits = CommitCount::open(&dir.join(COMMITS_FILE), stored.unwrap_or(0))?;
        Ok(SledKeyValue {
            db,
            file,
            commits: Mutex::new(commits),
        })
    }
}

impl KeyValue for SledKeyValue {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.db.get(key).map_err(from_sled)?.map(|v| v.to_vec()))
    }

    fn range(&self, start: &[u8], end: &[u8], limit: usize) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let pairs = self.db.range(start..end).take(limit);
        pairs
            .map(|pair| {
                pair.map(|(k, v)| (k.to_vec(), v.to_vec()))
                    .map_err(from_sled)
            })
            .collect()
    }

    fn last(&self, start: &[u8], end: &[u8]) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let pair = self.db.range(start..end).next_back();
        pair.map(|pair| {
            pair.map(|(k, v)| (k.to_vec(), v.to_vec()))
                .map_err(from_sled)
        })
        .transpose()
    }

    fn commit(&self, changes: Vec<Change>) -> io::Result<()> {
        let mut commits = self.commits.lock();
        let mut batch = sled::Batch::default();
        for change in changes {
            match change {
                Change::Put { key, value } => {
                    assert!(
                        value.len() <= VALUE_BYTES_MAX,
                        "a value of {} bytes",
                        value.len()
                    );
                    batch.insert(key, value)
                }
                Change::Delete { key } => batch.remove(key),
            }
        }
        commits.count += 1;
        batch.insert(COMMITS_KEY, &commits.count.to_be_bytes());
        self.db.apply_batch(batch).map_err(from_sled)?;
        self.db.flush().map_err(from_sled)?;
        self.file.sync_data()?;
        commits.write()
    }
}

fn from_sled(error: sled::Error) -> io::Error {
    match error {
        sled::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_in_order_after_a_reopen() {
        let dir = tempfile::tempdir().unwrap();
        let put = |k: &str, v: &str| Change::Put {
            key: k.into(),
            value: v.into(),
        };
        {
            let store = SledKeyValue::open(dir.path()).unwrap();
            store
                .commit(vec![put("b", "2"), put("a", "1"), put("c", "3")])
                .unwrap();
            store
                .commit(vec![Change::Delete { key: "b".into() }])
                .unwrap();
        }
        let store = SledKeyValue::open(dir.path()).unwrap();
        let pairs = store.range(b"a", b"z", 10).unwrap();
        assert_eq!(
            pairs,
            vec![("a".into(), "1".into()), ("c".into(), "3".into())]
        );
        assert_eq!(
            store.last(b"a", b"c").unwrap(),
            Some(("a".into(), "1".into()))
        );
        assert_eq!(store.get(b"b").unwrap(), None);
    }

    /// A copy of the store's files, as a kill would leave them.
    fn copy_of(dir: &Path) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        copy
    }

    #[test]
    fn a_store_that_lost_acknowledged_changes_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledKeyValue::open(dir.path()).unwrap();
        for n in 0..200_u8 {
            let put = Change::Put {
                key: vec![n % 7],
                value: vec![n; 100],
            };
            store.commit(vec![put]).unwrap();
            if n < 150 {
                continue;
            }
            let damaged = copy_of(dir.path());
            let path = damaged.path().join("db");
            let mut bytes = std::fs::read(&path).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            let at = usize::from(n - 150) * used / 50;
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            // It may open where the bit counts for nothing; else it says so, now or when asked.
            if let Ok(store) = SledKeyValue::open(damaged.path())
                && let Ok(found) = store.get(&[n % 7])
            {
                assert_eq!(found, Some(vec![n; 100]), "byte {at}");
            }
        }
        let empty = copy_of(dir.path());
        std::fs::write(empty.path().join("db"), b"").unwrap();
        assert!(SledKeyValue::open(empty.path()).is_err());
        // As if nothing had ever been there.
        let gone = tempfile::tempdir().unwrap();
        let commits = dir.path().join(COMMITS_FILE);
        std::fs::copy(commits, gone.path().join(COMMITS_FILE)).unwrap();
        let refused = SledKeyValue::open(gone.path()).err().unwrap().to_string();
        assert!(refused.contains("200 were acknowledged"), "{refused}");
    }
}
