//! Members of a consumer group come, are replaced, and go; and each is led on towards its target.

use super::member::{ConsumerMember, Reconciliation, joining};
use super::*;
use crate::machine::group::records::TopicPartitions;

/// What a member's heartbeat changed for the group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Changes {
    /// It subscribes to other topics.
    pub subscription: bool,
    /// Most members now prefer another assignor.
    pub assignor: bool,
}

impl ConsumerGroup {
    pub(super) fn has_room_for(
        &self,
        member_id: &str,
        context: &Context<'_>,
    ) -> Result<(), Refused> {
        let max = context.config.consumer_max_size;
        if self.members.len() >= max && !self.members.contains_key(member_id) {
            return refused(
                ErrorCode::GroupMaxSizeReached,
                format!("The consumer group has reached its maximum capacity of {max} members."),
            );
        }
        Ok(())
    }

    pub(super) fn member(&self, member_id: &str) -> Result<&ConsumerMember, Refused> {
        self.members.get(member_id).ok_or_else(|| Refused {
            error: ErrorCode::UnknownMemberId,
            message: format!(
                "Member {member_id} is not a member of group {}.",
                self.group_id
            ),
        })
    }

    /// The member that holds an instance id, if it is `member_id`.
    pub(super) fn static_member(
        &self,
        instance_id: &str,
        member_id: &str,
    ) -> Result<&ConsumerMember, Refused> {
        let Some(current) = self.static_members.get(instance_id) else {
            let message = format!("Instance id {instance_id} is unknown.");
            return refused(ErrorCode::UnknownMemberId, message);
        };
        if **current != *member_id {
            return refused(
                ErrorCode::FencedInstanceId,
                format!(
                    "Static member {member_id} with instance id {instance_id} was fenced by \
                     member {current}."
                ),
            );
        }
        self.member(member_id)
    }

    /// The member as it is, or as one that is joining.
    pub(super) fn member_or_new(&self, member_id: &MemberId) -> ConsumerMember {
        let existing = self.members.get(member_id).cloned();
        existing.unwrap_or_else(|| joining(member_id.clone(), unknown_metadata()))
    }

    /// A static member comes back under a new id: it takes over what the old one had.
    pub(super) fn replace_member(
        &mut self,
        old_id: &MemberId,
        new_id: &MemberId,
        context: &mut Context<'_>,
    ) {
        let old = self.member_or_new(old_id);
        let target = self.target.get(old_id).cloned().unwrap_or_default();
        self.append_removal(old_id, context);
        let group = self.group_id.clone();
        let member = new_id.clone();
        let mut current = old.current;
        current.member_epoch = 0;
        current.previous_member_epoch = 0;
        for record in [
            Record::ConsumerGroupMemberMetadata {
                group: group.clone(),
                member: member.clone(),
                value: Some(old.metadata),
            },
            Record::ConsumerGroupTargetAssignmentMember {
                group: group.clone(),
                member: member.clone(),
                value: Some(target),
            },
            Record::ConsumerGroupCurrentMemberAssignment {
                group,
                member,
                value: Some(current),
            },
        ] {
            self.emit(record, context);
        }
    }

    /// The tombstones of a member.
    pub(super) fn append_removal(&mut self, member_id: &MemberId, context: &mut Context<'_>) {
        self.cancel_member_timers(member_id, context);
        let group = self.group_id.clone();
        let member = member_id.clone();
        for record in [
            Record::ConsumerGroupCurrentMemberAssignment {
                group: group.clone(),
                member: member.clone(),
                value: None,
            },
            Record::ConsumerGroupTargetAssignmentMember {
                group: group.clone(),
                member: member.clone(),
                value: None,
            },
            Record::ConsumerGroupMemberMetadata {
                group,
                member,
                value: None,
            },
        ] {
            self.emit(record, context);
        }
    }

