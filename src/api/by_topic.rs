//! Requests that name partitions by topic, as Kafka takes them in: a map from partition to what is
//! asked of it.
//!
//! 1. A topic comes once, in the place where it is named first, with the partitions of all places;
//!    not at all without partitions.
//! 2. A partition comes once, in the place where it is named first; what is asked last counts.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use crate::metadata::PlanError;
use crate::types::ErrorCode;

/// One partition of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<P> {
    pub partition: i32,
    pub what: P,
    /// How often the request names it.
    pub times: usize,
}

/// The topics of a request. `K` is how they go: by name, by id.
pub fn by_topic<K, P, I>(topics: impl IntoIterator<Item = (K, I)>) -> Vec<(K, Vec<Asked<P>>)>
where
    K: Clone + Eq + Hash,
    I: IntoIterator<Item = (i32, P)>,
{
    let mut merged: Vec<(K, Vec<Asked<P>>)> = Vec::new();
    let mut topic_places: HashMap<K, usize> = HashMap::new();
    let mut places: HashMap<(usize, i32), usize> = HashMap::new();
    for (topic, partitions) in topics {
        for (partition, what) in partitions {
            let topic_at = *topic_places.entry(topic.clone()).or_insert_with(|| {
                merged.push((topic.clone(), Vec::new()));
                merged.len() - 1
            });
            let asked = &mut merged[topic_at].1;
            match places.entry((topic_at, partition)) {
                Entry::Occupied(place) => {
                    let earlier = &mut asked[*place.get()];
                    earlier.what = what;
                    earlier.times += 1;
                }
                Entry::Vacant(place) => {
                    place.insert(asked.len());
                    asked.push(Asked {
                        partition,
                        what,
                        times: 1,
                    });
                }
            }
        }
    }
    merged
}

/// What is answered for the topics of a request that the controller did not come to: those that are
/// named twice would have been refused, the others fail with `error`.
pub fn not_done<K: Clone + Ord>(
    topics: impl IntoIterator<Item = K>,
    error: PlanError,
) -> Vec<(K, PlanError)> {
    let mut times: BTreeMap<K, usize> = BTreeMap::new();
    for topic in topics {
        *times.entry(topic).or_default() += 1;
    }
    let refused = |(topic, times)| match times {
        1 => (topic, error.clone()),
        _ => (
            topic,
            PlanError::new(ErrorCode::InvalidRequest, "Duplicate topic name."),
        ),
    };
    times.into_iter().map(refused).collect()
}

/// The time a client gives its request.
pub fn timeout(timeout_ms: i32) -> Duration {
    Duration::from_millis(timeout_ms.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_once_and_the_last_word_counts() {
        let request = [
            ("a", vec![(1, 'p'), (0, 'q'), (1, 'r')]),
            ("b", vec![]),
            ("c", vec![(0, 's')]),
            ("a", vec![(2, 't'), (0, 'u')]),
        ];
        let asked = |partition, what, times| Asked {
            partition,
            what,
            times,
        };
        assert_eq!(
            by_topic(request),
            [
                (
                    "a",
                    vec![asked(1, 'r', 2), asked(0, 'u', 2), asked(2, 't', 1)]
                ),
                ("c", vec![asked(0, 's', 1)]),
            ]
        );
    }
}
