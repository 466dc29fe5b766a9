//! The phases of a classic rebalance: members are asked to join, a generation starts, and whoever
//! does not take part in time is out.

use super::*;

/// How long the first rebalance of an empty group is still held back for more members.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InitialDelay {
    delay_ms: i32,
    remaining_ms: i32,
}

impl ClassicGroup {
    /// After members came or went: starts a rebalance, or ends the join phase that is under way.
    pub(super) fn prepare_or_complete(&mut self, context: &mut Context<'_>) {
        if self.state.may_become(ClassicState::PreparingRebalance) {
            self.prepare_rebalance(context);
        } else {
            self.maybe_complete_join_phase(context);
        }
    }

    pub(in crate::machine::group) fn prepare_rebalance(&mut self, context: &mut Context<'_>) {
        if self.state == ClassicState::CompletingRebalance {
            for member in self.members.values_mut() {
                member.assignment.clear();
            }
            self.answer_all_syncs(ErrorCode::RebalanceInProgress, context);
        }
        self.pending_sync.clear();
        context.cancel_timer(&self.group_id, TimerKind::Sync);
        let is_initial = self.state == ClassicState::Empty;
        self.transition_to(ClassicState::PreparingRebalance, context.now);
        if is_initial {
            let delay_ms = context.config.group_initial_rebalance_delay_ms;
            self.initial_delay = InitialDelay {
                delay_ms,
                remaining_ms: (self.rebalance_timeout_ms() - delay_ms).max(0),
            };
            self.new_member_added = false;
            self.set_join_timer(delay_ms, context);
        } else if self.has_all_members_joined() {
            self.complete_join(context);
        } else {
            self.set_join_timer(self.rebalance_timeout_ms(), context);
        }
    }

    fn set_join_timer(&self, ms: i32, context: &mut Context<'_>) {
        context.set_timer(&self.group_id, TimerKind::Join, i64::from(ms));
    }

    /// Ends the join phase if nobody is missing. The first one of an empty group ends by time only.
    pub(super) fn maybe_complete_join_phase(&mut self, context: &mut Context<'_>) {
        if self.state == ClassicState::PreparingRebalance
            && self.previous_state != ClassicState::Empty
            && self.has_all_members_joined()
        {
            self.complete_join(context);
        }
    }

    /// The time for joining is up.
    pub fn on_join_timer(&mut self, context: &mut Context<'_>) {
        if self.state != ClassicState::PreparingRebalance {
            return;
        }
        let InitialDelay {
            delay_ms,
            remaining_ms,
        } = self.initial_delay;
        let delays = self.previous_state == ClassicState::Empty;
        if delays && self.new_member_added && remaining_ms != 0 {
            self.new_member_added = false;
            let next_ms = remaining_ms.min(context.config.group_initial_rebalance_delay_ms);
            self.initial_delay = InitialDelay {
                delay_ms: next_ms,
                remaining_ms: (remaining_ms - delay_ms).max(0),
            };
            self.set_join_timer(next_ms, context);
        } else {
            self.complete_join(context);
        }
    }

    /// Starts the next generation with the members that have joined. Static members that have not
    /// stay in it: that they may come back is what they are for.
    pub(super) fn complete_join(&mut self, context: &mut Context<'_>) {
        context.cancel_timer(&self.group_id, TimerKind::Join);
        let absent: Vec<MemberId> = self
            .members
            .values()
            .filter(|m| m.awaiting_join.is_none() && !m.is_static())
            .map(|m| m.member_id.clone())
            .collect();
        for member_id in absent {
            self.remove(&member_id, ErrorCode::UnknownMemberId, context);
        }
        if !self.members.is_empty() && !self.elect_joined_leader() {
            // Only absent static members are left, and none of them can lead: wait once more.
            self.set_join_timer(self.rebalance_timeout_ms(), context);
            return;
        }
        self.init_next_generation(context.now);
        if self.state == ClassicState::Empty {
            context.append(self.record());
            return;
        }
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in &ids {
            let reply = self.join_reply(member_id, self.is_leader(member_id));
            self.answer_join(member_id, reply, context);
            self.restart_session(member_id, context);
            self.pending_sync.insert(member_id.clone());
        }
        for member in self.members.values_mut() {
            member.is_new = false;
        }
        let timeout_ms = i64::from(self.rebalance_timeout_ms());
        context.set_timer(&self.group_id, TimerKind::Sync, timeout_ms);
    }

    /// Keeps the leader if it has joined, else takes the first member that has; `false` if nobody
    /// has.
    fn elect_joined_leader(&mut self) -> bool {
        let Some(leader) = self.leader_id.as_ref() else {
            return false;
        };
        if self.members[leader].awaiting_join.is_some() {
            return true;
        }
        let mut joined = self.members.values().filter(|m| m.awaiting_join.is_some());
        match joined.next() {
            None => false,
            Some(member) => {
                self.leader_id = Some(member.member_id.clone());
                true
            }
        }
    }

    fn init_next_generation(&mut self, now: Now) {
        self.generation_id = self.generation_id.checked_add(1).unwrap_or(1);
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.compute_subscribed_topics();
        let next = match self.members.is_empty() {
            true => ClassicState::Empty,
            false => ClassicState::CompletingRebalance,
        };
        self.transition_to(next, now);
        self.pending_sync.clear();
    }

    pub(super) fn join_reply(&self, member_id: &MemberId, with_members: bool) -> JoinGroupReply {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.members.values().filter(|_| with_members);
        JoinGroupReply {
            error: ErrorCode::None,
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader_id.as_deref().unwrap_or_default().to_owned(),
            skip_assignment: false,
            member_id: member_id.clone(),
            members: members.map(|m| m.in_join_reply(protocol)).collect(),
        }
    }

    /// A session ran out, or a handed-out id was not used.
    pub fn on_session_timer(&mut self, member_id: &MemberId, context: &mut Context<'_>) {
        if self.pending_join.contains(member_id) {
            self.remove(member_id, ErrorCode::UnknownMemberId, context);
            if self.state == ClassicState::PreparingRebalance && self.has_all_members_joined() {
                self.complete_join(context);
            }
            return;
        }
        let member = self.members.get(member_id);
        if member.is_some_and(|m| !m.has_satisfied_heartbeat()) {
            self.remove(member_id, ErrorCode::UnknownMemberId, context);
            self.after_removal(context);
        }
    }

    /// What follows when a member is gone whose session ran out.
    fn after_removal(&mut self, context: &mut Context<'_>) {
        match self.state {
            ClassicState::Stable | ClassicState::CompletingRebalance => {
                self.prepare_or_complete(context);
            }
            ClassicState::PreparingRebalance if self.has_all_members_joined() => {
                self.complete_join(context);
            }
            _ => {}
        }
    }

    /// Members that joined this generation but never synced are out.
    pub fn on_sync_timer(&mut self, context: &mut Context<'_>) {
        let syncing = [ClassicState::CompletingRebalance, ClassicState::Stable];
        if !syncing.contains(&self.state) || self.pending_sync.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.pending_sync) {
            self.remove(&member_id, ErrorCode::UnknownMemberId, context);
        }
        self.prepare_rebalance(context);
    }
}
