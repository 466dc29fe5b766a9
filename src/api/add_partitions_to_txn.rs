//! AddPartitionsToTxn (key 24): partitions become part of a transaction. From version 4 on it comes
//! from brokers, for several transactions, and may only ask.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse, AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
};

use super::codec::Handled;
use super::context::Context;
use super::txn_request;
use crate::machine::transaction::{
    AddPartitions, TransactionApi, TransactionVersion, VerifyPartitions, error_in_version,
    partition_errors,
};
use crate::types::{ErrorCode, TopicPartition};

const VERSION_BATCHED: i16 = 4;

type Errors = BTreeMap<TopicPartition, ErrorCode>;

pub fn handle(
    context: Context,
    request: AddPartitionsToTxnRequest,
) -> Handled<AddPartitionsToTxnResponse> {
    Handled::later(async move {
        if context.api_version < VERSION_BATCHED {
            let transaction = AddPartitionsToTxnTransaction::default()
                .with_transactional_id(request.v3_and_below_transactional_id)
                .with_producer_id(request.v3_and_below_producer_id)
                .with_producer_epoch(request.v3_and_below_producer_epoch)
                .with_topics(request.v3_and_below_topics);
            let results = results(&transaction.topics, &add(&context, &transaction).await);
            return AddPartitionsToTxnResponse::default()
                .with_results_by_topic_v3_and_below(results);
        }
        let mut by_transaction = Vec::with_capacity(request.transactions.len());
        for transaction in request.transactions {
            let results = results(&transaction.topics, &add(&context, &transaction).await);
            by_transaction.push(
                AddPartitionsToTxnResult::default()
                    .with_transactional_id(transaction.transactional_id)
                    .with_topic_results(results),
            );
        }
        AddPartitionsToTxnResponse::default().with_results_by_transaction(by_transaction)
    })
}

async fn add(context: &Context, transaction: &AddPartitionsToTxnTransaction) -> Errors {
    let partitions = txn_request::partitions(&transaction.topics);
    let refused = refused(context, &partitions);
    if let Some(errors) = partition_errors(&partitions, &refused) {
        return errors;
    }
    let transactional_id = txn_request::transactional_id(&transaction.transactional_id);
    let producer = txn_request::producer(transaction.producer_id, transaction.producer_epoch);
    let transactions = &context.node.transactions;
    if transaction.verify_only {
        let verify = VerifyPartitions {
            transactional_id,
            producer,
            partitions,
        };
        return transactions.verify(verify).await;
    }
    let version = context.api_version;
    let added = transactions
        .add_partitions(AddPartitions {
            transactional_id,
            producer,
            partitions: partitions.clone(),
            client_transaction_version: TransactionVersion::of_add_partitions(version),
        })
        .await;
    let error = added.err().unwrap_or(ErrorCode::None);
    let error = error_in_version(TransactionApi::AddPartitionsToTxn, version, error);
    txn_request::all(partitions, error)
}

/// What cannot be part of a transaction: partitions that do not exist, and for clients those of
/// internal topics.
fn refused(context: &Context, partitions: &BTreeSet<TopicPartition>) -> Errors {
    let image = context.node.image();
    let from_client = context.api_version < VERSION_BATCHED;
    let error_of = |at: &TopicPartition| {
        if from_client && context.node.is_internal(&at.topic) {
            Some(ErrorCode::TopicAuthorizationFailed)
        } else if image.partition(&at.topic, at.partition).is_none() {
            Some(ErrorCode::UnknownTopicOrPartition)
        } else {
            None
        }
    };
    let partitions = partitions.iter();
    partitions
        .filter_map(|at| Some((at.clone(), error_of(at)?)))
        .collect()
}

/// In the order of the request; what it names twice is answered once.
fn results(
    topics: &[AddPartitionsToTxnTopic],
    errors: &Errors,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut told = BTreeSet::new();
    let mut results: Vec<AddPartitionsToTxnTopicResult> = Vec::with_capacity(topics.len());
    for topic in topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in topic.partitions.iter().copied() {
            let topic = topic.name.0.as_str().into();
            let at = TopicPartition { topic, partition };
            let error = errors
                .get(&at)
                .copied()
                .unwrap_or(ErrorCode::UnknownServerError);
            if told.insert(at) {
                partitions.push(
                    AddPartitionsToTxnPartitionResult::default()
                        .with_partition_index(partition)
                        .with_partition_error_code(error.code()),
                );
            }
        }
        results.push(
            AddPartitionsToTxnTopicResult::default()
                .with_name(topic.name.clone())
                .with_results_by_partition(partitions),
        );
    }
    results
}
