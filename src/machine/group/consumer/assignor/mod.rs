//! Server-side assignors: who gets which partitions. Each is a pure function of the members, what
//! they subscribe to, and what they had.

mod range;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::group::MemberId;
use crate::machine::group::records::TopicPartitions;
use crate::types::TopicId;

/// A member as an assignor sees it.
#[derive(Debug, Clone)]
pub struct AssignorMember {
    pub member_id: MemberId,
    pub instance_id: Option<String>,
    /// Topics that exist.
    pub topics: BTreeSet<TopicId>,
    /// Its target before.
    pub previous: TopicPartitions,
}

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
    /// number of partitions of each.
    pub fn assign(self, members: &[AssignorMember], topics: &BTreeMap<TopicId, i32>) -> Assignment {
        match self {
            Assignor::Uniform => uniform::assign(members, topics),
            Assignor::Range => range::assign(members, topics),
        }
    }
}
