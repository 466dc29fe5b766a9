//! DeleteTopics.

use std::collections::BTreeMap;

use crate::metadata::{MetadataImage, Plan, PlanError, RemoveTopicRecord};
use crate::types::{ErrorCode, TopicId, TopicName};

use super::{RECORDS_PER_REQUEST_MAX, too_many_records};

/// A topic as a client names it: by name or by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicRef {
    Name(TopicName),
    Id(TopicId),
}

/// The answer for one topic. Name and id are those the image knows; where the topic is unknown, the
/// one that was asked for stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTopic {
    pub name: Option<TopicName>,
    pub topic_id: TopicId,
    pub result: Result<(), PlanError>,
}

/// One answer for each name and each id, those given twice among them.
pub fn plan_delete_topics(image: &MetadataImage, topics: &[TopicRef]) -> Plan<Vec<DeletedTopic>> {
    let mut occurrences: BTreeMap<&TopicRef, usize> = BTreeMap::new();
    for topic in topics {
        *occurrences.entry(topic).or_default() += 1;
    }
    // Topics that are there, with how they were named: by name, by id or by both.
    let mut found: BTreeMap<TopicId, usize> = BTreeMap::new();
    let mut answer = Vec::new();
    for (topic, count) in occurrences {
        match (count, find(image, topic)) {
            (1, Some(id)) => *found.entry(id).or_default() += 1,
            (1, None) => answer.push(unknown(topic)),
            _ => answer.push(duplicate(topic)),
        }
    }
    let mut records = Vec::new();
    for (topic_id, named) in found {
        let result = if named == 1 {
            records.push(RemoveTopicRecord { topic_id }.into());
            Ok(())
        } else {
            Err(PlanError::new(
                ErrorCode::InvalidRequest,
                "The provided topic name maps to an ID that was already supplied.",
            ))
        };
        answer.push(DeletedTopic {
            name: image.topic_by_id(topic_id).map(|topic| topic.name.clone()),
            topic_id,
            result,
        });
    }
    if records.len() > RECORDS_PER_REQUEST_MAX {
        records.clear();
        for topic in &mut answer {
            topic.result = Err(too_many_records());
        }
    }
    Plan { records, answer }
}

fn find(image: &MetadataImage, topic: &TopicRef) -> Option<TopicId> {
    match topic {
        TopicRef::Name(name) => image.topic(name).map(|topic| topic.id),
        TopicRef::Id(id) => image.topic_by_id(*id).map(|topic| topic.id),
    }
}

fn unknown(topic: &TopicRef) -> DeletedTopic {
    let error = match topic {
        TopicRef::Name(_) => PlanError::new(
            ErrorCode::UnknownTopicOrPartition,
            "This server does not host this topic-partition.",
        ),
        TopicRef::Id(_) => PlanError::new(
            ErrorCode::UnknownTopicId,
            "This server does not host this topic ID.",
        ),
    };
    refused(topic, error)
}

fn duplicate(topic: &TopicRef) -> DeletedTopic {
    let message = match topic {
        TopicRef::Name(_) => "Duplicate topic name.",
        TopicRef::Id(_) => "Duplicate topic id.",
    };
    refused(topic, PlanError::new(ErrorCode::InvalidRequest, message))
}

fn refused(topic: &TopicRef, error: PlanError) -> DeletedTopic {
    let (name, topic_id) = match topic {
        TopicRef::Name(name) => (Some(name.clone()), TopicId::NONE),
        TopicRef::Id(id) => (None, *id),
    };
    DeletedTopic {
        name,
        topic_id,
        result: Err(error),
    }
}
