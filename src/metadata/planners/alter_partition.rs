//! AlterPartition: the leader of a partition says who is in sync.

use crate::metadata::{BrokerEpoch, MetadataImage, PartitionRegistration, Plan, PlanError};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, TopicId};

use super::brokers::check_broker_epoch;
use super::partition_change::{PartitionChange, RECOVERED, RECOVERING, RulesOf};

/// One partition of an AlterPartition request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterPartition {
    pub topic_id: TopicId,
    pub partition: i32,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// Each with the epoch under which it fetched; [`BrokerEpoch::NONE`] where that is not known.
    pub new_isr: Vec<(BrokerId, BrokerEpoch)>,
    pub leader_recovery_state: i8,
}

/// The partition as it is after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredPartition {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub isr: Vec<BrokerId>,
    pub leader_recovery_state: i8,
    pub partition_epoch: i32,
}

/// One entry for each partition, in the order of the request.
pub type AlteredPartitions = Vec<Result<AlteredPartition, ErrorCode>>;

/// An error is one for the whole request.
pub fn plan_alter_partitions(
    image: &MetadataImage,
    broker: BrokerId,
    broker_epoch: BrokerEpoch,
    partitions: &[AlterPartition],
    rules_of: RulesOf<'_>,
) -> Plan<Result<AlteredPartitions, PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, broker_epoch) {
        return Plan::answer(Err(error));
    }
    let mut records = Vec::new();
    let mut answer = Vec::with_capacity(partitions.len());
    // A second change of a partition must build on the first one.
    let mut next = image.clone();
    next.begin_entry(image.offset().next(), image.epoch());
    for asked in partitions {
        answer.push(
            alter(&next, broker, asked, rules_of).map(|(record, altered)| {
                if let Some(record) = record {
                    let applied = next.apply(&record, &mut Default::default());
                    applied.expect("the partition is there");
                    records.push(record);
                }
                altered
            }),
        );
    }
    // A reassignment that this completes may take the lead away from who asked.
    for result in &mut answer {
        if result
            .as_ref()
            .is_ok_and(|altered| altered.leader != broker)
        {
            *result = Err(ErrorCode::NewLeaderElected);
        }
    }
    Plan {
        records,
        answer: Ok(answer),
    }
}

type Altered = (Option<crate::metadata::MetadataRecord>, AlteredPartition);

fn alter(
    image: &MetadataImage,
    broker: BrokerId,
    asked: &AlterPartition,
    rules_of: RulesOf<'_>,
) -> Result<Altered, ErrorCode> {
    let topic = image.topic_by_id(asked.topic_id);
    let topic = topic.ok_or(ErrorCode::UnknownTopicId)?;
    let partition = topic.partitions.get(asked.partition);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    check(image, broker, asked, partition)?;
    let may_lead = |candidate| image.may_lead(candidate, partition);
    let elr_is_on = image.feature_level(super::ELR_FEATURE) > 0;
    let place = (topic.id, asked.partition);
    let rules = rules_of(&topic.name);
    let mut change = PartitionChange::of(place, partition, rules, elr_is_on, &may_lead);
    // In the order of the replicas, so that equal sets are equal lists.
    let in_sync = |replica: &BrokerId| asked.new_isr.iter().any(|(id, _)| id == replica);
    change.isr = partition.replicas.iter().copied().filter(in_sync).collect();
    if change.isr.len() == partition.isr.len()
        && change.isr.iter().all(|id| partition.isr.contains(id))
    {
        change.isr = partition.isr.to_vec();
    }
    change.recovery_state = asked.leader_recovery_state;
    let record = change.record();
    let raised = i32::from(
        record
            .as_ref()
            .is_some_and(|record| record.leader.is_some()),
    );
    let of = |new: Option<&crate::metadata::Replicas>| new.unwrap_or(&partition.isr).to_vec();
    let altered = AlteredPartition {
        leader: record
            .as_ref()
            .and_then(|r| r.leader)
            .unwrap_or(partition.leader),
        leader_epoch: LeaderEpoch(partition.leader_epoch.0 + raised),
        isr: of(record.as_ref().and_then(|record| record.isr.as_ref())),
        leader_recovery_state: asked.leader_recovery_state,
        partition_epoch: partition.partition_epoch + i32::from(record.is_some()),
    };
    Ok((record.map(Into::into), altered))
}

fn check(
    image: &MetadataImage,
    broker: BrokerId,
    asked: &AlterPartition,
    partition: &PartitionRegistration,
) -> Result<(), ErrorCode> {
    // A leader that knows of something newer has a newer controller to ask.
    if asked.leader_epoch > partition.leader_epoch
        || asked.partition_epoch > partition.partition_epoch
    {
        return Err(ErrorCode::NotController);
    }
    if asked.leader_epoch < partition.leader_epoch {
        return Err(ErrorCode::FencedLeaderEpoch);
    }
    if broker != partition.leader {
        return Err(ErrorCode::InvalidRequest);
    }
    if asked.partition_epoch < partition.partition_epoch {
        return Err(ErrorCode::InvalidUpdateVersion);
    }
    let isr: Vec<BrokerId> = asked.new_isr.iter().map(|(id, _)| *id).collect();
    let twice = (1..isr.len()).any(|at| isr[..at].contains(&isr[at]));
    if twice || isr.iter().any(|id| !partition.replicas.contains(id)) || !isr.contains(&broker) {
        return Err(ErrorCode::InvalidRequest);
    }
    let recovering = match asked.leader_recovery_state {
        RECOVERED => false,
        RECOVERING => true,
        _ => return Err(ErrorCode::InvalidRequest),
    };
    if recovering && (isr.len() > 1 || partition.leader_recovery_state() == RECOVERED) {
        return Err(ErrorCode::InvalidRequest);
    }
    let ineligible = |(id, epoch): &(BrokerId, BrokerEpoch)| {
        let known = image.broker(*id).filter(|known| known.is_active());
        known.is_none_or(|known| *epoch != BrokerEpoch::NONE && *epoch != known.broker_epoch)
    };
    match asked.new_isr.iter().any(ineligible) {
        true => Err(ErrorCode::IneligibleReplica),
        false => Ok(()),
    }
}
