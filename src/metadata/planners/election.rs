//! Who leads a partition.

use crate::metadata::{
    MetadataImage, MetadataRecord, PartitionChangeRecord, PartitionRegistration, TopicImage,
};
use crate::types::BrokerId;

/// The replica that should lead: the first in order of preference that is in sync (or, where the
/// ISR has nobody left, eligible by KIP-966) and active. `None` when no replica may.
pub fn elect_leader(
    partition: &PartitionRegistration,
    is_active: impl Fn(BrokerId) -> bool,
) -> Option<BrokerId> {
    let first_of = |allowed: &[BrokerId]| {
        let mut replicas = partition.replicas.iter().copied();
        replicas.find(|broker| allowed.contains(broker) && is_active(*broker))
    };
    first_of(&partition.isr).or_else(|| first_of(partition.eligible_leader_replicas()))
}

/// The record that moves a partition's lead away from `broker`, which stopped or started anew;
/// `None` when it does not lead. Where nobody else may lead, the partition has no leader and keeps
/// its ISR: the last one in sync is the one to wait for.
pub(super) fn replace_leader(
    image: &MetadataImage,
    topic: &TopicImage,
    partition_id: i32,
    broker: BrokerId,
) -> Option<MetadataRecord> {
    let partition = topic.partitions.get(partition_id)?;
    let in_isr = partition.isr.contains(&broker);
    let leads = partition.leader == broker;
    let others = |candidate| candidate != broker && image.is_active(candidate);
    let next = elect_leader(partition, others);
    let leaves_isr = in_isr && next.is_some();
    if !leads && !leaves_isr {
        return None;
    }
    let mut change = PartitionChangeRecord::of(topic.id, partition_id);
    if leads {
        change.leader = Some(next.unwrap_or(BrokerId::NONE));
    }
    if leaves_isr {
        let isr = partition.isr.iter().copied();
        change.isr = Some(isr.filter(|member| *member != broker).collect());
    }
    Some(change.into())
}

/// The record that gives a partition without a leader to `broker`, which just came back.
pub(super) fn elect_returned(
    topic: &TopicImage,
    partition_id: i32,
    partition: &PartitionRegistration,
    broker: BrokerId,
) -> Option<MetadataRecord> {
    if partition.has_leader() || elect_leader(partition, |b| b == broker).is_none() {
        return None;
    }
    let mut change = PartitionChangeRecord::of(topic.id, partition_id);
    change.leader = Some(broker);
    if !partition.isr.contains(&broker) {
        change.isr = Some([broker].into());
    }
    Some(change.into())
}

/// The records that give every partition to its preferred leader where that one is in sync, active
/// and not the leader already.
pub fn plan_preferred_leaders(image: &MetadataImage, topic: &TopicImage) -> Vec<MetadataRecord> {
    let preferred = |(index, partition): (i32, &PartitionRegistration)| {
        let first = *partition.replicas.first()?;
        let may = partition.isr.contains(&first) && image.is_active(first);
        (may && partition.leader != first).then(|| {
            let mut change = PartitionChangeRecord::of(topic.id, index);
            change.leader = Some(first);
            change.into()
        })
    };
    topic.partitions.iter().filter_map(preferred).collect()
}
