//! Groups: list, describe, their offsets, delete.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, GroupId, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::types::ErrorCode;

use super::{Admin, AdminError, Answer, check, text};

#[derive(Debug, Clone)]
pub struct GroupListing {
    pub group: String,
    pub state: String,
    /// `Classic`, `Consumer`, ... as the broker says it.
    pub group_type: String,
    pub protocol_type: String,
}

/// A committed offset.
#[derive(Debug, Clone, Copy)]
pub struct GroupOffset {
    pub offset: i64,
    pub leader_epoch: i32,
}

pub type GroupOffsets = BTreeMap<(String, i32), GroupOffset>;

/// The newest version of OffsetFetch and OffsetCommit that names topics by name.
const BY_NAME: i16 = 9;

impl Admin {
    /// The groups of every broker, filtered by states and types if any are named.
    pub async fn list_groups(&self, states: &[&str], types: &[&str]) -> Answer<Vec<GroupListing>> {
        let request = ListGroupsRequest::default()
            .with_states_filter(states.iter().map(|s| text(s)).collect())
            .with_types_filter(types.iter().map(|t| text(t)).collect());
        let cluster = self.client.metadata(Some(&[])).await;
        let cluster = cluster.map_err(|source| AdminError::peer("listGroups", source))?;
        let mut groups = Vec::new();
        for id in cluster.brokers.keys() {
            let answer = self.broker("listGroups", *id, &request).await?;
            check(answer.error_code, None)?;
            groups.extend(answer.groups.into_iter().map(|group| GroupListing {
                group: group.group_id.0.to_string(),
                state: group.group_state.to_string(),
                group_type: group.group_type.to_string(),
                protocol_type: group.protocol_type.to_string(),
            }));
        }
        Ok(groups)
    }

    /// A classic group as its coordinator shows it.
    pub async fn describe_classic_group(&self, group: &str) -> Answer<DescribedGroup> {
        let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(text(group))]);
        let first = |answer: &kafka_protocol::messages::DescribeGroupsResponse| {
            answer.groups.first().map_or(0, |g| g.error_code)
        };
        let answer = self
            .coordinator("describeConsumerGroups", group, &request, first)
            .await?;
        let found = answer.groups.into_iter().next();
        let found = found.ok_or_else(|| AdminError::answer(ErrorCode::GroupIdNotFound, None))?;
        check(found.error_code, found.error_message.as_ref())?;
        Ok(found)
    }

    /// The committed offsets of these partitions, or of all.
    pub async fn group_offsets(
        &self,
        group: &str,
        partitions: Option<&[(String, i32)]>,
    ) -> Answer<GroupOffsets> {
        let topics = partitions.map(|partitions| {
            let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
            for (topic, partition) in partitions {
                topics.entry(topic).or_default().push(*partition);
            }
            let row = |(topic, indexes): (&str, Vec<i32>)| {
                OffsetFetchRequestTopics::default()
                    .with_name(TopicName(text(topic)))
                    .with_partition_indexes(indexes)
            };
            topics.into_iter().map(row).collect::<Vec<_>>()
        });
        let row = OffsetFetchRequestGroup::default()
            .with_group_id(GroupId(text(group)))
            .with_member_epoch(-1)
            .with_topics(topics);
        let request = OffsetFetchRequest::default().with_groups(vec![row]);
        let first = |answer: &kafka_protocol::messages::OffsetFetchResponse| {
            answer
                .groups
                .first()
                .map_or(answer.error_code, |g| g.error_code)
        };
        let answer = self
            .coordinator_at_most(BY_NAME, "listConsumerGroupOffsets", group, &request, first)
            .await?;
        check(first(&answer), None)?;
        let mut offsets = GroupOffsets::new();
        for topic in answer.groups.iter().flat_map(|group| &group.topics) {
            for partition in &topic.partitions {
                check(partition.error_code, None)?;
                let row = GroupOffset {
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                };
                offsets.insert((topic.name.0.to_string(), partition.partition_index), row);
            }
        }
        Ok(offsets)
    }

    /// Commits offsets as a member (generation and member id), or from the outside (-1 and none).
    pub async fn commit_offsets(
        &self,
        group: &str,
        (generation, member_id): (i32, &str),
        instance_id: Option<StrBytes>,
        offsets: &[((String, i32), i64, i32)],
    ) -> Answer<()> {
        let mut topics: BTreeMap<&str, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
        for ((topic, partition), offset, leader_epoch) in offsets {
            let row = OffsetCommitRequestPartition::default()
                .with_partition_index(*partition)
                .with_committed_offset(*offset)
                .with_committed_leader_epoch(*leader_epoch)
                .with_committed_metadata(Some(StrBytes::new()));
            topics.entry(topic).or_default().push(row);
        }
        let row = |(topic, partitions): (&str, Vec<OffsetCommitRequestPartition>)| {
            OffsetCommitRequestTopic::default()
                .with_name(TopicName(text(topic)))
                .with_partitions(partitions)
        };
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(text(group)))
            .with_generation_id_or_member_epoch(generation)
            .with_member_id(text(member_id))
            .with_group_instance_id(instance_id)
            .with_topics(topics.into_iter().map(row).collect());
        let first_error = |answer: &kafka_protocol::messages::OffsetCommitResponse| {
            let rows = answer.topics.iter().flat_map(|topic| &topic.partitions);
            rows.map(|row| row.error_code)
                .find(|code| *code != 0)
                .unwrap_or(0)
        };
        let answer = self
            .coordinator_at_most(
                BY_NAME,
                "alterConsumerGroupOffsets",
                group,
                &request,
                first_error,
            )
            .await?;
        check(first_error(&answer), None)
    }

    /// Deletes a group.
    pub async fn delete_group(&self, group: &str) -> Answer<()> {
        let names = vec![GroupId(text(group))];
        let request = DeleteGroupsRequest::default().with_groups_names(names);
        let first = |answer: &kafka_protocol::messages::DeleteGroupsResponse| {
            answer.results.first().map_or(0, |row| row.error_code)
        };
        let answer = self
            .coordinator("deleteConsumerGroups", group, &request, first)
            .await?;
        check(first(&answer), None)
    }

    /// Deletes committed offsets; each partition has a result of its own.
    pub async fn delete_offsets(
        &self,
        group: &str,
        partitions: &[(String, i32)],
    ) -> Answer<BTreeMap<(String, i32), Answer<()>>> {
        let mut topics: BTreeMap<&str, Vec<OffsetDeleteRequestPartition>> = BTreeMap::new();
        for (topic, partition) in partitions {
            let row = OffsetDeleteRequestPartition::default().with_partition_index(*partition);
            topics.entry(topic).or_default().push(row);
        }
        let row = |(topic, partitions): (&str, Vec<OffsetDeleteRequestPartition>)| {
            OffsetDeleteRequestTopic::default()
                .with_name(TopicName(text(topic)))
                .with_partitions(partitions)
        };
        let request = OffsetDeleteRequest::default()
            .with_group_id(GroupId(text(group)))
            .with_topics(topics.into_iter().map(row).collect());
        let answer = self
            .coordinator("deleteConsumerGroupOffsets", group, &request, |a| {
                a.error_code
            })
            .await?;
        check(answer.error_code, None)?;
        let mut results = BTreeMap::new();
        for topic in &answer.topics {
            for row in &topic.partitions {
                let partition = (topic.name.0.to_string(), row.partition_index);
                results.insert(partition, check(row.error_code, None));
            }
        }
        Ok(results)
    }
}
