//! OffsetFetch (key 9): how far a group has come. Up to v7 of one group, from v8 of several.

use std::collections::BTreeMap;

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequest, OffsetFetchRequestGroup,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::machine::group::command::{FetchedOffset, OffsetFetch, OffsetFetchReply};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicId, TopicName};

const VERSION_SEVERAL_GROUPS: i16 = 8;
/// From this version on null asks for everything and an empty list for nothing.
const VERSION_NULL_IS_ALL: i16 = 2;
const VERSION_GROUP_ERROR: i16 = 2;

pub fn handle(context: Context, request: OffsetFetchRequest) -> Handled<OffsetFetchResponse> {
    Handled::later(async move {
        if context.api_version < VERSION_SEVERAL_GROUPS {
            return one_group(&context, request).await;
        }
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            groups.push(several_groups(&context, group, request.require_stable).await);
        }
        OffsetFetchResponse::default().with_groups(groups)
    })
}

async fn one_group(context: &Context, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let partitions = request.topics.as_ref().map(|topics| {
        let each = topics.iter().flat_map(|topic| {
            let name: TopicName = topic.name.0.as_str().into();
            topic.partition_indexes.iter().map(move |partition| (name.clone(), *partition))
        });
        each.collect::<Vec<_>>()
    });
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
    let topics = by_topic(reply.partitions).into_iter().map(|(name, partitions)| {
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
    OffsetFetchResponse::default().with_topics(topics.collect()).with_error_code(error.code())
}

async fn several_groups(
    context: &Context,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let partitions = group.topics.as_ref().map(|topics| {
        let each = topics.iter().flat_map(|topic| {
            let name: TopicName = topic.name.0.as_str().into();
            topic.partition_indexes.iter().map(move |partition| (name.clone(), *partition))
        });
        each.collect::<Vec<_>>()
    });
    let fetch = OffsetFetch {
        group: group.group_id.0.as_str().into(),
        member_id: group.member_id.as_ref().map(|id| id.as_str().into()),
        member_epoch: group.member_epoch,
        partitions,
        require_stable,
    };
    let reply = context.node.groups.fetch_offsets(fetch).await;
    let topics = by_topic(reply.partitions).into_iter().map(|(name, partitions)| {
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
        .with_error_code(reply.error.code())
}

/// An error of the whole group stands at every partition as well, for those who look only there.
fn with_errors(
    reply: OffsetFetchReply,
    asked: Option<Vec<(TopicName, i32)>>,
) -> OffsetFetchReply {
    if reply.error == ErrorCode::None {
        return reply;
    }
    let failed = asked.unwrap_or_default().into_iter().map(|(topic, partition)| FetchedOffset {
        topic,
        topic_id: TopicId::NONE,
        partition,
        offset: Offset::NONE,
        leader_epoch: LeaderEpoch::NONE,
        metadata: String::new(),
        error: reply.error,
    });
    OffsetFetchReply { error: reply.error, partitions: failed.collect() }
}

fn by_topic(partitions: Vec<FetchedOffset>) -> BTreeMap<TopicName, Vec<FetchedOffset>> {
    let mut topics: BTreeMap<TopicName, Vec<FetchedOffset>> = BTreeMap::new();
    for fetched in partitions {
        topics.entry(fetched.topic.clone()).or_default().push(fetched);
    }
    topics
}
