//! One command in, one step of the machine: finds the group and hands the command to it.

use super::classic::ClassicGroup;
use super::command::{
    Command, Heartbeat, JoinGroup, JoinGroupReply, LeaveGroup, LeaveGroupReply, Now, Reply,
    SyncGroup, SyncGroupReply, Token,
};
use super::{Context, Group, Groups, Output, Topics};
use crate::types::{ErrorCode, ProducerId};

/// The longest id or name that is taken: member ids are made of them with 37 characters more, and
/// have to fit the format's int16 strings.
pub(super) const NAME_BYTES_MAX: usize = 32_000;

/// What one step needs beside the machine.
pub(super) struct Step<'a> {
    pub now: Now,
    pub topics: &'a dyn Topics,
    pub output: Output,
}

impl Step<'_> {
    pub(super) fn reply(&mut self, token: Token, reply: Reply) {
        self.output.replies.push((token, reply));
    }
}

impl Groups {
    /// Decides a command. Its reply comes with this output or with a later one.
    pub fn handle(
        &mut self,
        now: Now,
        token: Token,
        command: Command,
        topics: &dyn Topics,
    ) -> Output {
        let mut step = Step {
            now,
            topics,
            output: Output::default(),
        };
        match command {
            Command::JoinGroup(request) => self.join(token, request, &mut step),
            Command::SyncGroup(request) => self.sync(token, &request, &mut step),
            Command::Heartbeat(request) => {
                let error = self.heartbeat(&request, &mut step);
                step.reply(token, Reply::Heartbeat(error));
            }
            Command::LeaveGroup(request) => {
                let reply = self.leave(&request, &mut step);
                step.reply(token, Reply::LeaveGroup(reply));
            }
            Command::OffsetCommit(request) => {
                let reply = self.commit_offsets(&request, &mut step);
                step.reply(token, Reply::OffsetCommit(reply));
            }
            Command::TxnOffsetCommit(request) => {
                let reply = self.commit_txn_offsets(&request, &mut step);
                step.reply(token, Reply::TxnOffsetCommit(reply));
            }
            Command::OffsetFetch(request) => {
                let reply = self.fetch_offsets(&request);
                step.reply(token, Reply::OffsetFetch(reply));
            }
            Command::OffsetDelete(request) => {
                let reply = self.delete_offsets(&request, &mut step);
                step.reply(token, Reply::OffsetDelete(reply));
            }
            admin => self.handle_admin(token, admin, &mut step),
        }
        self.arm_offset_expiry(now);
        step.output
    }

    fn handle_admin(&mut self, token: Token, command: Command, step: &mut Step<'_>) {
        let reply = match command {
            Command::DescribeGroups(ids) => Reply::DescribeGroups(self.describe(&ids)),
            Command::ListGroups(filter) => Reply::ListGroups(self.list(&filter)),
            Command::DeleteGroups(ids) => Reply::DeleteGroups(self.delete(&ids, step)),
            Command::ConsumerGroupHeartbeat(request) => {
                Reply::ConsumerGroupHeartbeat(self.consumer_heartbeat(*request, step))
            }
            Command::ConsumerGroupDescribe(ids) => {
                Reply::ConsumerGroupDescribe(self.describe_consumer(&ids, step.topics))
            }
            Command::TopicsChanged(topics) => {
                for group in self.groups.values_mut() {
                    if let Group::Consumer(group) = group {
                        group.on_topics_changed(&topics);
                    }
                }
                Reply::Done
            }
            Command::PartitionsDeleted(partitions) => {
                let records = self.offsets.plan_delete_partitions(&partitions);
                step.output.is_divisible = true;
                self.emit(records, ProducerId::NONE, &mut step.output);
                Reply::Done
            }
            Command::EndTransaction(end) => {
                self.apply_end_transaction(end.producer_id, end.commit);
                step.output.end_transaction = Some(end);
                Reply::Done
            }
            Command::SetConfig(config) => {
                self.set_config(*config);
                Reply::Done
            }
            _ => Reply::Done,
        };
        step.reply(token, reply);
    }

