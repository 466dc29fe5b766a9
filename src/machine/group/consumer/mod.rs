//! A consumer group (KIP-848): members say what they want and what they have, the coordinator
//! computes a target and leads each member to it, epoch by epoch, without stopping the others.
//!
//! ```text
//!   subscriptions, topics --> group epoch --> target (assignor) --> target epoch
//!                                                                       |
//!   member epoch <-- reconciliation, one member at a time (member.rs) <-+
//! ```
//!
//! 1. The group epoch grows with each change of members, subscriptions or topics; the target epoch
//!    follows it, the members' epochs follow the target's.
//! 2. A partition is held (assigned, or still to be given back) by at most one member.
//! 3. Everything here but `needs_refresh` comes from records, by `apply`.

mod admin;
pub mod assignor;
mod classic_members;
mod heartbeat;
mod member;
mod membership;
mod migrate;
mod re2;
mod subscription;
mod tally;
mod target;

pub use heartbeat::validate;
pub use member::{LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH};

use std::collections::BTreeMap;

use super::records::{
    CurrentAssignmentValue, GroupEpoch, MemberMetadataValue, MemberState, Record,
    RegularExpressionValue, TargetAssignmentEpoch, TopicPartitions,
};
use super::timers::TimerKind;
use super::{Context, GroupId, MemberId};
use crate::types::{ErrorCode, TimestampMs, TopicId};
use member::ConsumerMember;
use tally::Tally;

/// Why a request was refused, in words for the client's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub error: ErrorCode,
    pub message: String,
}

fn refused<T>(error: ErrorCode, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused {
        error,
        message: message.into(),
    })
}

#[derive(Debug)]
pub struct ConsumerGroup {
    pub(super) group_id: GroupId,
    epoch: GroupEpoch,
    target_epoch: TargetAssignmentEpoch,
    members: BTreeMap<MemberId, ConsumerMember>,
    static_members: BTreeMap<String, MemberId>,
    /// Of the metadata of all `members`.
    tally: Tally,
    target: BTreeMap<MemberId, TopicPartitions>,
    /// Who holds a partition.
    holders: BTreeMap<(TopicId, i32), MemberId>,
    regexes: BTreeMap<String, RegularExpressionValue>,
    /// Topics may have changed since the hash in `epoch` was computed.
    needs_refresh: bool,
}

