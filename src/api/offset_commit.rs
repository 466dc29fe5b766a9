//! OffsetCommit (key 8): a group remembers how far it has come.

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequest;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::group_request::{self, AskedPartition, AskedTopic, SortedOut};
use super::value::{elements, int32, integer, structure, text, topic_id};
use crate::machine::group::command::OffsetCommit;
use crate::types::{ErrorCode, LeaderEpoch, Offset};
use crate::wire::Value;

/// What a request without a retention time of its own means (v5+).
const RETENTION_OF_THE_BROKER: i64 = -1;

pub fn handle(context: Context, request: OffsetCommitRequest) -> Handled<OffsetCommitResponse> {
    Handled::later(async move {
        let image = context.node.image();
        let mut asked = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let partitions = topic.partitions.iter().map(|partition| AskedPartition {
                index: partition.partition_index,
                offset: Offset(partition.committed_offset),
                leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
                metadata: group_request::owned(partition.committed_metadata.as_ref()),
            });
            let partitions = partitions.collect();
            asked.push(AskedTopic {
                topic: image.topic(&topic.name.0).cloned(),
                partitions,
            });
        }
        let commit = OffsetCommit {
            group: request.group_id.0.as_str().into(),
            generation_id_or_member_epoch: request.generation_id_or_member_epoch,
            member_id: request.member_id.as_str().into(),
            group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
            retention_time_ms: request.retention_time_ms,
            partitions: Vec::new(),
            api_version: context.api_version,
        };
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let results = store(&context, commit, asked, unknown).await;
        let topics = request
            .topics
            .into_iter()
            .zip(results)
            .map(|(topic, results)| {
                let partitions = topic
                    .partitions
                    .iter()
                    .zip(results)
                    .map(|(partition, error)| {
                        OffsetCommitResponsePartition::default()
                            .with_partition_index(partition.partition_index)
                            .with_error_code(error.code())
                    });
                let partitions = partitions.collect();
                OffsetCommitResponseTopic::default()
                    .with_name(topic.name)
                    .with_partitions(partitions)
            });
        let topics = topics.filter(|topic| !topic.partitions.is_empty());
        OffsetCommitResponse::default().with_topics(topics.collect())
    })
}

/// v10 names topics by their ids (KIP-848).
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let image = context.node.image();
        let mut shown = Vec::new();
        let mut asked = Vec::new();
        let named = |topic: &&Value| !elements(topic, "partitions").is_empty();
        for topic in elements(&request, "topics").iter().filter(named) {
            let id = topic_id(topic);
            let partitions = elements(topic, "partitions")
                .iter()
                .map(|partition| AskedPartition {
                    index: int32(partition, "partition_index"),
                    offset: Offset(integer(partition, "committed_offset")),
                    leader_epoch: LeaderEpoch(int32(partition, "committed_leader_epoch")),
                    metadata: text(partition, "committed_metadata").map(str::to_owned),
                });
            let partitions: Vec<_> = partitions.collect();
            shown.push((id, partitions.iter().map(|p| p.index).collect::<Vec<_>>()));
            asked.push(AskedTopic {
                topic: image.topic_by_id(id).cloned(),
                partitions,
            });
        }
        let commit = OffsetCommit {
            group: text(&request, "group_id").unwrap_or_default().into(),
            generation_id_or_member_epoch: int32(&request, "generation_id_or_member_epoch"),
            member_id: text(&request, "member_id").unwrap_or_default().into(),
            group_instance_id: text(&request, "group_instance_id").map(str::to_owned),
            retention_time_ms: RETENTION_OF_THE_BROKER,
            partitions: Vec::new(),
            api_version: context.api_version,
        };
        let results = store(&context, commit, asked, ErrorCode::UnknownTopicId).await;
        let topics = shown
            .into_iter()
            .zip(results)
            .map(|((id, indexes), results)| {
                let partitions = indexes.into_iter().zip(results).map(|(index, error)| {
                    structure([
                        ("partition_index", Value::Integer(index.into())),
                        ("error_code", Value::Integer(error.code().into())),
                    ])
                });
                let partitions = Value::Array(partitions.collect());
                structure([("topic_id", Value::Uuid(id.0)), ("partitions", partitions)])
            });
        structure([("topics", Value::Array(topics.collect()))])
    })
}

/// Commits what exists; the errors by topic and partition, in the order of the request.
async fn store(
    context: &Context,
    mut commit: OffsetCommit,
    asked: Vec<AskedTopic>,
    unknown_topic: ErrorCode,
) -> Vec<Vec<ErrorCode>> {
    let mut sorted = SortedOut::new(asked, unknown_topic);
    // Nothing that is known: the group is not asked.
    if sorted.known.is_empty() && sorted.errors.iter().any(|topic| !topic.is_empty()) {
        return sorted.errors;
    }
    commit.partitions = std::mem::take(&mut sorted.known);
    let stored = context.node.groups.commit_offsets(commit).await.partitions;
    sorted.with_known(stored)
}
