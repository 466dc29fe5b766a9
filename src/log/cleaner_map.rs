//! The last offset of each key in the part of a log that is being compacted, in bounded memory.
//!
//! 1. A key is kept as its hash of 128 bits under a secret of this process, so that nobody can make
//!    two keys collide on purpose; by chance it takes some 10^19 keys.
//! 2. The table never has more buckets than fit into its share of `log.cleaner.dedupe.buffer.size`
//!    (while it grows, the old and smaller one is there as well). It starts small: most compactions
//!    are.
//! 3. `latest_offset` is the end of what was put in whole. What lies behind is not known, and
//!    compaction leaves it alone.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use crate::types::Offset;

/// Key, value and control byte of a bucket.
const BUCKET_BYTES: u64 = 25;
/// Less could not hold the keys of one batch.
const KEYS_MIN: usize = 1 << 16;

/// Takes the bytes it is given: they are a hash already.
#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    fn write_usize(&mut self, _length: usize) {}
}

pub(super) struct OffsetMap {
    last_offsets: HashMap<[u8; 16], Offset, BuildHasherDefault<FirstBytes>>,
    secrets: [RandomState; 2],
    keys_max: usize,
    latest_offset: Offset,
}

impl OffsetMap {
    /// A map that takes no more than `bytes_max`.
    pub fn new(bytes_max: u64) -> OffsetMap {
        // The table doubles, and is filled up to seven eighths.
        let buckets = (bytes_max / BUCKET_BYTES).checked_ilog2().unwrap_or(0);
        let keys_max = (1_usize << buckets.min(40)) / 8 * 7;
        OffsetMap {
            last_offsets: HashMap::default(),
            secrets: [RandomState::new(), RandomState::new()],
            keys_max: keys_max.max(KEYS_MIN),
            latest_offset: Offset::NONE,
        }
    }

    /// Notes that `key` is at `offset`. `false`: there is no room for another key.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = self.hash(key);
        if let Some(last) = self.last_offsets.get_mut(&hash) {
            *last = offset.max(*last);
            return true;
        }
        if self.last_offsets.len() >= self.keys_max {
            return false;
        }
        self.last_offsets.insert(hash, offset);
        true
    }

    /// The last offset of `key`, if it is in the part that was read.
    pub fn last_offset(&self, key: &[u8]) -> Option<Offset> {
        self.last_offsets.get(&self.hash(key)).copied()
    }

    /// The end of what is in the map whole; -1: nothing.
    pub fn latest_offset(&self) -> Offset {
        self.latest_offset
    }

    pub fn set_latest_offset(&mut self, offset: Offset) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    pub fn keys(&self) -> usize {
        self.last_offsets.len()
    }

    fn hash(&self, key: &[u8]) -> [u8; 16] {
        let [a, b] = [0, 1].map(|n: usize| {
            let mut hasher = self.secrets[n].build_hasher();
            hasher.write(key);
            hasher.finish().to_ne_bytes()
        });
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&a);
        hash[8..].copy_from_slice(&b);
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_each_key_is_kept() {
        let mut map = OffsetMap::new(0);
        for (key, offset) in [("a", 1), ("b", 2), ("a", 3), ("", 4)] {
            assert!(map.put(key.as_bytes(), Offset(offset)));
        }
        let last = |key: &str| map.last_offset(key.as_bytes());
        assert_eq!(last("a"), Some(Offset(3)));
        assert_eq!(last("b"), Some(Offset(2)));
        assert_eq!(last(""), Some(Offset(4)));
        assert_eq!(last("c"), None);
        assert_eq!(map.keys(), 3);
    }

    #[test]
    fn a_full_map_takes_known_keys_only() {
        let mut map = OffsetMap::new(1 << 22);
        let keys_max = map.keys_max;
        assert_eq!(keys_max, (1 << 17) / 8 * 7);
        for n in 0..keys_max {
            assert!(map.put(&n.to_be_bytes(), Offset(n as i64)));
        }
        assert!(!map.put(b"another", Offset(1)));
        assert!(map.put(&7_usize.to_be_bytes(), Offset(1 << 30)));
        assert_eq!(
            map.last_offset(&7_usize.to_be_bytes()),
            Some(Offset(1 << 30))
        );
        let bytes = map.last_offsets.capacity() as u64 * 8 / 7 * BUCKET_BYTES;
        assert!(bytes <= 1 << 22, "{bytes}");
    }
}
