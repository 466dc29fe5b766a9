//! Kafka's own metadata (the records of its `__cluster_metadata`), taken over into an image.
//!
//! 1. What is taken over: topics with their ids and partitions, configurations, feature levels, and
//!    of the brokers who they were and in which epoch. Producer ids go on far above Kafka's.
//! 2. What this version has no place for (ACLs, quotas, credentials, delegation tokens) is
//!    counted by name, for a warning. A record of an unknown kind is an error: it may be one that
//!    counts.
//! 3. The records of a transaction (KIP-868) count once it has ended; an aborted or unfinished one
//!    leaves nothing.

mod fields;
mod record;

use std::collections::BTreeMap;

use crate::types::{BrokerId, Offset, ProducerId};

use super::image::{ApplyError, ImageDelta, MetadataImage};
use super::records::{
    ConfigRecord, ConfigResource, FeatureLevelRecord, MetadataRecord, ProducerIdsRecord,
};
use super::{BrokerEpoch, Plan, SUPPORTED_FEATURES};

use fields::FieldError;
use record::{Read, read};

/// More ids than a cluster hands out, and few enough for a client that keeps them in a double.
const PRODUCER_IDS_APART: i64 = 1 << 40;

/// Why records cannot be taken over.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KafkaRecordError {
    #[error("a record has frame version {0}")]
    Frame(u32),
    #[error("record type {key} is not known")]
    Unknown { key: u32 },
    #[error("{name} version {version} is not known")]
    Version { name: &'static str, version: u32 },
    #[error("{name} cannot be read")]
    Field {
        name: &'static str,
        #[source]
        source: FieldError,
    },
    #[error("a record does not fit those before it")]
    Apply(#[from] ApplyError),
    #[error("a transaction begins within another one")]
    Transaction,
}

/// What the records read so far come to.
#[derive(Debug, Clone)]
pub struct KafkaMetadata {
    image: MetadataImage,
    left_out: BTreeMap<&'static str, usize>,
    transaction: Option<Vec<MetadataRecord>>,
}

impl Default for KafkaMetadata {
    fn default() -> Self {
        KafkaMetadata {
            image: MetadataImage::empty(),
            left_out: BTreeMap::new(),
            transaction: None,
        }
    }
}

impl KafkaMetadata {
    /// Takes in the value of the record at `offset`.
    pub fn take(&mut self, offset: Offset, value: &[u8]) -> Result<(), KafkaRecordError> {
        match read(value)? {
            Read::Nothing => Ok(()),
            Read::LeftOut(name) => {
                *self.left_out.entry(name).or_default() += 1;
                Ok(())
            }
            Read::BeginTransaction if self.transaction.is_some() => {
                Err(KafkaRecordError::Transaction)
            }
            Read::BeginTransaction => {
                self.transaction = Some(Vec::new());
                Ok(())
            }
            Read::AbortTransaction => {
                self.transaction = None;
                Ok(())
            }
            Read::EndTransaction => {
                let records = self.transaction.take().unwrap_or_default();
                records.into_iter().try_for_each(|r| self.apply(offset, r))
            }
            Read::Record(record) => match &mut self.transaction {
                Some(open) => {
                    open.push(record);
                    Ok(())
                }
                None => self.apply(offset, record),
            },
        }
    }

    fn apply(&mut self, offset: Offset, record: MetadataRecord) -> Result<(), KafkaRecordError> {
        self.image.begin_entry(offset, 0);
        self.image.apply(&record, &mut ImageDelta::default())?;
        Ok(())
    }

    /// As of the last record taken in.
    pub fn image(&self) -> &MetadataImage {
        &self.image
    }

    /// Names of records that were left out, and how many of each.
    pub fn left_out(&self) -> &BTreeMap<&'static str, usize> {
        &self.left_out
    }

    /// A feature whose level this version cannot work at.
    pub fn unsupported_feature(&self) -> Option<(&str, i16)> {
        let levels = self.image.features().iter();
        let mut beyond = levels.filter(|(name, level)| {
            let known = SUPPORTED_FEATURES.iter().find(|f| *f.name == ***name);
            !known.is_some_and(|f| (f.min_version..=f.max_version).contains(*level))
        });
        beyond.next().map(|(name, level)| (&**name, *level))
    }
}

