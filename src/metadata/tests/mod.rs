//! Tests of the metadata module, and what they share.

mod apply;
mod brokers;
mod directories;
mod elections;
mod partitions;
mod placement;
mod properties;
mod reassign;
mod recovery;
mod topics;

use std::sync::Arc;

use uuid::Uuid;

use crate::types::{BrokerId, Offset, TopicId};

use super::planners::{CreatedTopics, NewTopic, TopicDefaults, TopicPlanner};
use super::*;

/// Ids that count up, and always the same place.
pub(super) struct Fixed(pub u128);

impl Draw for Fixed {
    fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }

    fn below(&mut self, _end: usize) -> usize {
        0
    }
}

pub(super) fn topic_id(number: u128) -> TopicId {
    TopicId(Uuid::from_u128(number))
}

pub(super) fn replicas(brokers: &[i32]) -> Replicas {
    brokers.iter().map(|id| BrokerId(*id)).collect()
}

/// A registered broker with one directory, not fenced.
pub(super) fn broker(id: i32, rack: Option<&str>) -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: BrokerId(id),
        incarnation_id: Uuid::from_u128(id as u128),
        broker_epoch: BrokerEpoch::NONE,
        end_points: vec![BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: SecurityProtocol::Plaintext,
        }],
        features: Vec::new(),
        rack: rack.map(Arc::from),
        fenced: false,
        in_controlled_shutdown: false,
        log_dirs: vec![DirectoryId(Uuid::from_u128(1000 + id as u128))],
        cordoned_log_dirs: Vec::new(),
    }
}

/// The image after one entry, at offset 0, with `records`.
pub(super) fn image_of(records: impl IntoIterator<Item = MetadataRecord>) -> MetadataImage {
    let mut image = MetadataImage::empty();
    add(&mut image, records);
    image
}

/// Applies one more entry.
pub(super) fn add(
    image: &mut MetadataImage,
    records: impl IntoIterator<Item = MetadataRecord>,
) -> ImageDelta {
    let mut delta = ImageDelta::default();
    image.begin_entry(Offset(image.offset().0 + 1), 1);
    for record in records {
        image.apply(&record, &mut delta).unwrap();
    }
    delta
}

/// A cluster of brokers 1..=count without racks.
pub(super) fn cluster(count: i32) -> MetadataImage {
    image_of((1..=count).map(|id| broker(id, None).into()))
}

pub(super) fn new_topic(name: &str, num_partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic {
        name: name.into(),
        num_partitions,
        replication_factor,
        ..NewTopic::default()
    }
}

/// Plans topics with defaults of three partitions and one replica; a configuration `bad` is
/// refused.
pub(super) fn plan_topics(
    image: &MetadataImage,
    topics: &[NewTopic],
    validate_only: bool,
) -> Plan<CreatedTopics> {
    let mut planner = TopicPlanner {
        defaults: TopicDefaults {
            num_partitions: 3,
            replication_factor: 1,
        },
        check_configs: &|topic| match topic.configs.iter().any(|(key, _)| key == "bad") {
            true => {
                let code = crate::types::ErrorCode::InvalidConfig;
                Err(PlanError::new(code, "Unknown topic config name: bad"))
            }
            false => Ok(()),
        },
        draw: &mut Fixed(image.topic_count() as u128 + 100),
    };
    planner.plan(image, topics, validate_only)
}

/// An image with the topics made.
pub(super) fn with_topics(mut image: MetadataImage, topics: &[NewTopic]) -> MetadataImage {
    let plan = plan_topics(&image, topics, false);
    for (name, result) in &plan.answer {
        assert!(result.is_ok(), "{name}: {result:?}");
    }
    add(&mut image, plan.records);
    image
}
