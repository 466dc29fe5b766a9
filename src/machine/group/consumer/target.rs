//! The target assignment of a consumer group: when it is computed, and how it is written.

use std::collections::{BTreeMap, BTreeSet};

use super::assignor::{Assignment, Assignor, AssignorMember};
use super::*;

impl ConsumerGroup {
    /// Computes the target of the group's epoch, unless the last one is too young: members that
    /// join one after the other shall cost one rebalance, not one each.
    pub(super) fn update_target(&mut self, context: &mut Context<'_>) {
        if self.epoch.epoch <= self.target_epoch.epoch {
            return;
        }
        if self.assignment_wait_ms(context) > 0 {
            return self.arm_assignment(context);
        }
        context.cancel_timer(&self.group_id, TimerKind::Assignment);
        for (member_id, partitions) in self.compute_target(context) {
            let record = Record::ConsumerGroupTargetAssignmentMember {
                group: self.group_id.clone(),
                member: member_id,
                value: Some(partitions),
            };
            self.emit(record, context);
        }
        let timestamp = context.now.wall;
        self.set_target_epoch(timestamp, context);
    }

    pub(super) fn set_target_epoch(&mut self, timestamp: TimestampMs, context: &mut Context<'_>) {
        let record = Record::ConsumerGroupTargetAssignmentMetadata {
            group: self.group_id.clone(),
            value: Some(TargetAssignmentEpoch {
                epoch: self.epoch.epoch,
                timestamp,
            }),
        };
        self.emit(record, context);
    }

    fn assignment_wait_ms(&self, context: &Context<'_>) -> i64 {
        let interval_ms = i64::from(context.config.assignment_interval_ms(&self.group_id));
        let due = self.target_epoch.timestamp.0.saturating_add(interval_ms);
        // A wall clock that was set back must not hold the group up for longer than the interval.
        (due - context.now.wall.0).min(interval_ms)
    }

    /// The target is due later: it is computed then, whether a member asks or not.
    pub(super) fn arm_assignment(&self, context: &mut Context<'_>) {
        if self.epoch.epoch > self.target_epoch.epoch && !self.members.is_empty() {
            let wait_ms = self.assignment_wait_ms(context);
            context.set_timer(&self.group_id, TimerKind::Assignment, wait_ms);
        }
    }

    pub fn on_assignment_timer(&mut self, context: &mut Context<'_>) {
        if !self.members.is_empty() {
            self.update_target(context);
        }
    }

    /// What members get that is not what they had.
    fn compute_target(&self, context: &Context<'_>) -> Assignment {
        let mut topics = BTreeMap::new();
        let mut subscribed = Vec::new();
        let mut by_subscription = BTreeMap::new();
        for subscription in self.tally.subscriptions() {
            let (names, regex) = (&subscription.names, subscription.regex.as_deref());
            by_subscription.insert((names.as_slice(), regex), subscribed.len());
            let existing = Self::existing(&self.names(names, regex), context.topics);
            subscribed.push(existing.keys().copied().collect::<BTreeSet<TopicId>>());
            topics.extend(existing);
        }
        let mut targets = self.target.iter().peekable();
        let members = self.members.values().map(|member| {
            let metadata = &member.metadata;
            let regex = metadata.subscribed_topic_regex.as_deref();
            let names = metadata.subscribed_topic_names.as_slice();
            // Both maps are in the order of the members' ids.
            while targets.next_if(|(id, _)| **id < member.member_id).is_some() {}
            let target = targets.next_if(|(id, _)| **id == member.member_id);
            AssignorMember {
                member_id: &member.member_id,
                instance_id: metadata.instance_id.as_deref(),
                topics: &subscribed[by_subscription[&(names, regex)]],
                previous: target.map(|(_, target)| target),
            }
        });
        let members: Vec<AssignorMember<'_>> = members.collect();
        let name = self.assignor_name(&context.config.consumer_assignors);
        let assignor = Assignor::by_name(name).unwrap_or(Assignor::Uniform);
        assignor.assign(&members, &topics)
    }

    /// The assignor most members ask for, or the broker's first one.
    pub(super) fn assignor_name<'a>(&'a self, configured: &'a [String]) -> &'a str {
        let first = configured.first().map_or("uniform", String::as_str);
        self.tally.preferred_assignor().unwrap_or(first)
    }
}
