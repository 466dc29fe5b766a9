//! The commands of consumer groups, and the moments when a group changes its kind.

use super::classic::ClassicGroup;
use super::command::{
    ConsumerDescribedGroup, ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply, JoinGroup,
    JoinGroupReply, Now, Tick,
};
use super::consumer::{
    ConsumerGroup, LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH, Refused, validate,
};
use super::dispatch::{NAME_BYTES_MAX, Step};
use super::records::Record;
use super::{Context, Group, GroupId, Groups, MemberId, Topics};
use crate::types::{ErrorCode, ProducerId, TimestampMs, base64_uuid};

fn not_found(message: String) -> Refused {
    Refused {
        error: ErrorCode::GroupIdNotFound,
        message,
    }
}

impl Groups {
    /// A record of a consumer group. The first one makes the group; one that only held offsets
    /// until now turns into it.
    pub(super) fn apply_consumer(&mut self, record: &Record) {
        let id = record.group();
        if let Record::ConsumerGroupMetadata { value: None, .. } = record {
            if let Some(Group::Consumer(_)) = self.groups.get(id) {
                self.groups.remove(id);
                self.timers.cancel_group(id);
            }
            return;
        }
        match self.groups.get_mut(id) {
            Some(Group::Consumer(group)) => group.apply(record),
            Some(Group::Classic(group)) if group.protocol_type().is_some() => {}
            _ if record.is_tombstone() => {}
            _ => {
                let mut group = ConsumerGroup::new(id.clone());
                group.apply(record);
                self.insert_consumer(group);
            }
        }
    }

    fn insert_consumer(&mut self, group: ConsumerGroup) {
        let id = group.group_id.clone();
        self.groups.insert(id, Group::Consumer(Box::new(group)));
    }

    /// An empty group makes room for one of the other kind.
    pub(super) fn remove_empty(&mut self, id: &GroupId, step: &mut Step<'_>) {
        if let Some(group) = self.groups.get(id) {
            let records = group.tombstones(id);
            self.emit(records, ProducerId::NONE, &mut step.output);
        }
    }

    pub(super) fn consumer_heartbeat(
        &mut self,
        mut request: ConsumerGroupHeartbeat,
        step: &mut Step<'_>,
    ) -> ConsumerGroupHeartbeatReply {
        let reply = self.try_consumer_heartbeat(&mut request, step);
        reply.unwrap_or_else(|refused| {
            ConsumerGroupHeartbeatReply::failed(refused.error, refused.message)
        })
    }

