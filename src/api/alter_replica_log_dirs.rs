//! AlterReplicaLogDirs (key 34): moves replicas between the directories of this broker (KIP-113).

use std::sync::Arc;

use kafka_protocol::messages::alter_replica_log_dirs_request::AlterReplicaLogDirsRequest;
use kafka_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsResponse,
};

use super::by_topic::by_topic;
use super::codec::Handled;
use super::context::Context;
use super::{Node, error};
use crate::log::{LogDir, can_have_future};
use crate::partition::{LogDirRefused, MoveRefused};
use crate::types::{ErrorCode, TopicPartition};

pub fn handle(
    context: Context,
    request: AlterReplicaLogDirsRequest,
) -> Handled<AlterReplicaLogDirsResponse> {
    let node = &context.node;
    let asked = request.dirs.into_iter().flat_map(|wanted| {
        let dir = node.partitions.working_dir(&wanted.path);
        wanted.topics.into_iter().map(move |topic| {
            let dir = dir.clone();
            let partitions = topic.partitions.into_iter();
            let partitions = partitions.map(move |partition| (partition, dir.clone()));
            (topic.name, partitions)
        })
    });
    let results = by_topic(asked).into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(|asked| {
            let topic_partition = TopicPartition {
                topic: name.0.as_str().into(),
                partition: asked.partition,
            };
            let moved = move_to(node, topic_partition, asked.what);
            AlterReplicaLogDirPartitionResult::default()
                .with_partition_index(asked.partition)
                .with_error_code(moved.err().unwrap_or(ErrorCode::None).code())
        });
        let partitions = partitions.collect();
        AlterReplicaLogDirTopicResult::default()
            .with_topic_name(name)
            .with_partitions(partitions)
    });
    let results = results.collect();
    Handled::Ready(AlterReplicaLogDirsResponse::default().with_results(results))
}

fn move_to(
    node: &Node,
    topic_partition: TopicPartition,
    dir: Result<Arc<LogDir>, LogDirRefused>,
) -> Result<(), ErrorCode> {
    if !can_have_future(&topic_partition) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let dir = dir.map_err(|refused| match refused {
        LogDirRefused::Unknown => ErrorCode::LogDirNotFound,
        LogDirRefused::Offline => ErrorCode::KafkaStorageError,
    })?;
    let found = node.partition_by_name(&topic_partition.topic, topic_partition.partition);
    let partition = match found {
        Ok(partition) => partition,
        Err(ErrorCode::KafkaStorageError) => return Err(ErrorCode::KafkaStorageError),
        Err(error) => {
            node.partitions.place_in(topic_partition, dir);
            return Err(error);
        }
    };
    let moved = node.partitions.move_replica(&partition, &dir);
    moved.map_err(|refused| match refused {
        MoveRefused::Gone => ErrorCode::UnknownTopicOrPartition,
        MoveRefused::Storage(log_error) => error::of_log(&topic_partition, &log_error),
    })
}
