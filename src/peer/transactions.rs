//! What brokers ask one another about transactions: a coordinator has its markers written
//! (WriteTxnMarkers), a leader asks a coordinator for the partitions of one (AddPartitionsToTxn).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::{ProducerId as WireProducerId, TopicName, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use super::connection::Connection;
use super::error::PeerError;
use crate::types::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition};
use crate::wire::Value;

const WRITE_TXN_MARKERS: i16 = 27;
/// In this version each marker names the level of `transaction.version`.
const WRITE_TXN_MARKERS_VERSION: i16 = 2;
/// From this version on brokers ask, for several transactions at once.
const ADD_PARTITIONS_BATCHED: i16 = 4;

/// The marker of one transaction, for partitions of one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerCall {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub commit: bool,
    pub coordinator_epoch: LeaderEpoch,
    /// The level of `transaction.version`.
    pub transaction_version: i16,
    pub partitions: BTreeSet<TopicPartition>,
}

/// A question about one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPartitionsCall {
    pub transactional_id: String,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Whether they are in it; nothing is added.
    pub verify_only: bool,
    pub partitions: BTreeSet<TopicPartition>,
}

/// One code for each partition that was asked for and answered.
pub type PartitionErrors = BTreeMap<TopicPartition, ErrorCode>;

impl Connection {
    /// Has markers written; the answers in the order of `calls`.
    pub async fn write_txn_markers(
        &self,
        calls: &[MarkerCall],
        timeout: Duration,
    ) -> Result<Vec<PartitionErrors>, PeerError> {
        let marker = |call: &MarkerCall| {
            let topics = by_topic(&call.partitions)
                .into_iter()
                .map(|(topic, indexes)| {
                    let indexes = indexes
                        .into_iter()
                        .map(|index| Value::Integer(index.into()));
                    Value::fields([
                        ("name", Value::Text(topic.to_owned())),
                        ("partition_indexes", Value::Array(indexes.collect())),
                    ])
                });
            Value::fields([
                ("producer_id", Value::Integer(call.producer_id.0)),
                (
                    "producer_epoch",
                    Value::Integer(call.producer_epoch.0.into()),
                ),
                ("transaction_result", Value::Boolean(call.commit)),
                ("topics", Value::Array(topics.collect())),
                (
                    "coordinator_epoch",
                    Value::Integer(call.coordinator_epoch.0.into()),
                ),
                (
                    "transaction_version",
                    Value::Integer(call.transaction_version.into()),
                ),
            ])
        };
        let markers = calls.iter().map(marker).collect();
        let request = Value::fields([("markers", Value::Array(markers))]);
        let (api, version) = (WRITE_TXN_MARKERS, WRITE_TXN_MARKERS_VERSION);
        let answer = self.call_value(api, version, &request, timeout).await?;
        let mut answered = vec![PartitionErrors::new(); calls.len()];
        let markers = answer.get("markers").map_or(&[][..], Value::elements);
        for (marker, of_call) in markers.iter().zip(&mut answered) {
            for topic in elements(marker, "topics") {
                let name = topic
                    .get("name")
                    .and_then(Value::as_text)
                    .unwrap_or_default();
                for partition in elements(topic, "partitions") {
                    let at = TopicPartition {
                        topic: name.into(),
                        partition: integer(partition, "partition_index") as i32,
                    };
                    let code = integer(partition, "error_code") as i16;
                    of_call.insert(at, ErrorCode::of_answer(code));
                }
            }
        }
        Ok(answered)
    }

    /// Asks a coordinator; partitions that it says nothing of have no entry.
    pub async fn add_partitions_to_txn(
        &self,
        call: &AddPartitionsCall,
        timeout: Duration,
    ) -> Result<PartitionErrors, PeerError> {
        let topics = by_topic(&call.partitions)
            .into_iter()
            .map(|(topic, indexes)| {
                AddPartitionsToTxnTopic::default()
                    .with_name(TopicName(text(topic)))
                    .with_partitions(indexes)
            });
        let transaction = AddPartitionsToTxnTransaction::default()
            .with_transactional_id(TransactionalId(text(&call.transactional_id)))
            .with_producer_id(WireProducerId(call.producer_id.0))
            .with_producer_epoch(call.producer_epoch.0)
            .with_verify_only(call.verify_only)
            .with_topics(topics.collect());
        let request = AddPartitionsToTxnRequest::default().with_transactions(vec![transaction]);
        let pending = self.send(&request, timeout)?;
        if pending.version() < ADD_PARTITIONS_BATCHED {
            return Err(PeerError::Unsupported {
                address: self.address().clone(),
                api: "AddPartitionsToTxn",
            });
        }
        let answer = pending.answer().await?;
        let mut errors = PartitionErrors::new();
        if answer.error_code != 0 {
            let error = ErrorCode::of_answer(answer.error_code);
            return Ok(call
                .partitions
                .iter()
                .map(|at| (at.clone(), error))
                .collect());
        }
        for topic in answer
            .results_by_transaction
            .iter()
            .flat_map(|t| &t.topic_results)
        {
            for partition in &topic.results_by_partition {
                let at = TopicPartition {
                    topic: topic.name.0.as_str().into(),
                    partition: partition.partition_index,
                };
                errors.insert(at, ErrorCode::of_answer(partition.partition_error_code));
            }
        }
        Ok(errors)
    }
}

fn by_topic(partitions: &BTreeSet<TopicPartition>) -> BTreeMap<&str, Vec<i32>> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for at in partitions {
        topics.entry(&at.topic).or_default().push(at.partition);
    }
    topics
}

fn elements<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).map_or(&[], Value::elements)
}

fn integer(value: &Value, name: &str) -> i64 {
    let found = value.get(name).and_then(Value::as_integer);
    found.unwrap_or_default()
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
