//! A member of a classic group.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::machine::group::MemberId;
use crate::machine::group::command::{Client, DescribedMember, JoinGroupMember, Protocol, Token};

#[derive(Debug, Clone)]
pub struct ClassicMember {
    pub(super) member_id: MemberId,
    pub(super) group_instance_id: Option<String>,
    pub(super) client: Client,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    /// In the member's order of preference.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// The JoinGroup request that waits for the join phase to end.
    pub(super) awaiting_join: Option<Token>,
    /// The SyncGroup request that waits for the leader's assignment.
    pub(super) awaiting_sync: Option<Token>,
    /// It has never seen a generation: its session can expire while it waits, so that members
    /// which join again and again without staying do not pile up (KAFKA-2687).
    pub(super) is_new: bool,
}

impl ClassicMember {
    pub(super) fn is_static(&self) -> bool {
        self.group_instance_id.is_some()
    }

    /// What the member said for `protocol`; empty if it does not support it.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|p| p.name == protocol);
        found.map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// The candidate that the member likes best.
    pub(super) fn vote<'a>(&'a self, candidates: &BTreeSet<&str>) -> Option<&'a str> {
        let mut names = self.protocols.iter().map(|p| p.name.as_str());
        names.find(|name| candidates.contains(name))
    }

    /// A waiting request is as good as a heartbeat, except from a member that is new.
    pub(super) fn has_satisfied_heartbeat(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    pub(super) fn in_join_reply(&self, protocol: &str) -> JoinGroupMember {
        JoinGroupMember {
            member_id: self.member_id.clone(),
            group_instance_id: self.group_instance_id.clone(),
            metadata: self.metadata(protocol),
        }
    }

    pub(super) fn describe(&self, protocol: Option<&str>) -> DescribedMember {
        DescribedMember {
            member_id: self.member_id.clone(),
            group_instance_id: self.group_instance_id.clone(),
            client: self.client.clone(),
            metadata: protocol.map(|p| self.metadata(p)).unwrap_or_default(),
            assignment: self.assignment.clone(),
        }
    }
}
