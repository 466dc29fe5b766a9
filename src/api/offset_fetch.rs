//! OffsetFetch (key 9): how far a group has come. Up to v7 of one group, from v8 of several.

use std::collections::BTreeMap;

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use super::answer::CloseReason;
use super::codec::{Handled, Outcome};
use super::context::Context;
use super::room::Room;
use super::value::{boolean, elements, int32, structure, text, topic_id};
use super::view;
use crate::machine::group::command::{FetchedOffset, OffsetFetch, OffsetFetchReply};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicId, TopicName};
use crate::wire::Value;

const VERSION_SEVERAL_GROUPS: i16 = 8;
/// From this version on null asks for everything and an empty list for nothing.
const VERSION_NULL_IS_ALL: i16 = 2;
const VERSION_GROUP_ERROR: i16 = 2;
/// A committed offset as a value, without its text.
const OFFSET_BYTES: usize = 5 * size_of::<(&str, Value)>();

pub fn handle(context: Context, request: OffsetFetchRequest) -> Handled<OffsetFetchResponse> {
    Handled::Later(Box::pin(async move {
        if context.api_version < VERSION_SEVERAL_GROUPS {
            return Outcome::Answer(one_group(&context, request).await);
        }
        let mut room = Room::of(&context);
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            let group = several_groups(&context, group, request.require_stable).await;
            match room.put(group) {
                Ok(group) => groups.push(group),
                Err(reason) => return Outcome::Close(reason),
            }
        }
        Outcome::Answer(OffsetFetchResponse::default().with_groups(groups))
    }))
}

async fn one_group(context: &Context, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let topics = request.topics.as_ref().map(|topics| {
        let each = topics.iter().map(|t| (&t.name, &t.partition_indexes));
        each.collect()
    });
    let (asked, partitions) = asked(topics);
    let partitions = match partitions {
        None if context.api_version < VERSION_NULL_IS_ALL => Some(Vec::new()),
        asked => asked,
    };
    let fetch = OffsetFetch {
        group: request.group_id.0.as_str().into(),
        member_id: None,
        member_epoch: -1,
        partitions: partitions.clone(),
        require_stable: request.require_stable,
    };
    let reply = with_errors(context.node.groups.fetch_offsets(fetch).await, partitions);
    let error = if context.api_version < VERSION_GROUP_ERROR {
        // There is no field for it: every partition has it.
        ErrorCode::None
    } else {
        reply.error
    };
    let topics = by_topic(asked, reply)
        .into_iter()
        .map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|fetched| {
                OffsetFetchResponsePartition::default()
                    .with_partition_index(fetched.partition)
                    .with_committed_offset(fetched.offset.0)
                    .with_committed_leader_epoch(fetched.leader_epoch.0)
                    .with_metadata(Some(view::text(&fetched.metadata)))
                    .with_error_code(fetched.error.code())
            });
            let partitions = partitions.collect();
            let topic = OffsetFetchResponseTopic::default().with_name(WireName(view::text(&name)));
            topic.with_partitions(partitions)
        });
    OffsetFetchResponse::default()
        .with_topics(topics.collect())
        .with_error_code(error.code())
}

/// The topics by name, and every partition of them; `None` asks for all there are.
fn asked(
    topics: Option<Vec<(&WireName, &Vec<i32>)>>,
) -> (Vec<TopicName>, Option<Vec<(TopicName, i32)>>) {
    let Some(topics) = topics else {
        return (Vec::new(), None);
    };
    let mut names = Vec::with_capacity(topics.len());
    let mut partitions = Vec::new();
    for (name, indexes) in topics {
        let name: TopicName = name.0.as_str().into();
        partitions.extend(indexes.iter().map(|index| (name.clone(), *index)));
        names.push(name);
    }
    (names, Some(partitions))
}

async fn several_groups(
    context: &Context,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let topics = group.topics.as_ref().map(|topics| {
        let each = topics.iter().map(|t| (&t.name, &t.partition_indexes));
        each.collect()
    });
    let (asked, partitions) = asked(topics);
    let fetch = OffsetFetch {
        group: group.group_id.0.as_str().into(),
        member_id: group.member_id.as_ref().map(|id| id.as_str().into()),
        member_epoch: group.member_epoch,
        partitions,
        require_stable,
    };
    let reply = context.node.groups.fetch_offsets(fetch).await;
    let error = reply.error;
    let topics = by_topic(asked, reply)
        .into_iter()
        .map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|fetched| {
                OffsetFetchResponsePartitions::default()
                    .with_partition_index(fetched.partition)
                    .with_committed_offset(fetched.offset.0)
                    .with_committed_leader_epoch(fetched.leader_epoch.0)
                    .with_metadata(Some(view::text(&fetched.metadata)))
                    .with_error_code(fetched.error.code())
            });
            let partitions = partitions.collect();
            let topic = OffsetFetchResponseTopics::default().with_name(WireName(view::text(&name)));
            topic.with_partitions(partitions)
        });
    OffsetFetchResponseGroup::default()
        .with_group_id(group.group_id)
        .with_topics(topics.collect())
        .with_error_code(error.code())
}

