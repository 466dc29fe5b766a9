//! TxnOffsetCommit (key 28): a group remembers how far it has come, once the transaction commits.

use std::collections::BTreeMap;

use kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequest;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::internal_topics::CONSUMER_OFFSETS;
use super::verification::{self, Answers, Question};
use super::{group_request, txn_request};
use crate::machine::group::command::{CommitPartition, TxnOffsetCommit};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicPartition};

/// From this version on the group becomes part of the transaction by this request (KIP-890).
const VERSION_ADDS_GROUP: i16 = 5;
/// From this version on clients know TRANSACTION_ABORTABLE.
const VERSION_ABORTABLE: i16 = 4;

pub fn handle(
    context: Context,
    request: TxnOffsetCommitRequest,
) -> Handled<TxnOffsetCommitResponse> {
    Handled::later(async move {
        let image = context.node.image();
        let mut known = Vec::new();
        for topic in &request.topics {
            let Some(found) = image.topic(&topic.name.0) else {
                continue;
            };
            for partition in &topic.partitions {
                if found.partitions.get(partition.partition_index).is_none() {
                    continue;
                }
                known.push(CommitPartition {
                    topic: found.name.clone(),
                    topic_id: found.id,
                    partition: partition.partition_index,
                    offset: Offset(partition.committed_offset),
                    leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
                    metadata: group_request::owned(partition.committed_metadata.as_ref()),
                });
            }
        }
        let stored = if known.is_empty() {
            BTreeMap::new()
        } else {
            commit(&context, &request, known).await
        };
        answer(request, &stored)
    })
}

/// The outcome for each partition.
async fn commit(
    context: &Context,
    request: &TxnOffsetCommitRequest,
    partitions: Vec<CommitPartition>,
) -> BTreeMap<TopicPartition, ErrorCode> {
    let names: Vec<TopicPartition> = partitions
        .iter()
        .map(|partition| TopicPartition {
            topic: partition.topic.clone(),
            partition: partition.partition,
        })
        .collect();
    let errors = match verify(context, request).await {
        Ok(()) => {
            let producer = txn_request::producer(request.producer_id, request.producer_epoch);
            let commit = TxnOffsetCommit {
                group: request.group_id.0.as_str().into(),
                producer_id: producer.producer_id,
                producer_epoch: producer.producer_epoch,
                generation_id: request.generation_id,
                member_id: request.member_id.as_str().into(),
                group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
                partitions,
            };
            context
                .node
                .groups
                .commit_txn_offsets(commit)
                .await
                .partitions
        }
        Err(error) => vec![error; names.len()],
    };
    names.into_iter().zip(errors).collect()
}

/// Whether the group's partition is part of the open transaction; makes it so if the client knows
/// that the broker does.
async fn verify(context: &Context, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    if request.group_id.0.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let node = &context.node;
    let partition = node.groups.partition_for(&request.group_id.0);
    let found = node.partition_by_name(CONSUMER_OFFSETS, partition);
    let found = found.map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
    let producer = txn_request::producer(request.producer_id, request.producer_epoch);
    let known = found.log.producer_txn(producer.producer_id);
    if known.producer_epoch > producer.producer_epoch {
        return Err(ErrorCode::InvalidProducerEpoch);
    }
    let is_open = known.is_open && known.producer_epoch == producer.producer_epoch;
    if is_open
        || !node
            .config()
            .broker
            .transaction
            .transaction_partition_verification_enable
    {
        return Ok(());
    }
    let at = found.topic_partition.clone();
    let question = Question {
        transactional_id: txn_request::transactional_id(&request.transactional_id),
        producer,
        partitions: [at].into(),
        answers: match context.api_version {
            VERSION_ADDS_GROUP.. => Answers::Adds,
            VERSION_ABORTABLE => Answers::Abortable,
            _ => Answers::Old,
        },
    };
    let errors = verification::ask(node, question).await;
    match errors.into_values().find(|error| *error != ErrorCode::None) {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

fn answer(
    request: TxnOffsetCommitRequest,
    stored: &BTreeMap<TopicPartition, ErrorCode>,
) -> TxnOffsetCommitResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let name: std::sync::Arc<str> = topic.name.0.as_str().into();
        let partitions = topic.partitions.iter().map(|partition| {
            let at = TopicPartition {
                topic: name.clone(),
                partition: partition.partition_index,
            };
            let error = stored.get(&at).copied();
            let error = error.unwrap_or(ErrorCode::UnknownTopicOrPartition);
            TxnOffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(error.code())
        });
        let partitions = partitions.collect();
        TxnOffsetCommitResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions)
    });
    TxnOffsetCommitResponse::default().with_topics(topics.collect())
}
