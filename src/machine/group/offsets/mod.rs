//! The committed offsets of all groups of one coordinator.
//!
//! 1. An offset is there because of a record, and goes by a tombstone: `apply` is the only way in.
//! 2. Offsets committed inside a transaction are pending until its marker comes. A commit makes
//!    them real unless something newer was committed meanwhile (by place in the log, `sequence`).
//! 3. While an offset is pending, whoever requires stable offsets is told to wait.

mod commit;
pub use commit::plan_commit;
mod expire;
mod fetch;

use std::collections::{BTreeMap, BTreeSet};

use super::GroupId;
use super::records::OffsetCommitValue;
use crate::types::{ProducerId, TopicName};

/// A committed offset with its place in the order of all records.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Committed {
    value: OffsetCommitValue,
    sequence: u64,
}

type ByPartition = BTreeMap<TopicName, BTreeMap<i32, Committed>>;

#[derive(Debug, Default)]
pub struct Offsets {
    by_group: BTreeMap<GroupId, ByPartition>,
    pending: BTreeMap<ProducerId, BTreeMap<GroupId, ByPartition>>,
    open_transactions: BTreeMap<GroupId, BTreeSet<ProducerId>>,
    /// Counts the records applied.
    sequence: u64,
}

impl Offsets {
    pub fn is_empty(&self) -> bool {
        self.by_group.is_empty() && self.pending.is_empty()
    }

    /// Applies one OffsetCommit record.
    pub fn apply(
        &mut self,
        group: &GroupId,
        topic: &TopicName,
        partition: i32,
        value: Option<&OffsetCommitValue>,
        producer_id: ProducerId,
    ) {
        self.sequence += 1;
        let Some(value) = value else {
            remove(&mut self.by_group, group, topic, partition);
            for pending in self.pending.values_mut() {
                remove(pending, group, topic, partition);
            }
            return;
        };
        let by_group = if producer_id == ProducerId::NONE {
            &mut self.by_group
        } else {
            let open = self.open_transactions.entry(group.clone()).or_default();
            open.insert(producer_id);
            self.pending.entry(producer_id).or_default()
        };
        let committed = Committed {
            value: value.clone(),
            sequence: self.sequence,
        };
        let by_topic = by_group.entry(group.clone()).or_default();
        let by_partition = by_topic.entry(topic.clone()).or_default();
        by_partition.insert(partition, committed);
    }

    /// Applies the marker that ends a transaction.
    pub fn apply_end(&mut self, producer_id: ProducerId, commit: bool) {
        let Some(pending) = self.pending.remove(&producer_id) else {
            return;
        };
        self.open_transactions.retain(|_, producers| {
            producers.remove(&producer_id);
            !producers.is_empty()
        });
        if !commit {
            return;
        }
        for (group, topics) in pending {
            let by_topic = self.by_group.entry(group).or_default();
            for (topic, partitions) in topics {
                let by_partition = by_topic.entry(topic).or_default();
                for (partition, committed) in partitions {
                    let newer = by_partition
                        .get(&partition)
                        .is_some_and(|old| old.sequence > committed.sequence);
                    if !newer {
                        by_partition.insert(partition, committed);
                    }
                }
            }
        }
    }

    fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&OffsetCommitValue> {
        let committed = self.by_group.get(group)?.get(topic)?.get(&partition)?;
        Some(&committed.value)
    }

    fn has_pending(&self, group: &str, topic: &str, partition: i32) -> bool {
        let Some(producers) = self.open_transactions.get(group) else {
            return false;
        };
        producers.iter().any(|producer| {
            let topics = self.pending.get(producer).and_then(|p| p.get(group));
            let partitions = topics.and_then(|t| t.get(topic));
            partitions.is_some_and(|p| p.contains_key(&partition))
        })
    }

    /// Everything a group has committed.
    pub fn of_group(
        &self,
        group: &str,
    ) -> impl Iterator<Item = (&TopicName, i32, &OffsetCommitValue)> {
        let topics = self.by_group.get(group).into_iter().flatten();
        topics.flat_map(|(topic, partitions)| {
            let partitions = partitions.iter();
            partitions.map(move |(partition, committed)| (topic, *partition, &committed.value))
        })
    }
}

fn remove(
    by_group: &mut BTreeMap<GroupId, ByPartition>,
    group: &GroupId,
    topic: &TopicName,
    partition: i32,
) {
    let Some(by_topic) = by_group.get_mut(group) else {
        return;
    };
    if let Some(by_partition) = by_topic.get_mut(topic) {
        by_partition.remove(&partition);
        if by_partition.is_empty() {
            by_topic.remove(topic);
        }
    }
    if by_topic.is_empty() {
        by_group.remove(group);
    }
}
