//! The order in which a Java `HashMap` or `HashSet` of texts gives its entries: Kafka's tools print
//! in that order, so it is what scripts (and side-by-side tests) see.
//!
//! An entry's bucket is `(h ^ h >>> 16) & (buckets - 1)` of its hash code; buckets are walked in
//! order and, within one, in the order of insertion. The map starts with the buckets for a given
//! capacity and doubles when it holds more than three quarters of them.

/// `String.hashCode`.
pub fn hash_code(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// How many buckets a map has after `count` insertions.
fn buckets(capacity: usize, count: usize) -> usize {
    let mut buckets = capacity.max(1).next_power_of_two();
    while count * 4 > buckets * 3 {
        buckets *= 2;
    }
    buckets
}

/// Sorts entries that were inserted in the order they stand in into a map made with `capacity`
/// (16 unless Java says otherwise).
pub fn sort_by_hash<T>(entries: &mut [T], capacity: usize, hash: impl Fn(&T) -> i32) {
    let mask = buckets(capacity, entries.len()) as u32 - 1;
    entries.sort_by_key(|entry| {
        let hash = hash(entry) as u32;
        (hash ^ (hash >> 16)) & mask
    });
}

/// [`sort_by_hash`] of texts in a map of default capacity.
pub fn sort_texts<T: AsRef<str>>(entries: &mut [T]) {
    sort_by_hash(entries, 16, |entry| hash_code(entry.as_ref()));
}

/// The hash code of `TopicPartition`.
pub fn partition_hash(topic: &str, partition: i32) -> i32 {
    let prime = 31_i32;
    let result = prime.wrapping_add(partition);
    prime.wrapping_mul(result).wrapping_add(hash_code(topic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_java() {
        assert_eq!(hash_code(""), 0);
        assert_eq!(hash_code("hello"), 99_162_322);
        assert_eq!(hash_code("__consumer_offsets"), -970_371_369);
    }

    #[test]
    fn entries_are_walked_by_bucket() {
        let mut entries = ["b", "a", "q"];
        sort_texts(&mut entries);
        // 'a' is 97, 'b' 98, 'q' 113: buckets 1, 2 and 1 of 16.
        assert_eq!(entries, ["a", "q", "b"]);
    }
}
