//! Brokers come, go and come back.

use std::sync::Arc;

use uuid::Uuid;

use crate::metadata::{
    BrokerEndpoint, BrokerEpoch, BrokerFeature, BrokerRegistrationChangeRecord, DirectoryId,
    MetadataImage, MetadataRecord, PartitionChangeRecord, PartitionRegistration, Plan, PlanError,
    RegisterBrokerRecord, TopicImage, UnregisterBrokerRecord,
};
use crate::types::{BrokerId, ErrorCode};

use super::partition_change::{PartitionChange, RulesOf};

/// What a broker says of itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterBroker {
    pub broker_id: BrokerId,
    pub cluster_id: Arc<str>,
    /// New each time the process starts.
    pub incarnation_id: Uuid,
    pub end_points: Vec<BrokerEndpoint>,
    pub features: Vec<BrokerFeature>,
    pub rack: Option<Arc<str>>,
    pub log_dirs: Vec<DirectoryId>,
    /// The epoch it had when it last stopped cleanly; [`BrokerEpoch::NONE`] after a crash, when
    /// what it had not synced may be gone (KIP-966).
    pub previous_broker_epoch: BrokerEpoch,
}

/// Registers a broker, fenced. Once the answer is there the image has its epoch.
///
/// A broker that starts anew serves nothing until it is unfenced: others lead what it led, where
/// there are others. After a crash its partitions lose their leader in any case: the election
/// that follows begins a new leader epoch, by which clients see that the log may have changed.
pub fn plan_register_broker(
    image: &MetadataImage,
    request: RegisterBroker,
    rules_of: RulesOf<'_>,
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_registration(image, &request) {
        return Plan::answer(Err(error));
    }
    let known = image.broker(request.broker_id);
    let same = known.filter(|broker| broker.incarnation_id == request.incarnation_id);
    let previous = request.previous_broker_epoch;
    let crashed = match known {
        Some(known) => same.is_none() && known.broker_epoch != previous,
        // Unregistered in between, its replicas are still there.
        None => previous == BrokerEpoch::NONE,
    };
    let id = request.broker_id;
    let is_there = |partition: &PartitionRegistration| {
        let directory = partition.directory(id);
        directory.is_none_or(|directory| directory.is_online(&request.log_dirs))
    };
    let mut records = match (known, same) {
        (None, _) if !crashed => Vec::new(),
        (_, None) => {
            let keeps = |partition: &PartitionRegistration| !crashed && is_there(partition);
            moves_from(image, id, crashed, &keeps, rules_of)
        }
        (_, Some(_)) => replicas_go(image, id, &|partition| !is_there(partition), rules_of),
    };
    records.push(
        RegisterBrokerRecord {
            broker_id: request.broker_id,
            incarnation_id: request.incarnation_id,
            broker_epoch: same.map_or(BrokerEpoch::NONE, |broker| broker.broker_epoch),
            end_points: request.end_points,
            features: request.features,
            rack: request.rack,
            fenced: same.is_none_or(|broker| broker.fenced),
            in_controlled_shutdown: same.is_some_and(|broker| broker.in_controlled_shutdown),
            log_dirs: request.log_dirs,
            cordoned_log_dirs: Vec::new(),
        }
        .into(),
    );
    Plan {
        records,
        answer: Ok(()),
    }
}

fn check_registration(image: &MetadataImage, request: &RegisterBroker) -> Result<(), PlanError> {
    if let Some(expected) = image.cluster_id().filter(|id| **id != request.cluster_id) {
        return Err(PlanError::new(
            ErrorCode::InconsistentClusterId,
            format!(
                "Expected cluster ID {expected}, but got cluster ID {}",
                request.cluster_id
            ),
        ));
    }
    check_features(image, request)?;
    check_directories(image, request)
}

