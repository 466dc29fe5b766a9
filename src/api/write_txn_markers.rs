//! WriteTxnMarkers (key 27): a transaction coordinator, or an administrator who ends a hanging
//! transaction, has markers written.

use std::sync::Arc;

use kafka_protocol::messages::write_txn_markers_request::{
    WritableTxnMarker, WriteTxnMarkersRequest,
};
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::{txn_request, view};
use crate::coordinator::transaction::Marker;
use crate::host::tasks;
use crate::machine::transaction::{TransactionResult, TransactionVersion};
use crate::types::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition};
use crate::wire::Value;

/// One marker and where it is to be written.
struct Wanted {
    marker: Marker,
    topics: Vec<(Arc<str>, Vec<i32>)>,
}

/// A topic and the outcome for each of its partitions.
type TopicErrors = (Arc<str>, Vec<(i32, ErrorCode)>);

/// What became of one marker, in the order of the request.
struct Written {
    producer_id: ProducerId,
    topics: Vec<TopicErrors>,
}

pub fn handle(
    context: Context,
    request: WriteTxnMarkersRequest,
) -> Handled<WriteTxnMarkersResponse> {
    Handled::later(async move {
        let wanted = request.markers.iter().map(wanted).collect();
        let markers = write_all(&context, wanted).await;
        let markers = markers.iter().map(result).collect();
        WriteTxnMarkersResponse::default().with_markers(markers)
    })
}

/// From v2 on each marker names the transaction version of its producer.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let markers = request.get("markers").map_or(&[][..], Value::elements);
        let markers = write_all(&context, markers.iter().map(wanted_of_value).collect()).await;
        let markers = markers.iter().map(result_value).collect();
        Value::fields([("markers", Value::Array(markers))])
    })
}

/// All are appended before any is waited for: they are replicated together.
async fn write_all(context: &Context, wanted: Vec<Wanted>) -> Vec<Written> {
    let mut started = Vec::with_capacity(wanted.len());
    for Wanted { marker, topics } in wanted {
        let begin = |topic: &Arc<str>, partition: i32| {
            let topic = topic.clone();
            let at = TopicPartition { topic, partition };
            let markers = context.node.markers.clone();
            tasks::poll_once(Box::pin(
                async move { markers.write_one(marker, &at).await },
            ))
        };
        let topics = topics.into_iter().map(|(topic, indexes)| {
            let indexes = indexes.into_iter();
            let partitions: Vec<_> = indexes.map(|index| (index, begin(&topic, index))).collect();
            (topic, partitions)
        });
        started.push((marker.producer.producer_id, topics.collect::<Vec<_>>()));
    }
    let mut written = Vec::with_capacity(started.len());
    for (producer_id, begun) in started {
        let mut topics = Vec::with_capacity(begun.len());
        for (topic, begun) in begun {
            let mut partitions = Vec::with_capacity(begun.len());
            for (partition, outcome) in begun {
                let error = match outcome {
                    Ok(error) => error,
                    Err(replicating) => replicating.await,
                };
                partitions.push((partition, error));
            }
            topics.push((topic, partitions));
        }
        written.push(Written {
            producer_id,
            topics,
        });
    }
    written
}

fn outcome(commit: bool) -> TransactionResult {
    if commit {
        TransactionResult::Commit
    } else {
        TransactionResult::Abort
    }
}

fn wanted(request: &WritableTxnMarker) -> Wanted {
    let topics = request.topics.iter();
    Wanted {
        marker: Marker {
            producer: txn_request::producer(request.producer_id, request.producer_epoch),
            result: outcome(request.transaction_result),
            coordinator_epoch: LeaderEpoch(request.coordinator_epoch),
            // Not said: a marker with an epoch equal to that of the records is taken.
            transaction_version: TransactionVersion::V0,
        },
        topics: topics
            .map(|topic| {
                (
                    topic.name.0.as_str().into(),
                    topic.partition_indexes.clone(),
                )
            })
            .collect(),
    }
}

fn wanted_of_value(request: &Value) -> Wanted {
    let number = |name: &str| {
        request
            .get(name)
            .and_then(Value::as_integer)
            .unwrap_or_default()
    };
    let topics = request.get("topics").map_or(&[][..], Value::elements);
    let topic = |topic: &Value| {
        let name = topic
            .get("name")
            .and_then(Value::as_text)
            .unwrap_or_default();
        let indexes = topic
            .get("partition_indexes")
            .map_or(&[][..], Value::elements);
        let indexes = indexes.iter().filter_map(Value::as_integer);
        (name.into(), indexes.map(|index| index as i32).collect())
    };
    // A version nobody knows is a newer one.
    let transaction_version = TransactionVersion::from_level(number("transaction_version") as i16);
    Wanted {
        marker: Marker {
            producer: crate::machine::transaction::ProducerIdAndEpoch {
                producer_id: ProducerId(number("producer_id")),
                producer_epoch: ProducerEpoch(number("producer_epoch") as i16),
            },
            result: outcome(request.get("transaction_result") == Some(&Value::Boolean(true))),
            coordinator_epoch: LeaderEpoch(number("coordinator_epoch") as i32),
            transaction_version: transaction_version.unwrap_or(TransactionVersion::V2),
        },
        topics: topics.iter().map(topic).collect(),
    }
}

fn result(written: &Written) -> WritableTxnMarkerResult {
    let topic = |(name, partitions): &TopicErrors| {
        let partitions = partitions.iter().map(|(partition, error)| {
            WritableTxnMarkerPartitionResult::default()
                .with_partition_index(*partition)
                .with_error_code(error.code())
        });
        WritableTxnMarkerTopicResult::default()
            .with_name(view::text(name).into())
            .with_partitions(partitions.collect())
    };
    WritableTxnMarkerResult::default()
        .with_producer_id(written.producer_id.0.into())
        .with_topics(written.topics.iter().map(topic).collect())
}

fn result_value(written: &Written) -> Value {
    let topic = |(name, partitions): &TopicErrors| {
        let partitions = partitions.iter().map(|(partition, error)| {
            Value::fields([
                ("partition_index", Value::Integer((*partition).into())),
                ("error_code", Value::Integer(error.code().into())),
            ])
        });
        Value::fields([
            ("name", Value::Text(name.to_string())),
            ("partitions", Value::Array(partitions.collect())),
        ])
    };
    Value::fields([
        ("producer_id", Value::Integer(written.producer_id.0)),
        (
            "topics",
            Value::Array(written.topics.iter().map(topic).collect()),
        ),
    ])
}
