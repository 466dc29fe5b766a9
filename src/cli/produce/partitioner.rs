//! Which partition a record goes to: by its key as Kafka's clients hash it, or, without a key, the
//! same one until a batch is full and then the next.

use std::collections::BTreeMap;

use crate::host::random;

#[derive(Debug, Default)]
pub struct Partitioner {
    /// Per topic: how many partitions it has, and the one that keyless records go to now.
    topics: BTreeMap<String, (usize, usize)>,
}

impl Partitioner {
    pub fn known(&self, topic: &str) -> Option<usize> {
        self.topics.get(topic).map(|(count, _)| *count)
    }

    pub fn learn(&mut self, topic: &str, count: usize) {
        let start = random::seed() as usize % count.max(1);
        self.topics.insert(topic.to_owned(), (count, start));
    }

    pub fn choose(&self, topic: &str, key: Option<&[u8]>, count: usize) -> i32 {
        match key {
            Some(key) => ((murmur2(key) & 0x7fff_ffff) as usize % count) as i32,
            None => self
                .topics
                .get(topic)
                .map_or(0, |(_, sticky)| *sticky as i32),
        }
    }

    pub fn batch_is_full(&mut self, topic: &str) {
        if let Some((count, sticky)) = self.topics.get_mut(topic) {
            *sticky = (*sticky + 1) % *count;
        }
    }
}

/// Murmur 2 with Kafka's seed.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let word = word.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_kafka() {
        // The values of Kafka's own test of its hash.
        let cases: [(&str, i32); 5] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("abc", 479_470_107),
        ];
        for (key, hash) in cases {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }
}
