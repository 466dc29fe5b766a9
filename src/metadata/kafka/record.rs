//! One of Kafka's metadata records.
//!
//! ```text
//! frame_version varint    1
//! api_key varint          which record
//! version varint
//! fields                  as the version has them, tagged fields last
//! ```

use crate::metadata::records::{
    BrokerEpoch, ConfigRecord, ConfigResourceType, DirectoryId, FeatureLevelRecord, MetadataRecord,
    PartitionChangeRecord, PartitionRecord, ProducerIdsRecord, RegisterBrokerRecord,
    RemoveTopicRecord, TopicRecord, UnregisterBrokerRecord,
};
use crate::types::{BrokerId, LeaderEpoch, ProducerId, TopicId, TopicName};

use super::KafkaRecordError;
use super::fields::{FieldError, Fields};

const FRAME_VERSION: u32 = 1;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Record(MetadataRecord),
    BeginTransaction,
    EndTransaction,
    AbortTransaction,
    /// It says nothing that lasts, or nothing about what is taken over.
    Nothing,
    /// It has no place here.
    LeftOut(&'static str),
}

type Parser = fn(&mut Fields<'_>, u32) -> Result<Read, FieldError>;

/// By api key: the name, the highest version, what reads it.
const RECORDS: &[(u32, &str, u32, Parser)] = &[
    (0, "RegisterBrokerRecord", 4, register_broker),
    (1, "UnregisterBrokerRecord", 0, |fields, _| {
        let broker_id = fields.broker()?;
        let broker_epoch = BrokerEpoch(fields.int64()?);
        Ok(known(UnregisterBrokerRecord {
            broker_id,
            broker_epoch,
        }))
    }),
    (2, "TopicRecord", 0, topic),
    (3, "PartitionRecord", 2, partition),
    (4, "ConfigRecord", 0, config),
    (5, "PartitionChangeRecord", 2, partition_change),
    (7, "FenceBrokerRecord", 0, nothing),
    (8, "UnfenceBrokerRecord", 0, nothing),
    (9, "RemoveTopicRecord", 0, |fields, _| {
        let topic_id = TopicId(fields.uuid()?);
        Ok(known(RemoveTopicRecord { topic_id }))
    }),
    (10, "DelegationTokenRecord", u32::MAX, |_, _| {
        Ok(Read::LeftOut("delegation tokens"))
    }),
    (11, "UserScramCredentialRecord", u32::MAX, |_, _| {
        Ok(Read::LeftOut("SCRAM credentials"))
    }),
    (12, "FeatureLevelRecord", 0, |fields, _| {
        let name = fields.string()?;
        let feature_level = fields.int16()?;
        Ok(known(FeatureLevelRecord {
            name,
            feature_level,
        }))
    }),
    (14, "ClientQuotaRecord", u32::MAX, |_, _| {
        Ok(Read::LeftOut("client quotas"))
    }),
    (15, "ProducerIdsRecord", 0, producer_ids),
    (17, "BrokerRegistrationChangeRecord", u32::MAX, nothing),
    (18, "AccessControlEntryRecord", u32::MAX, |_, _| {
        Ok(Read::LeftOut("ACLs"))
    }),
    (19, "RemoveAccessControlEntryRecord", u32::MAX, nothing),
    (20, "NoOpRecord", u32::MAX, nothing),
    (21, "ZkMigrationStateRecord", u32::MAX, nothing),
    (22, "RemoveUserScramCredentialRecord", u32::MAX, nothing),
    (23, "BeginTransactionRecord", 0, |_, _| {
        Ok(Read::BeginTransaction)
    }),
    (24, "EndTransactionRecord", 0, |_, _| {
        Ok(Read::EndTransaction)
    }),
    (25, "AbortTransactionRecord", 0, |_, _| {
        Ok(Read::AbortTransaction)
    }),
    (26, "RemoveDelegationTokenRecord", u32::MAX, nothing),
    (27, "RegisterControllerRecord", u32::MAX, nothing),
    // It forgets who was in sync long ago: with one replica there was never anybody else.
    (28, "ClearElrRecord", 0, nothing),
    (29, "UnregisterControllerRecord", u32::MAX, nothing),
];

pub(super) fn read(value: &[u8]) -> Result<Read, KafkaRecordError> {
    let mut fields = Fields::new(value);
    let field = |name| move |source| KafkaRecordError::Field { name, source };
    let frame = fields.varint().map_err(field("a record"))?;
    if frame != FRAME_VERSION {
        return Err(KafkaRecordError::Frame(frame));
    }
    let key = fields.varint().map_err(field("a record"))?;
    let version = fields.varint().map_err(field("a record"))?;
    let record = RECORDS.iter().find(|(known, ..)| *known == key);
    let &(_, name, version_max, parse) = record.ok_or(KafkaRecordError::Unknown { key })?;
    if version > version_max {
        return Err(KafkaRecordError::Version { name, version });
    }
    parse(&mut fields, version).map_err(field(name))
}

fn known(record: impl Into<MetadataRecord>) -> Read {
    Read::Record(record.into())
}

fn nothing(_: &mut Fields<'_>, _: u32) -> Result<Read, FieldError> {
    Ok(Read::Nothing)
}

/// Who it was and in which epoch. It registers anew before it serves: the rest is not read.
fn register_broker(fields: &mut Fields<'_>, version: u32) -> Result<Read, FieldError> {
    let broker_id = fields.broker()?;
    if version >= 2 {
        let _is_migrating_zk_broker = fields.int8()?;
    }
    Ok(known(RegisterBrokerRecord {
        broker_id,
        incarnation_id: fields.uuid()?,
        broker_epoch: BrokerEpoch(fields.int64()?),
        end_points: Vec::new(),
        features: Vec::new(),
        rack: None,
        fenced: true,
        in_controlled_shutdown: false,
        log_dirs: Vec::new(),
        cordoned_log_dirs: Vec::new(),
    }))
}

fn topic(fields: &mut Fields<'_>, _: u32) -> Result<Read, FieldError> {
    let name = TopicName::from(&*fields.string()?);
    let topic_id = TopicId(fields.uuid()?);
    Ok(known(TopicRecord { name, topic_id }))
}

fn directory(fields: &mut Fields<'_>) -> Result<DirectoryId, FieldError> {
    fields.uuid().map(DirectoryId)
}

fn partition(fields: &mut Fields<'_>, version: u32) -> Result<Read, FieldError> {
    let mut record = PartitionRecord {
        partition_id: fields.int32()?,
        topic_id: TopicId(fields.uuid()?),
        replicas: fields.vec(Fields::broker)?,
        isr: fields.vec(Fields::broker)?,
        removing_replicas: fields.vec(Fields::broker)?,
        adding_replicas: fields.vec(Fields::broker)?,
        leader: fields.broker()?,
        leader_recovery_state: 0,
        leader_epoch: LeaderEpoch(fields.int32()?),
        partition_epoch: fields.int32()?,
        directories: match version {
            0 => Default::default(),
            _ => fields.vec(directory)?,
        },
        eligible_leader_replicas: Default::default(),
        last_known_elr: Default::default(),
    };
    fields.tagged(|tag, field| {
        let some = |list: Option<_>| list.unwrap_or_default();
        match tag {
            0 => record.leader_recovery_state = field.int8()?,
            1 => record.eligible_leader_replicas = some(field.nullable_array(Fields::broker)?),
            2 => record.last_known_elr = some(field.nullable_array(Fields::broker)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(known(record))
}

fn partition_change(fields: &mut Fields<'_>, _: u32) -> Result<Read, FieldError> {
    let partition_id = fields.int32()?;
    let topic_id = TopicId(fields.uuid()?);
    let mut record = PartitionChangeRecord::of(topic_id, partition_id);
    fields.tagged(|tag, field| {
        let brokers = |field: &mut Fields<'_>| field.nullable_array(Fields::broker);
        match tag {
            0 => record.isr = brokers(field)?,
            // -2: as before.
            1 => record.leader = Some(field.broker()?).filter(|leader| *leader >= BrokerId::NONE),
            2 => record.replicas = brokers(field)?,
            3 => record.removing_replicas = brokers(field)?,
            4 => record.adding_replicas = brokers(field)?,
            5 => record.leader_recovery_state = Some(field.int8()?).filter(|state| *state >= 0),
            6 => record.eligible_leader_replicas = brokers(field)?,
            7 => record.last_known_elr = brokers(field)?,
            8 => record.directories = field.nullable_array(directory)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(known(record))
}

fn config(fields: &mut Fields<'_>, _: u32) -> Result<Read, FieldError> {
    let Ok(resource_type) = ConfigResourceType::try_from(fields.int8()?) else {
        return Ok(Read::LeftOut("configurations of unknown resources"));
    };
    Ok(known(ConfigRecord {
        resource_type,
        resource_name: fields.string()?,
        name: fields.string()?,
        value: fields.nullable_string()?,
    }))
}

fn producer_ids(fields: &mut Fields<'_>, _: u32) -> Result<Read, FieldError> {
    Ok(known(ProducerIdsRecord {
        broker_id: fields.broker()?,
        broker_epoch: BrokerEpoch(fields.int64()?),
        next_producer_id: ProducerId(fields.int64()?),
    }))
}
