//! What others ask of a consumer group: describe, list, who may commit and fetch, its tombstones.

use super::*;
use crate::machine::group::Topics;
use crate::machine::group::command::{
    Client, CommitPartition, ConsumerDescribedGroup, ConsumerDescribedMember, ListedGroup,
};
use crate::types::TopicName;

impl ConsumerGroup {
    pub fn listed(&self) -> ListedGroup {
        ListedGroup {
            group: self.group_id.clone(),
            protocol_type: "consumer".to_owned(),
            state: self.state_name(),
            group_type: "consumer",
        }
    }

    pub fn describe(&self, assignors: &[String], topics: &dyn Topics) -> ConsumerDescribedGroup {
        ConsumerDescribedGroup {
            group: self.group_id.clone(),
            error: ErrorCode::None,
            error_message: None,
            state: self.state_name(),
            group_epoch: self.epoch.epoch,
            assignment_epoch: self.target_epoch.epoch,
            assignor_name: self.assignor_name(assignors).to_owned(),
            members: self
                .members
                .values()
                .map(|member| self.describe_member(member, topics))
                .collect(),
        }
    }

    fn describe_member(
        &self,
        member: &ConsumerMember,
        topics: &dyn Topics,
    ) -> ConsumerDescribedMember {
        let metadata = &member.metadata;
        let target = self.target.get(&member.member_id);
        ConsumerDescribedMember {
            member_id: member.member_id.clone(),
            instance_id: metadata.instance_id.clone(),
            rack_id: metadata.rack_id.clone(),
            member_epoch: member.current.member_epoch,
            client: Client {
                client_id: metadata.client_id.clone(),
                client_host: metadata.client_host.clone(),
            },
            subscribed_topic_names: metadata.subscribed_topic_names.clone(),
            subscribed_topic_regex: metadata.subscribed_topic_regex.clone(),
            assignment: with_names(&member.held(), topics),
            target_assignment: with_names(&target.cloned().unwrap_or_default(), topics),
            member_type: i8::from(!member.uses_classic_protocol()),
        }
    }

    /// Whether a commit comes from a member at its epoch. One at an earlier epoch may still commit
    /// for partitions that it has had since then (KIP-1251).
    pub fn validate_offset_commit(
        &self,
        member_id: &str,
        member_epoch: i32,
        partitions: &[CommitPartition],
        old_api: bool,
    ) -> Result<(), ErrorCode> {
        if member_epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(member_id);
        let member = member.ok_or(ErrorCode::UnknownMemberId)?;
        if member.uses_classic_protocol() {
            return match member_epoch == member.current.member_epoch {
                true => Ok(()),
                false => Err(ErrorCode::IllegalGeneration),
            };
        }
        if old_api {
            return Err(ErrorCode::UnsupportedVersion);
        }
        let known = member.current.member_epoch;
        let had_then = |partition: &CommitPartition| {
            let sides = [&member.current.assigned, &member.current.pending_revocation];
            let mut held = sides
                .into_iter()
                .filter_map(|side| side.get(&partition.topic_id));
            let since = held.find_map(|partitions| partitions.get(&partition.partition));
            since.is_some_and(|since| (0..=member_epoch).contains(since))
        };
        match member_epoch == known || (member_epoch < known && partitions.iter().all(had_then)) {
            true => Ok(()),
            false => Err(ErrorCode::StaleMemberEpoch),
        }
    }

    pub fn validate_offset_fetch(
        &self,
        member_id: Option<&str>,
        member_epoch: i32,
    ) -> Result<(), ErrorCode> {
        let Some(member_id) = member_id else {
            return match member_epoch < 0 {
                true => Ok(()),
                false => Err(ErrorCode::UnknownMemberId),
            };
        };
        let member = self.members.get(member_id);
        let member = member.ok_or(ErrorCode::UnknownMemberId)?;
        match (
            member_epoch == member.current.member_epoch,
            member.uses_classic_protocol(),
        ) {
            (true, _) => Ok(()),
            (false, true) => Err(ErrorCode::IllegalGeneration),
            (false, false) => Err(ErrorCode::StaleMemberEpoch),
        }
    }

    /// The records that take the whole group back.
    pub fn tombstones(&self) -> Vec<Record> {
        let group = || self.group_id.clone();
        let ids = || self.members.keys().cloned();
        let mut records: Vec<Record> = Vec::new();
        records.extend(
            ids().map(|member| Record::ConsumerGroupCurrentMemberAssignment {
                group: group(),
                member,
                value: None,
            }),
        );
        records.extend(
            ids().map(|member| Record::ConsumerGroupTargetAssignmentMember {
                group: group(),
                member,
                value: None,
            }),
        );
        records.push(Record::ConsumerGroupTargetAssignmentMetadata {
            group: group(),
            value: None,
        });
        records.extend(ids().map(|member| Record::ConsumerGroupMemberMetadata {
            group: group(),
            member,
            value: None,
        }));
        let regexes = self.regexes.keys().cloned();
        records.extend(regexes.map(|regex| Record::ConsumerGroupRegularExpression {
            group: group(),
            regex,
            value: None,
        }));
        records.push(Record::ConsumerGroupPartitionMetadata {
            group: group(),
            present: false,
        });
        records.push(Record::ConsumerGroupMetadata {
            group: group(),
            value: None,
        });
        records
    }
}

/// Topics that are gone are left out.
fn with_names(
    partitions: &TopicPartitions,
    topics: &dyn Topics,
) -> Vec<(TopicName, TopicId, Vec<i32>)> {
    let known = partitions.iter().filter_map(|(id, partitions)| {
        let topic = topics.by_id(*id)?;
        Some((topic.name, *id, partitions.clone()))
    });
    known.collect()
}
