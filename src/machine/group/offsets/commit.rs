//! From an OffsetCommit to its records, and the tombstones that take offsets back.

use super::*;
use crate::machine::group::Context;
use crate::machine::group::command::CommitPartition;
use crate::machine::group::records::Record;
use crate::types::{ErrorCode, TimestampMs};

/// The records of a commit, and an answer per partition in the order of the request.
/// `retention_time_ms` is -1 for the broker's own.
pub fn plan_commit(
    group: &GroupId,
    partitions: &[CommitPartition],
    retention_time_ms: i64,
    context: &Context<'_>,
) -> (Vec<Record>, Vec<ErrorCode>) {
    let now = context.now.wall;
    let expire_timestamp = match retention_time_ms {
        -1 => TimestampMs::NONE,
        retention_ms => TimestampMs(now.0.saturating_add(retention_ms)),
    };
    let mut records = Vec::new();
    let mut errors = Vec::new();
    for partition in partitions {
        let metadata = partition.metadata.clone().unwrap_or_default();
        // Kafka compares the length in UTF-16 units, as Java counts it.
        if metadata.encode_utf16().count() > context.config.offset_metadata_max_bytes {
            errors.push(ErrorCode::OffsetMetadataTooLarge);
            continue;
        }
        errors.push(ErrorCode::None);
        records.push(Record::OffsetCommit {
            group: group.clone(),
            topic: partition.topic.clone(),
            partition: partition.partition,
            value: Some(OffsetCommitValue {
                offset: partition.offset,
                leader_epoch: partition.leader_epoch,
                metadata,
                commit_timestamp: now,
                expire_timestamp,
                topic_id: partition.topic_id,
            }),
        });
    }
    (records, errors)
}

pub fn tombstone(group: &GroupId, topic: &TopicName, partition: i32) -> Record {
    Record::OffsetCommit {
        group: group.clone(),
        topic: topic.clone(),
        partition,
        value: None,
    }
}

impl Offsets {
    /// Takes one offset back, if it is there.
    pub fn plan_delete(
        &self,
        group: &GroupId,
        topic: &TopicName,
        partition: i32,
    ) -> Option<Record> {
        let exists = self.get(group, topic, partition).is_some()
            || self.has_pending(group, topic, partition);
        exists.then(|| tombstone(group, topic, partition))
    }

    /// Takes everything back that a group has committed, pending offsets too.
    pub fn plan_delete_all(&self, group: &GroupId) -> Vec<Record> {
        let mut partitions: BTreeSet<(&TopicName, i32)> = BTreeSet::new();
        partitions.extend(self.of_group(group).map(|(topic, p, _)| (topic, p)));
        for pending in self.pending.values() {
            for (topic, by_partition) in pending.get(group).into_iter().flatten() {
                partitions.extend(by_partition.keys().map(|p| (topic, *p)));
            }
        }
        let tombstones = partitions.into_iter();
        tombstones
            .map(|(topic, p)| tombstone(group, topic, p))
            .collect()
    }

    /// Takes back what any group has committed for partitions that are gone.
    pub fn plan_delete_partitions(&self, deleted: &[(TopicName, i32)]) -> Vec<Record> {
        let groups: BTreeSet<&GroupId> = self
            .by_group
            .keys()
            .chain(self.pending.values().flat_map(|p| p.keys()))
            .collect();
        let mut records = Vec::new();
        for group in groups {
            for (topic, partition) in deleted {
                records.extend(self.plan_delete(group, topic, *partition));
            }
        }
        records
    }
}
