//! The log directories of brokers (KIP-858): one goes offline, and which replica is in which.

use crate::metadata::{
    BrokerEpoch, BrokerRegistrationChangeRecord, DirectoryId, MetadataImage, MetadataRecord, Plan,
    PlanError,
};
use crate::types::{BrokerId, ErrorCode, TopicId};

use super::brokers::{change_of, check_broker_epoch, replicas_go};
use super::partition_change::RulesOf;

/// Takes directories out of a broker's registration: others lead what it led there, where there are
/// others. Those that it is not registered with change nothing.
pub fn plan_directories_offline(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
    offline: &[DirectoryId],
    rules_of: RulesOf<'_>,
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    let known = image.broker(broker).map_or(&[][..], |b| &b.log_dirs);
    let (gone, left): (Vec<_>, Vec<_>) = known.iter().partition(|dir| offline.contains(dir));
    if gone.is_empty() {
        return Plan::answer(Ok(()));
    }
    let go = |partition: &crate::metadata::PartitionRegistration| {
        let directory = partition.directory(broker);
        directory.is_some_and(|directory| gone.contains(&directory))
    };
    let mut records = replicas_go(image, broker, &go, rules_of);
    records.push(
        BrokerRegistrationChangeRecord {
            broker_id: broker,
            broker_epoch: epoch,
            fenced: None,
            in_controlled_shutdown: None,
            log_dirs: Some(left),
            cordoned_log_dirs: None,
        }
        .into(),
    );
    Plan {
        records,
        answer: Ok(()),
    }
}

/// A replica of the broker that asks, and its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssignReplica {
    pub topic_id: TopicId,
    pub partition: i32,
    pub directory: DirectoryId,
}

/// One entry for each replica, in the order of the request.
pub type AssignedReplicas = Vec<Result<(), ErrorCode>>;

/// An error is one for the whole request. A directory that the broker is not registered with is
/// offline. Unlike Kafka, which leaves it to a later election, a partition that waited for the
/// directory has a leader at once.
pub fn plan_assign_replicas(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
    replicas: &[AssignReplica],
    rules_of: RulesOf<'_>,
) -> Plan<Result<AssignedReplicas, PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    let mut records = Vec::new();
    let mut answer = Vec::with_capacity(replicas.len());
    // One that is named twice is in the last of the directories.
    let mut next = image.clone();
    next.begin_entry(image.offset().next(), image.epoch());
    for asked in replicas {
        answer.push(assign(&next, broker, asked, rules_of).map(|record| {
            if let Some(record) = record {
                let applied = next.apply(&record, &mut Default::default());
                applied.expect("the partition is there");
                records.push(record);
            }
        }));
    }
    Plan {
        records,
        answer: Ok(answer),
    }
}

fn assign(
    image: &MetadataImage,
    broker: BrokerId,
    asked: &AssignReplica,
    rules_of: RulesOf<'_>,
) -> Result<Option<MetadataRecord>, ErrorCode> {
    let topic = image.topic_by_id(asked.topic_id);
    let topic = topic.ok_or(ErrorCode::UnknownTopicId)?;
    let partition = topic.partitions.get(asked.partition);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if !partition.replicas.contains(&broker) {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    if partition.directory(broker) == Some(asked.directory) {
        return Ok(None);
    }
    let known = image.broker(broker).map_or(&[][..], |b| &b.log_dirs);
    let is_online = asked.directory.is_online(known);
    let may_lead = |candidate| match candidate == broker {
        true => is_online && image.is_active(broker),
        false => image.may_lead(candidate, partition),
    };
    let index = asked.partition;
    let mut change = change_of(image, topic, index, partition, rules_of, &may_lead);
    change.directory = Some((broker, asked.directory));
    if !is_online {
        change.isr.retain(|member| *member != broker);
    }
    if asked.directory == DirectoryId::LOST {
        // Nor does it have what the ELR would count on.
        change.crashed = Some(broker);
    }
    Ok(change.record().map(Into::into))
}
