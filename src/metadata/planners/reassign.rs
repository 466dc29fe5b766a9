//! AlterPartitionReassignments: other replicas for partitions, step by step.
//!
//! ```text
//! replicas 1 2 3 ──asked for 4 2 3──> replicas 4 2 3 1, adding 4, removing 1
//!      ^                                   │                  │
//!      └────────────── cancel ─────────────┘                  └─ 4 is in sync ─> replicas 4 2 3
//! ```
//!
//! The last step is no request: whatever brings the ISR there completes it (`partition_change`).

use crate::metadata::{
    MetadataImage, MetadataRecord, PartitionRegistration, Plan, PlanError, TopicImage,
};
use crate::types::{BrokerId, ErrorCode, TopicName};

use super::assignment::check_replicas;
use super::partition_change::{PartitionChange, RulesOf};
use super::{RECORDS_PER_REQUEST_MAX, too_many_records};

/// One partition of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassign {
    pub topic: TopicName,
    pub partition: i32,
    /// `None`: the reassignment under way is to be cancelled.
    pub replicas: Option<Vec<BrokerId>>,
}

/// One entry for each partition, in the order of the request.
pub type Reassigned = Vec<Result<(), PlanError>>;

/// An error is one for the whole request. Each partition is judged as it is before the request.
pub fn plan_reassign_partitions(
    image: &MetadataImage,
    partitions: &[Reassign],
    may_change_factor: bool,
    rules_of: RulesOf<'_>,
) -> Plan<Result<Reassigned, PlanError>> {
    let mut records = Vec::new();
    let mut answer = Vec::with_capacity(partitions.len());
    for asked in partitions {
        let planned = plan_one(image, asked, may_change_factor, rules_of);
        answer.push(planned.map(|record| records.extend(record)));
        if records.len() > RECORDS_PER_REQUEST_MAX {
            return Plan::answer(Err(too_many_records()));
        }
    }
    Plan {
        records,
        answer: Ok(answer),
    }
}

fn plan_one(
    image: &MetadataImage,
    asked: &Reassign,
    may_change_factor: bool,
    rules_of: RulesOf<'_>,
) -> Result<Option<MetadataRecord>, PlanError> {
    let (name, index) = (&asked.topic, asked.partition);
    let unknown = |message: String| PlanError::new(ErrorCode::UnknownTopicOrPartition, message);
    let topic = image.topic(name);
    let topic = topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let partition = topic.partitions.get(index);
    let missing = || unknown(format!("Unable to find partition {name}:{index}."));
    let partition = partition.ok_or_else(missing)?;
    let may_lead = |broker| image.may_lead(broker, partition);
    let elr_is_on = image.feature_level(super::ELR_FEATURE) > 0;
    let rules = rules_of(name);
    let place = (topic.id, index);
    let mut change = PartitionChange::of(place, partition, rules, elr_is_on, &may_lead);
    match &asked.replicas {
        Some(replicas) => {
            check_replicas(image, replicas)?;
            if !may_change_factor {
                check_factor(partition, replicas)?;
            }
            replace(&mut change, partition, replicas);
        }
        None => cancel(&mut change, topic, index, partition, rules.unclean)?,
    }
    Ok(change.record().map(Into::into))
}

/// What the partition has, or will have once the reassignment under way is complete.
fn target(partition: &PartitionRegistration) -> impl Iterator<Item = BrokerId> {
    let removing = partition.removing_replicas();
    let replicas = partition.replicas.iter().copied();
    replicas.filter(|replica| !removing.contains(replica))
}

fn check_factor(partition: &PartitionRegistration, asked: &[BrokerId]) -> Result<(), PlanError> {
    let (now, wanted) = (target(partition).count(), asked.len());
    match now == wanted {
        true => Ok(()),
        false => Err(PlanError::new(
            ErrorCode::InvalidReplicationFactor,
            format!("The replication factor is changed from {now} to {wanted}"),
        )),
    }
}

/// The replicas that were asked for come first; those that are to go stay until the others are
/// there. A replica that an earlier reassignment began to add is still waited for.
fn replace(
    change: &mut PartitionChange<'_>,
    partition: &PartitionRegistration,
    replicas: &[BrokerId],
) {
    let mut removing: Vec<BrokerId> = partition.replicas.to_vec();
    removing.retain(|replica| !replicas.contains(replica));
    removing.sort();
    let is_new = |replica: &BrokerId| {
        !partition.replicas.contains(replica) || partition.adding_replicas().contains(replica)
    };
    let mut adding: Vec<BrokerId> = replicas.iter().copied().filter(is_new).collect();
    adding.sort();
    change.replicas = replicas.iter().chain(&removing).copied().collect();
    change.adding = adding;
    change.removing = removing;
}

/// Without the replicas that were being added, and with those that were to go.
fn cancel(
    change: &mut PartitionChange<'_>,
    topic: &TopicImage,
    index: i32,
    partition: &PartitionRegistration,
    unclean: bool,
) -> Result<(), PlanError> {
    if !partition.is_reassigning() {
        return Err(PlanError::bare(ErrorCode::NoReassignmentInProgress));
    }
    let stays = |replica: &BrokerId| !partition.adding_replicas().contains(replica);
    change.replicas.retain(stays);
    change.isr.retain(stays);
    change.adding.clear();
    change.removing.clear();
    if change.isr.is_empty() {
        let refuse = |message| PlanError::new(ErrorCode::InvalidReplicaAssignment, message);
        if !unclean {
            let name = &topic.name;
            return Err(refuse(format!(
                "Unable to revert partition assignment for {name}:{index} because it would \
                 require an unclean leader election."
            )));
        }
        let first = change.replicas.first().copied().ok_or_else(|| {
            refuse("Invalid replica assignment: addingReplicas contains all replicas.".to_owned())
        })?;
        change.isr.push(first);
    }
    Ok(())
}
