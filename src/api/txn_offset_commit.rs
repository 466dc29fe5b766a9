//! TxnOffsetCommit (key 28): a group remembers how far it has come, once the transaction commits.

use std::sync::Arc;

use kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequest;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::group_request::{self, AskedPartition, AskedTopic, SortedOut};
use super::internal_topics::CONSUMER_OFFSETS;
use super::txn_request;
use super::value::{elements, int32, integer, structure, text, topic_id};
use super::verification::{self, Answers, Question};
use crate::machine::group::command::TxnOffsetCommit;
use crate::machine::transaction::ProducerIdAndEpoch;
use crate::types::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::wire::Value;

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
        let asked = request.topics.iter().map(|topic| AskedTopic {
            topic: image.topic(&topic.name.0).cloned(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| AskedPartition {
                    index: partition.partition_index,
                    offset: Offset(partition.committed_offset),
                    leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
                    metadata: group_request::owned(partition.committed_metadata.as_ref()),
                })
                .collect(),
        });
        let asked = asked.collect();
        let producer = txn_request::producer(request.producer_id, request.producer_epoch);
        let commit = TxnOffsetCommit {
            group: request.group_id.0.as_str().into(),
            producer_id: producer.producer_id,
            producer_epoch: producer.producer_epoch,
            generation_id: request.generation_id,
            member_id: request.member_id.as_str().into(),
            group_instance_id: group_request::owned(request.group_instance_id.as_ref()),
            partitions: Vec::new(),
        };
        let id = txn_request::transactional_id(&request.transactional_id);
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let errors = store(&context, id, commit, asked, unknown).await;
        let topics = request
            .topics
            .into_iter()
            .zip(errors)
            .map(|(topic, errors)| {
                let partitions = topic.partitions.iter().zip(errors);
                let partitions = partitions.map(|(partition, error)| {
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
    })
}

/// v6 names topics by their ids.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let image = context.node.image();
        let topics = elements(&request, "topics").iter();
        let asked = topics.clone().map(|topic| AskedTopic {
            topic: image.topic_by_id(topic_id(topic)).cloned(),
            partitions: elements(topic, "partitions")
                .iter()
                .map(AskedPartition::of_value)
                .collect(),
        });
        let asked = asked.collect();
        let commit = TxnOffsetCommit {
            group: text(&request, "group_id").unwrap_or_default().into(),
            producer_id: ProducerId(integer(&request, "producer_id")),
            producer_epoch: ProducerEpoch(integer(&request, "producer_epoch") as i16),
            generation_id: int32(&request, "generation_id_or_member_epoch"),
            member_id: text(&request, "member_id").unwrap_or_default().into(),
            group_instance_id: text(&request, "group_instance_id").map(str::to_owned),
            partitions: Vec::new(),
        };
        let id = text(&request, "transactional_id")
            .unwrap_or_default()
            .into();
        let errors = store(&context, id, commit, asked, ErrorCode::UnknownTopicId).await;
        let topics = topics.zip(errors).map(|(topic, errors)| {
            let partitions = elements(topic, "partitions").iter().zip(errors);
            let partitions = partitions.map(|(partition, error)| {
                let index = integer(partition, "partition_index");
                structure([
                    ("partition_index", Value::Integer(index)),
                    ("error_code", Value::Integer(error.code().into())),
                ])
            });
            let partitions = Value::Array(partitions.collect());
            let id = Value::Uuid(topic_id(topic).0);
            structure([("topic_id", id), ("partitions", partitions)])
        });
        structure([("topics", Value::Array(topics.collect()))])
    })
}

/// Commits what exists; the errors by topic and partition, in the order of the request.
async fn store(
    context: &Context,
    transactional_id: Arc<str>,
    mut commit: TxnOffsetCommit,
    asked: Vec<AskedTopic>,
    unknown_topic: ErrorCode,
) -> Vec<Vec<ErrorCode>> {
    let mut sorted = SortedOut::new(asked, unknown_topic);
    if sorted.known.is_empty() {
        return sorted.errors;
    }
    commit.partitions = std::mem::take(&mut sorted.known);
    let count = commit.partitions.len();
    let stored = match verify(context, transactional_id, &commit).await {
        Ok(()) => {
            let groups = &context.node.groups;
            groups.commit_txn_offsets(commit).await.partitions
        }
        Err(error) => vec![error; count],
    };
    sorted.with_known(stored)
}

/// Whether the group's partition is part of the open transaction; makes it so if the client knows
/// that the broker does.
async fn verify(
    context: &Context,
    transactional_id: Arc<str>,
    commit: &TxnOffsetCommit,
) -> Result<(), ErrorCode> {
    if commit.group.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let node = &context.node;
    let partition = node.groups.partition_for(&commit.group);
    let found = node.partition_by_name(CONSUMER_OFFSETS, partition);
    let found = found.map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
    let producer = ProducerIdAndEpoch {
        producer_id: commit.producer_id,
        producer_epoch: commit.producer_epoch,
    };
    let known = found.log().producer_txn(producer.producer_id);
    if known.producer_epoch > producer.producer_epoch {
        return Err(ErrorCode::InvalidProducerEpoch);
    }
    let is_open = known.is_open && known.producer_epoch == producer.producer_epoch;
    let config = node.config();
    let transaction = &config.broker.transaction;
    if is_open || !transaction.transaction_partition_verification_enable {
        return Ok(());
    }
    let at = found.topic_partition.clone();
    let question = Question {
        transactional_id,
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
