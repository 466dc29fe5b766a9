//! OffsetForLeaderEpoch (key 23): where an epoch ends, so that a fetcher can find out where its
//! log parts from the leader's (KIP-101, KIP-320).

use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use super::Node;
use super::codec::Handled;
use super::context::Context;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

pub fn handle(
    context: Context,
    request: OffsetForLeaderEpochRequest,
) -> Handled<OffsetForLeaderEpochResponse> {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let end = |wanted: &OffsetForLeaderPartition| {
            let response = EpochEndOffset::default().with_partition(wanted.partition);
            match end_offset(&context.node, &topic.topic.0, wanted) {
                Ok((epoch, offset)) => response
                    .with_leader_epoch(epoch.0)
                    .with_end_offset(offset.0),
                Err(error) => response.with_error_code(error.code()),
            }
        };
        let partitions = topic.partitions.iter().map(end).collect();
        let result = OffsetForLeaderTopicResult::default();
        topics.push(result.with_topic(topic.topic).with_partitions(partitions));
    }
    Handled::Ready(OffsetForLeaderEpochResponse::default().with_topics(topics))
}

fn end_offset(
    node: &Node,
    topic: &str,
    wanted: &OffsetForLeaderPartition,
) -> Result<(LeaderEpoch, Offset), ErrorCode> {
    let partition = node.partition_by_name(topic, wanted.partition)?;
    partition.check_leader(wanted.current_leader_epoch)?;
    let found = partition
        .log()
        .end_offset_for_epoch(LeaderEpoch(wanted.leader_epoch));
    Ok(found.unwrap_or((LeaderEpoch::NONE, Offset::NONE)))
}
