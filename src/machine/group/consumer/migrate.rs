//! A group changes its protocol while it runs, in either direction (KIP-848, migration).
//!
//! Upgrade: the first consumer member joins a classic group. Its members keep their partitions and
//! become classic members of the consumer group, at the generation as their epoch.
//!
//! Downgrade: the last consumer member leaves. The classic members keep theirs and are asked to
//! rebalance by themselves.

use std::collections::BTreeMap;

use super::*;
use crate::machine::group::Topics;
use crate::machine::group::classic::{ClassicGroup, ClassicMember};
use crate::machine::group::command::{Client, Protocol};
use crate::machine::group::protocol::{Subscription, decode_assignment, encode_assignment};
use crate::machine::group::records::{AssignedPartitions, ClassicMemberMetadata};

impl ConsumerGroup {
    /// Takes a classic group over. `None` if its members' metadata cannot be read.
    pub fn from_classic(classic: &ClassicGroup, context: &mut Context<'_>) -> Option<Self> {
        let mut members = Vec::new();
        for member in classic.members() {
            members.push(upgraded(member, classic, context.topics)?);
        }
        let mut group = ConsumerGroup::new(classic.group_id.clone());
        let id = || classic.group_id.clone();
        context.append(Record::GroupMetadata {
            group: id(),
            value: None,
        });
        for member in &members {
            let record = Record::ConsumerGroupMemberMetadata {
                group: id(),
                member: member.member_id.clone(),
                value: Some(member.metadata.clone()),
            };
            group.emit(record, context);
        }
        // Where somebody's partitions are missing (within a rebalance, say) a first epoch has to
        // begin.
        let metadata_hash = match group.is_covered_by(&members, context.topics) {
            true => group.metadata_hash(context.topics),
            false => 0,
        };
        let epoch = GroupEpoch {
            epoch: classic.generation_id(),
            metadata_hash,
        };
        let record = Record::ConsumerGroupMetadata {
            group: id(),
            value: Some(epoch),
        };
        group.emit(record, context);
        for member in &members {
            let record = Record::ConsumerGroupTargetAssignmentMember {
                group: id(),
                member: member.member_id.clone(),
                value: Some(member.assigned()),
            };
            group.emit(record, context);
        }
        group.set_target_epoch(TimestampMs(0), context);
        for member in members {
            let record = Record::ConsumerGroupCurrentMemberAssignment {
                group: id(),
                member: member.member_id.clone(),
                value: Some(member.current),
            };
            group.emit(record, context);
            group.restart_session(&member.member_id, context);
        }
        Some(group)
    }

    /// Whether `members` have been assigned as many partitions as there are.
    fn is_covered_by(&self, members: &[ConsumerMember], topics: &dyn Topics) -> bool {
        let assigned = members.iter().flat_map(|m| m.current.assigned.values());
        let assigned: usize = assigned.map(BTreeMap::len).sum();
        let existing = Self::existing(&self.subscribed_names(), topics);
        let partitions: i64 = existing.values().map(|count| i64::from(*count)).sum();
        assigned as i64 == partitions
    }

    /// Whether without `member_id` only classic members would be left, and may be.
    pub fn has_to_downgrade(&self, member_id: &str, context: &Context<'_>) -> bool {
        let mut others = self.members.values().filter(|m| *m.member_id != *member_id);
        let left = self.members.len() - usize::from(self.members.contains_key(member_id));
        left > 0
            && left <= context.config.group_max_size
            && context.config.consumer_migration_policy.may_downgrade()
            && others.all(ConsumerMember::uses_classic_protocol)
    }

    /// The classic group of all members but `leaving`, as of the group's epoch.
    pub fn to_classic(&self, leaving: Option<&str>, context: &mut Context<'_>) -> ClassicGroup {
        let mut group = ClassicGroup::new(self.group_id.clone(), context.now);
        for record in self.tombstones() {
            context.append(record);
        }
        for member in self.members.values() {
            let Some(classic) = &member.metadata.classic else {
                continue;
            };
            if Some(&*member.member_id) == leaving {
                continue;
            }
            let protocols = classic.supported_protocols.iter();
            let protocols = protocols.map(|(name, metadata)| Protocol {
                name: name.clone(),
                metadata: metadata.clone(),
            });
            let client = Client {
                client_id: member.metadata.client_id.clone(),
                client_host: member.metadata.client_host.clone(),
            };
            group.add_migrated(
                member.member_id.clone(),
                member.metadata.instance_id.clone(),
                client,
                (
                    member.metadata.rebalance_timeout_ms,
                    classic.session_timeout_ms,
                ),
                protocols.collect(),
            );
        }
        group.finish_migration(self.epoch.epoch, |member_id, metadata| {
            let target = self.target.get(member_id).cloned().unwrap_or_default();
            let named = target.into_iter().filter_map(|(id, partitions)| {
                let topic = context.topics.by_id(id)?;
                Some((topic.name.to_string(), partitions))
            });
            let version = Subscription::decode(metadata).map_or(0, |s| s.version);
            encode_assignment(version, &named.collect())
        });
        context.append(group.record());
        group
    }
}

/// A classic member as a member of the consumer group.
fn upgraded(
    member: &ClassicMember,
    group: &ClassicGroup,
    topics: &dyn Topics,
) -> Option<ConsumerMember> {
    let view = member.migrated(group.protocol_name_or_candidate()?);
    let subscription = Subscription::decode(&view.metadata).ok()?;
    let generation = group.generation_id();
    let mut names = subscription.topics;
    names.sort();
    names.dedup();
    Some(ConsumerMember {
        member_id: view.member_id,
        metadata: MemberMetadataValue {
            instance_id: view.group_instance_id,
            rack_id: subscription.rack_id,
            client_id: view.client.client_id,
            client_host: view.client.client_host,
            subscribed_topic_names: names,
            subscribed_topic_regex: Some(String::new()),
            rebalance_timeout_ms: view.rebalance_timeout_ms,
            server_assignor: None,
            classic: Some(ClassicMemberMetadata {
                session_timeout_ms: view.session_timeout_ms,
                supported_protocols: view
                    .protocols
                    .into_iter()
                    .map(|p| (p.name, p.metadata))
                    .collect(),
            }),
        },
        current: CurrentAssignmentValue {
            member_epoch: generation,
            previous_member_epoch: generation,
            state: MemberState::Stable,
            assigned: assigned_by_id(&view.assignment, generation, topics)?,
            pending_revocation: BTreeMap::new(),
        },
    })
}

/// An assignment by names as one by ids; topics that are gone are left out.
fn assigned_by_id(
    assignment: &[u8],
    epoch: i32,
    topics: &dyn Topics,
) -> Option<AssignedPartitions> {
    let mut assigned = AssignedPartitions::new();
    // A member that was never assigned anything has no bytes at all.
    if assignment.is_empty() {
        return Some(assigned);
    }
    for (name, partitions) in decode_assignment(assignment).ok()? {
        if let Some(topic) = topics.by_name(&name) {
            let partitions = partitions.into_iter().map(|p| (p, epoch));
            assigned.entry(topic.id).or_default().extend(partitions);
        }
    }
    Some(assigned)
}
