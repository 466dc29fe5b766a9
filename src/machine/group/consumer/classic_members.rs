//! Members that speak the classic protocol to a consumer group, while a group is being migrated:
//! JoinGroup and SyncGroup are their heartbeats' two halves, a generation is a member epoch, and
//! "rebalance in progress" is how they learn that something has changed.

use super::*;
use crate::machine::group::classic::CONSUMER_PROTOCOL_TYPE;
use crate::machine::group::command::{
    Heartbeat, JoinGroup, JoinGroupReply, LeaveGroup, LeaveGroupReply, MemberIdentity, SyncGroup,
    SyncGroupReply,
};
use crate::machine::group::protocol::{Subscription, encode_assignment};
use crate::machine::group::records::ClassicMemberMetadata;
use crate::types::base64_uuid;

impl ConsumerGroup {
    /// JoinGroup. `Ok` may still be an error to the client (MEMBER_ID_REQUIRED).
    pub fn classic_join(
        &mut self,
        request: &JoinGroup,
        context: &mut Context<'_>,
    ) -> Result<JoinGroupReply, Refused> {
        let is_unknown = request.member_id.is_empty();
        let member_id: MemberId = match is_unknown {
            true => base64_uuid(request.random_id).into(),
            false => request.member_id.clone(),
        };
        self.has_room_for(&member_id, context)?;
        self.validate_protocols(request)?;
        let instance = request.group_instance_id.as_deref();
        if is_unknown && instance.is_none() && request.requires_known_member_id {
            let error = ErrorCode::MemberIdRequired;
            return Ok(JoinGroupReply::failed(member_id, error));
        }
        let subscription = Subscription::decode(&request.protocols[0].metadata)
            .or_else(|_| unsupported_protocols(request))?;
        if let Some(instance) = instance {
            let current = self.static_members.get(instance).cloned();
            match current {
                Some(old_id) if is_unknown => self.replace_member(&old_id, &member_id, context),
                _ if is_unknown => {}
                _ => {
                    self.static_member(instance, &member_id)?;
                }
            }
        }
        let before = self.member_or_new(&member_id);
        let metadata = classic_metadata(&before.metadata, request, &subscription);
        let changes = self.update_metadata(&before, metadata, context);
        self.bump_epoch(changes.subscription || changes.assignor, context);
        self.update_target(context);
        let owned = owned_partitions(&subscription, context);
        self.reconcile(&member_id, Some(&owned), changes.subscription, context);
        self.restart_session(&member_id, context);
        let join = TimerKind::ConsumerJoin(member_id.clone());
        context.cancel_timer(&self.group_id, join);
        let sync = TimerKind::ConsumerSync(member_id.clone());
        let timeout_ms = i64::from(request.rebalance_timeout_ms);
        context.set_timer(&self.group_id, sync, timeout_ms);
        let member = &self.members[&member_id];
        Ok(JoinGroupReply {
            error: ErrorCode::None,
            generation_id: member.current.member_epoch,
            protocol_type: Some(CONSUMER_PROTOCOL_TYPE.to_owned()),
            protocol_name: request.protocols.first().map(|p| p.name.clone()),
            // Nobody leads: the coordinator assigns.
            leader: String::new(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        })
    }

    /// One of the member's protocols has to be common to all classic members, what this one said
    /// before included.
    fn validate_protocols(&self, request: &JoinGroup) -> Result<(), Refused> {
        let classic = self
            .members
            .values()
            .filter_map(|m| m.metadata.classic.as_ref());
        let members: Vec<&ClassicMemberMetadata> = classic.collect();
        let is_common = |name: &str| {
            let supports =
                |m: &&ClassicMemberMetadata| m.supported_protocols.iter().any(|(n, _)| n == name);
            members.iter().all(supports)
        };
        let common = request.protocols.iter().any(|p| is_common(&p.name));
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE || !common {
            return unsupported_protocols(request);
        }
        Ok(())
    }

    fn classic_member(
        &self,
        member_id: &MemberId,
        group_instance_id: Option<&str>,
    ) -> Result<(&ConsumerMember, &ClassicMemberMetadata), ErrorCode> {
        let member = match group_instance_id {
            None => self.member(member_id),
            Some(instance) => self.static_member(instance, member_id),
        };
        let member = member.map_err(|refused| refused.error)?;
        let classic = member.metadata.classic.as_ref();
        Ok((member, classic.ok_or(ErrorCode::UnknownMemberId)?))
    }

    pub fn classic_sync(
        &mut self,
        request: &SyncGroup,
        context: &mut Context<'_>,
    ) -> Result<SyncGroupReply, ErrorCode> {
        let instance = request.group_instance_id.as_deref();
        let (member, classic) = self.classic_member(&request.member_id, instance)?;
        if request.generation_id != member.current.member_epoch {
            return Err(ErrorCode::IllegalGeneration);
        }
        let first = classic.supported_protocols.first();
        let (protocol, metadata) = first.ok_or(ErrorCode::InconsistentGroupProtocol)?;
        let asked_type = request.protocol_type.as_deref();
        let asked_name = request.protocol_name.as_deref();
        if asked_type.is_some_and(|t| t != CONSUMER_PROTOCOL_TYPE)
            || asked_name.is_some_and(|name| name != protocol)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if self.target_epoch.epoch > member.current.member_epoch
            && member.current.state != MemberState::UnrevokedPartitions
        {
            self.arm_join(member, context);
            return Err(ErrorCode::RebalanceInProgress);
        }
        let sync = TimerKind::ConsumerSync(request.member_id.clone());
        context.cancel_timer(&self.group_id, sync);
        self.restart_session(&request.member_id, context);
        let version = Subscription::decode(metadata).map_or(0, |s| s.version);
        let assigned = member
            .assigned()
            .into_iter()
            .filter_map(|(id, partitions)| {
                let topic = context.topics.by_id(id)?;
                Some((topic.name.to_string(), partitions))
            });
        Ok(SyncGroupReply {
            error: ErrorCode::None,
            protocol_type: Some(CONSUMER_PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(protocol.clone()),
            assignment: encode_assignment(version, &assigned.collect()),
        })
    }

    /// Gives a member its rebalance time-out to join again, unless that runs already.
    fn arm_join(&self, member: &ConsumerMember, context: &mut Context<'_>) {
        let kind = TimerKind::ConsumerJoin(member.member_id.clone());
        if !context.is_timer_set(&self.group_id, kind.clone()) {
            let timeout_ms = i64::from(member.metadata.rebalance_timeout_ms);
            context.set_timer(&self.group_id, kind, timeout_ms);
        }
    }

    pub fn classic_heartbeat(
        &mut self,
        request: &Heartbeat,
        context: &mut Context<'_>,
    ) -> ErrorCode {
        let instance = request.group_instance_id.as_deref();
        let member = match self.classic_member(&request.member_id, instance) {
            Ok((member, _)) => member,
            Err(error) => return error,
        };
        if request.generation_id != member.current.member_epoch {
            return ErrorCode::IllegalGeneration;
        }
        self.restart_session(&request.member_id, context);
        let has_to_join = match member.current.state {
            MemberState::UnrevokedPartitions => true,
            // It waits for others: joining again helps only when they have let go.
            MemberState::UnreleasedPartitions => !self.waits_for_others(member),
            MemberState::Stable => false,
        };
        if member.current.member_epoch < self.target_epoch.epoch || has_to_join {
            self.arm_join(member, context);
            return ErrorCode::RebalanceInProgress;
        }
        ErrorCode::None
    }

    fn waits_for_others(&self, member: &ConsumerMember) -> bool {
        let target = self.target.get(&member.member_id);
        let mut places = target
            .into_iter()
            .flatten()
            .flat_map(|(topic, partitions)| {
                partitions.iter().map(|partition| (*topic, *partition))
            });
        places.any(|place| {
            let holder = self.holders.get(&place);
            holder.is_some_and(|holder| *holder != member.member_id)
        })
    }

    /// LeaveGroup takes any member out: the admin's way to remove some.
    pub fn classic_leave(
        &mut self,
        request: &LeaveGroup,
        context: &mut Context<'_>,
    ) -> LeaveGroupReply {
        let mut leaving = Vec::new();
        let mut members = Vec::new();
        for identity in &request.members {
            let error = match self.leaving_identity(identity) {
                // One that is named twice leaves once, and is told so twice.
                Ok(member_id) => {
                    if !leaving.contains(&member_id) {
                        leaving.push(member_id);
                    }
                    ErrorCode::None
                }
                Err(error) => error,
            };
            members.push((identity.clone(), error));
        }
        self.remove_members(&leaving, context);
        LeaveGroupReply {
            error: ErrorCode::None,
            members,
        }
    }

    fn leaving_identity(&self, identity: &MemberIdentity) -> Result<MemberId, ErrorCode> {
        let member = match &identity.group_instance_id {
            None => self.member(&identity.member_id),
            Some(instance) if identity.member_id.is_empty() => {
                let current = self.static_members.get(instance);
                self.member(current.ok_or(ErrorCode::UnknownMemberId)?)
            }
            Some(instance) => self.static_member(instance, &identity.member_id),
        };
        let member = member.map_err(|refused| refused.error)?;
        Ok(member.member_id.clone())
    }
}

fn unsupported_protocols<T>(request: &JoinGroup) -> Result<T, Refused> {
    let member_id = &request.member_id;
    refused(
        ErrorCode::InconsistentGroupProtocol,
        format!("Member {member_id}'s protocols are not supported."),
    )
}

fn classic_metadata(
    before: &MemberMetadataValue,
    request: &JoinGroup,
    subscription: &Subscription,
) -> MemberMetadataValue {
    let mut names = subscription.topics.clone();
    names.sort();
    names.dedup();
    let protocols = request.protocols.iter();
    MemberMetadataValue {
        instance_id: request
            .group_instance_id
            .clone()
            .or(before.instance_id.clone()),
        rack_id: subscription.rack_id.clone().or(before.rack_id.clone()),
        client_id: request.client.client_id.clone(),
        client_host: request.client.client_host.clone(),
        subscribed_topic_names: names,
        subscribed_topic_regex: before.subscribed_topic_regex.clone(),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        server_assignor: before.server_assignor.clone(),
        classic: Some(ClassicMemberMetadata {
            session_timeout_ms: request.session_timeout_ms,
            supported_protocols: protocols
                .map(|p| (p.name.clone(), p.metadata.clone()))
                .collect(),
        }),
    }
}

fn owned_partitions(subscription: &Subscription, context: &Context<'_>) -> TopicPartitions {
    let owned = subscription.owned.iter().filter_map(|(name, partitions)| {
        let topic = context.topics.by_name(name)?;
        Some((topic.id, partitions.clone()))
    });
    owned.collect()
}
