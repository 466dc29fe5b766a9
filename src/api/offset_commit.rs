//! OffsetCommit (key 8): a group remembers how far it has come.

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequest;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::group_request;
use crate::machine::group::command::{CommitPartition, OffsetCommit};
use crate::metadata::MetadataImage;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

pub fn handle(context: Context, request: OffsetCommitRequest) -> Handled<OffsetCommitResponse> {
    Handled::later(async move {
        let image = context.node.image();
        let (partitions, errors) = known_partitions(&image, &request);
        let commit = OffsetCommit {
            group: request.group_id.0.as_str().into(),
            generation_id_or_member_epoch: request.generation_id_or_member_epoch,
            member_id: request.member_id.as_str().into(),
            group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
            retention_time_ms: request.retention_time_ms,
            partitions,
            api_version: context.api_version,
        };
        // Nothing that is known: the group is not asked.
        let stored = if commit.partitions.is_empty() && !errors.is_empty() {
            Vec::new()
        } else {
            context.node.groups.commit_offsets(commit).await.partitions
        };
        answer(request, errors, stored)
    })
}

/// The partitions that exist, and for each partition of the request the error if it does not.
fn known_partitions(
    image: &MetadataImage,
    request: &OffsetCommitRequest,
) -> (Vec<CommitPartition>, Vec<Option<ErrorCode>>) {
    let mut known = Vec::new();
    let mut errors = Vec::new();
    for topic in &request.topics {
        let found = image.topic(&topic.name.0);
        for partition in &topic.partitions {
            let index = partition.partition_index;
            let exists = found.filter(|found| found.partitions.get(index).is_some());
            let Some(found) = exists else {
                errors.push(Some(ErrorCode::UnknownTopicOrPartition));
                continue;
            };
            errors.push(None);
            known.push(CommitPartition {
                topic: found.name.clone(),
                topic_id: found.id,
                partition: index,
                offset: Offset(partition.committed_offset),
                leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
                metadata: group_request::owned(partition.committed_metadata.as_ref()),
            });
        }
    }
    (known, errors)
}

/// `errors` has an entry for each partition of the request, `stored` one for each that exists.
fn answer(
    request: OffsetCommitRequest,
    errors: Vec<Option<ErrorCode>>,
    stored: Vec<ErrorCode>,
) -> OffsetCommitResponse {
    let mut errors = errors.into_iter();
    let mut stored = stored.into_iter();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let error = errors.next().flatten().or_else(|| stored.next());
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(error.unwrap_or(ErrorCode::UnknownServerError).code())
        });
        let partitions = partitions.collect();
        OffsetCommitResponseTopic::default().with_name(topic.name).with_partitions(partitions)
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}
