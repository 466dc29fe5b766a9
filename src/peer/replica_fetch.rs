//! What a follower asks its leader: Fetch, and the bounds of a log (ListOffsets), as a replica.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{
    FetchPartition, FetchTopic, ForgottenTopic, ReplicaState,
};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{
    BrokerId as WireBrokerId, FetchRequest, FetchResponse, ListOffsetsRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::types::{
    BrokerId, ErrorCode, LeaderEpoch, Offset, TopicId, TopicName as Name, TopicPartition,
};

use super::connection::Connection;
use super::error::PeerError;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// One partition that a follower wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPartition {
    pub topic: Name,
    pub topic_id: TopicId,
    pub partition: i32,
    pub current_leader_epoch: LeaderEpoch,
    pub fetch_offset: Offset,
    pub last_fetched_epoch: LeaderEpoch,
    pub log_start_offset: Offset,
    pub max_bytes: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaFetchCall {
    pub replica: BrokerId,
    pub replica_epoch: i64,
    pub max_wait: Duration,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub session_id: i32,
    pub session_epoch: i32,
    pub partitions: Vec<WantedPartition>,
    pub forgotten: Vec<(TopicId, i32)>,
}

/// What the leader answered for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFromLeader {
    pub topic_id: TopicId,
    pub partition: i32,
    pub error: ErrorCode,
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub diverging_epoch: Option<(LeaderEpoch, Offset)>,
    pub records: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaFetchAnswer {
    pub error: ErrorCode,
    pub session_id: i32,
    pub partitions: Vec<FetchedFromLeader>,
}

impl ReplicaFetchAnswer {
    pub fn records_bytes(&self) -> usize {
        let partitions = self.partitions.iter();
        partitions.map(|fetched| fetched.records.len()).sum()
    }
}

impl Connection {
    /// Fetches as a follower.
    pub async fn fetch_as_replica(
        &self,
        call: &ReplicaFetchCall,
        timeout: Duration,
    ) -> Result<ReplicaFetchAnswer, PeerError> {
        let answer: FetchResponse = self.call(&request(call), timeout).await?;
        let mut partitions = Vec::new();
        for topic in answer.responses {
            let topic_id = TopicId(topic.topic_id);
            partitions.extend(topic.partitions.into_iter().map(|partition| {
                let diverging = &partition.diverging_epoch;
                let diverging_epoch = (diverging.end_offset >= 0)
                    .then_some((LeaderEpoch(diverging.epoch), Offset(diverging.end_offset)));
                FetchedFromLeader {
                    topic_id,
                    partition: partition.partition_index,
                    error: ErrorCode::of_answer(partition.error_code),
                    high_watermark: Offset(partition.high_watermark),
                    log_start_offset: Offset(partition.log_start_offset),
                    diverging_epoch,
                    records: partition.records.unwrap_or_default(),
                }
            }));
        }
        Ok(ReplicaFetchAnswer {
            error: ErrorCode::of_answer(answer.error_code),
            session_id: answer.session_id,
            partitions,
        })
    }

    /// Where the leader's log of a partition starts and ends; to a replica the end is the log's.
    pub async fn log_bounds_as_replica(
        &self,
        replica: BrokerId,
        partition: &TopicPartition,
        current_leader_epoch: LeaderEpoch,
        timeout: Duration,
    ) -> Result<Result<(Offset, Offset), ErrorCode>, PeerError> {
        let mut bounds = [Offset::NONE; 2];
        for (bound, timestamp) in bounds.iter_mut().zip([EARLIEST, LATEST]) {
            let wanted = ListOffsetsPartition::default()
                .with_partition_index(partition.partition)
                .with_current_leader_epoch(current_leader_epoch.0)
                .with_timestamp(timestamp);
            let topic = ListOffsetsTopic::default()
                .with_name(TopicName(text(&partition.topic)))
                .with_partitions(vec![wanted]);
            let request = ListOffsetsRequest::default()
                .with_replica_id(WireBrokerId(replica.0))
                .with_topics(vec![topic]);
            let answer = self.call(&request, timeout).await?;
            let found = answer.topics.first().and_then(|t| t.partitions.first());
            match found {
                Some(found) if found.error_code == 0 => *bound = Offset(found.offset),
                Some(found) => return Ok(Err(ErrorCode::of_answer(found.error_code))),
                None => return Ok(Err(ErrorCode::UnknownServerError)),
            }
        }
        Ok(Ok((bounds[0], bounds[1])))
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn request(call: &ReplicaFetchCall) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for wanted in &call.partitions {
        let partition = FetchPartition::default()
            .with_partition(wanted.partition)
            .with_current_leader_epoch(wanted.current_leader_epoch.0)
            .with_fetch_offset(wanted.fetch_offset.0)
            .with_last_fetched_epoch(wanted.last_fetched_epoch.0)
            .with_log_start_offset(wanted.log_start_offset.0)
            .with_partition_max_bytes(wanted.max_bytes);
        match topics.last_mut() {
            Some(last) if last.topic_id == wanted.topic_id.0 => last.partitions.push(partition),
            _ => topics.push(
                FetchTopic::default()
                    .with_topic(TopicName(text(&wanted.topic)))
                    .with_topic_id(wanted.topic_id.0)
                    .with_partitions(vec![partition]),
            ),
        }
    }
    let mut forgotten: Vec<ForgottenTopic> = Vec::new();
    for (topic_id, partition) in &call.forgotten {
        match forgotten.last_mut() {
            Some(last) if last.topic_id == topic_id.0 => last.partitions.push(*partition),
            _ => forgotten.push(
                ForgottenTopic::default()
                    .with_topic_id(topic_id.0)
                    .with_partitions(vec![*partition]),
            ),
        }
    }
    let state = ReplicaState::default()
        .with_replica_id(WireBrokerId(call.replica.0))
        .with_replica_epoch(call.replica_epoch);
    FetchRequest::default()
        .with_replica_state(state)
        .with_max_wait_ms(call.max_wait.as_millis() as i32)
        .with_min_bytes(call.min_bytes)
        .with_max_bytes(call.max_bytes)
        .with_session_id(call.session_id)
        .with_session_epoch(call.session_epoch)
        .with_topics(topics)
        .with_forgotten_topics_data(forgotten)
}
