//! Server-side assignors: who gets which partitions. Each is a pure function of the members, what
//! they subscribe to, and what they had.

mod owners;
mod range;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::group::MemberId;
use crate::machine::group::records::TopicPartitions;
use crate::types::TopicId;
use owners::Owners;

/// A member as an assignor sees it.
#[derive(Debug, Clone, Copy)]
pub struct AssignorMember<'a> {
    pub member_id: &'a MemberId,
    pub instance_id: Option<&'a str>,
    /// Topics that exist. Members with the same subscription have the very same set.
    pub topics: &'a BTreeSet<TopicId>,
    /// Its target before; `None` if it never had one.
    pub previous: Option<&'a TopicPartitions>,
}

/// Members whose partitions are not what they had before.
pub type Assignment = BTreeMap<MemberId, TopicPartitions>;

/// The assignors by the names that members choose them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    Uniform,
    Range,
}

impl Assignor {
    pub fn by_name(name: &str) -> Option<Assignor> {
        match name {
            "uniform" => Some(Assignor::Uniform),
            "range" => Some(Assignor::Range),
            _ => None,
        }
    }

    /// Every partition of a topic goes to one of the members that subscribe to it. `topics` has the
    /// number of partitions of each topic that somebody subscribes to.
    pub fn assign(
        self,
        members: &[AssignorMember<'_>],
        topics: &BTreeMap<TopicId, i32>,
    ) -> Assignment {
        match self {
            Assignor::Uniform => uniform::assign(members, topics),
            Assignor::Range => range::assign(members, topics),
        }
    }
}
