//! Brokers come, go and come back.

use std::sync::Arc;

use uuid::Uuid;

use crate::metadata::{
    BrokerEndpoint, BrokerEpoch, BrokerFeature, BrokerRegistrationChangeRecord, DirectoryId,
    MetadataImage, MetadataRecord, Plan, PlanError, RegisterBrokerRecord, UnregisterBrokerRecord,
};
use crate::types::{BrokerId, ErrorCode};

use super::election::{elect_returned, replace_leader};

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
/// The partitions that a broker led when it crashed lose their leader: the election that follows
/// begins a new leader epoch, by which clients see that the end of the log may have changed.
pub fn plan_register_broker(
    image: &MetadataImage,
    request: RegisterBroker,
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_registration(image, &request) {
        return Plan::answer(Err(error));
    }
    let known = image.broker(request.broker_id);
    let same = known.filter(|broker| broker.incarnation_id == request.incarnation_id);
    let crashed =
        same.is_none() && known.is_some_and(|b| b.broker_epoch != request.previous_broker_epoch);
    let mut records = match crashed {
        true => each_partition(image, |topic, index| {
            replace_leader(image, topic, index, request.broker_id)
        }),
        false => Vec::new(),
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
    for (name, level) in image.features() {
        let supported = request
            .features
            .iter()
            .find(|feature| feature.name == *name);
        let (min, max) = supported.map_or((0, 0), |feature| {
            (feature.min_supported_version, feature.max_supported_version)
        });
        if !(min..=max).contains(level) {
            return Err(PlanError::new(
                ErrorCode::UnsupportedVersion,
                format!(
                    "Unable to register because the broker does not support finalized version \
                     {level} of {name}. The broker wants a version between {min} and {max}, \
                     inclusive."
                ),
            ));
        }
    }
    Ok(())
}

/// `Err` unless the broker is registered with that epoch.
pub(super) fn check_broker_epoch(
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
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    if image.is_active(broker) {
        return Plan::answer(Ok(()));
    }
    let mut records = vec![fencing(broker, epoch, false)];
    records.extend(each_partition(image, |topic, index| {
        let partition = topic.partitions.get(index)?;
        elect_returned(topic, index, partition, broker)
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
) -> Plan<Result<(), PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker, epoch) {
        return Plan::answer(Err(error));
    }
    let mut records = each_partition(image, |topic, index| {
        replace_leader(image, topic, index, broker)
    });
    if !image.broker(broker).is_some_and(|known| known.fenced) {
        records.push(fencing(broker, epoch, true));
    }
    Plan {
        records,
        answer: Ok(()),
    }
}

/// Forgets a broker.
pub fn plan_unregister_broker(
    image: &MetadataImage,
    broker: BrokerId,
) -> Plan<Result<(), PlanError>> {
    let Some(known) = image.broker(broker) else {
        return Plan::answer(Err(PlanError::new(
            ErrorCode::BrokerIdNotRegistered,
            format!("Broker ID {broker} is not currently registered"),
        )));
    };
    let mut records = each_partition(image, |topic, index| {
        replace_leader(image, topic, index, broker)
    });
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
    record: impl Fn(&crate::metadata::TopicImage, i32) -> Option<MetadataRecord>,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in image.topics() {
        let count = topic.partitions.len() as i32;
        records.extend((0..count).filter_map(|index| record(topic, index)));
    }
    records
}