    /// Takes members out for good: a new epoch, so that others get what they had.
    pub(super) fn remove_members(&mut self, members: &[MemberId], context: &mut Context<'_>) {
        for member_id in members {
            self.append_removal(member_id, context);
        }
        if members.is_empty() {
            return;
        }
        self.drop_unused_regexes(context);
        self.bump_epoch(true, context);
        if self.members.is_empty() {
            // Nobody is left to assign to: the target is that.
            self.set_target_epoch(TimestampMs(0), context);
        }
        self.arm_assignment(context);
    }

    pub fn fence(&mut self, member_id: &MemberId, context: &mut Context<'_>) {
        if self.members.contains_key(member_id) {
            self.remove_members(std::slice::from_ref(member_id), context);
        }
    }

    /// Writes what a member says about itself, if it is new.
    pub(super) fn update_metadata(
        &mut self,
        before: &ConsumerMember,
        metadata: MemberMetadataValue,
        context: &mut Context<'_>,
    ) -> Changes {
        let is_new = !self.members.contains_key(&before.member_id);
        if !is_new && metadata == before.metadata {
            return Changes::default();
        }
        let assignors = &context.config.consumer_assignors;
        let old_assignor = self.assignor_name(assignors).to_owned();
        let owned = |names: std::collections::BTreeSet<&str>| -> Vec<String> {
            names.into_iter().map(str::to_owned).collect()
        };
        let old_matches = owned(self.names_of(&before.metadata));
        let old_names = &before.metadata.subscribed_topic_names;
        let named_others = *old_names != metadata.subscribed_topic_names;
        let regex = metadata.subscribed_topic_regex.clone().unwrap_or_default();
        let record = Record::ConsumerGroupMemberMetadata {
            group: self.group_id.clone(),
            member: before.member_id.clone(),
            value: Some(metadata.clone()),
        };
        self.emit(record, context);
        if !regex.is_empty() && !self.regexes.contains_key(&regex) {
            self.resolve(&regex, context);
        }
        let matches_others = owned(self.names_of(&metadata)) != old_matches;
        self.drop_unused_regexes(context);
        Changes {
            subscription: named_others || matches_others,
            assignor: self.assignor_name(assignors) != old_assignor,
        }
    }

    /// Leads a member one step on towards its target.
    pub(super) fn reconcile(
        &mut self,
        member_id: &MemberId,
        owned: Option<&TopicPartitions>,
        subscription_changed: bool,
        context: &mut Context<'_>,
    ) {
        let member = &self.members[member_id];
        if member.is_reconciled_to(self.target_epoch.epoch) && !subscription_changed {
            return;
        }
        // What a member no longer subscribes to it loses at once, even if no target says so yet.
        let names = self.names_of(&member.metadata);
        let subscribed = Self::existing(&names, context.topics);
        let mut target = self.target.get(member_id).cloned().unwrap_or_default();
        target.retain(|topic, _| subscribed.contains_key(topic));
        let next = Reconciliation {
            current: &member.current,
            target_epoch: self.target_epoch.epoch,
            target: &target,
            owned,
            is_free: &|topic, partition| {
                let holder = self.holders.get(&(topic, partition));
                holder.is_none_or(|holder| holder == member_id)
            },
            is_subscribed: &|topic| subscribed.contains_key(&topic),
            subscription_changed,
        }
        .next();
        if next == member.current {
            return;
        }
        let kind = TimerKind::ConsumerRebalance(member_id.clone());
        let classic = member.uses_classic_protocol();
        let timeout_ms = i64::from(member.metadata.rebalance_timeout_ms);
        if next.state == MemberState::UnrevokedPartitions && !classic {
            context.set_timer(&self.group_id, kind, timeout_ms);
        } else {
            context.cancel_timer(&self.group_id, kind);
        }
        let record = Record::ConsumerGroupCurrentMemberAssignment {
            group: self.group_id.clone(),
            member: member_id.clone(),
            value: Some(next),
        };
        self.emit(record, context);
    }
}