fn check_features(image: &MetadataImage, request: &RegisterBroker) -> Result<(), PlanError> {
    let is_told = |name: &str| {
        request
            .features
            .iter()
            .any(|feature| &*feature.name == name)
    };
    if !is_told(super::METADATA_VERSION) {
        return Err(PlanError::new(
            ErrorCode::InvalidRegistration,
            "Request features do not contain metadata.version, which is needed.",
        ));
    }
    let refuse = |name: &str, level: i16, min: i16, max: i16| {
        Err(PlanError::new(
            ErrorCode::UnsupportedVersion,
            format!(
                "Unable to register because the broker does not support finalized version \
                 {level} of {name}. The broker wants a version between {min} and {max}, inclusive."
            ),
        ))
    };
    for feature in &request.features {
        let (min, max) = (feature.min_supported_version, feature.max_supported_version);
        let level = image.feature_level(&feature.name);
        if !(min..=max).contains(&level) {
            return refuse(&feature.name, level, min, max);
        }
    }
    let mut others = image.features().iter().filter(|(name, _)| !is_told(name));
    match others.find(|(_, level)| **level != 0) {
        Some((name, level)) => refuse(name, *level, 0, 0),
        None => Ok(()),
    }
}

/// Each directory is one broker's, once.
fn check_directories(image: &MetadataImage, request: &RegisterBroker) -> Result<(), PlanError> {
    let refuse = |message: String| Err(PlanError::new(ErrorCode::InvalidRegistration, message));
    let own = &request.log_dirs;
    if own.is_empty() {
        return refuse("No directories specified in request".to_owned());
    }
    if let Some(reserved) = own.iter().find(|dir| dir.is_reserved()) {
        return refuse(format!("Reserved directory ID in request: {}", reserved.0));
    }
    if (1..own.len()).any(|at| own[..at].contains(&own[at])) {
        return refuse("Duplicate directory ID in request".to_owned());
    }
    let others = image.brokers();
    let others = others.filter(|broker| broker.broker_id != request.broker_id);
    for other in others {
        if let Some(taken) = own.iter().find(|dir| other.log_dirs.contains(dir)) {
            return refuse(format!(
                "Broker {} is already registered with directory {}",
                other.broker_id, taken.0
            ));
        }
    }
    Ok(())
}

/// `Err` unless the broker is registered with that epoch.
pub fn check_broker_epoch(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
) -> Result<(), PlanError> {
    match image.broker(broker) {
        None => Err(PlanError::new(
            ErrorCode::StaleBrokerEpoch,
            format!("No broker registration found for broker id {broker}"),
        )),
        Some(known) if known.broker_epoch != epoch => Err(PlanError::new(
            ErrorCode::StaleBrokerEpoch,
            format!(
                "Expected broker epoch {}, but got broker epoch {}",
                known.broker_epoch.0, epoch.0
            ),
        )),
        Some(_) => Ok(()),
    }
}

/// Lets a broker serve: partitions without a leader that waited for it get one.
pub fn plan_unfence_broker(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
    rules_of: RulesOf<'_>,
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    if image.is_active(broker) {
        return Plan::answer(Ok(()));
    }
    let mut records = vec![fencing(broker, epoch, false)];
    records.extend(each_partition(image, |topic, index, partition| {
        let may_lead = |candidate| {
            let is_active = candidate == broker || image.is_active(candidate);
            is_active && image.has_directory(candidate, partition)
        };
        let waits = !partition.has_leader() && partition.replicas.contains(&broker);
        waits.then(|| change_of(image, topic, index, partition, rules_of, &may_lead).record())?
    }));
    Plan {
        records,
        answer: Ok(()),
    }
}

/// Takes a broker out of service: others lead what it led, where there are others.
pub fn plan_fence_broker(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
    rules_of: RulesOf<'_>,
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    let mut records = moves_from(image, broker, false, &|_| false, rules_of);
    if !image.broker(broker).is_some_and(|known| known.fenced) {
        records.push(fencing(broker, epoch, true));
    }
    Plan {
        records,
        answer: Ok(()),
    }
}

/// Moves the lead away from a broker that is about to stop. The answer is how many partitions it
/// led when it asked: it may stop at 0, or when it has to.
pub fn plan_controlled_shutdown(
    image: &MetadataImage,
    broker: BrokerId,
    epoch: BrokerEpoch,
    rules_of: RulesOf<'_>,
) -> Plan<Result<usize, PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    let led = |topic: &std::sync::Arc<crate::metadata::TopicImage>| {
        let partitions = topic.partitions.iter();
        partitions
            .filter(|(_, partition)| partition.leader == broker)
            .count()
    };
    let led: usize = image.topics().map(led).sum();
    let mut records = moves_from(image, broker, false, &|_| true, rules_of);
    if !image
        .broker(broker)
        .is_some_and(|known| known.in_controlled_shutdown)
    {
        records.push(
            BrokerRegistrationChangeRecord {
                broker_id: broker,
                broker_epoch: epoch,
                fenced: None,
                in_controlled_shutdown: Some(true),
                log_dirs: None,
                cordoned_log_dirs: None,
            }
            .into(),
        );
    }
    Plan {
        records,
        answer: Ok(led),
    }
}