impl ConsumerGroup {
    /// A group starts at epoch 1, which is in no record; so does its (empty) target.
    pub fn new(group_id: GroupId) -> Self {
        ConsumerGroup {
            group_id,
            epoch: GroupEpoch {
                epoch: 1,
                metadata_hash: 0,
            },
            target_epoch: TargetAssignmentEpoch {
                epoch: 1,
                timestamp: TimestampMs(0),
            },
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            tally: Tally::default(),
            target: BTreeMap::new(),
            holders: BTreeMap::new(),
            regexes: BTreeMap::new(),
            needs_refresh: true,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Applies a record, and hands it out to be written.
    fn emit(&mut self, record: Record, context: &mut Context<'_>) {
        self.apply(&record);
        context.append(record);
    }

    /// Takes one of this group's records into the state. Compaction may have taken some of them
    /// away, so they can come in any order.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::ConsumerGroupMetadata {
                value: Some(value), ..
            } => self.epoch = *value,
            Record::ConsumerGroupTargetAssignmentMetadata {
                value: Some(value), ..
            } => self.target_epoch = *value,
            Record::ConsumerGroupMemberMetadata { member, value, .. } => match value {
                Some(value) => self.apply_member(member, value),
                None => self.forget_member(member),
            },
            Record::ConsumerGroupCurrentMemberAssignment { member, value, .. } => {
                self.apply_current(member, value.as_ref());
            }
            Record::ConsumerGroupTargetAssignmentMember { member, value, .. } => match value {
                Some(value) => {
                    let mut target = value.clone();
                    // Kafka writes them in the order of a hash set.
                    target.values_mut().for_each(|p| p.sort_unstable());
                    self.target.insert(member.clone(), target);
                }
                None => {
                    self.target.remove(member);
                }
            },
            Record::ConsumerGroupRegularExpression { regex, value, .. } => match value {
                Some(value) => {
                    self.regexes.insert(regex.clone(), value.clone());
                }
                None => {
                    self.regexes.remove(regex);
                }
            },
            _ => {}
        }
    }

    fn apply_member(&mut self, member_id: &MemberId, value: &MemberMetadataValue) {
        self.insert_unknown(member_id);
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let old = std::mem::replace(&mut member.metadata, value.clone());
        self.tally.remove(&old);
        self.tally.add(value);
        self.forget_instance(old.instance_id, member_id);
        if let Some(instance) = &value.instance_id {
            self.static_members
                .insert(instance.clone(), member_id.clone());
        }
    }

    /// A member may be there before its metadata is read.
    fn insert_unknown(&mut self, member_id: &MemberId) {
        if !self.members.contains_key(member_id) {
            let member = member::joining(member_id.clone(), unknown_metadata());
            self.tally.add(&member.metadata);
            self.members.insert(member_id.clone(), member);
        }
    }

    fn forget_instance(&mut self, instance: Option<String>, member_id: &MemberId) {
        let Some(instance) = instance else { return };
        if self.static_members.get(&instance) == Some(member_id) {
            self.static_members.remove(&instance);
        }
    }

    fn forget_member(&mut self, member_id: &MemberId) {
        self.apply_current(member_id, None);
        if let Some(member) = self.members.remove(member_id) {
            self.tally.remove(&member.metadata);
            self.forget_instance(member.metadata.instance_id, member_id);
        }
    }

    fn apply_current(&mut self, member_id: &MemberId, value: Option<&CurrentAssignmentValue>) {
        if value.is_none() && !self.members.contains_key(member_id) {
            return;
        }
        self.insert_unknown(member_id);
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let next = value.cloned().unwrap_or_else(member::no_assignment);
        let old = std::mem::replace(&mut member.current, next);
        for place in places(&old) {
            if self.holders.get(&place) == Some(member_id) {
                self.holders.remove(&place);
            }
        }
        for place in places(&self.members[member_id].current) {
            self.holders.insert(place, member_id.clone());
        }
    }

    /// Empty, Assigning, Reconciling or Stable.
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() {
            return "Empty";
        }
        if self.epoch.epoch > self.target_epoch.epoch {
            return "Assigning";
        }
        let target = self.target_epoch.epoch;
        match self.members.values().all(|m| m.is_reconciled_to(target)) {
            true => "Stable",
            false => "Reconciling",
        }
    }

    /// After loading: sessions start, and so do the times to give partitions back.
    pub fn on_loaded(&mut self, context: &mut Context<'_>) {
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in &ids {
            self.restart_session(member_id, context);
            let member = &self.members[member_id];
            if member.current.state == MemberState::UnrevokedPartitions {
                let timeout_ms = i64::from(member.metadata.rebalance_timeout_ms);
                let kind = TimerKind::ConsumerRebalance(member_id.clone());
                context.set_timer(&self.group_id, kind, timeout_ms);
            }
        }
        self.arm_assignment(context);
    }

    /// The member has been heard of: its session starts again.
    fn restart_session(&self, member_id: &MemberId, context: &mut Context<'_>) {
        let Some(member) = self.members.get(member_id) else {
            return;
        };
        let timeout_ms = match &member.metadata.classic {
            Some(classic) => classic.session_timeout_ms,
            None => context.config.session_timeout_ms(&self.group_id),
        };
        let kind = TimerKind::ConsumerSession(member_id.clone());
        context.set_timer(&self.group_id, kind, i64::from(timeout_ms));
    }

    fn cancel_member_timers(&self, member_id: &MemberId, context: &mut Context<'_>) {
        for kind in [
            TimerKind::ConsumerSession,
            TimerKind::ConsumerRebalance,
            TimerKind::ConsumerJoin,
            TimerKind::ConsumerSync,
        ] {
            context.cancel_timer(&self.group_id, kind(member_id.clone()));
        }
    }
}

/// Every partition a member holds.
fn places(current: &CurrentAssignmentValue) -> Vec<(TopicId, i32)> {
    let both = current.assigned.iter().chain(&current.pending_revocation);
    both.flat_map(|(topic, partitions)| partitions.keys().map(|p| (*topic, *p)))
        .collect()
}

/// Of a member whose metadata has not been read yet, or is just being made.
fn unknown_metadata() -> MemberMetadataValue {
    MemberMetadataValue {
        instance_id: None,
        rack_id: None,
        client_id: String::new(),
        client_host: String::new(),
        subscribed_topic_names: Vec::new(),
        subscribed_topic_regex: Some(String::new()),
        rebalance_timeout_ms: -1,
        server_assignor: None,
        classic: None,
    }
}