    /// Runs `act` on a group with everything it needs.
    pub(super) fn with_group<T>(
        &mut self,
        id: &str,
        step: &mut Step<'_>,
        act: impl FnOnce(&mut Group, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let group = self.groups.get_mut(id)?;
        let mut context = Context {
            now: step.now,
            config: &self.config,
            topics: step.topics,
            timers: &mut self.timers,
            output: &mut step.output,
        };
        Some(act(group, &mut context))
    }

    fn join(&mut self, token: Token, request: JoinGroup, step: &mut Step<'_>) {
        if let Err(error) = self.validate_join(&request) {
            let reply = JoinGroupReply::failed(&*request.member_id, error);
            return step.reply(token, Reply::JoinGroup(reply));
        }
        if matches!(self.groups.get(&request.group), Some(Group::Consumer(g)) if g.is_empty()) {
            self.remove_empty(&request.group, step);
        }
        let is_new = !self.groups.contains_key(&request.group);
        if is_new && !request.member_id.is_empty() {
            let error = ErrorCode::UnknownMemberId;
            let reply = JoinGroupReply::failed(&*request.member_id, error);
            return step.reply(token, Reply::JoinGroup(reply));
        }
        if is_new {
            let group = ClassicGroup::new(request.group.clone(), step.now);
            step.output.records.push(group.empty_record());
            self.insert_classic(group);
        }
        let is_classic = self.with_group(&request.group, step, |group, context| match group {
            Group::Classic(group) => {
                group.join(token, &request, context);
                true
            }
            Group::Consumer(_) => false,
        });
        if is_classic == Some(false) {
            let reply = self.classic_join_to_consumer(&request, step);
            step.reply(token, Reply::JoinGroup(reply));
        }
    }

    fn validate_join(&self, request: &JoinGroup) -> Result<(), ErrorCode> {
        if request.group.is_empty() || request.group.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidGroupId);
        }
        let sessions =
            self.config.group_min_session_timeout_ms..=self.config.group_max_session_timeout_ms;
        if !sessions.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        let instance = request.group_instance_id.as_deref().unwrap_or_default();
        let names = [
            &*request.member_id,
            &request.protocol_type,
            instance,
            &request.client.client_id,
        ];
        let protocols = request.protocols.iter().map(|p| p.name.as_str());
        let mut all = names.into_iter().chain(protocols);
        match all.any(|name| name.len() > NAME_BYTES_MAX) {
            true => Err(ErrorCode::InvalidRequest),
            false => Ok(()),
        }
    }

    fn sync(&mut self, token: Token, request: &SyncGroup, step: &mut Step<'_>) {
        let error = match request.group.is_empty() {
            true => ErrorCode::InvalidGroupId,
            false => ErrorCode::UnknownMemberId,
        };
        let found = self.with_group(&request.group, step, |group, context| match group {
            Group::Classic(group) if !group.is_empty() => {
                group.sync(token, request, context);
                true
            }
            Group::Consumer(group) if !group.is_empty() => {
                let reply = group.classic_sync(request, context);
                let reply = reply.unwrap_or_else(SyncGroupReply::failed);
                context.reply(token, Reply::SyncGroup(reply));
                true
            }
            _ => false,
        });
        if found != Some(true) {
            step.reply(token, Reply::SyncGroup(SyncGroupReply::failed(error)));
        }
    }

    fn heartbeat(&mut self, request: &Heartbeat, step: &mut Step<'_>) -> ErrorCode {
        if request.group.is_empty() {
            return ErrorCode::InvalidGroupId;
        }
        self.with_group(&request.group, step, |group, context| match group {
            Group::Classic(group) => group.heartbeat(request, context),
            Group::Consumer(group) => group.classic_heartbeat(request, context),
        })
        .unwrap_or(ErrorCode::UnknownMemberId)
    }

    fn leave(&mut self, request: &LeaveGroup, step: &mut Step<'_>) -> LeaveGroupReply {
        if request.group.is_empty() {
            return LeaveGroupReply {
                error: ErrorCode::InvalidGroupId,
                members: Vec::new(),
            };
        }
        let left = self.with_group(&request.group, step, |group, context| match group {
            Group::Classic(group) => group.leave(request, context),
            Group::Consumer(group) => group.classic_leave(request, context),
        });
        left.unwrap_or_else(|| LeaveGroupReply {
            error: ErrorCode::None,
            members: request
                .members
                .iter()
                .map(|member| (member.clone(), ErrorCode::UnknownMemberId))
                .collect(),
        })
    }
}
