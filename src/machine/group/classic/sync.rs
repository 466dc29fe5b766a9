//! SyncGroup and LeaveGroup of a classic group.

use super::*;
use crate::machine::group::command::{LeaveGroup, LeaveGroupReply, MemberIdentity};

impl ClassicGroup {
    pub fn sync(&mut self, token: Token, request: &SyncGroup, context: &mut Context<'_>) {
        let member_id = &request.member_id;
        let error = match (self.validate_sync(request), self.state) {
            (Err(error), _) => error,
            (Ok(()), ClassicState::CompletingRebalance) => {
                return self.sync_to_completing(token, request, context);
            }
            (Ok(()), ClassicState::Stable) => {
                self.has_synced(member_id, context);
                let reply = self.sync_reply(&self.members[member_id]);
                return context.reply(token, Reply::SyncGroup(reply));
            }
            (Ok(()), ClassicState::PreparingRebalance) => ErrorCode::RebalanceInProgress,
            (Ok(()), ClassicState::Empty | ClassicState::Dead) => ErrorCode::UnknownMemberId,
        };
        context.reply(token, Reply::SyncGroup(SyncGroupReply::failed(error)));
    }

    fn validate_sync(&self, request: &SyncGroup) -> Result<(), ErrorCode> {
        self.validate_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation_id {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs = |asked: &Option<String>, own: &Option<String>| {
            asked.is_some() && own.is_some() && asked != own
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn sync_to_completing(&mut self, token: Token, request: &SyncGroup, context: &mut Context<'_>) {
        let member_id = &request.member_id;
        // A repeated request takes the place of the earlier one (see update_member).
        let superseded = SyncGroupReply::failed(ErrorCode::RebalanceInProgress);
        self.answer_sync(member_id, superseded, context);
        if let Some(member) = self.members.get_mut(member_id) {
            member.awaiting_sync = Some(token);
        }
        self.has_synced(member_id, context);
        if !self.is_leader(member_id) {
            return;
        }
        for member in self.members.values_mut() {
            let assignment = request.assignments.get(&member.member_id);
            member.assignment = assignment.cloned().unwrap_or_default();
        }
        // The record carries the timestamp of the state the group is in as it is written.
        context.append(self.record());
        self.transition_to(ClassicState::Stable, context.now);
        self.answer_all_syncs(ErrorCode::None, context);
    }

    fn has_synced(&mut self, member_id: &MemberId, context: &mut Context<'_>) {
        self.pending_sync.remove(member_id);
        if self.pending_sync.is_empty() {
            context.cancel_timer(&self.group_id, TimerKind::Sync);
        }
    }

    fn sync_reply(&self, member: &ClassicMember) -> SyncGroupReply {
        SyncGroupReply {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member.assignment.clone(),
        }
    }

    pub(super) fn answer_all_syncs(&mut self, error: ErrorCode, context: &mut Context<'_>) {
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in ids {
            let reply = match error {
                ErrorCode::None => self.sync_reply(&self.members[&member_id]),
                error => SyncGroupReply::failed(error),
            };
            if self.answer_sync(&member_id, reply, context) {
                self.restart_session(&member_id, context);
            }
        }
    }

    pub fn leave(&mut self, request: &LeaveGroup, context: &mut Context<'_>) -> LeaveGroupReply {
        let members: Vec<(MemberIdentity, ErrorCode)> = request
            .members
            .iter()
            .map(|identity| {
                let left = self.leave_one(identity, context);
                (identity.clone(), left.err().unwrap_or(ErrorCode::None))
            })
            .collect();
        if members.iter().any(|(_, error)| *error == ErrorCode::None) {
            match self.state {
                ClassicState::Stable | ClassicState::CompletingRebalance => {
                    self.prepare_or_complete(context);
                }
                ClassicState::PreparingRebalance => self.maybe_complete_join_phase(context),
                ClassicState::Empty | ClassicState::Dead => {}
            }
        }
        LeaveGroupReply {
            error: ErrorCode::None,
            members,
        }
    }

    fn leave_one(
        &mut self,
        identity: &MemberIdentity,
        context: &mut Context<'_>,
    ) -> Result<(), ErrorCode> {
        let instance = identity.group_instance_id.as_deref();
        let member_id = if identity.member_id.is_empty() {
            // An admin removes a static member by its instance.
            let current = instance.and_then(|i| self.static_members.get(i));
            current.ok_or(ErrorCode::UnknownMemberId)?.clone()
        } else if self.pending_join.contains(&identity.member_id) {
            identity.member_id.clone()
        } else {
            self.validate_member(&identity.member_id, instance)?;
            identity.member_id.clone()
        };
        self.remove(&member_id, ErrorCode::UnknownMemberId, context);
        Ok(())
    }
}
