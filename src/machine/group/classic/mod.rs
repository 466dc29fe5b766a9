//! A classic consumer group: the members elect one protocol, a leader among them assigns.
//!
//! 1. Every request that was parked is answered: by the end of the phase it waits for, by the
//!    member's removal, or by a later request of the same member.
//! 2. The generation never goes back, and grows with each completed join phase.
//! 3. `supported_protocols` counts members per protocol name; a protocol is a candidate if every
//!    member supports it.
//! 4. What is stored is the group as of its last completed rebalance (`image`); everything else
//!    (parked requests, pending members, deadlines) is lost with the coordinator, and clients find
//!    back by themselves. Since the machine is dropped when an append fails, the group is changed
//!    at once and the reply waits for the record.

mod image;
mod join;
mod member;
mod membership;
mod migrate;
mod rebalance;
mod state;
mod sync;

pub use member::ClassicMember;
pub use state::{ClassicState, TRANSITIONS};

use std::collections::{BTreeMap, BTreeSet};

use super::admin::Subscribed;
use super::command::{
    DescribedGroup, Heartbeat, JoinGroup, JoinGroupReply, ListedGroup, Now, Reply, SyncGroup,
    SyncGroupReply, Token,
};
use super::protocol;
use super::timers::TimerKind;
use super::{Context, GroupId, MemberId};
use crate::types::{ErrorCode, TimestampMs};

/// The protocol type of consumers; Connect and others have their own.
pub const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

#[derive(Debug)]
pub struct ClassicGroup {
    pub(super) group_id: GroupId,
    state: ClassicState,
    previous_state: ClassicState,
    generation_id: i32,
    protocol_type: Option<String>,
    protocol_name: Option<String>,
    leader_id: Option<MemberId>,
    members: BTreeMap<MemberId, ClassicMember>,
    static_members: BTreeMap<String, MemberId>,
    /// Ids that were handed out (MEMBER_ID_REQUIRED) and have not come back.
    pending_join: BTreeSet<MemberId>,
    /// Members that have not synced in this generation.
    pending_sync: BTreeSet<MemberId>,
    supported_protocols: BTreeMap<String, usize>,
    awaiting_join_count: usize,
    /// A member came while the initial rebalance was being delayed: it is delayed further.
    new_member_added: bool,
    initial_delay: rebalance::InitialDelay,
    current_state_timestamp: TimestampMs,
    /// `None`: the members' metadata could not be read, or this is no group of consumers.
    subscribed_topics: Option<BTreeSet<String>>,
}

impl ClassicGroup {
    pub fn new(group_id: GroupId, now: Now) -> Self {
        ClassicGroup {
            group_id,
            state: ClassicState::Empty,
            previous_state: ClassicState::Dead,
            generation_id: 0,
            protocol_type: None,
            protocol_name: None,
            leader_id: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            supported_protocols: BTreeMap::new(),
            awaiting_join_count: 0,
            new_member_added: false,
            initial_delay: rebalance::InitialDelay::default(),
            current_state_timestamp: now.wall,
            subscribed_topics: None,
        }
    }

    pub fn state(&self) -> ClassicState {
        self.state
    }

    pub fn generation_id(&self) -> i32 {
        self.generation_id
    }

    pub fn protocol_type(&self) -> Option<&str> {
        self.protocol_type.as_deref()
    }

    pub fn members(&self) -> impl Iterator<Item = &ClassicMember> {
        self.members.values()
    }

    pub fn is_empty(&self) -> bool {
        self.state == ClassicState::Empty
    }

