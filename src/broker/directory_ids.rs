//! Which id a log directory gets that has none (`meta.properties` is new, lost, or of a Kafka
//! before directories had ids). PURE.
//!
//! 1. A directory with logs had an id. Where the metadata has those logs in a directory of this
//!    broker that is not here, it is that one: with another id everything in it would have moved,
//!    and would be waited for once the old file is back.
//! 2. Of several that may be it the one with the most of those logs is. No id is given twice.
//! 3. All others are new directories.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::metadata::{DirectoryId, MetadataImage};
use crate::types::{BrokerId, TopicPartition};

/// The ids that directories had before, of those that hold `logs` each and have none. `present`:
/// the ids of the others.
pub fn known_before(
    image: &MetadataImage,
    broker: BrokerId,
    present: &BTreeSet<Uuid>,
    logs: &[Vec<TopicPartition>],
) -> Vec<Option<Uuid>> {
    let is_away = |id: &DirectoryId| {
        !id.is_undecided() && *id != DirectoryId::LOST && !present.contains(&id.0)
    };
    let mut candidates = Vec::new();
    for (at, logs) in logs.iter().enumerate() {
        let mut counts: BTreeMap<Uuid, usize> = BTreeMap::new();
        for log in logs {
            let topic = image.topic(&log.topic);
            let registration = topic.and_then(|topic| topic.partitions.get(log.partition));
            let named = registration.and_then(|registration| registration.directory(broker));
            if let Some(DirectoryId(id)) = named.filter(is_away) {
                *counts.entry(id).or_default() += 1;
            }
        }
        let counts = counts.into_iter();
        candidates.extend(counts.map(|(id, count)| (Reverse(count), at, id)));
    }
    candidates.sort();
    let mut known = vec![None; logs.len()];
    for (_, at, id) in candidates {
        if known[at].is_none() && !known.contains(&Some(id)) {
            known[at] = Some(id);
        }
    }
    known
}
