//! Contested partitions: those whose replicas in sync have all crashed. The one whose log has most
//! leads.
//!
//! 1. Whoever was in sync when the last of them crashed had every record that was acknowledged, and
//!    a crash takes records from the end of a log only. So the log with most has all that is left.
//! 2. The last one that was in sync has to be among those that are compared: others may lack what
//!    it took alone. Where its log is lost they may not, if it was not allowed to take any alone
//!    (`min.insync.replicas`). Then those have to be that crashed before it, or were eligible: they
//!    are before it in the list (`remember_crashed`).

use crate::metadata::{DirectoryId, MetadataImage, PartitionRegistration, Plan};
use crate::types::{BrokerId, TopicId};

use super::brokers::change_of;
use super::partition_change::RulesOf;

/// Whose logs are to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    pub needed: Vec<BrokerId>,
    /// They may be down for good.
    pub wanted: Vec<BrokerId>,
}

/// `None`: the partition is not contested, or nobody may lead it for now.
pub fn contest(partition: &PartitionRegistration, min_isr: usize) -> Option<Contest> {
    if !partition.is_contested() || !partition.eligible_leader_replicas().is_empty() {
        return None;
    }
    let is_lost = |broker: &BrokerId| partition.directory(*broker) == Some(DirectoryId::LOST);
    let is_last = |broker: &BrokerId| partition.isr.contains(broker);
    let crashed = partition.last_known_elr();
    let took_alone = partition.isr.len() >= min_isr.min(partition.replicas.len());
    let (needed, wanted): (Vec<_>, Vec<_>) = match partition.isr.iter().any(is_lost) {
        false => crashed.iter().partition(|broker| is_last(broker)),
        true if took_alone => return None,
        true => {
            let (earlier, others) = crashed.split_at(crashed.iter().position(is_last)?);
            (earlier.iter().collect(), others.iter().collect())
        }
    };
    let left = |brokers: Vec<&BrokerId>| -> Vec<BrokerId> {
        let left = brokers.into_iter().copied();
        left.filter(|broker| !is_lost(broker)).collect()
    };
    let (needed, wanted) = (left(needed), left(wanted));
    (!needed.is_empty()).then_some(Contest { needed, wanted })
}

/// A contested partition, and the replica whose log has most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    pub topic_id: TopicId,
    pub partition: i32,
    pub leader: BrokerId,
}

/// Those that are contested no more, or whose replica cannot lead by now, stay as they are.
pub fn plan_recovered(
    image: &MetadataImage,
    recovered: &[Recovered],
    rules_of: RulesOf<'_>,
) -> Plan<()> {
    let record = |one: &Recovered| {
        let topic = image.topic_by_id(one.topic_id)?;
        let partition = topic.partitions.get(one.partition)?;
        let may_lead = |broker| image.may_lead(broker, partition);
        if !partition.is_contested() || !may_lead(one.leader) {
            return None;
        }
        let change = change_of(image, topic, one.partition, partition, rules_of, &may_lead);
        change.recovered_by(one.leader).record()
    };
    Plan {
        records: recovered
            .iter()
            .filter_map(record)
            .map(Into::into)
            .collect(),
        answer: (),
    }
}
