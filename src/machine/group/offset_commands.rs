//! The commands about offsets: who may commit, fetch and delete them.

use super::classic::ClassicState;
use super::command::{
    OffsetCommit, OffsetCommitReply, OffsetDelete, OffsetDeleteReply, OffsetFetch,
    OffsetFetchReply, TxnOffsetCommit,
};
use super::dispatch::Step;
use super::offsets::plan_commit;
use super::{Context, Group, Groups};
use crate::types::{ErrorCode, ProducerId};

impl Groups {
    pub(super) fn commit_offsets(
        &mut self,
        request: &OffsetCommit,
        step: &mut Step<'_>,
    ) -> OffsetCommitReply {
        if let Err(error) = self.validate_commit(request) {
            return OffsetCommitReply {
                partitions: vec![error; request.partitions.len()],
            };
        }
        let mut context = Context {
            now: step.now,
            config: &self.config,
            topics: step.topics,
            timers: &mut self.timers,
            output: &mut step.output,
        };
        // A commit of a member is as good as a heartbeat.
        if let Some(Group::Classic(group)) = self.groups.get(&request.group) {
            let alive = [ClassicState::Stable, ClassicState::PreparingRebalance];
            if alive.contains(&group.state()) {
                group.restart_session(&request.member_id, &mut context);
            }
        }
        let (records, partitions) = plan_commit(
            &request.group,
            &request.partitions,
            request.retention_time_ms,
            &context,
        );
        self.emit(records, ProducerId::NONE, &mut step.output);
        OffsetCommitReply { partitions }
    }

    fn validate_commit(&self, request: &OffsetCommit) -> Result<(), ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        let instance = request.group_instance_id.as_deref();
        match self.groups.get(&request.group) {
            None if generation < 0 => Ok(()),
            None if request.api_version >= 9 => Err(ErrorCode::GroupIdNotFound),
            None => Err(ErrorCode::IllegalGeneration),
            Some(Group::Classic(group)) => {
                group.validate_offset_commit(&request.member_id, instance, generation, false)
            }
            Some(Group::Consumer(group)) => group.validate_offset_commit(
                &request.member_id,
                generation,
                &request.partitions,
                request.api_version < 9,
            ),
        }
    }

    pub(super) fn commit_txn_offsets(
        &mut self,
        request: &TxnOffsetCommit,
        step: &mut Step<'_>,
    ) -> OffsetCommitReply {
        if let Err(error) = self.validate_txn_commit(request) {
            return OffsetCommitReply {
                partitions: vec![error; request.partitions.len()],
            };
        }
        let context = Context {
            now: step.now,
            config: &self.config,
            topics: step.topics,
            timers: &mut self.timers,
            output: &mut step.output,
        };
        let (records, partitions) = plan_commit(&request.group, &request.partitions, -1, &context);
        if !records.is_empty() {
            step.output.producer = Some((request.producer_id, request.producer_epoch));
        }
        self.emit(records, request.producer_id, &mut step.output);
        OffsetCommitReply { partitions }
    }

    fn validate_txn_commit(&self, request: &TxnOffsetCommit) -> Result<(), ErrorCode> {
        if request.group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let instance = request.group_instance_id.as_deref();
        match self.groups.get(&request.group) {
            None if request.generation_id < 0 => Ok(()),
            None => Err(ErrorCode::IllegalGeneration),
            Some(Group::Classic(group)) => group.validate_offset_commit(
                &request.member_id,
                instance,
                request.generation_id,
                true,
            ),
            // A producer that knows nothing of the group commits from outside of it.
            Some(Group::Consumer(_)) if request.member_id.is_empty() => Ok(()),
            Some(Group::Consumer(group)) => group
                .validate_offset_commit(
                    &request.member_id,
                    request.generation_id,
                    &request.partitions,
                    false,
                )
                .map_err(|error| match error {
                    ErrorCode::StaleMemberEpoch => ErrorCode::IllegalGeneration,
                    other => other,
                }),
        }
    }

    /// A group that does not exist has committed nothing.
    pub(super) fn fetch_offsets(&self, request: &OffsetFetch) -> OffsetFetchReply {
        if let Some(Group::Consumer(group)) = self.groups.get(&request.group) {
            let member_id = request.member_id.as_deref();
            if let Err(error) = group.validate_offset_fetch(member_id, request.member_epoch) {
                return OffsetFetchReply {
                    error,
                    partitions: Vec::new(),
                };
            }
        }
        let partitions = request.partitions.as_deref();
        OffsetFetchReply {
            error: ErrorCode::None,
            partitions: self
                .offsets
                .fetch(&request.group, partitions, request.require_stable),
        }
    }

    pub(super) fn delete_offsets(
        &mut self,
        request: &OffsetDelete,
        step: &mut Step<'_>,
    ) -> OffsetDeleteReply {
        let failed = |error| OffsetDeleteReply {
            error,
            partitions: Vec::new(),
        };
        if request.group.is_empty() {
            return failed(ErrorCode::InvalidGroupId);
        }
        let Some(group) = self.groups.get(&request.group) else {
            return failed(ErrorCode::GroupIdNotFound);
        };
        if let Err(error) = group.validate_offset_delete() {
            return failed(error);
        }
        let subscribed = group.subscribed();
        let mut records = Vec::new();
        let mut partitions = Vec::new();
        for (topic, partition) in &request.partitions {
            if subscribed.contains(topic) {
                partitions.push(ErrorCode::GroupSubscribedToTopic);
            } else {
                partitions.push(ErrorCode::None);
                let record = self.offsets.plan_delete(&request.group, topic, *partition);
                records.extend(record);
            }
        }
        self.emit(records, ProducerId::NONE, &mut step.output);
        OffsetDeleteReply {
            error: ErrorCode::None,
            partitions,
        }
    }
}
