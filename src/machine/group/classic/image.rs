//! A classic group as its record: written when a rebalance ends, read when the group is loaded.

use super::*;
use crate::machine::group::command::{Client, Protocol};
use crate::machine::group::records::{GroupMetadataMember, GroupMetadataValue, Record};

impl ClassicGroup {
    pub fn record(&self) -> Record {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.members.values().map(|member| GroupMetadataMember {
            member_id: member.member_id.to_string(),
            group_instance_id: member.group_instance_id.clone(),
            client_id: member.client.client_id.clone(),
            client_host: member.client.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(protocol),
            assignment: member.assignment.clone(),
        });
        Record::GroupMetadata {
            group: self.group_id.clone(),
            value: Some(GroupMetadataValue {
                protocol_type: self.protocol_type.clone().unwrap_or_default(),
                generation: self.generation_id,
                protocol: self.protocol_name.clone(),
                leader: self.leader_id.as_deref().map(str::to_owned),
                current_state_timestamp: self.current_state_timestamp,
                members: members.collect(),
            }),
        }
    }

    /// The record of a group that was made just now: it says that the group exists, no more.
    pub fn empty_record(&self) -> Record {
        Record::GroupMetadata {
            group: self.group_id.clone(),
            value: Some(GroupMetadataValue {
                protocol_type: String::new(),
                generation: 0,
                protocol: None,
                leader: None,
                current_state_timestamp: self.current_state_timestamp,
                members: Vec::new(),
            }),
        }
    }

    pub fn from_value(group_id: GroupId, value: &GroupMetadataValue) -> Self {
        let now = Now {
            wall: value.current_state_timestamp,
            tick: super::super::command::Tick(0),
        };
        let mut group = ClassicGroup::new(group_id, now);
        let protocol = value.protocol.clone().unwrap_or_default();
        for stored in &value.members {
            let member = ClassicMember {
                member_id: stored.member_id.as_str().into(),
                group_instance_id: stored.group_instance_id.clone(),
                client: Client {
                    client_id: stored.client_id.clone(),
                    client_host: stored.client_host.clone(),
                },
                rebalance_timeout_ms: stored.rebalance_timeout_ms,
                session_timeout_ms: stored.session_timeout_ms,
                protocols: vec![Protocol {
                    name: protocol.clone(),
                    metadata: stored.subscription.clone(),
                }],
                assignment: stored.assignment.clone(),
                awaiting_join: None,
                awaiting_sync: None,
                is_new: false,
            };
            // A record with a member or an instance twice would be damaged: the first one counts.
            let instance = member.group_instance_id.as_ref();
            let taken = group.members.contains_key(&member.member_id)
                || instance.is_some_and(|i| group.static_members.contains_key(i));
            if !taken {
                group.add(member, &value.protocol_type);
            }
        }
        if !group.members.is_empty() {
            group.state = ClassicState::Stable;
        }
        group.generation_id = value.generation;
        group.protocol_type = Some(value.protocol_type.clone()).filter(|t| !t.is_empty());
        group.protocol_name = value.protocol.clone();
        let leader = value.leader.as_deref().map(MemberId::from);
        group.leader_id = leader
            .filter(|leader| group.members.contains_key(leader))
            .or_else(|| group.members.keys().next().cloned());
        group.subscribed_topics = group.compute_subscribed_topics();
        group
    }

    /// After loading: sessions start, and a group that is over its limit rebalances.
    pub fn on_loaded(&mut self, context: &mut Context<'_>) {
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in &ids {
            self.restart_session(member_id, context);
        }
        if self.members.len() > context.config.group_max_size {
            self.prepare_rebalance(context);
        }
    }
}
