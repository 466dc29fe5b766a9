//! How each record changes the image.

use std::sync::Arc;

use crate::metadata::records::{
    BrokerEpoch, BrokerRegistrationChangeRecord, ConfigRecord, ConfigResource, ConfigResourceType,
    FeatureLevelRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord,
    RegisterBrokerRecord, RemoveTopicRecord, TopicRecord, UnregisterBrokerRecord,
};
use crate::types::{BrokerId, Offset, TopicId, TopicName};

use super::collision_key;
use super::{ImageDelta, MetadataImage, PartitionRegistration, Partitions, TopicImage};

/// A record that does not fit the image: the log is damaged, or a planner has a bug.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ApplyError {
    #[error("entry {offset}: there is no topic {topic_id}")]
    NoTopic { offset: Offset, topic_id: TopicId },
    #[error("entry {offset}: topic {name} ({topic_id}) is there already")]
    TopicExists {
        offset: Offset,
        topic_id: TopicId,
        name: TopicName,
    },
    #[error("entry {offset}: partition {partition} of topic {topic_id} is out of sequence")]
    Partition {
        offset: Offset,
        topic_id: TopicId,
        partition: i32,
    },
    #[error("entry {offset}: broker {broker} is not registered with epoch {}", epoch.0)]
    Broker {
        offset: Offset,
        broker: BrokerId,
        epoch: BrokerEpoch,
    },
}

impl MetadataImage {
    /// Says which entry the next records come from.
    pub fn begin_entry(&mut self, offset: Offset, epoch: u64) {
        debug_assert!(offset >= self.offset);
        self.offset = offset;
        self.epoch = epoch;
    }

