//! CreatePartitions.

use std::collections::BTreeMap;

use crate::metadata::{Draw, MetadataImage, MetadataRecord, Plan, PlanError};
use crate::types::{BrokerId, ErrorCode, TopicName};

use super::assignment::check_assignment;
use super::create_topics::{partition_record, with_active_isr};
use super::placement::place;
use super::{RECORDS_PER_REQUEST_MAX, too_many_records};

/// One topic of a CreatePartitions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPartitions {
    pub name: TopicName,
    /// How many partitions the topic shall have.
    pub count: i32,
    /// The replicas of each partition that is added, when the client chose them.
    pub assignments: Option<Vec<Vec<BrokerId>>>,
}

/// One entry for each name of the request; one for each topic when the whole request was refused.
pub type MadePartitions = Vec<(TopicName, Result<(), PlanError>)>;

pub fn plan_create_partitions(
    image: &MetadataImage,
    topics: &[NewPartitions],
    validate_only: bool,
    draw: &mut dyn Draw,
) -> Plan<MadePartitions> {
    let mut occurrences: BTreeMap<&TopicName, usize> = BTreeMap::new();
    for topic in topics {
        *occurrences.entry(&topic.name).or_default() += 1;
    }
    let mut answer = Vec::new();
    let mut accepted = Vec::new();
    for topic in topics {
        match occurrences.remove(&topic.name) {
            Some(1) => accepted.push(topic),
            Some(_) => {
                let error = PlanError::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
                answer.push((topic.name.clone(), Err(error)));
            }
            None => {}
        }
    }
    match plan_accepted(image, &accepted, draw) {
        Ok((records, made)) => {
            answer.extend(made);
            let records = if validate_only { Vec::new() } else { records };
            Plan { records, answer }
        }
        Err(error) => {
            let refused = |topic: &NewPartitions| (topic.name.clone(), Err(error.clone()));
            Plan::answer(topics.iter().map(refused).collect())
        }
    }
}

/// An error is one for the whole request.
fn plan_accepted(
    image: &MetadataImage,
    topics: &[&NewPartitions],
    draw: &mut dyn Draw,
) -> Result<(Vec<MetadataRecord>, MadePartitions), PlanError> {
    let additional = |topic: &&NewPartitions| {
        let known = image.topic(&topic.name);
        known.map_or(0, |known| {
            (topic.count.max(0) as usize).saturating_sub(known.partitions.len())
        })
    };
    if topics.iter().map(additional).sum::<usize>() > RECORDS_PER_REQUEST_MAX {
        return Err(PlanError::new(
            ErrorCode::PolicyViolation,
            "Excessively large number of additional partitions per request.",
        ));
    }
    let mut records = Vec::new();
    let mut made = Vec::new();
    for topic in topics {
        let result = plan_topic(image, topic, draw);
        made.push((topic.name.clone(), result.map(|new| records.extend(new))));
        if records.len() > RECORDS_PER_REQUEST_MAX {
            return Err(too_many_records());
        }
    }
    Ok((records, made))
}

fn plan_topic(
    image: &MetadataImage,
    request: &NewPartitions,
    draw: &mut dyn Draw,
) -> Result<Vec<MetadataRecord>, PlanError> {
    let topic = image
        .topic(&request.name)
        .ok_or(PlanError::bare(ErrorCode::UnknownTopicOrPartition))?;
    let now = topic.partitions.len() as i32;
    let wanted = request.count;
    if wanted <= now {
        let message = match wanted == now {
            true => format!("Topic already has {now} partition(s)."),
            false => format!(
                "The topic {} currently has {now} partition(s); {wanted} would not be an increase.",
                topic.name
            ),
        };
        return Err(PlanError::new(ErrorCode::InvalidPartitions, message));
    }
    let additional = (wanted - now) as usize;
    let first = topic.partitions.get(0);
    let factor = first.map_or(1, |partition| partition.replicas.len());
    let replicas = match &request.assignments {
        Some(assigned) => {
            check_assignments(image, assigned, additional, now, factor)?;
            assigned.clone()
        }
        None => place(image, additional, factor, draw).map_err(|why| {
            let message = format!("Unable to replicate the partition {factor} time(s): {why}");
            PlanError::new(ErrorCode::InvalidReplicationFactor, message)
        })?,
    };
    let new = (now..).zip(replicas).map(|(partition, replicas)| {
        let replicas = with_active_isr(image, replicas);
        partition_record(image, topic.id, partition, &replicas)
    });
    Ok(new.collect())
}

fn check_assignments(
    image: &MetadataImage,
    assigned: &[Vec<BrokerId>],
    additional: usize,
    first: i32,
    factor: usize,
) -> Result<(), PlanError> {
    if assigned.len() != additional {
        return Err(PlanError::new(
            ErrorCode::InvalidReplicaAssignment,
            format!(
                "Attempted to add {additional} additional partition(s), but only {} assignment(s) \
                 were specified.",
                assigned.len()
            ),
        ));
    }
    for (partition, replicas) in (first..).zip(assigned) {
        check_assignment(image, partition, replicas, Some(factor))?;
    }
    Ok(())
}