/// Adds to `image`, which is that of a new cluster, up to about `records_max` of the records that
/// `kafka` has and it has not. The answer is whether that was all. Doing it again goes on where it
/// was left, so a crash in between is made up for. The brokers come last: once `image` has one, all
/// is there.
pub fn plan_take_over(
    image: &MetadataImage,
    kafka: &MetadataImage,
    records_max: usize,
) -> Plan<bool> {
    let mut missing = kafka.records().filter(|record| is_missing(image, record));
    let mut records: Vec<_> = missing.by_ref().take(records_max).collect();
    let is_all = missing.next().is_none();
    if is_all {
        records.extend(replaced_features(image, kafka));
        records.extend(dropped_configs(image, kafka));
        records.extend(producer_ids_apart(image, kafka));
        records.extend(kafka.brokers().map(|broker| (**broker).clone().into()));
    }
    Plan {
        records,
        answer: is_all,
    }
}

fn is_missing(image: &MetadataImage, record: &MetadataRecord) -> bool {
    match record {
        MetadataRecord::TopicRecord(topic) => image.topic_by_id(topic.topic_id).is_none(),
        MetadataRecord::PartitionRecord(record) => {
            let topic = image.topic_by_id(record.topic_id);
            topic.is_none_or(|t| t.partitions.get(record.partition_id).is_none())
        }
        MetadataRecord::ConfigRecord(record) => {
            let set = image.configs(&record.resource());
            set.and_then(|set| set.get(&record.name)) != record.value.as_ref()
        }
        _ => false,
    }
}

/// Kafka, started once more on its directory, hands out producer ids where it left off. Those that
/// were handed out here are in the partitions by then, so they are no ids of Kafka's.
fn producer_ids_apart(image: &MetadataImage, kafka: &MetadataImage) -> Option<MetadataRecord> {
    let next = kafka.next_producer_id().0.checked_add(PRODUCER_IDS_APART)?;
    (image.next_producer_id().0 < next).then(|| {
        ProducerIdsRecord {
            broker_id: BrokerId::NONE,
            broker_epoch: BrokerEpoch(-1),
            next_producer_id: ProducerId(next),
        }
        .into()
    })
}

/// Kafka's levels in place of those that a new cluster begins with. `kraft.version` is that of the
/// quorum, which is this node's own.
fn replaced_features(image: &MetadataImage, kafka: &MetadataImage) -> Vec<MetadataRecord> {
    let features = SUPPORTED_FEATURES.iter().map(|feature| feature.name);
    let differs = features.filter(|name| {
        *name != "kraft.version" && image.feature_level(name) != kafka.feature_level(name)
    });
    let record = |name: &str| FeatureLevelRecord {
        name: name.into(),
        feature_level: kafka.feature_level(name),
    };
    differs.map(|name| record(name).into()).collect()
}

/// What a new cluster begins with and Kafka's has not.
fn dropped_configs(image: &MetadataImage, kafka: &MetadataImage) -> Vec<MetadataRecord> {
    let resource = ConfigResource::all_brokers();
    let own = image.configs(&resource).into_iter();
    let names = own.flat_map(|configs| configs.keys());
    let kept = kafka.configs(&resource);
    let is_kept = |name: &std::sync::Arc<str>| kept.is_some_and(|kept| kept.contains_key(name));
    names
        .filter(|name| !is_kept(name))
        .map(|name| ConfigRecord::new(&resource, name.clone(), None).into())
        .collect()
}

#[cfg(test)]
mod tests;
