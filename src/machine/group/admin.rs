//! What administrators ask of all kinds of groups: describe, list, delete, and expiry.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{DescribedGroup, ListGroups, ListedGroup, Now};
use super::dispatch::Step;
use super::records::Record;
use super::{Group, GroupId, Groups, Output};
use crate::types::{ErrorCode, ProducerId, TimestampMs};

/// The topics that a group uses: their offsets neither expire nor may be deleted.
pub(super) enum Subscribed<'a> {
    /// Not known which.
    All,
    Names(BTreeSet<&'a str>),
}

impl Subscribed<'_> {
    pub(super) fn contains(&self, topic: &str) -> bool {
        match self {
            Subscribed::All => true,
            Subscribed::Names(names) => names.contains(topic),
        }
    }
}

/// How many groups there are, by protocol and state.
pub type GroupStates = BTreeMap<(&'static str, &'static str), usize>;

impl Group {
    fn protocol_and_state(&self) -> (&'static str, &'static str) {
        match self {
            Group::Classic(group) => ("classic", group.state_name()),
            Group::Consumer(group) => ("consumer", group.state_name()),
        }
    }

    fn listed(&self) -> ListedGroup {
        match self {
            Group::Classic(group) => group.listed(),
            Group::Consumer(group) => group.listed(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_empty(),
            Group::Consumer(group) => group.is_empty(),
        }
    }

    pub(super) fn subscribed(&self) -> Subscribed<'_> {
        match self {
            Group::Classic(group) => group.subscribed(),
            Group::Consumer(group) => Subscribed::Names(group.subscribed_names()),
        }
    }

    pub(super) fn validate_offset_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Group::Classic(group) => group.validate_offset_delete(),
            // What is subscribed to is refused topic by topic.
            Group::Consumer(_) => Ok(()),
        }
    }

    fn offsets_age_from(&self) -> Result<Option<TimestampMs>, ()> {
        match self {
            Group::Classic(group) => group.offsets_age_from(),
            Group::Consumer(_) => Ok(None),
        }
    }

    pub(super) fn tombstones(&self, id: &GroupId) -> Vec<Record> {
        match self {
            Group::Classic(_) => vec![Record::GroupMetadata {
                group: id.clone(),
                value: None,
            }],
            Group::Consumer(group) => group.tombstones(),
        }
    }
}

fn not_found(id: &GroupId, why: &str) -> DescribedGroup {
    let message = format!("Group {id} {why}");
    DescribedGroup::failed(id.clone(), ErrorCode::GroupIdNotFound, message)
}

impl Groups {
    /// DescribeGroups, of the classic API.
    pub(super) fn describe(&self, ids: &[GroupId]) -> Vec<DescribedGroup> {
        ids.iter()
            .map(|id| match self.groups.get(id) {
                Some(Group::Classic(group)) => group.describe(),
                Some(Group::Consumer(_)) => not_found(id, "is not a classic group."),
                None => not_found(id, "not found."),
            })
            .collect()
    }

    /// Adds the groups to `states`.
    pub fn count_states(&self, states: &mut GroupStates) {
        for group in self.groups.values() {
            *states.entry(group.protocol_and_state()).or_default() += 1;
        }
    }

    pub(super) fn list(&self, filter: &ListGroups) -> Vec<ListedGroup> {
        let passes = |wanted: &[String], value: &str| {
            wanted.is_empty() || wanted.iter().any(|w| w.eq_ignore_ascii_case(value))
        };
        let listed = self.groups.values().map(Group::listed);
        listed
            .filter(|g| passes(&filter.states, g.state) && passes(&filter.types, g.group_type))
            .collect()
    }

    pub(super) fn delete(
        &mut self,
        ids: &[GroupId],
        step: &mut Step<'_>,
    ) -> Vec<(GroupId, ErrorCode)> {
        let mut results = Vec::new();
        for id in ids {
            let error = match self.groups.get(id) {
                None => ErrorCode::GroupIdNotFound,
                Some(group) if !group.is_empty() => ErrorCode::NonEmptyGroup,
                Some(group) => {
                    let mut records = self.offsets.plan_delete_all(id);
                    records.extend(group.tombstones(id));
                    self.emit(records, ProducerId::NONE, &mut step.output);
                    ErrorCode::None
                }
            };
            results.push((id.clone(), error));
        }
        results
    }

    /// Takes back what has not been used for the retention time, and groups nothing is left of.
    pub(super) fn expire_offsets(&mut self, now: Now, output: &mut Output) {
        let mut records = Vec::new();
        for (id, group) in &self.groups {
            let Ok(age_from) = group.offsets_age_from() else {
                continue;
            };
            let (expired, nothing_left) = self.offsets.plan_expire(
                id,
                age_from,
                &group.subscribed(),
                now.wall,
                self.config.offsets_retention_ms,
            );
            records.extend(expired);
            if nothing_left && group.is_empty() {
                records.extend(group.tombstones(id));
            }
        }
        output.is_divisible = true;
        self.emit(records, ProducerId::NONE, output);
        self.arm_offset_expiry(now);
    }
}
