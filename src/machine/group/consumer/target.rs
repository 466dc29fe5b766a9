//! The target assignment of a consumer group: when it is computed, and how it is written.

use std::collections::BTreeMap;

use super::assignor::{Assignor, AssignorMember};
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
        let target = self.compute_target(context);
        for (member_id, partitions) in target {
            if self.target.get(&member_id) == Some(&partitions) {
                continue;
            }
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

    fn compute_target(&self, context: &Context<'_>) -> BTreeMap<MemberId, TopicPartitions> {
        let mut topics = BTreeMap::new();
        let members: Vec<AssignorMember> = self
            .members
            .values()
            .map(|member| {
                let names = self.names_of(&member.metadata);
                let existing = Self::existing(&names, context.topics);
                let subscribed = existing.keys().copied().collect();
                topics.extend(existing);
                let previous = self.target.get(&member.member_id);
                AssignorMember {
                    member_id: member.member_id.clone(),
                    instance_id: member.metadata.instance_id.clone(),
                    topics: subscribed,
                    previous: previous.cloned().unwrap_or_default(),
                }
            })
            .collect();
        let name = self.assignor_name(&context.config.consumer_assignors);
        let assignor = Assignor::by_name(name).unwrap_or(Assignor::Uniform);
        assignor.assign(&members, &topics)
    }

    /// The assignor most members ask for, or the broker's first one.
    pub(super) fn assignor_name<'a>(&'a self, configured: &'a [String]) -> &'a str {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(name) = &member.metadata.server_assignor {
                *votes.entry(name).or_default() += 1;
            }
        }
        let winner = votes.into_iter().max_by_key(|(_, count)| *count);
        let first = configured.first().map_or("uniform", String::as_str);
        winner.map_or(first, |(name, _)| name)
    }
}
