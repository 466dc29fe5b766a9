//! Who is in a classic group: adding, updating, replacing and removing members, and the answers to
//! the requests they have parked.

use super::*;
use crate::machine::group::command::Protocol;

impl ClassicGroup {
    /// Whether the member exists and, if it names an instance, holds it.
    pub(super) fn validate_member(
        &self,
        member_id: &str,
        group_instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance) = group_instance_id {
            match self.static_members.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if **current != *member_id => {
                    return Err(ErrorCode::FencedInstanceId);
                }
                Some(_) => {}
            }
        }
        match self.members.contains_key(member_id) {
            true => Ok(()),
            false => Err(ErrorCode::UnknownMemberId),
        }
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader_id.as_deref() == Some(member_id)
    }

    pub(super) fn has_all_members_joined(&self) -> bool {
        self.members.len() == self.awaiting_join_count && self.pending_join.is_empty()
    }

    /// Whether a member with these protocols could be in the group.
    pub(super) fn supports_protocols(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == ClassicState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|p| self.is_candidate(&p.name))
    }

    fn is_candidate(&self, protocol: &str) -> bool {
        self.supported_protocols.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// The candidate most members like best; of equals, the first by name.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let all = self.supported_protocols.iter();
        let candidates: BTreeSet<&str> = all
            .filter(|(_, count)| **count == self.members.len())
            .map(|(name, _)| name.as_str())
            .collect();
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(name) = member.vote(&candidates) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        let winner = votes.into_iter().find(|(_, count)| *count == most);
        winner.map(|(name, _)| name.to_owned())
    }

    fn count_protocols(&mut self, protocols: &[Protocol], by: isize) {
        // A name that a member gives twice counts once, or it would never be a candidate.
        let names: BTreeSet<&str> = protocols.iter().map(|p| p.name.as_str()).collect();
        for name in names {
            let count = self.supported_protocols.entry(name.to_owned()).or_default();
            *count = count
                .checked_add_signed(by)
                .expect("a protocol is taken back by a member that was counted");
        }
        self.supported_protocols.retain(|_, count| *count > 0);
    }

    pub(in crate::machine::group) fn add(&mut self, member: ClassicMember, protocol_type: &str) {
        if let Some(instance) = &member.group_instance_id {
            let old = self
                .static_members
                .insert(instance.clone(), member.member_id.clone());
            assert!(old.is_none(), "instance {instance} joined twice");
        }
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.to_owned());
        }
        if self.leader_id.is_none() {
            self.leader_id = Some(member.member_id.clone());
        }
        self.count_protocols(&member.protocols, 1);
        self.awaiting_join_count += usize::from(member.awaiting_join.is_some());
        self.pending_join.remove(&member.member_id);
        let old = self.members.insert(member.member_id.clone(), member);
        assert!(old.is_none(), "a member was added twice");
    }

    /// Takes a member (or an id that was handed out) out. A request that it has parked is answered
    /// with `error`.
    pub(super) fn remove(
        &mut self,
        member_id: &MemberId,
        error: ErrorCode,
        context: &mut Context<'_>,
    ) {
        context.cancel_timer(&self.group_id, TimerKind::Session(member_id.clone()));
        self.answer_join(member_id, JoinGroupReply::failed("", error), context);
        self.answer_sync(member_id, SyncGroupReply::failed(error), context);
        if let Some(member) = self.members.remove(member_id) {
            self.count_protocols(&member.protocols, -1);
            if let Some(instance) = &member.group_instance_id {
                self.static_members.remove(instance);
            }
        }
        if self.is_leader(member_id) {
            self.leader_id = self.members.keys().next().cloned();
        }
        self.pending_join.remove(member_id);
        self.pending_sync.remove(member_id);
    }

    /// A known member joins again: its request takes the place of one it may have parked.
    pub(super) fn update_member(
        &mut self,
        member_id: &MemberId,
        request: &JoinGroup,
        token: Token,
        context: &mut Context<'_>,
    ) {
        // Kafka drops the earlier request without an answer. Whoever sent it is gone or confused;
        // "rebalance in progress" makes a client join again.
        let superseded = JoinGroupReply::failed(&**member_id, ErrorCode::RebalanceInProgress);
        self.answer_join(member_id, superseded, context);
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let old = std::mem::replace(&mut member.protocols, request.protocols.clone());
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.session_timeout_ms = request.session_timeout_ms;
        member.awaiting_join = Some(token);
        self.awaiting_join_count += 1;
        self.count_protocols(&old, -1);
        self.count_protocols(&request.protocols, 1);
    }

    /// A static member came back without its id: it gets a new one, and whoever still uses the old
    /// one is fenced.
    pub(super) fn replace_static_member(
        &mut self,
        old_id: &MemberId,
        new_id: &MemberId,
        context: &mut Context<'_>,
    ) {
        let fenced = ErrorCode::FencedInstanceId;
        self.answer_join(old_id, JoinGroupReply::failed(&**old_id, fenced), context);
        self.answer_sync(old_id, SyncGroupReply::failed(fenced), context);
        context.cancel_timer(&self.group_id, TimerKind::Session(old_id.clone()));
        let mut member = self
            .members
            .remove(old_id)
            .expect("static_members names members");
        member.member_id = new_id.clone();
        member.is_new = false;
        if let Some(instance) = &member.group_instance_id {
            self.static_members.insert(instance.clone(), new_id.clone());
        }
        self.members.insert(new_id.clone(), member);
        if self.is_leader(old_id) {
            self.leader_id = Some(new_id.clone());
        }
        if self.pending_sync.remove(old_id) {
            self.pending_sync.insert(new_id.clone());
        }
    }

    pub(super) fn answer_join(
        &mut self,
        member_id: &MemberId,
        reply: JoinGroupReply,
        context: &mut Context<'_>,
    ) -> bool {
        let member = self.members.get_mut(member_id);
        let Some(token) = member.and_then(|m| m.awaiting_join.take()) else {
            return false;
        };
        self.awaiting_join_count -= 1;
        context.reply(token, Reply::JoinGroup(reply));
        true
    }

    pub(super) fn answer_sync(
        &mut self,
        member_id: &MemberId,
        reply: SyncGroupReply,
        context: &mut Context<'_>,
    ) -> bool {
        let member = self.members.get_mut(member_id);
        let Some(token) = member.and_then(|m| m.awaiting_sync.take()) else {
            return false;
        };
        context.reply(token, Reply::SyncGroup(reply));
        true
    }

    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        let timeouts = self.members.values().map(|m| m.rebalance_timeout_ms);
        timeouts.max().unwrap_or(0)
    }

    /// The topics that the members' metadata for the chosen protocol name.
    pub(super) fn compute_subscribed_topics(&self) -> Option<BTreeSet<String>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.extend(protocol::subscribed_topics(&member.metadata(protocol))?);
        }
        Some(topics)
    }
}