    fn try_consumer_heartbeat(
        &mut self,
        request: &mut ConsumerGroupHeartbeat,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatReply, Refused> {
        validate(request, &self.config.consumer_assignors)?;
        validate_names(request)?;
        if request.member_id.is_empty() {
            request.member_id = base64_uuid(request.random_id).into();
        }
        match request.member_epoch {
            LEAVE_GROUP_MEMBER_EPOCH | LEAVE_GROUP_STATIC_MEMBER_EPOCH => {
                self.consumer_leave(request, step)
            }
            0 => self.consumer_join(request, step),
            _ => match self.groups.get(&request.group) {
                Some(Group::Consumer(_)) => self.heartbeat_in(request, step),
                Some(Group::Classic(_)) => Err(not_found(format!(
                    "Group {} is not a consumer group.",
                    request.group
                ))),
                None => Err(not_found(format!(
                    "Consumer group {} not found.",
                    request.group
                ))),
            },
        }
    }

    /// A heartbeat in a consumer group that is there.
    fn heartbeat_in(
        &mut self,
        request: &ConsumerGroupHeartbeat,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatReply, Refused> {
        let reply = self.with_group(&request.group, step, |group, context| match group {
            Group::Consumer(group) => Some(group.heartbeat(request, context)),
            Group::Classic(_) => None,
        });
        let gone = || Err(not_found(format!("Group {} not found.", request.group)));
        reply.flatten().unwrap_or_else(gone)
    }

    /// A heartbeat that may make the group, or turn a classic one into a consumer group.
    fn consumer_join(
        &mut self,
        request: &ConsumerGroupHeartbeat,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatReply, Refused> {
        match self.groups.get(&request.group) {
            Some(Group::Consumer(_)) => self.heartbeat_in(request, step),
            Some(Group::Classic(group)) if !group.is_empty() => {
                self.upgrade(&request.group, step)?;
                self.heartbeat_in(request, step)
            }
            existing => {
                // Whether the member may join is known only after trying: a refused one must not
                // leave an empty group behind.
                let mut group = ConsumerGroup::new(request.group.clone());
                let mut output = super::Output::default();
                let mut context = Context {
                    now: step.now,
                    config: &self.config,
                    topics: step.topics,
                    timers: &mut self.timers,
                    output: &mut output,
                };
                let reply = group.heartbeat(request, &mut context)?;
                if existing.is_some() {
                    step.output.records.push(Record::GroupMetadata {
                        group: request.group.clone(),
                        value: None,
                    });
                }
                step.output.records.extend(output.records);
                self.insert_consumer(group);
                Ok(reply)
            }
        }
    }

    fn upgrade(&mut self, id: &GroupId, step: &mut Step<'_>) -> Result<(), Refused> {
        let refuse = || Err(not_found(format!("Group {id} is not a consumer group.")));
        let upgraded = self.with_group(id, step, |group, context| match group {
            Group::Classic(group) if group.may_upgrade(context) => {
                let upgraded = ConsumerGroup::from_classic(group, context)?;
                group.answer_all(ErrorCode::RebalanceInProgress, context);
                group.cancel_timers(context);
                Some(upgraded)
            }
            _ => None,
        });
        match upgraded.flatten() {
            Some(group) => {
                self.insert_consumer(group);
                Ok(())
            }
            None => refuse(),
        }
    }

    fn consumer_leave(
        &mut self,
        request: &ConsumerGroupHeartbeat,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatReply, Refused> {
        let group = match self.groups.get(&request.group) {
            Some(Group::Consumer(group)) => group,
            Some(Group::Classic(_)) => {
                let message = format!("Group {} is not a consumer group.", request.group);
                return Err(not_found(message));
            }
            None => return Err(not_found(format!("Group {} not found.", request.group))),
        };
        let member_id = group.leaving_member(request)?;
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH {
            self.with_group(&request.group, step, |group, context| {
                if let Group::Consumer(group) = group {
                    group.leave_for_a_while(&member_id, context);
                }
            });
        } else {
            self.fence(&request.group, &member_id, step);
        }
        Ok(ConsumerGroupHeartbeatReply {
            error: ErrorCode::None,
            error_message: None,
            member_id: Some(member_id),
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// Takes a member out of a consumer group. If only classic ones are left, the group turns into
    /// a classic one, which rebalances.
    pub(super) fn fence(&mut self, id: &GroupId, member_id: &MemberId, step: &mut Step<'_>) {
        let downgraded = self.with_group(id, step, |group, context| match group {
            Group::Consumer(group) if group.has_to_downgrade(member_id, context) => {
                Some(group.to_classic(Some(member_id), context))
            }
            Group::Consumer(group) => {
                group.fence(member_id, context);
                None
            }
            Group::Classic(_) => None,
        });
        if let Some(group) = downgraded.flatten() {
            self.replace_by_classic(group, step, true);
        }
    }

    fn replace_by_classic(&mut self, group: ClassicGroup, step: &mut Step<'_>, rebalance: bool) {
        let id = group.group_id.clone();
        self.timers.cancel_group(&id);
        self.insert_classic(group);
        self.with_group(&id, step, |group, context| {
            if let Group::Classic(group) = group {
                group.on_loaded(context);
                if rebalance && group.state() == super::classic::ClassicState::Stable {
                    group.prepare_rebalance(context);
                }
            }
        });
    }

    pub(super) fn classic_join_to_consumer(
        &mut self,
        request: &JoinGroup,
        step: &mut Step<'_>,
    ) -> JoinGroupReply {
        if !self.config.consumer_migration_policy.may_mix() {
            return JoinGroupReply::failed("", ErrorCode::InconsistentGroupProtocol);
        }
        let joined = self.with_group(&request.group, step, |group, context| match group {
            Group::Consumer(group) => {
                let reply = group.classic_join(request, context);
                // A static member that was the last one to speak the new protocol.
                let ok = matches!(&reply, Ok(reply) if reply.error == ErrorCode::None);
                let replaced = request.group_instance_id.is_some() && request.member_id.is_empty();
                let downgrades = ok && replaced && group.has_to_downgrade("", context);
                let classic = downgrades.then(|| group.to_classic(None, context));
                Some((reply, classic))
            }
            Group::Classic(_) => None,
        });
        let Some((reply, downgraded)) = joined.flatten() else {
            return JoinGroupReply::failed(&*request.member_id, ErrorCode::UnknownMemberId);
        };
        if let Some(group) = downgraded {
            self.replace_by_classic(group, step, false);
        }
        reply.unwrap_or_else(|refused| JoinGroupReply::failed("", refused.error))
    }

    pub(super) fn describe_consumer(
        &self,
        ids: &[GroupId],
        topics: &dyn Topics,
    ) -> Vec<ConsumerDescribedGroup> {
        let failed = |id: &GroupId, why: &str| {
            let message = format!("Group {id} {why}");
            ConsumerDescribedGroup::failed(id.clone(), ErrorCode::GroupIdNotFound, message)
        };
        let describe = |id: &GroupId| match self.groups.get(id) {
            Some(Group::Consumer(group)) => group.describe(&self.config.consumer_assignors, topics),
            _ if id.is_empty() => {
                ConsumerDescribedGroup::failed(id.clone(), ErrorCode::InvalidGroupId, None)
            }
            Some(Group::Classic(_)) => failed(id, "is not a consumer group."),
            None => failed(id, "not found."),
        };
        ids.iter().map(describe).collect()
    }

    /// A group that nothing is known of but that it holds offsets.
    pub(super) fn insert_simple(&mut self, id: &GroupId) {
        let never = Now {
            wall: TimestampMs::NONE,
            tick: Tick(0),
        };
        self.insert_classic(ClassicGroup::new(id.clone(), never));
    }
}

/// Ids and names have to fit the records' strings.
fn validate_names(request: &ConsumerGroupHeartbeat) -> Result<(), Refused> {
    let texts = [
        Some(&*request.group),
        Some(&*request.member_id),
        request.instance_id.as_deref(),
        request.rack_id.as_deref(),
        request.subscribed_topic_regex.as_deref(),
        Some(request.client.client_id.as_str()),
    ];
    let names = request.subscribed_topic_names.iter().flatten();
    let mut all = texts.into_iter().flatten().chain(names.map(String::as_str));
    match all.any(|text| text.len() > NAME_BYTES_MAX) {
        true => Err(Refused {
            error: ErrorCode::InvalidRequest,
            message: format!("A name is longer than {NAME_BYTES_MAX} bytes."),
        }),
        false => Ok(()),
    }
}
