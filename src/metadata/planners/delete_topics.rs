//! DeleteTopics.

use std::collections::BTreeMap;

use crate::metadata::{MetadataImage, Plan, PlanError, RemoveTopicRecord};
use crate::types::{ErrorCode, TopicId, TopicName};

use super::{RECORDS_PER_REQUEST_MAX, too_many_records};

/// A topic as a client names it: by name or by id.
#[derive(Debug, Clone, PartialEq, Eq)]
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

pub fn plan_delete_topics(image: &MetadataImage, topics: &[TopicRef]) -> Plan<Vec<DeletedTopic>> {
    let mut occurrences: BTreeMap<TopicId, usize> = BTreeMap::new();
    for known in topics.iter().filter_map(|topic| find(image, topic)) {
        *occurrences.entry(known).or_default() += 1;
    }
    let mut records = Vec::new();
    let mut answer = Vec::new();
    for topic in topics {
        let Some(id) = find(image, topic) else {
            answer.push(unknown(topic));
            continue;
        };
        let name = image.topic_by_id(id).map(|topic| topic.name.clone());
        // A topic that was asked for twice, by name or by id, is answered once and stays.
        let result = match occurrences.remove(&id) {
            None => continue,
            Some(1) => {
                records.push(RemoveTopicRecord { topic_id: id }.into());
                Ok(())
            }
            Some(_) => Err(PlanError::new(
                ErrorCode::InvalidRequest,
                "Duplicate topic in request.",
            )),
        };
        answer.push(DeletedTopic {
            name,
            topic_id: id,
            result,
        });
    }
    if records.len() > RECORDS_PER_REQUEST_MAX {
        records.clear();
        for topic in answer.iter_mut().filter(|topic| topic.result.is_ok()) {
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
    match topic {
        TopicRef::Name(name) => DeletedTopic {
            name: Some(name.clone()),
            topic_id: TopicId::NONE,
            result: Err(PlanError::bare(ErrorCode::UnknownTopicOrPartition)),
        },
        TopicRef::Id(id) => DeletedTopic {
            name: None,
            topic_id: *id,
            result: Err(PlanError::bare(ErrorCode::UnknownTopicId)),
        },
    }
}