/// Forgets a broker.
pub fn plan_unregister_broker(
    image: &MetadataImage,
    broker: BrokerId,
    rules_of: RulesOf<'_>,
) -> Plan<Result<(), PlanError>> {
    let Some(known) = image.broker(broker) else {
        return Plan::answer(Err(PlanError::new(
            ErrorCode::BrokerIdNotRegistered,
            format!("Broker ID {broker} is not currently registered"),
        )));
    };
    let mut records = moves_from(image, broker, false, &|_| false, rules_of);
    records.push(
        UnregisterBrokerRecord {
            broker_id: broker,
            broker_epoch: known.broker_epoch,
        }
        .into(),
    );
    Plan {
        records,
        answer: Ok(()),
    }
}

/// The records by which others take over what `broker` led, and by which it leaves the ISRs where
/// others are in them. Where nobody else may lead it keeps the lead if `keeps` says so. `crashed`:
/// what it had not synced may be gone; else what it has is thought to be there.
fn moves_from(
    image: &MetadataImage,
    broker: BrokerId,
    crashed: bool,
    keeps: &dyn Fn(&PartitionRegistration) -> bool,
    rules_of: RulesOf<'_>,
) -> Vec<MetadataRecord> {
    each_partition(image, |topic, index, partition| {
        let others = |candidate| candidate != broker && image.may_lead(candidate, partition);
        let is_eligible = partition.eligible_leader_replicas().contains(&broker);
        if partition.leader != broker
            && !partition.isr.contains(&broker)
            && !(crashed && is_eligible)
        {
            return None;
        }
        let mut change = change_of(image, topic, index, partition, rules_of, &others);
        change.isr.retain(|member| *member != broker);
        change.crashed = crashed.then_some(broker);
        let record = change.record()?;
        let leaderless = record.leader == Some(BrokerId::NONE);
        (!leaderless || !keeps(partition)).then_some(record)
    })
}

/// As if the broker were fenced, for those of its replicas that `go`.
pub(super) fn replicas_go(
    image: &MetadataImage,
    broker: BrokerId,
    go: &dyn Fn(&PartitionRegistration) -> bool,
    rules_of: RulesOf<'_>,
) -> Vec<MetadataRecord> {
    each_partition(image, |topic, index, partition| {
        let counts = partition.leader == broker || partition.isr.contains(&broker);
        if !counts || !go(partition) {
            return None;
        }
        let others = |candidate| candidate != broker && image.may_lead(candidate, partition);
        let mut change = change_of(image, topic, index, partition, rules_of, &others);
        change.isr.retain(|member| *member != broker);
        change.record()
    })
}

pub(super) fn change_of<'a>(
    image: &MetadataImage,
    topic: &TopicImage,
    index: i32,
    partition: &'a PartitionRegistration,
    rules_of: RulesOf<'_>,
    may_lead: &'a dyn Fn(BrokerId) -> bool,
) -> PartitionChange<'a> {
    let elr_is_on = image.feature_level(super::ELR_FEATURE) > 0;
    let place = (topic.id, index);
    PartitionChange::of(place, partition, rules_of(&topic.name), elr_is_on, may_lead)
}

fn fencing(broker_id: BrokerId, broker_epoch: BrokerEpoch, fenced: bool) -> MetadataRecord {
    BrokerRegistrationChangeRecord {
        broker_id,
        broker_epoch,
        fenced: Some(fenced),
        in_controlled_shutdown: (!fenced).then_some(false),
        log_dirs: None,
        cordoned_log_dirs: None,
    }
    .into()
}

fn each_partition(
    image: &MetadataImage,
    record: impl Fn(&TopicImage, i32, &PartitionRegistration) -> Option<PartitionChangeRecord>,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in image.topics() {
        let changes = topic.partitions.iter();
        let changes = changes.filter_map(|(index, partition)| record(topic, index, partition));
        records.extend(changes.map(MetadataRecord::from));
    }
    records
}
