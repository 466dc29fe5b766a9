//! ElectLeaders, and the balance of leaders.

use std::sync::Arc;

use crate::metadata::{
    DirectoryId, MetadataImage, MetadataRecord, PartitionRegistration, Plan, PlanError, TopicImage,
};
use crate::types::{BrokerId, ErrorCode, TopicName};

use super::partition_change::{Election, PartitionChange, RECOVERING, RulesOf};

/// One entry for each partition that was named, or that needs a leader when none was named.
pub type ElectedLeaders = Vec<(TopicName, i32, Result<(), PlanError>)>;

/// `partitions` without a value: all that need it.
pub fn plan_elect_leaders(
    image: &MetadataImage,
    election: Election,
    partitions: Option<&[(TopicName, i32)]>,
    rules_of: RulesOf<'_>,
) -> Plan<ElectedLeaders> {
    let mut records = Vec::new();
    let mut answer = Vec::new();
    let Some(named) = partitions else {
        for topic in image.topics() {
            for (index, partition) in topic.partitions.iter() {
                let elected = elect(image, topic, index, partition, election, rules_of);
                let result = elected.map(|record| records.push(record));
                // Those that have the leader they should have are passed over.
                let needed = !matches!(&result, Err(e) if e.code == ErrorCode::ElectionNotNeeded);
                if needed {
                    answer.push((topic.name.clone(), index, result));
                }
            }
        }
        return Plan { records, answer };
    };
    for (at, (name, index)) in named.iter().enumerate() {
        // Named once more: it is as the first time left it.
        let before = named[..at].contains(&(name.clone(), *index));
        let result = match find(image, name, *index) {
            Ok(_) if before => Err(not_needed()),
            Ok((topic, partition)) => {
                let elected = elect(image, topic, *index, partition, election, rules_of);
                let elected = elected.or_else(|error| match election {
                    Election::Unclean if error.code != ErrorCode::ElectionNotNeeded => {
                        begin_anew(image, topic, *index, partition, rules_of).ok_or(error)
                    }
                    _ => Err(error),
                });
                elected.map(|record| records.push(record))
            }
            Err(error) => Err(error),
        };
        answer.push((name.clone(), *index, result));
    }
    Plan { records, answer }
}

/// Somebody says that a partition is to go on without its records: where the only brokers that are
/// there do not have its directory any more, the first of them begins with an empty log.
fn begin_anew(
    image: &MetadataImage,
    topic: &TopicImage,
    index: i32,
    partition: &PartitionRegistration,
    rules_of: RulesOf<'_>,
) -> Option<MetadataRecord> {
    let mut replicas = partition.replicas.iter();
    let begins = *replicas.find(|replica| image.is_active(**replica))?;
    let may_lead = |broker| broker == begins;
    let elr_is_on = image.feature_level(super::ELR_FEATURE) > 0;
    let (place, rules) = ((topic.id, index), rules_of(&topic.name));
    let mut change = PartitionChange::of(place, partition, rules, elr_is_on, &may_lead);
    change.election = Election::Unclean;
    change.isr = vec![begins];
    change.recovery_state = RECOVERING;
    // A directory that is named would be one that has the log.
    change.directory = Some((begins, DirectoryId::UNASSIGNED));
    change.record().map(Into::into)
}

fn find<'a>(
    image: &'a MetadataImage,
    name: &str,
    index: i32,
) -> Result<(&'a TopicImage, &'a PartitionRegistration), PlanError> {
    let unknown = |message: String| PlanError::new(ErrorCode::UnknownTopicOrPartition, message);
    let topic = image.topic(name);
    let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    let partition = topic.partitions.get(index);
    let missing = || unknown(format!("No such partition as {name}-{index}"));
    Ok((topic, partition.ok_or_else(missing)?))
}

fn not_needed() -> PlanError {
    PlanError::new(
        ErrorCode::ElectionNotNeeded,
        "Leader election not needed for topic partition.",
    )
}

fn elect(
    image: &MetadataImage,
    topic: &TopicImage,
    index: i32,
    partition: &PartitionRegistration,
    election: Election,
    rules_of: RulesOf<'_>,
) -> Result<MetadataRecord, PlanError> {
    let preferred = partition.replicas.first().copied();
    let is_needed = match election {
        Election::Preferred => Some(partition.leader) != preferred,
        Election::Online | Election::Unclean => !partition.has_leader(),
    };
    if !is_needed {
        return Err(not_needed());
    }
    let may_lead = |broker| image.may_lead(broker, partition);
    let elr_is_on = image.feature_level(super::ELR_FEATURE) > 0;
    let rules = rules_of(&topic.name);
    let place = (topic.id, index);
    let mut change = PartitionChange::of(place, partition, rules, elr_is_on, &may_lead);
    change.election = election;
    let record = change.record().filter(|record| {
        let leader = record.leader.unwrap_or(partition.leader);
        leader != BrokerId::NONE && (election != Election::Preferred || Some(leader) == preferred)
    });
    record.map(Into::into).ok_or_else(|| match election {
        Election::Preferred => PlanError::new(
            ErrorCode::PreferredLeaderNotAvailable,
            "The preferred leader was not available.",
        ),
        Election::Online | Election::Unclean => PlanError::new(
            ErrorCode::EligibleLeadersNotAvailable,
            "Eligible topic partition leaders are not available.",
        ),
    })
}

/// The records that let any live replica lead where nobody leads and the topic allows it: it may
/// have been allowed only after the last leader was lost. At most `count_max`.
pub fn plan_unclean_leaders(
    image: &MetadataImage,
    count_max: usize,
    rules_of: RulesOf<'_>,
) -> Plan<()> {
    let may_be_unclean = |topic: &TopicImage| {
        let mut partitions = topic.partitions.iter();
        partitions.any(|(_, partition)| !partition.has_leader()) && rules_of(&topic.name).unclean
    };
    let topics = image.topics().filter(|topic| may_be_unclean(topic));
    plan_elections(image, topics, Election::Unclean, count_max, rules_of)
}

/// The records that give partitions back to their preferred leaders where those may lead. At most
/// `count_max`.
pub fn plan_preferred_leaders(
    image: &MetadataImage,
    count_max: usize,
    rules_of: RulesOf<'_>,
) -> Plan<()> {
    plan_elections(
        image,
        image.topics(),
        Election::Preferred,
        count_max,
        rules_of,
    )
}

/// Elections in `topics` where they are needed and possible.
fn plan_elections<'a>(
    image: &MetadataImage,
    topics: impl Iterator<Item = &'a Arc<TopicImage>>,
    election: Election,
    count_max: usize,
    rules_of: RulesOf<'_>,
) -> Plan<()> {
    let partitions = topics.flat_map(|topic| {
        let partitions = topic.partitions.iter();
        partitions.map(move |(index, partition)| (topic, index, partition))
    });
    let elected = partitions.filter_map(|(topic, index, partition)| {
        elect(image, topic, index, partition, election, rules_of).ok()
    });
    Plan {
        records: elected.take(count_max).collect(),
        answer: (),
    }
}
