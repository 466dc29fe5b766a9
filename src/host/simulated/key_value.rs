//! A key-value store in memory. Its commits are durable at once, as its trait promises; what a
//! crash leaves is a copy.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::host::KeyValue;
use crate::host::key_value::Change;

#[derive(Clone, Default)]
pub struct MemoryKeyValue(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>);

impl MemoryKeyValue {
    /// What the next process finds; the one before may go on with its own.
    pub fn crash(&self) -> MemoryKeyValue {
        MemoryKeyValue(Arc::new(Mutex::new(self.0.lock().clone())))
    }
}

impl KeyValue for MemoryKeyValue {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().get(key).cloned())
    }

    fn range(&self, start: &[u8], end: &[u8], limit: usize) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let map = self.0.lock();
        let pairs = map.range(start.to_vec()..end.to_vec()).take(limit);
        Ok(pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }

    fn last(&self, start: &[u8], end: &[u8]) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let map = self.0.lock();
        let pair = map.range(start.to_vec()..end.to_vec()).next_back();
        Ok(pair.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, changes: Vec<Change>) -> io::Result<()> {
        let mut map = self.0.lock();
        for change in changes {
            match change {
                Change::Put { key, value } => map.insert(key, value),
                Change::Delete { key } => map.remove(&key),
            };
        }
        Ok(())
    }
}
