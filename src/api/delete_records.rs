//! DeleteRecords (key 21): gives up the records below an offset (KIP-107).

use kafka_protocol::messages::delete_records_request::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use super::by_topic::by_topic;
use super::codec::Handled;
use super::context::Context;
use super::{Node, error};
use crate::partition::DeleteRecordsError;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

/// The low watermark of a partition whose records were not deleted.
const NO_LOW_WATERMARK: i64 = -1;

pub fn handle(context: Context, request: DeleteRecordsRequest) -> Handled<DeleteRecordsResponse> {
    let asked = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        (
            topic.name,
            partitions.map(|wanted| (wanted.partition_index, Offset(wanted.offset))),
        )
    });
    let topics = by_topic(asked).into_iter().map(|(name, partitions)| {
        let partitions = partitions.iter().map(|asked| {
            let deleted = delete(&context.node, &name.0, asked.partition, asked.what);
            let result =
                DeleteRecordsPartitionResult::default().with_partition_index(asked.partition);
            match deleted {
                Ok(low_watermark) => result.with_low_watermark(low_watermark.0),
                Err(error) => result
                    .with_low_watermark(NO_LOW_WATERMARK)
                    .with_error_code(error.code()),
            }
        });
        let partitions = partitions.collect();
        DeleteRecordsTopicResult::default()
            .with_name(name)
            .with_partitions(partitions)
    });
    Handled::Ready(DeleteRecordsResponse::default().with_topics(topics.collect()))
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
    partition
        .delete_records(offset)
        .map_err(|deletion| match deletion {
            DeleteRecordsError::OutOfRange => ErrorCode::OffsetOutOfRange,
            DeleteRecordsError::Storage(log_error) => {
                error::of_log(&partition.topic_partition, &log_error)
            }
        })
}
