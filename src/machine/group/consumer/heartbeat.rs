//! ConsumerGroupHeartbeat: a member joins, says what it wants and has, is told what to do, leaves.

use super::member::ConsumerMember;
use super::*;
use crate::machine::group::command::{ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply};

/// What can be refused without looking at a group.
pub fn validate(request: &ConsumerGroupHeartbeat, assignors: &[String]) -> Result<(), Refused> {
    let invalid = |message: &str| refused(ErrorCode::InvalidRequest, message);
    let is_empty = |text: &Option<String>| text.as_deref().is_some_and(is_blank);
    if is_blank(&request.group) {
        return invalid("GroupId can't be empty.");
    }
    if is_empty(&request.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if is_empty(&request.rack_id) {
        return invalid("RackId can't be empty.");
    }
    let may_lack_id = request.generates_member_id && request.member_epoch == 0;
    if is_blank(&request.member_id) && !may_lack_id {
        return invalid("MemberId can't be empty.");
    }
    match request.member_epoch {
        0 => {
            if request.rebalance_timeout_ms == -1 {
                return invalid("RebalanceTimeoutMs must be provided in first request.");
            }
            if request.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
                return invalid("TopicPartitions must be empty when (re-)joining.");
            }
            if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none()
            {
                return invalid(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when \
                     (re-)joining.",
                );
            }
        }
        LEAVE_GROUP_STATIC_MEMBER_EPOCH if request.instance_id.is_none() => {
            return invalid("InstanceId can't be null.");
        }
        1.. | LEAVE_GROUP_MEMBER_EPOCH | LEAVE_GROUP_STATIC_MEMBER_EPOCH => {}
        _ => return invalid("MemberEpoch is invalid."),
    }
    if let Some(assignor) = &request.server_assignor
        && !assignors.contains(assignor)
    {
        return refused(
            ErrorCode::UnsupportedAssignor,
            format!(
                "ServerAssignor {assignor} is not supported. Supported assignors: {}.",
                assignors.join(", ")
            ),
        );
    }
    Ok(())
}

/// As Java's `trim` sees it.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c <= ' ')
}

impl ConsumerGroup {
    /// A heartbeat with an epoch of 0 (it joins) or more.
    pub fn heartbeat(
        &mut self,
        request: &ConsumerGroupHeartbeat,
        context: &mut Context<'_>,
    ) -> Result<ConsumerGroupHeartbeatReply, Refused> {
        let member_id = &request.member_id;
        self.has_room_for(member_id, context)?;
        let replaced = self.validate_member(request)?;
        let regex = request.subscribed_topic_regex.as_deref();
        if let Some(regex) = regex.filter(|r| !r.is_empty() && !self.regexes.contains_key(*r)) {
            subscription::compile(regex)?;
        }
        if let Some(old_id) = replaced {
            self.replace_member(&old_id, member_id, context);
        }
        let before = self.member_or_new(member_id);
        let metadata = updated_metadata(&before.metadata, request);
        let changes = self.update_metadata(&before, metadata, context);
        self.bump_epoch(changes.subscription || changes.assignor, context);
        self.update_target(context);
        let owned = request.owned.as_ref();
        self.reconcile(member_id, owned, changes.subscription, context);
        for kind in [TimerKind::ConsumerJoin, TimerKind::ConsumerSync] {
            // It may have been a classic member until now.
            context.cancel_timer(&self.group_id, kind(member_id.clone()));
        }
        self.restart_session(member_id, context);
        let member = &self.members[member_id];
        let subscribes = request.subscribed_topic_names.is_some() || regex.is_some();
        let is_full = request.member_epoch == 0
            || (request.rebalance_timeout_ms != -1 && subscribes && request.owned.is_some());
        let assigned = member.assigned();
        Ok(ConsumerGroupHeartbeatReply {
            error: ErrorCode::None,
            error_message: None,
            member_id: Some(member_id.clone()),
            member_epoch: member.current.member_epoch,
            heartbeat_interval_ms: context.config.heartbeat_interval_ms(&self.group_id),
            assignment: (is_full || assigned != before.assigned()).then_some(assigned),
        })
    }

