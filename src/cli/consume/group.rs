//! Membership in a consumer group; what is said here is the classic protocol's.
//!
//! ```text
//!            join                sync                  heartbeat: rebalance in progress
//! outside ---------> joining ---------> member --------------------------------+
//!    ^                  ^                  |                                    |
//!    +-- unknown member +------------------+------------------------------------+
//! ```
//!
//! 1. Offsets are committed before a member joins again, and when it leaves.
//! 2. A heartbeat is sent whenever one is due while records are waited for; the tasks of a command
//!    never hold a record for longer than that.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::join_group_response::JoinGroupResponse;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::cli::admin::{AdminError, Answer, text};
use crate::types::ErrorCode;

use super::assignor;
use super::protocol::{Assignment, Subscription};
use super::{Consumer, GroupProtocol, Reset, Start, no_offset};
use crate::cli::admin::OffsetSpec;

const PROTOCOL: &str = "range";

/// What a member wants and where it stands.
pub struct Membership {
    pub group: String,
    pub topics: Vec<String>,
    pub(super) member_id: String,
    /// The epoch, with `group.protocol=consumer`.
    pub(super) generation: i32,
    pub(super) is_joined: bool,
    pub(super) last_heartbeat: Duration,
    pub(super) last_commit: Duration,
    /// What the group asks for, with `group.protocol=consumer`.
    pub(super) heartbeat_interval: Duration,
}

impl Membership {
    pub fn new(group: &str, topics: Vec<String>) -> Membership {
        Membership {
            group: group.to_owned(),
            topics,
            member_id: String::new(),
            generation: -1,
            is_joined: false,
            last_heartbeat: Duration::ZERO,
            last_commit: Duration::ZERO,
            heartbeat_interval: Duration::ZERO,
        }
    }

    pub(super) fn group_id(&self) -> GroupId {
        GroupId(text(&self.group))
    }

    pub(super) fn forget(&mut self) {
        self.member_id.clear();
        self.generation = -1;
        self.is_joined = false;
    }
}

/// What [`Consumer::keep_membership`] has done.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    Same,
    /// Partitions were given anew.
    Rebalanced,
}

impl Consumer {
    /// Joins if need be, heartbeats and commits when they are due.
    pub async fn keep_membership(&mut self, member: &mut Membership) -> Answer<Kept> {
        if member.is_joined {
            let now = self.admin.client.elapsed();
            if let Some(interval) = self.config.auto_commit
                && now >= member.last_commit + interval
            {
                self.commit(member).await?;
            }
        }
        if let GroupProtocol::Consumer { assignor } = self.config.group_protocol.clone() {
            return self.keep_place(member, assignor.as_deref()).await;
        }
        if member.is_joined {
            let now = self.admin.client.elapsed();
            if now >= member.last_heartbeat + self.config.heartbeat_interval {
                self.heartbeat(member).await?;
            }
        }
        match member.is_joined {
            true => Ok(Kept::Same),
            false => {
                self.join(member).await?;
                Ok(Kept::Rebalanced)
            }
        }
    }