    /// Applies one record of the entry that was begun last, and notes in `delta` what it changed.
    /// After an error the image is unusable.
    pub fn apply(
        &mut self,
        record: &MetadataRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::TopicRecord(record) => self.add_topic(record, delta),
            MetadataRecord::PartitionRecord(record) => self.add_partition(record, delta),
            MetadataRecord::PartitionChangeRecord(record) => self.change_partition(record, delta),
            MetadataRecord::RemoveTopicRecord(record) => self.remove_topic(record, delta),
            MetadataRecord::ConfigRecord(record) => {
                self.set_config(record, delta);
                Ok(())
            }
            MetadataRecord::RegisterBrokerRecord(record) => {
                self.register_broker(record, delta);
                Ok(())
            }
            MetadataRecord::UnregisterBrokerRecord(record) => self.unregister_broker(record, delta),
            MetadataRecord::BrokerRegistrationChangeRecord(record) => {
                self.change_broker(record, delta)
            }
            MetadataRecord::ProducerIdsRecord(record) => {
                self.next_producer_id = record.next_producer_id;
                Ok(())
            }
            MetadataRecord::FeatureLevelRecord(record) => {
                self.set_feature(record, delta);
                Ok(())
            }
            MetadataRecord::ClusterRecord(record) => {
                self.cluster_id = Some(record.cluster_id.clone());
                Ok(())
            }
        }
    }

    fn add_topic(
        &mut self,
        record: &TopicRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        let TopicRecord { name, topic_id } = record;
        if self.topics.contains_key(topic_id) || self.topic_ids.contains_key(name) {
            return Err(ApplyError::TopicExists {
                offset: self.offset,
                topic_id: *topic_id,
                name: name.clone(),
            });
        }
        if let Some(key) = collision_key(name) {
            self.colliding.insert((key, name.clone()));
        }
        self.topic_ids.insert(name.clone(), *topic_id);
        let topic = TopicImage {
            name: name.clone(),
            id: *topic_id,
            partitions: Partitions::default(),
        };
        self.topics.insert(*topic_id, Arc::new(topic));
        delta.topics.entry(*topic_id).or_default();
        Ok(())
    }

    fn topic_mut(&mut self, topic_id: TopicId) -> Result<&mut TopicImage, ApplyError> {
        let offset = self.offset;
        match self.topics.get_mut(&topic_id) {
            Some(topic) => Ok(Arc::make_mut(topic)),
            None => Err(ApplyError::NoTopic { offset, topic_id }),
        }
    }

    fn add_partition(
        &mut self,
        record: &PartitionRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        let offset = self.offset;
        let topic = self.topic_mut(record.topic_id)?;
        let partition = record.partition_id;
        if partition < 0 || partition as usize != topic.partitions.len() {
            return Err(ApplyError::Partition {
                offset,
                topic_id: record.topic_id,
                partition,
            });
        }
        let new = PartitionRegistration::new(record, topic.partitions.get(partition - 1));
        topic.partitions.push(new);
        delta
            .topics
            .entry(record.topic_id)
            .or_default()
            .insert(partition);
        Ok(())
    }

    fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        let offset = self.offset;
        let topic = self.topic_mut(record.topic_id)?;
        let Some(partition) = topic.partitions.get_mut(record.partition_id) else {
            return Err(ApplyError::Partition {
                offset,
                topic_id: record.topic_id,
                partition: record.partition_id,
            });
        };
        partition.change(record);
        let changed = delta.topics.entry(record.topic_id).or_default();
        changed.insert(record.partition_id);
        Ok(())
    }

    fn remove_topic(
        &mut self,
        record: &RemoveTopicRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        let Some(topic) = self.topics.remove(&record.topic_id) else {
            return Err(ApplyError::NoTopic {
                offset: self.offset,
                topic_id: record.topic_id,
            });
        };
        self.topic_ids.remove(&topic.name);
        if let Some(key) = collision_key(&topic.name) {
            self.colliding.remove(&(key, topic.name.clone()));
        }
        self.configs
            .remove(&ConfigResource::topic(topic.name.clone()));
        delta.removed_topics.insert(topic.id, topic.name.clone());
        Ok(())
    }

    fn set_config(&mut self, record: &ConfigRecord, delta: &mut ImageDelta) {
        let resource = record.resource();
        let configs = self.configs.entry(resource.clone()).or_default();
        let configs = Arc::make_mut(configs);
        match &record.value {
            Some(value) => {
                configs.insert(record.name.clone(), value.clone());
            }
            None => {
                configs.remove(&record.name);
            }
        }
        if configs.is_empty() {
            self.configs.remove(&resource);
        }
        delta.configs.insert(resource);
    }

    fn register_broker(&mut self, record: &RegisterBrokerRecord, delta: &mut ImageDelta) {
        let mut broker = record.clone();
        if broker.broker_epoch == BrokerEpoch::NONE {
            broker.broker_epoch = BrokerEpoch(self.offset.0);
        }
        delta.brokers.insert(broker.broker_id);
        self.brokers.insert(broker.broker_id, Arc::new(broker));
    }

    /// The broker, if it is registered with that epoch.
    fn broker_mut(
        &mut self,
        broker: BrokerId,
        epoch: BrokerEpoch,
    ) -> Result<&mut RegisterBrokerRecord, ApplyError> {
        let offset = self.offset;
        match self.brokers.get_mut(&broker) {
            Some(known) if known.broker_epoch == epoch => Ok(Arc::make_mut(known)),
            _ => Err(ApplyError::Broker {
                offset,
                broker,
                epoch,
            }),
        }
    }

    fn unregister_broker(
        &mut self,
        record: &UnregisterBrokerRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        self.broker_mut(record.broker_id, record.broker_epoch)?;
        self.brokers.remove(&record.broker_id);
        let own = ConfigResource {
            resource_type: ConfigResourceType::Broker,
            resource_name: record.broker_id.to_string().into(),
        };
        if self.configs.remove(&own).is_some() {
            delta.configs.insert(own);
        }
        delta.brokers.insert(record.broker_id);
        Ok(())
    }

    fn change_broker(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        delta: &mut ImageDelta,
    ) -> Result<(), ApplyError> {
        let broker = self.broker_mut(record.broker_id, record.broker_epoch)?;
        if let Some(fenced) = record.fenced {
            broker.fenced = fenced;
        }
        if let Some(in_controlled_shutdown) = record.in_controlled_shutdown {
            broker.in_controlled_shutdown = in_controlled_shutdown;
        }
        if let Some(log_dirs) = &record.log_dirs {
            broker.log_dirs = log_dirs.clone();
        }
        if let Some(cordoned) = &record.cordoned_log_dirs {
            broker.cordoned_log_dirs = cordoned.clone();
        }
        delta.brokers.insert(record.broker_id);
        Ok(())
    }

    fn set_feature(&mut self, record: &FeatureLevelRecord, delta: &mut ImageDelta) {
        let features = Arc::make_mut(&mut self.features);
        if record.feature_level == 0 {
            features.remove(&record.name);
        } else {
            features.insert(record.name.clone(), record.feature_level);
        }
        delta.features = true;
    }
}
