//! WriteTxnMarkers (key 27): a transaction coordinator, or an administrator who ends a hanging
//! transaction, has markers written.

use kafka_protocol::messages::write_txn_markers_request::{
    WritableTxnMarker, WriteTxnMarkersRequest,
};
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::txn_request;
use crate::coordinator::transaction::Marker;
use crate::machine::transaction::{TransactionResult, TransactionVersion};
use crate::types::{LeaderEpoch, TopicPartition};

pub fn handle(
    context: Context,
    request: WriteTxnMarkersRequest,
) -> Handled<WriteTxnMarkersResponse> {
    Handled::later(async move {
        let mut markers = Vec::with_capacity(request.markers.len());
        for marker in request.markers {
            markers.push(write(&context, marker).await);
        }
        WriteTxnMarkersResponse::default().with_markers(markers)
    })
}

async fn write(context: &Context, request: WritableTxnMarker) -> WritableTxnMarkerResult {
    let marker = Marker {
        producer: txn_request::producer(request.producer_id, request.producer_epoch),
        result: if request.transaction_result {
            TransactionResult::Commit
        } else {
            TransactionResult::Abort
        },
        coordinator_epoch: LeaderEpoch(request.coordinator_epoch),
        // Version 1 of this API does not say; then an equal epoch may end a transaction.
        transaction_version: TransactionVersion::V0,
    };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let name: std::sync::Arc<str> = topic.name.0.as_str().into();
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for partition in topic.partition_indexes {
            let at = TopicPartition {
                topic: name.clone(),
                partition,
            };
            let error = context.node.markers.write_one(marker, &at).await;
            partitions.push(
                WritableTxnMarkerPartitionResult::default()
                    .with_partition_index(partition)
                    .with_error_code(error.code()),
            );
        }
        topics.push(
            WritableTxnMarkerTopicResult::default()
                .with_name(topic.name)
                .with_partitions(partitions),
        );
    }
    WritableTxnMarkerResult::default()
        .with_producer_id(request.producer_id)
        .with_topics(topics)
}
