//! CreateTopics.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::metadata::{
    ConfigRecord, ConfigResource, DirectoryId, Draw, MetadataImage, MetadataRecord,
    PartitionRecord, Plan, PlanError, Replicas, TopicRecord,
};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, TopicId, TopicName};

use super::assignment::check_assignment;
use super::placement::place;
use super::topic_name::check_topic_name;
use super::{RECORDS_PER_REQUEST_MAX, too_many_records};

/// One topic of a CreateTopics request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTopic {
    pub name: String,
    /// -1: the broker's default.
    pub num_partitions: i32,
    /// -1: the broker's default.
    pub replication_factor: i16,
    /// Partition and replicas, when the client chose them; both counts are -1 then.
    pub assignments: Vec<(i32, Vec<BrokerId>)>,
    pub configs: Vec<(String, Option<String>)>,
}

/// `num.partitions` and `default.replication.factor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicDefaults {
    pub num_partitions: i32,
    pub replication_factor: i16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTopic {
    pub topic_id: TopicId,
    pub num_partitions: i32,
    pub replication_factor: i16,
}

/// One entry for each name of the request; one for each topic when the whole request was refused.
pub type CreatedTopics = Vec<(TopicName, Result<CreatedTopic, PlanError>)>;

/// Plans the making of topics. `check_configs` judges a topic's configurations (the tables are not
/// known here).
pub struct TopicPlanner<'a> {
    pub defaults: TopicDefaults,
    pub check_configs: &'a dyn Fn(&NewTopic) -> Result<(), PlanError>,
    pub draw: &'a mut dyn Draw,
}

/// The name under which Kafka shows its own metadata log.
const METADATA_TOPIC: &str = "__cluster_metadata";

