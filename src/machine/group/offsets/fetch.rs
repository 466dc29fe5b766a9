//! OffsetFetch: what a group has committed.

use super::*;
use crate::machine::group::command::FetchedOffset;
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicId};

impl Offsets {
    /// The offsets of `partitions`, or of everything the group has committed.
    pub fn fetch(
        &self,
        group: &GroupId,
        partitions: Option<&[(TopicName, i32)]>,
        require_stable: bool,
    ) -> Vec<FetchedOffset> {
        match partitions {
            Some(partitions) => partitions
                .iter()
                .map(|(topic, partition)| self.fetch_one(group, topic, *partition, require_stable))
                .collect(),
            None => self
                .of_group(group)
                .map(|(topic, partition, _)| {
                    self.fetch_one(group, topic, partition, require_stable)
                })
                .collect(),
        }
    }

    fn fetch_one(
        &self,
        group: &GroupId,
        topic: &TopicName,
        partition: i32,
        require_stable: bool,
    ) -> FetchedOffset {
        let unstable = require_stable && self.has_pending(group, topic, partition);
        match self.get(group, topic, partition) {
            Some(committed) if !unstable => FetchedOffset {
                topic: topic.clone(),
                topic_id: committed.topic_id,
                partition,
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                metadata: committed.metadata.clone(),
                error: ErrorCode::None,
            },
            _ => FetchedOffset {
                topic: topic.clone(),
                topic_id: TopicId::NONE,
                partition,
                offset: Offset::NONE,
                leader_epoch: LeaderEpoch::NONE,
                metadata: String::new(),
                error: match unstable {
                    true => ErrorCode::UnstableOffsetCommit,
                    false => ErrorCode::None,
                },
            },
        }
    }
}
