//! What a classic group gives to, and takes from, the consumer group it turns into or was.

use bytes::Bytes;

use super::*;
use crate::machine::group::command::{Client, Protocol};

/// A member as the consumer group needs it.
pub struct MigratedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub client: Client,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub protocols: Vec<Protocol>,
    /// Of the group's protocol.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl ClassicMember {
    pub fn migrated(&self, protocol: &str) -> MigratedMember {
        MigratedMember {
            member_id: self.member_id.clone(),
            group_instance_id: self.group_instance_id.clone(),
            client: self.client.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            protocols: self.protocols.clone(),
            metadata: self.metadata(protocol),
            assignment: self.assignment.clone(),
        }
    }
}

impl ClassicGroup {
    /// The chosen protocol; in a first rebalance, one that all members support.
    pub fn protocol_name_or_candidate(&self) -> Option<&str> {
        let all = self.supported_protocols.iter();
        let mut candidates = all.filter(|(_, count)| **count == self.members.len());
        let chosen = self.protocol_name.as_deref();
        chosen.or_else(|| candidates.next().map(|(name, _)| name.as_str()))
    }

    /// Whether the group may turn into a consumer group with its members.
    pub fn may_upgrade(&self, context: &Context<'_>) -> bool {
        context.config.consumer_migration_policy.may_upgrade()
            && self.uses_consumer_protocol()
            && self.members.len() <= context.config.consumer_max_size
    }

    /// Whoever waits has to find out that the group is another now.
    pub fn answer_all(&mut self, error: ErrorCode, context: &mut Context<'_>) {
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in ids {
            let reply = JoinGroupReply::failed(&*member_id, error);
            self.answer_join(&member_id, reply, context);
            self.answer_sync(&member_id, SyncGroupReply::failed(error), context);
        }
    }

    /// The group is no more: its deadlines neither.
    pub fn cancel_timers(&self, context: &mut Context<'_>) {
        context.cancel_timer(&self.group_id, TimerKind::Join);
        context.cancel_timer(&self.group_id, TimerKind::Sync);
        for member_id in self.members.keys().chain(&self.pending_join) {
            context.cancel_timer(&self.group_id, TimerKind::Session(member_id.clone()));
        }
    }

    /// Adds a member that was one of a consumer group. `timeouts_ms`: rebalance, session.
    pub fn add_migrated(
        &mut self,
        member_id: MemberId,
        group_instance_id: Option<String>,
        client: Client,
        timeouts_ms: (i32, i32),
        protocols: Vec<Protocol>,
    ) {
        let member = ClassicMember {
            member_id,
            group_instance_id,
            client,
            rebalance_timeout_ms: timeouts_ms.0,
            session_timeout_ms: timeouts_ms.1,
            protocols,
            assignment: Bytes::new(),
            awaiting_join: None,
            awaiting_sync: None,
            is_new: false,
        };
        self.add(member, CONSUMER_PROTOCOL_TYPE);
    }

    /// All members are there: the group is stable, with what each of them was assigned.
    pub fn finish_migration(
        &mut self,
        generation_id: i32,
        assignment: impl Fn(&MemberId, &Bytes) -> Bytes,
    ) {
        self.state = ClassicState::Stable;
        self.generation_id = generation_id;
        self.protocol_type = Some(CONSUMER_PROTOCOL_TYPE.to_owned());
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.compute_subscribed_topics();
        let protocol = self.protocol_name.clone().unwrap_or_default();
        for member in self.members.values_mut() {
            member.assignment = assignment(&member.member_id, &member.metadata(&protocol));
        }
    }
}