    /// Whether the member is who it says and where it says; the id it takes the place of, if any.
    fn validate_member(
        &self,
        request: &ConsumerGroupHeartbeat,
    ) -> Result<Option<MemberId>, Refused> {
        let member_id = &request.member_id;
        let joins = request.member_epoch == 0;
        let Some(instance) = request.instance_id.as_deref() else {
            if joins {
                return Ok(None);
            }
            validate_epoch(self.member(member_id)?, request)?;
            return Ok(None);
        };
        if !joins {
            validate_epoch(self.static_member(instance, member_id)?, request)?;
            return Ok(None);
        }
        let Some(current) = self.static_members.get(instance) else {
            return Ok(None);
        };
        let member = self.member(current)?;
        let released = member.current.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH;
        if !released && !member.uses_classic_protocol() {
            return refused(
                ErrorCode::UnreleasedInstanceId,
                format!(
                    "Static member {member_id} with instance id {instance} cannot join the group \
                     because the instance id is owned by {current} member."
                ),
            );
        }
        Ok(Some(current.clone()))
    }

    /// A static member goes and will be back: its partitions wait for it.
    pub fn leave_for_a_while(&mut self, member_id: &MemberId, context: &mut Context<'_>) {
        let mut current = self.members[member_id].current.clone();
        current.member_epoch = LEAVE_GROUP_STATIC_MEMBER_EPOCH;
        current.pending_revocation.clear();
        // Whoever takes it over may commit what was consumed before.
        for epoch in current.assigned.values_mut().flat_map(|p| p.values_mut()) {
            *epoch = 0;
        }
        let kind = TimerKind::ConsumerRebalance(member_id.clone());
        context.cancel_timer(&self.group_id, kind);
        let record = Record::ConsumerGroupCurrentMemberAssignment {
            group: self.group_id.clone(),
            member: member_id.clone(),
            value: Some(current),
        };
        self.emit(record, context);
    }

    /// The member that wants to leave.
    pub fn leaving_member(&self, request: &ConsumerGroupHeartbeat) -> Result<MemberId, Refused> {
        let member = match request.instance_id.as_deref() {
            None => self.member(&request.member_id)?,
            Some(instance) => self.static_member(instance, &request.member_id)?,
        };
        Ok(member.member_id.clone())
    }
}

/// A member is at its own epoch; or at the one before, if the answer with the new one got lost
/// and it has nothing but what it was assigned.
fn validate_epoch(
    member: &ConsumerMember,
    request: &ConsumerGroupHeartbeat,
) -> Result<(), Refused> {
    let (received, known) = (request.member_epoch, member.current.member_epoch);
    if received == known {
        return Ok(());
    }
    let owned = request.owned.as_ref();
    let lost_answer = received == member.current.previous_member_epoch
        && owned.is_some_and(|owned| member.is_assigned(owned));
    if received < known && lost_answer {
        return Ok(());
    }
    let size = if received > known {
        "greater"
    } else {
        "smaller"
    };
    refused(
        ErrorCode::FencedMemberEpoch,
        format!(
            "The consumer group member has a {size} member epoch ({received}) than the one known \
             by the group coordinator ({known}). The member must abandon all its partitions and \
             rejoin."
        ),
    )
}

/// What the member said before, with what it says now.
fn updated_metadata(
    before: &MemberMetadataValue,
    request: &ConsumerGroupHeartbeat,
) -> MemberMetadataValue {
    let names = request.subscribed_topic_names.clone().map(|mut names| {
        names.sort();
        names.dedup();
        names
    });
    let regex = request.subscribed_topic_regex.clone();
    MemberMetadataValue {
        instance_id: request.instance_id.clone().or(before.instance_id.clone()),
        rack_id: request.rack_id.clone().or(before.rack_id.clone()),
        client_id: request.client.client_id.clone(),
        client_host: request.client.client_host.clone(),
        subscribed_topic_names: names.unwrap_or(before.subscribed_topic_names.clone()),
        subscribed_topic_regex: regex.or(before.subscribed_topic_regex.clone()),
        rebalance_timeout_ms: match request.rebalance_timeout_ms {
            -1 => before.rebalance_timeout_ms,
            timeout_ms => timeout_ms,
        },
        server_assignor: request
            .server_assignor
            .clone()
            .or(before.server_assignor.clone()),
        classic: None,
    }
}
