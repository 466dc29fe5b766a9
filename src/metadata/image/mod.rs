//! The metadata at one point of the log: an immutable value, cheap to clone.
//!
//! 1. The image is a function of the records up to `offset`, and of nothing else: every node that
//!    applied the same records has an equal one.
//! 2. A topic's id and name belong together: each topic is found under both, or under none.
//! 3. The partitions of a topic are 0, 1, 2, ... without a gap.

mod apply;
mod delta;
mod partition;
mod snapshot;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::metadata::records::{ConfigResource, RegisterBrokerRecord};
use crate::types::{BrokerId, Offset, ProducerId, TopicId, TopicName};

pub use apply::ApplyError;
pub use delta::ImageDelta;
pub use partition::{PartitionRegistration, Partitions};

/// The configurations of one resource, by name.
pub type Configs = BTreeMap<Arc<str>, Arc<str>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicImage {
    pub name: TopicName,
    pub id: TopicId,
    pub partitions: Partitions,
}

/// See the head of the file. Fields are read through the methods below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataImage {
    offset: Offset,
    epoch: u64,
    cluster_id: Option<Arc<str>>,
    topics: OrdMap<TopicId, Arc<TopicImage>>,
    topic_ids: OrdMap<TopicName, TopicId>,
    /// Names with `.` or `_`, each behind the name with `_` for each `.`: those behind the same
    /// would be one name in metrics, so Kafka keeps a second one from being made.
    colliding: OrdSet<(Arc<str>, TopicName)>,
    configs: OrdMap<ConfigResource, Arc<Configs>>,
    brokers: OrdMap<BrokerId, Arc<RegisterBrokerRecord>>,
    features: Arc<BTreeMap<Arc<str>, i16>>,
    next_producer_id: ProducerId,
}

impl MetadataImage {
    /// The image before the first record.
    pub fn empty() -> Self {
        MetadataImage {
            offset: Offset::NONE,
            epoch: 0,
            cluster_id: None,
            topics: OrdMap::new(),
            topic_ids: OrdMap::new(),
            colliding: OrdSet::new(),
            configs: OrdMap::new(),
            brokers: OrdMap::new(),
            features: Arc::default(),
            next_producer_id: ProducerId(0),
        }
    }

    /// The offset of the last entry in this image; -1 before the first. Kafka calls it the epoch of
    /// the finalized features in ApiVersions.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// The term of the last entry in this image.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// `None` only before the first entry.
    pub fn cluster_id(&self) -> Option<&Arc<str>> {
        self.cluster_id.as_ref()
    }

    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.topic_ids.iter().map(|(_, id)| &self.topics[id])
    }

    /// The topics with names from `name` on, by name.
    pub fn topics_from(&self, name: &str) -> impl Iterator<Item = &Arc<TopicImage>> {
        let from = self
            .topic_ids
            .range::<_, str>((Bound::Included(name), Bound::Unbounded));
        from.map(|(_, id)| &self.topics[id])
    }

    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    pub fn partition(&self, topic: &str, partition: i32) -> Option<&PartitionRegistration> {
        self.topic(topic)?.partitions.get(partition)
    }

    /// An existing topic whose name differs from `name` in `.` and `_` only.
    pub fn colliding_topic(&self, name: &str) -> Option<&TopicName> {
        let key = collision_key(name)?;
        let from = (key.clone(), TopicName::from(""));
        let same = self
            .colliding
            .range(from..)
            .take_while(|(other, _)| *other == key);
        same.map(|(_, known)| known).find(|known| ***known != *name)
    }

    /// What is set on `resource`; `None` when nothing is.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<Configs>> {
        self.configs.get(resource)
    }

    /// Every resource on which something is set, with it.
    pub fn config_resources(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<Configs>)> {
        self.configs.iter()
    }

    pub fn broker(&self, id: BrokerId) -> Option<&Arc<RegisterBrokerRecord>> {
        self.brokers.get(&id)
    }

    /// Every registered broker, by id.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<RegisterBrokerRecord>> {
        self.brokers.iter().map(|(_, broker)| broker)
    }

    /// Whether `id` is registered, not fenced and not shutting down.
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.broker(id).is_some_and(|broker| broker.is_active())
    }

    /// Whether a broker may lead a partition as far as the broker goes: it is active, and the
    /// directory of its replica is one of those it has.
    pub fn may_lead(&self, id: BrokerId, partition: &PartitionRegistration) -> bool {
        self.is_active(id) && self.has_directory(id, partition)
    }

    /// Whether the directory of a broker's replica is one of those that the broker has.
    pub fn has_directory(&self, id: BrokerId, partition: &PartitionRegistration) -> bool {
        let (broker, directory) = (self.broker(id), partition.directory(id));
        broker.is_some_and(|known| directory.is_some_and(|d| d.is_online(&known.log_dirs)))
    }

    /// The level a feature is finalized at; 0 when it is not.
    pub fn feature_level(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// The finalized features that are on, by name.
    pub fn features(&self) -> &BTreeMap<Arc<str>, i16> {
        &self.features
    }

    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }
}

/// What names that would collide with `name` stand behind; `None` when none can.
fn collision_key(name: &str) -> Option<Arc<str>> {
    name.contains(['.', '_'])
        .then(|| name.replace('.', "_").into())
}
