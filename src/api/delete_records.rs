//! DeleteRecords (key 21): gives up the records below an offset (KIP-107).

use kafka_protocol::messages::delete_records_request::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use super::codec::Handled;
use super::context::Context;
use super::{Node, error};
use crate::partition::DeleteRecordsError;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

/// The low watermark of a partition whose records were not deleted.
const NO_LOW_WATERMARK: i64 = -1;

pub fn handle(context: Context, request: DeleteRecordsRequest) -> Handled<DeleteRecordsResponse> {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let index = wanted.partition_index;
            let deleted = delete(&context.node, &topic.name.0, index, Offset(wanted.offset));
            let result = DeleteRecordsPartitionResult::default().with_partition_index(index);
            partitions.push(match deleted {
                Ok(low_watermark) => result.with_low_watermark(low_watermark.0),
                Err(error) => {
                    result.with_low_watermark(NO_LOW_WATERMARK).with_error_code(error.code())
                }
            });
        }
        let result = DeleteRecordsTopicResult::default();
        topics.push(result.with_name(topic.name).with_partitions(partitions));
    }
    Handled::Ready(DeleteRecordsResponse::default().with_topics(topics))
}

fn delete(node: &Node, topic: &str, partition: i32, offset: Offset) -> Result<Offset, ErrorCode> {
    let partition = node.partition_by_name(topic, partition)?;
    if node.is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    partition.check_leader(LeaderEpoch::NONE.0)?;
    if !partition.topic_config().cleanup_policy.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    partition.delete_records(offset).map_err(|deletion| match deletion {
        DeleteRecordsError::OutOfRange => ErrorCode::OffsetOutOfRange,
        DeleteRecordsError::Storage(log_error) => {
            error::of_log(&partition.topic_partition, &log_error)
        }
    })
}
