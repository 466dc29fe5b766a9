//! A small ordered store with atomic, durable batches: where the Raft log, vote and snapshots live.

use std::io;
use std::path::Path;

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
/// 2. sled never syncs values that it keeps in files of their own. It does so for pages of more
///    than a quarter of a segment, and a page holds up to 17 values: values must stay under
///    [`VALUE_BYTES_MAX`].
pub struct SledKeyValue {
    db: sled::Db,
    /// The file behind `db`, opened once more to be synced.
    file: std::fs::File,
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
        Ok(SledKeyValue { db, file })
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
        self.db.apply_batch(batch).map_err(from_sled)?;
        self.db.flush().map_err(from_sled)?;
        self.file.sync_data()
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
}