impl TopicPlanner<'_> {
    /// Plans all `topics`. With `validate_only` the answers are the same and nothing is made.
    pub fn plan(
        &mut self,
        image: &MetadataImage,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Plan<CreatedTopics> {
        let mut answer: CreatedTopics = Vec::with_capacity(topics.len());
        let mut accepted = Vec::new();
        for (topic, occurrences) in once_each(topics) {
            match check_request(topic, occurrences) {
                Ok(()) => accepted.push(topic),
                Err(error) => answer.push((topic.name.as_str().into(), Err(error))),
            }
        }
        match self.plan_accepted(image, &accepted) {
            Ok((records, created)) => {
                answer.extend(created);
                let records = if validate_only { Vec::new() } else { records };
                Plan { records, answer }
            }
            Err(error) => {
                let refused = |topic: &NewTopic| (topic.name.as_str().into(), Err(error.clone()));
                Plan::answer(topics.iter().map(refused).collect())
            }
        }
    }

    /// An error is one for the whole request.
    fn plan_accepted(
        &mut self,
        image: &MetadataImage,
        topics: &[&NewTopic],
    ) -> Result<(Vec<MetadataRecord>, CreatedTopics), PlanError> {
        if self.partitions_of(topics) > RECORDS_PER_REQUEST_MAX {
            return Err(PlanError::new(
                ErrorCode::PolicyViolation,
                "Excessively large number of partitions per request.",
            ));
        }
        let mut records = Vec::new();
        let mut created = Vec::new();
        for topic in topics {
            let name: TopicName = topic.name.as_str().into();
            let planned = self.plan_topic(image, topic, &name);
            let result = planned.map(|(topic_records, created)| {
                records.extend(topic_records);
                created
            });
            created.push((name, result));
            if records.len() > RECORDS_PER_REQUEST_MAX {
                return Err(too_many_records());
            }
        }
        Ok((records, created))
    }

    /// How many partitions are asked for; topics whose count is no count do not matter.
    fn partitions_of(&self, topics: &[&NewTopic]) -> usize {
        let count = |topic: &&NewTopic| match (topic.assignments.len(), topic.num_partitions) {
            (0, -1) => self.defaults.num_partitions.max(0) as usize,
            (0, count) => count.max(0) as usize,
            (assigned, _) => assigned,
        };
        topics.iter().map(count).sum()
    }

    fn plan_topic(
        &mut self,
        image: &MetadataImage,
        topic: &NewTopic,
        name: &TopicName,
    ) -> Result<(Vec<MetadataRecord>, CreatedTopic), PlanError> {
        check_topic_name(name)?;
        if image.topic(name).is_some() {
            return Err(PlanError::new(
                ErrorCode::TopicAlreadyExists,
                format!("Topic '{name}' already exists."),
            ));
        }
        if let Some(existing) = image.colliding_topic(name) {
            return Err(PlanError::new(
                ErrorCode::InvalidTopicException,
                format!("Topic '{name}' collides with existing topic: {existing}"),
            ));
        }
        check_null_configs(topic)?;
        (self.check_configs)(topic)?;
        let partitions = match topic.assignments.is_empty() {
            true => self.place_partitions(image, topic)?,
            false => assigned_partitions(image, topic)?,
        };
        let topic_id = TopicId(self.draw.uuid());
        let created = CreatedTopic {
            topic_id,
            num_partitions: partitions.len() as i32,
            replication_factor: partitions[0].0.len() as i16,
        };
        Ok((
            topic_records(image, topic, created.topic_id, &partitions),
            created,
        ))
    }

    fn place_partitions(
        &mut self,
        image: &MetadataImage,
        topic: &NewTopic,
    ) -> Result<Vec<ReplicasAndIsr>, PlanError> {
        let invalid_factor =
            |message: String| PlanError::new(ErrorCode::InvalidReplicationFactor, message);
        let or_default = |value: i32, default: i32| if value == -1 { default } else { value };
        let factor = or_default(
            topic.replication_factor.into(),
            self.defaults.replication_factor.into(),
        );
        let count = or_default(topic.num_partitions, self.defaults.num_partitions);
        if factor <= 0 {
            return Err(invalid_factor(
                "Replication factor must be larger than 0, or -1 to use the default value.".into(),
            ));
        }
        if count <= 0 {
            return Err(PlanError::new(
                ErrorCode::InvalidPartitions,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        }
        let placed = place(image, count as usize, factor as usize, self.draw).map_err(|why| {
            invalid_factor(format!(
                "Unable to replicate the partition {factor} time(s): {why}"
            ))
        })?;
        Ok(placed
            .into_iter()
            .map(|r| with_active_isr(image, r))
            .collect())
    }
}

/// The replicas of a partition, and those of them that are in sync from the start.
pub(super) type ReplicasAndIsr = (Replicas, Replicas);

/// Shares one list where all replicas are active.
pub(super) fn with_active_isr(image: &MetadataImage, replicas: Vec<BrokerId>) -> ReplicasAndIsr {
    let replicas: Replicas = replicas.into();
    if replicas.iter().all(|broker| image.is_active(*broker)) {
        return (replicas.clone(), replicas);
    }
    let active = replicas.iter().copied();
    let isr = active.filter(|broker| image.is_active(*broker)).collect();
    (replicas, isr)
}

/// The record of a new partition, led by the first replica in sync.
pub(super) fn partition_record(
    image: &MetadataImage,
    topic_id: TopicId,
    partition_id: i32,
    (replicas, isr): &ReplicasAndIsr,
) -> MetadataRecord {
    let directory = |broker: &BrokerId| {
        let broker = image.broker(*broker);
        broker.map_or(DirectoryId::UNASSIGNED, |b| b.default_directory())
    };
    PartitionRecord {
        partition_id,
        topic_id,
        replicas: replicas.clone(),
        isr: isr.clone(),
        removing_replicas: Replicas::default(),
        adding_replicas: Replicas::default(),
        leader: isr[0],
        leader_recovery_state: 0,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: 0,
        directories: replicas.iter().map(directory).collect(),
        eligible_leader_replicas: Replicas::default(),
        last_known_elr: Replicas::default(),
    }
    .into()
}

/// Each name once, in the order of the request, with how often it is there.
fn once_each(topics: &[NewTopic]) -> Vec<(&NewTopic, usize)> {
    let mut occurrences: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in topics {
        *occurrences.entry(&topic.name).or_default() += 1;
    }
    let once = |topic: &&NewTopic| occurrences.remove(topic.name.as_str());
    topics
        .iter()
        .scan(once, |once, topic| Some(once(&topic).map(|n| (topic, n))))
        .flatten()
        .collect()
}

/// What Kafka checks before the controller sees the request.
fn check_request(topic: &NewTopic, occurrences: usize) -> Result<(), PlanError> {
    if occurrences > 1 {
        return Err(PlanError::new(
            ErrorCode::InvalidRequest,
            "Duplicate topic name.",
        ));
    }
    if topic.name == METADATA_TOPIC {
        return Err(PlanError::new(
            ErrorCode::InvalidRequest,
            format!("Creation of internal topic {METADATA_TOPIC} is prohibited."),
        ));
    }
    Ok(())
}

fn check_null_configs(topic: &NewTopic) -> Result<(), PlanError> {
    let nulls = topic.configs.iter().filter(|(_, value)| value.is_none());
    let names: Vec<&str> = nulls.map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Null value not supported for topic configs: {}",
        names.join(",")
    );
    Err(PlanError::new(ErrorCode::InvalidConfig, message))
}

fn assigned_partitions(
    image: &MetadataImage,
    topic: &NewTopic,
) -> Result<Vec<ReplicasAndIsr>, PlanError> {
    let refuse = |code, message: String| Err(PlanError::new(code, message));
    let both = "A manual partition assignment was specified, but";
    if topic.replication_factor != -1 {
        return refuse(
            ErrorCode::InvalidRequest,
            format!("{both} replication factor was not set to -1."),
        );
    }
    if topic.num_partitions != -1 {
        return refuse(
            ErrorCode::InvalidRequest,
            format!("{both} numPartitions was not set to -1."),
        );
    }
    let mut partitions = BTreeMap::new();
    let mut factor = None;
    for (partition, replicas) in &topic.assignments {
        if partitions.contains_key(partition) {
            return refuse(
                ErrorCode::InvalidReplicaAssignment,
                format!("Found multiple manual partition assignments for partition {partition}"),
            );
        }
        check_assignment(image, *partition, replicas, factor)?;
        factor = Some(replicas.len());
        partitions.insert(*partition, with_active_isr(image, replicas.clone()));
    }
    if !(0..)
        .zip(partitions.keys())
        .all(|(i, partition)| i == *partition)
    {
        return refuse(
            ErrorCode::InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence".into(),
        );
    }
    Ok(partitions.into_values().collect())
}

fn topic_records(
    image: &MetadataImage,
    topic: &NewTopic,
    topic_id: TopicId,
    partitions: &[ReplicasAndIsr],
) -> Vec<MetadataRecord> {
    let name: TopicName = topic.name.as_str().into();
    let resource = ConfigResource::topic(name.clone());
    let mut records = vec![TopicRecord { name, topic_id }.into()];
    // A key that is given twice counts with its last value.
    let configs: BTreeMap<&str, &Option<String>> = topic
        .configs
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    for (key, value) in configs {
        let value = value.as_deref().map(Arc::from);
        records.push(ConfigRecord::new(&resource, key.into(), value).into());
    }
    for (partition, replicas) in (0..).zip(partitions) {
        records.push(partition_record(image, topic_id, partition, replicas));
    }
    records
}