    async fn heartbeat(&mut self, member: &mut Membership) -> Answer<()> {
        let request = HeartbeatRequest::default()
            .with_group_id(member.group_id())
            .with_generation_id(member.generation)
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(self.instance_id());
        let answer = self
            .admin
            .coordinator("heartbeat", &member.group, &request, |a| a.error_code)
            .await?;
        member.last_heartbeat = self.admin.client.elapsed();
        let error = ErrorCode::from_code(answer.error_code);
        match error.unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => {}
            ErrorCode::RebalanceInProgress => {
                if self.config.auto_commit.is_some() {
                    self.commit(member).await?;
                }
                member.is_joined = false;
            }
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => member.forget(),
            error => return Err(AdminError::answer(error, None)),
        }
        Ok(())
    }

    async fn join(&mut self, member: &mut Membership) -> Answer<()> {
        loop {
            let joined = self.send_join(member).await?;
            let error = ErrorCode::from_code(joined.error_code);
            match error.unwrap_or(ErrorCode::UnknownServerError) {
                ErrorCode::None => {}
                ErrorCode::MemberIdRequired => {
                    member.member_id = joined.member_id.to_string();
                    continue;
                }
                ErrorCode::UnknownMemberId => {
                    member.forget();
                    continue;
                }
                ErrorCode::RebalanceInProgress => continue,
                error => return Err(AdminError::answer(error, None)),
            }
            member.member_id = joined.member_id.to_string();
            member.generation = joined.generation_id;
            match self.sync(member, &joined).await {
                Ok(assignment) => {
                    member.is_joined = true;
                    let now = self.admin.client.elapsed();
                    (member.last_heartbeat, member.last_commit) = (now, now);
                    return self.take_assignment(member, assignment).await;
                }
                Err(AdminError::Answer {
                    error: ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration,
                    ..
                }) => {}
                Err(AdminError::Answer {
                    error: ErrorCode::UnknownMemberId,
                    ..
                }) => member.forget(),
                Err(error) => return Err(error),
            }
        }
    }

    async fn send_join(&self, member: &Membership) -> Answer<JoinGroupResponse> {
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let mut topics = member.topics.clone();
        topics.sort();
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(StrBytes::from_static_str(PROTOCOL))
            .with_metadata(Subscription { topics }.to_bytes());
        let request = JoinGroupRequest::default()
            .with_group_id(member.group_id())
            .with_session_timeout_ms(millis(self.config.session_timeout))
            .with_rebalance_timeout_ms(millis(self.config.max_poll_interval))
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(self.instance_id())
            .with_protocol_type(StrBytes::from_static_str("consumer"))
            .with_protocols(vec![protocol]);
        // A join waits for the other members to join as well.
        self.admin
            .coordinator_within(
                self.config.max_poll_interval + Duration::from_secs(5),
                "joinGroup",
                &member.group,
                &request,
                |answer: &JoinGroupResponse| answer.error_code,
            )
            .await
    }

    async fn sync(&self, member: &Membership, joined: &JoinGroupResponse) -> Answer<Assignment> {
        let assignments = match joined.leader.as_str() == member.member_id {
            true => self.plan(joined).await?,
            false => Vec::new(),
        };
        let request = SyncGroupRequest::default()
            .with_group_id(member.group_id())
            .with_generation_id(member.generation)
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(self.instance_id())
            .with_protocol_type(Some(StrBytes::from_static_str("consumer")))
            .with_protocol_name(joined.protocol_name.clone())
            .with_assignments(assignments);
        let answer = self
            .admin
            .coordinator_within(
                self.config.max_poll_interval + Duration::from_secs(5),
                "syncGroup",
                &member.group,
                &request,
                |answer| answer.error_code,
            )
            .await?;
        crate::cli::admin::check(answer.error_code, None)?;
        let broken = || AdminError::answer(ErrorCode::UnknownServerError, None);
        Assignment::read(&answer.assignment).ok_or_else(broken)
    }

    /// The leader's part: gives every member its partitions.
    async fn plan(&self, joined: &JoinGroupResponse) -> Answer<Vec<SyncGroupRequestAssignment>> {
        let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for member in &joined.members {
            let subscription = Subscription::read(&member.metadata).unwrap_or_default();
            members.insert(member.member_id.to_string(), subscription.topics);
        }
        let mut topics: Vec<&str> = members.values().flatten().map(String::as_str).collect();
        topics.sort_unstable();
        topics.dedup();
        let view = self.admin.client.metadata(Some(&topics)).await;
        let view = view.map_err(|source| AdminError::peer("metadata", source))?;
        let counts: BTreeMap<String, usize> = view
            .topics
            .into_iter()
            .map(|(name, topic)| (name, topic.partitions.len()))
            .filter(|(_, count)| *count > 0)
            .collect();
        let row = |(member, assignment): (String, Assignment)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(&member))
                .with_assignment(assignment.to_bytes())
        };
        let plan = assignor::range(&members, &counts);
        Ok(plan.into_iter().map(row).collect())
    }

    /// Starts to read what was given, from the committed offsets.
    async fn take_assignment(&mut self, member: &Membership, given: Assignment) -> Answer<()> {
        let mut partitions = Vec::new();
        for (topic, indexes) in given.partitions {
            partitions.extend(indexes.into_iter().map(|index| (topic.clone(), index)));
        }
        let starts = self.starts(member, partitions).await?;
        self.assign(starts).await
    }

    /// Where reading of partitions begins: at what the group has committed, if it has.
    pub(super) async fn starts(
        &self,
        member: &Membership,
        partitions: Vec<(String, i32)>,
    ) -> Answer<Vec<((String, i32), Start)>> {
        let committed = self
            .admin
            .group_offsets(&member.group, Some(&partitions))
            .await?;
        let mut starts = Vec::new();
        for partition in partitions {
            let offset = committed.get(&partition).map_or(-1, |row| row.offset);
            let start = match (offset, self.config.reset) {
                (0.., _) => Start::Offset(offset),
                (_, Reset::Earliest) => Start::Time(OffsetSpec::EARLIEST),
                (_, Reset::Latest) => Start::Time(OffsetSpec::LATEST),
                (_, Reset::None) => return Err(no_offset(&partition)),
            };
            starts.push((partition, start));
        }
        Ok(starts)
    }

    /// Commits the positions of all partitions.
    pub async fn commit(&mut self, member: &mut Membership) -> Answer<()> {
        let positions = self.positions();
        member.last_commit = self.admin.client.elapsed();
        if positions.is_empty() {
            return Ok(());
        }
        let identity = (member.generation, member.member_id.as_str());
        let committed = self
            .admin
            .commit_offsets(&member.group, identity, self.instance_id(), &positions)
            .await;
        match committed {
            // The group has moved on; the next heartbeat says how.
            Err(AdminError::Answer {
                error:
                    ErrorCode::RebalanceInProgress
                    | ErrorCode::IllegalGeneration
                    | ErrorCode::UnknownMemberId
                    | ErrorCode::StaleMemberEpoch
                    | ErrorCode::FencedMemberEpoch,
                ..
            }) => Ok(()),
            other => other,
        }
    }

    /// Commits and leaves.
    pub async fn leave(&mut self, member: &mut Membership) -> Answer<()> {
        if !member.is_joined {
            return Ok(());
        }
        if self.config.auto_commit.is_some() {
            self.commit(member).await?;
        }
        if self.config.group_protocol != GroupProtocol::Classic {
            return self.give_up_place(member).await;
        }
        // A static member keeps its place until its session ends.
        if self.config.instance_id.is_none() {
            let identity = MemberIdentity::default().with_member_id(text(&member.member_id));
            let request = LeaveGroupRequest::default()
                .with_group_id(member.group_id())
                .with_members(vec![identity]);
            let group = &member.group;
            self.admin
                .coordinator("leaveGroup", group, &request, |a| a.error_code)
                .await?;
        }
        member.forget();
        Ok(())
    }

    pub(super) fn instance_id(&self) -> Option<StrBytes> {
        self.config.instance_id.as_deref().map(text)
    }
}