    fn transition_to(&mut self, next: ClassicState, now: Now) {
        assert!(
            self.state.may_become(next),
            "group {}: {:?} may not become {next:?}",
            self.group_id,
            self.state
        );
        self.previous_state = self.state;
        self.state = next;
        self.current_state_timestamp = now.wall;
    }

    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    /// Without knowledge of the subscriptions every topic counts as subscribed.
    pub(super) fn subscribed(&self) -> Subscribed<'_> {
        match &self.subscribed_topics {
            Some(topics) => Subscribed::Names(topics.iter().map(String::as_str).collect()),
            None if self.uses_consumer_protocol() => Subscribed::All,
            None => Subscribed::Names(BTreeSet::new()),
        }
    }

    /// The time from which the group's unused offsets age: `Err` when they do not, `Ok(None)` when
    /// each ages from its own commit.
    pub(super) fn offsets_age_from(&self) -> Result<Option<TimestampMs>, ()> {
        match (&self.protocol_type, self.state) {
            (None, _) => Ok(None),
            (Some(_), ClassicState::Empty) => {
                let since = self.current_state_timestamp;
                Ok((since != TimestampMs::NONE).then_some(since))
            }
            (Some(_), ClassicState::Stable)
                if self.uses_consumer_protocol() && self.subscribed_topics.is_some() =>
            {
                Ok(None)
            }
            _ => Err(()),
        }
    }

    pub(super) fn validate_offset_delete(&self) -> Result<(), ErrorCode> {
        match self.state {
            ClassicState::Dead => Err(ErrorCode::GroupIdNotFound),
            ClassicState::Empty => Ok(()),
            _ if self.uses_consumer_protocol() => Ok(()),
            _ => Err(ErrorCode::NonEmptyGroup),
        }
    }

    /// Whether a commit comes from somebody who may: a member of this generation, or anyone while
    /// nobody is a member.
    pub(super) fn validate_offset_commit(
        &self,
        member_id: &str,
        group_instance_id: Option<&str>,
        generation_id: i32,
        is_transactional: bool,
    ) -> Result<(), ErrorCode> {
        if generation_id < 0 && self.state == ClassicState::Empty {
            return Ok(());
        }
        if generation_id >= 0 || !member_id.is_empty() || group_instance_id.is_some() {
            self.validate_member(member_id, group_instance_id)?;
            if generation_id != self.generation_id {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if !is_transactional && self.state != ClassicState::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        if !is_transactional && self.state == ClassicState::CompletingRebalance {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    pub fn heartbeat(&self, request: &Heartbeat, context: &mut Context<'_>) -> ErrorCode {
        let instance_id = request.group_instance_id.as_deref();
        if let Err(error) = self.validate_member(&request.member_id, instance_id) {
            return error;
        }
        if request.generation_id != self.generation_id {
            return ErrorCode::IllegalGeneration;
        }
        match self.state {
            ClassicState::Empty | ClassicState::Dead => ErrorCode::UnknownMemberId,
            ClassicState::PreparingRebalance => {
                self.restart_session(&request.member_id, context);
                ErrorCode::RebalanceInProgress
            }
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                self.restart_session(&request.member_id, context);
                ErrorCode::None
            }
        }
    }

    /// The member has been heard of: its session starts again.
    pub(super) fn restart_session(&self, member_id: &MemberId, context: &mut Context<'_>) {
        if let Some(member) = self.members.get(member_id) {
            context.set_timer(
                &self.group_id,
                TimerKind::Session(member_id.clone()),
                i64::from(member.session_timeout_ms),
            );
        }
    }

    pub fn describe(&self) -> DescribedGroup {
        let stable = self.state == ClassicState::Stable;
        let protocol = self.protocol_name.as_deref().filter(|_| stable);
        DescribedGroup {
            group: self.group_id.clone(),
            error: ErrorCode::None,
            error_message: None,
            state: self.state.name(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: self
                .members
                .values()
                .map(|m| m.describe(protocol))
                .collect(),
        }
    }

    pub fn state_name(&self) -> &'static str {
        self.state.name()
    }

    pub fn listed(&self) -> ListedGroup {
        ListedGroup {
            group: self.group_id.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            state: self.state.name(),
            group_type: "classic",
        }
    }
}