/// v10 names topics by their ids.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::Later(Box::pin(async move {
        let mut room = Room::of(&context);
        let require_stable = boolean(&request, "require_stable");
        let mut groups = Vec::new();
        for group in elements(&request, "groups") {
            match group_by_ids(&context, group, require_stable, &mut room).await {
                Ok(group) => groups.push(group),
                Err(reason) => return Outcome::Close(reason),
            }
        }
        Outcome::Answer(structure([("groups", Value::Array(groups))]))
    }))
}

async fn group_by_ids(
    context: &Context,
    group: &Value,
    require_stable: bool,
    room: &mut Room,
) -> Result<Value, CloseReason> {
    let image = context.node.image();
    let mut topics = BTreeMap::new();
    let partitions = match group.get("topics") {
        Some(Value::Array(asked)) => {
            let mut partitions = Vec::new();
            for topic in asked {
                let id = topic_id(topic);
                let indexes = elements(topic, "partition_indexes").iter();
                let indexes = indexes.filter_map(|index| index.as_integer()?.try_into().ok());
                match image.topic_by_id(id) {
                    Some(found) => {
                        topics.entry(id).or_insert_with(Vec::new);
                        partitions.extend(indexes.map(|index| (found.name.clone(), index)));
                    }
                    None => {
                        let unknown =
                            indexes.map(|index| nothing(index, ErrorCode::UnknownTopicId));
                        topics.entry(id).or_insert_with(Vec::new).extend(unknown);
                    }
                }
            }
            Some(partitions)
        }
        _ => None,
    };
    let group_id = text(group, "group_id").unwrap_or_default();
    let fetch = OffsetFetch {
        group: group_id.into(),
        member_id: text(group, "member_id").map(Into::into),
        member_epoch: int32(group, "member_epoch"),
        partitions,
        require_stable,
    };
    let reply = context.node.groups.fetch_offsets(fetch).await;
    if reply.error != ErrorCode::None {
        topics.clear();
    }
    for fetched in reply.partitions {
        room.take(OFFSET_BYTES + fetched.metadata.len())?;
        // Offsets of a topic that is gone have no id to be named by.
        let Some(topic) = image.topic(&fetched.topic) else {
            continue;
        };
        topics
            .entry(topic.id)
            .or_default()
            .push(of_partition(&fetched));
    }
    let topics = topics.into_iter().map(|(id, partitions)| {
        let partitions = Value::Array(partitions);
        structure([("topic_id", Value::Uuid(id.0)), ("partitions", partitions)])
    });
    Ok(structure([
        ("group_id", Value::Text(group_id.to_owned())),
        ("topics", Value::Array(topics.collect())),
        ("error_code", Value::Integer(reply.error.code().into())),
    ]))
}

fn of_partition(fetched: &FetchedOffset) -> Value {
    structure([
        ("partition_index", Value::Integer(fetched.partition.into())),
        ("committed_offset", Value::Integer(fetched.offset.0)),
        (
            "committed_leader_epoch",
            Value::Integer(fetched.leader_epoch.0.into()),
        ),
        ("metadata", Value::Text(fetched.metadata.clone())),
        ("error_code", Value::Integer(fetched.error.code().into())),
    ])
}

fn nothing(partition: i32, error: ErrorCode) -> Value {
    of_partition(&FetchedOffset {
        topic: "".into(),
        topic_id: TopicId::NONE,
        partition,
        offset: Offset::NONE,
        leader_epoch: LeaderEpoch::NONE,
        metadata: String::new(),
        error,
    })
}

/// An error of the whole group stands at every partition as well, for those who look only there.
fn with_errors(reply: OffsetFetchReply, asked: Option<Vec<(TopicName, i32)>>) -> OffsetFetchReply {
    if reply.error == ErrorCode::None {
        return reply;
    }
    let failed = asked
        .unwrap_or_default()
        .into_iter()
        .map(|(topic, partition)| FetchedOffset {
            topic,
            topic_id: TopicId::NONE,
            partition,
            offset: Offset::NONE,
            leader_epoch: LeaderEpoch::NONE,
            metadata: String::new(),
            error: reply.error,
        });
    OffsetFetchReply {
        error: reply.error,
        partitions: failed.collect(),
    }
}

/// A topic that was asked for without partitions is there too, unless the group failed.
fn by_topic(
    asked: Vec<TopicName>,
    reply: OffsetFetchReply,
) -> BTreeMap<TopicName, Vec<FetchedOffset>> {
    let mut topics: BTreeMap<TopicName, Vec<FetchedOffset>> = BTreeMap::new();
    if reply.error == ErrorCode::None {
        topics.extend(asked.into_iter().map(|name| (name, Vec::new())));
    }
    for fetched in reply.partitions {
        topics
            .entry(fetched.topic.clone())
            .or_default()
            .push(fetched);
    }
    topics
}
