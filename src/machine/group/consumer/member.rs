//! A member of a consumer group, and its way to its target: the reconciliation of KIP-848.
//!
//! ```text
//!            target changed,               given back, or never had
//!            has to give some back         +--------------------------+
//!   Stable -----------------------> UnrevokedPartitions               |
//!     |  ^                                                            v
//!     |  | others have given back                     next epoch: all free ones, Stable if
//!     |  +---------- UnreleasedPartitions <---------- none is missing
//!     +-------------------^  gains partitions that others still have
//! ```
//!
//! 1. A member's epoch grows only when it has given back what it must: from then on the coordinator
//!    knows that it does not touch those partitions.
//! 2. A partition is given to a member only when nobody else has it, or still has to give it back.

use std::collections::BTreeMap;

use crate::machine::group::MemberId;
use crate::machine::group::records::{
    AssignedPartitions, CurrentAssignmentValue, MemberMetadataValue, MemberState, TopicPartitions,
};
use crate::types::TopicId;

/// A static member that will be back (KIP-848): it has left, its partitions wait for it.
pub const LEAVE_GROUP_STATIC_MEMBER_EPOCH: i32 = -2;
pub const LEAVE_GROUP_MEMBER_EPOCH: i32 = -1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMember {
    pub member_id: MemberId,
    pub metadata: MemberMetadataValue,
    pub current: CurrentAssignmentValue,
}

impl ConsumerMember {
    pub fn uses_classic_protocol(&self) -> bool {
        self.metadata.classic.is_some()
    }

    pub fn is_reconciled_to(&self, epoch: i32) -> bool {
        self.current.state == MemberState::Stable && self.current.member_epoch == epoch
    }

    /// What it may use: assigned, without the epochs.
    pub fn assigned(&self) -> TopicPartitions {
        without_epochs(&self.current.assigned)
    }

    /// What it may still be using: assigned, and to be given back.
    pub fn held(&self) -> TopicPartitions {
        let mut held = self.assigned();
        for (topic, partitions) in without_epochs(&self.current.pending_revocation) {
            let all: &mut Vec<i32> = held.entry(topic).or_default();
            all.extend(partitions);
            all.sort_unstable();
        }
        held
    }

    /// Whether everything in `owned` is assigned to it.
    pub fn is_assigned(&self, owned: &TopicPartitions) -> bool {
        owned.iter().all(|(topic, partitions)| {
            let assigned = self.current.assigned.get(topic);
            partitions
                .iter()
                .all(|p| assigned.is_some_and(|a| a.contains_key(p)))
        })
    }
}

pub fn without_epochs(assigned: &AssignedPartitions) -> TopicPartitions {
    let topics = assigned.iter();
    topics
        .map(|(topic, partitions)| (*topic, partitions.keys().copied().collect()))
        .collect()
}

pub fn joining(member_id: MemberId, metadata: MemberMetadataValue) -> ConsumerMember {
    ConsumerMember {
        member_id,
        metadata,
        current: no_assignment(),
    }
}

/// Of a member that has not been assigned anything yet.
pub fn no_assignment() -> CurrentAssignmentValue {
    CurrentAssignmentValue {
        member_epoch: 0,
        previous_member_epoch: 0,
        state: MemberState::Stable,
        assigned: BTreeMap::new(),
        pending_revocation: BTreeMap::new(),
    }
}

/// The next step of a member towards its target.
pub struct Reconciliation<'a> {
    pub current: &'a CurrentAssignmentValue,
    pub target_epoch: i32,
    /// Ascending.
    pub target: &'a TopicPartitions,
    /// What the member says it has; `None`: it did not say.
    pub owned: Option<&'a TopicPartitions>,
    /// Whether a partition is free for this member to take.
    pub is_free: &'a dyn Fn(TopicId, i32) -> bool,
    /// Whether it subscribes to a topic (that exists).
    pub is_subscribed: &'a dyn Fn(TopicId) -> bool,
    /// It subscribes to other topics than before: what it lost goes now, before any new target.
    pub subscription_changed: bool,
}

impl Reconciliation<'_> {
    pub fn next(&self) -> CurrentAssignmentValue {
        let epoch = self.current.member_epoch;
        match self.current.state {
            MemberState::Stable if epoch == self.target_epoch && !self.subscription_changed => {
                self.current.clone()
            }
            MemberState::UnrevokedPartitions => {
                if self.still_owns(&self.current.pending_revocation) {
                    return self.revoke_more();
                }
                self.compute(epoch)
            }
            _ => self.compute(epoch),
        }
    }

    /// While partitions are being given back, a changed subscription adds to them; a new target
    /// has to wait.
    fn revoke_more(&self) -> CurrentAssignmentValue {
        let mut next = self.current.clone();
        if !self.subscription_changed {
            return next;
        }
        next.assigned.clear();
        for (topic, partitions) in &self.current.assigned {
            for (partition, epoch) in partitions {
                let side = match (self.is_subscribed)(*topic) {
                    true => &mut next.assigned,
                    false => &mut next.pending_revocation,
                };
                side.entry(*topic).or_default().insert(*partition, *epoch);
            }
        }
        next
    }

    fn is_target(&self, topic: TopicId, partition: i32) -> bool {
        let partitions = self.target.get(&topic);
        partitions.is_some_and(|p| p.binary_search(&partition).is_ok())
    }

    /// A member that does not say what it owns may own all of it.
    fn still_owns(&self, partitions: &AssignedPartitions) -> bool {
        let Some(owned) = self.owned else {
            return true;
        };
        owned.iter().any(|(topic, owned)| {
            let pending = partitions.get(topic);
            owned
                .iter()
                .any(|p| pending.is_some_and(|pending| pending.contains_key(p)))
        })
    }

    fn compute(&self, epoch: i32) -> CurrentAssignmentValue {
        let mut kept = AssignedPartitions::new();
        let mut revoked = AssignedPartitions::new();
        for (topic, partitions) in &self.current.assigned {
            for (partition, since) in partitions {
                let side = match self.is_target(*topic, *partition) {
                    true => &mut kept,
                    false => &mut revoked,
                };
                side.entry(*topic).or_default().insert(*partition, *since);
            }
        }
        if !revoked.is_empty() && self.still_owns(&revoked) {
            return CurrentAssignmentValue {
                member_epoch: epoch,
                previous_member_epoch: self.current.member_epoch,
                state: MemberState::UnrevokedPartitions,
                assigned: kept,
                pending_revocation: revoked,
            };
        }
        let mut missing = false;
        for (topic, partitions) in self.target {
            for partition in partitions {
                let has = kept.get(topic).is_some_and(|p| p.contains_key(partition));
                if has {
                    continue;
                }
                if (self.is_free)(*topic, *partition) {
                    let assigned = kept.entry(*topic).or_default();
                    assigned.insert(*partition, self.target_epoch);
                } else {
                    missing = true;
                }
            }
        }
        CurrentAssignmentValue {
            member_epoch: self.target_epoch,
            previous_member_epoch: self.current.member_epoch,
            state: match missing {
                true => MemberState::UnreleasedPartitions,
                false => MemberState::Stable,
            },
            assigned: kept,
            pending_revocation: AssignedPartitions::new(),
        }
    }
}
