//! JoinGroup to a classic group.

use super::*;

impl ClassicGroup {
    pub fn join(&mut self, token: Token, request: &JoinGroup, context: &mut Context<'_>) {
        let unknown = request.member_id.is_empty();
        if !self.accepts_joining_member(&request.member_id, context) {
            if !unknown {
                self.remove(&request.member_id, ErrorCode::GroupMaxSizeReached, context);
            }
            let reply = JoinGroupReply::failed("", ErrorCode::GroupMaxSizeReached);
            context.reply(token, Reply::JoinGroup(reply));
        } else if !self.supports_protocols(&request.protocol_type, &request.protocols) {
            let error = ErrorCode::InconsistentGroupProtocol;
            let reply = JoinGroupReply::failed(&*request.member_id, error);
            context.reply(token, Reply::JoinGroup(reply));
        } else if unknown {
            self.join_new(token, request, context);
        } else {
            self.join_known(token, request, context);
        }
    }

    /// Whether there is room. While members are joining, only those that have joined count: the
    /// group is as large as those that come back.
    fn accepts_joining_member(&self, member_id: &str, context: &Context<'_>) -> bool {
        let max = context.config.group_max_size;
        let member = self.members.get(member_id);
        match self.state {
            ClassicState::Empty | ClassicState::Dead => true,
            ClassicState::PreparingRebalance => {
                member.is_some_and(|m| m.awaiting_join.is_some()) || self.awaiting_join_count < max
            }
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                member.is_some() || self.members.len() < max
            }
        }
    }

    fn join_new(&mut self, token: Token, request: &JoinGroup, context: &mut Context<'_>) {
        let prefix = match &request.group_instance_id {
            Some(instance) => instance,
            None => &request.client.client_id,
        };
        let new_id: MemberId = format!("{prefix}-{}", request.random_id).into();
        let instance = request.group_instance_id.as_deref();
        let current = instance.and_then(|i| self.static_members.get(i)).cloned();
        if let Some(old_id) = current {
            self.rejoin_static(token, request, &old_id, &new_id, context);
        } else if instance.is_none() && request.requires_known_member_id {
            self.pending_join.insert(new_id.clone());
            let timeout_ms = i64::from(request.session_timeout_ms);
            let session = TimerKind::Session(new_id.clone());
            context.set_timer(&self.group_id, session, timeout_ms);
            let reply = JoinGroupReply::failed(new_id, ErrorCode::MemberIdRequired);
            context.reply(token, Reply::JoinGroup(reply));
        } else {
            self.join_as(token, request, new_id, context);
        }
    }

    /// Adds a member; it waits for the join phase to end.
    fn join_as(
        &mut self,
        token: Token,
        request: &JoinGroup,
        member_id: MemberId,
        context: &mut Context<'_>,
    ) {
        let member = ClassicMember {
            member_id: member_id.clone(),
            group_instance_id: request.group_instance_id.clone(),
            client: request.client.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
            assignment: bytes::Bytes::new(),
            awaiting_join: Some(token),
            awaiting_sync: None,
            is_new: true,
        };
        self.add(member, &request.protocol_type);
        // Kafka's group.new.member.join.timeout.ms: not a configuration, always five minutes.
        const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 5 * 60 * 1000;
        let session = TimerKind::Session(member_id);
        context.set_timer(&self.group_id, session, NEW_MEMBER_JOIN_TIMEOUT_MS);
        if self.state == ClassicState::PreparingRebalance
            && self.previous_state == ClassicState::Empty
        {
            self.new_member_added = true;
        }
        self.prepare_or_complete(context);
    }

    fn join_known(&mut self, token: Token, request: &JoinGroup, context: &mut Context<'_>) {
        let member_id = &request.member_id;
        let instance = request.group_instance_id.as_deref();
        if self.pending_join.contains(member_id) && instance.is_none() {
            return self.join_as(token, request, member_id.clone(), context);
        }
        if let Err(error) = self.validate_member(member_id, instance) {
            let reply = JoinGroupReply::failed(&**member_id, error);
            return context.reply(token, Reply::JoinGroup(reply));
        }
        let is_leader = self.is_leader(member_id);
        let unchanged = self.members[member_id].protocols == request.protocols;
        let reply = match self.state {
            ClassicState::CompletingRebalance if unchanged => self.join_reply(member_id, is_leader),
            // The leader joins again because it wants to assign anew (topics have changed, say).
            ClassicState::Stable if unchanged && !is_leader => self.join_reply(member_id, false),
            ClassicState::Empty | ClassicState::Dead => {
                JoinGroupReply::failed(&**member_id, ErrorCode::UnknownMemberId)
            }
            _ => {
                self.update_member(member_id, request, token, context);
                return self.prepare_or_complete(context);
            }
        };
        context.reply(token, Reply::JoinGroup(reply));
    }

    /// A static member is back without its id. If the group is stable and the protocol stays, it
    /// goes on where it was, without a rebalance.
    fn rejoin_static(
        &mut self,
        token: Token,
        request: &JoinGroup,
        old_id: &MemberId,
        new_id: &MemberId,
        context: &mut Context<'_>,
    ) {
        let old_leader = self.leader_id.as_deref().unwrap_or_default().to_owned();
        self.replace_static_member(old_id, new_id, context);
        self.update_member(new_id, request, token, context);
        self.restart_session(new_id, context);
        match self.state {
            ClassicState::Stable if self.select_protocol() == self.protocol_name => {
                context.append(self.record());
                let leads = self.is_leader(new_id);
                let mut reply = self.join_reply(new_id, false);
                if request.supports_skipping_assignment {
                    reply = self.join_reply(new_id, leads);
                    reply.skip_assignment = leads;
                } else {
                    // An old leader is told that another leads (its own old id), so that it does
                    // not send an assignment.
                    reply.leader = old_leader;
                }
                self.answer_join(new_id, reply, context);
            }
            ClassicState::Stable | ClassicState::CompletingRebalance => {
                self.prepare_rebalance(context);
            }
            _ => self.maybe_complete_join_phase(context),
        }
    }
}
