//! Membership by `group.protocol=consumer` (KIP-848): the coordinator gives the partitions.
//!
//! ```text
//!            epoch 0, topics              what it is given            epoch -1 (-2: comes back)
//! outside ------------------> member ------------------------> ... ---------------------------->
//!    ^                          | gives up, takes, tells so
//!    +------ fenced, unknown ---+
//! ```
//!
//! 1. Heartbeats come as often as the group asks for, and at once when partitions have changed
//!    hands: others wait for what this member gives up.
//! 2. What it gives up is committed before it is told.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::consumer_group_heartbeat_response::Assignment;
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicName,
};

use crate::cli::admin::{AdminError, Answer, text};
use crate::host::random;
use crate::types::{ErrorCode, TopicId, base64_uuid};

use super::{Consumer, Kept, Membership};

const JOINS: i32 = 0;
const LEAVES: i32 = -1;
/// Of a static member, whose place is kept.
const LEAVES_FOR_NOW: i32 = -2;

impl Consumer {
    /// Sends a heartbeat when one is due, and takes what it is given.
    pub(super) async fn keep_place(
        &mut self,
        member: &mut Membership,
        assignor: Option<&str>,
    ) -> Answer<Kept> {
        let now = self.admin.client.elapsed();
        if member.is_joined && now < member.last_heartbeat + member.heartbeat_interval {
            return Ok(Kept::Same);
        }
        if !member.is_joined {
            member.generation = JOINS;
            if member.member_id.is_empty() {
                member.member_id = base64_uuid(random::uuid());
            }
        }
        let told = match member.is_joined {
            true => self.place_kept(member),
            false => self.place_wanted(member, assignor),
        };
        let Some(answer) = self.beat(member, &told).await? else {
            return Ok(Kept::Rebalanced);
        };
        if !member.is_joined {
            member.last_commit = now;
        }
        member.is_joined = true;
        match answer.assignment {
            Some(given) => self.take_given(member, &given).await,
            None => Ok(Kept::Same),
        }
    }

    fn place_kept(&self, member: &Membership) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(member.group_id())
            .with_member_id(text(&member.member_id))
            .with_member_epoch(member.generation)
            .with_instance_id(self.instance_id())
            .with_rebalance_timeout_ms(-1)
            .with_subscribed_topic_names(None)
            .with_topic_partitions(None)
    }

    fn place_wanted(
        &self,
        member: &Membership,
        assignor: Option<&str>,
    ) -> ConsumerGroupHeartbeatRequest {
        let timeout_ms = i32::try_from(self.config.max_poll_interval.as_millis());
        let names = member.topics.iter().map(|topic| TopicName(text(topic)));
        self.place_kept(member)
            .with_rebalance_timeout_ms(timeout_ms.unwrap_or(i32::MAX))
            .with_subscribed_topic_names(Some(names.collect()))
            .with_server_assignor(assignor.map(text))
            .with_topic_partitions(Some(Vec::new()))
    }

    /// `None`: the member has been shut out and begins anew.
    async fn beat(
        &mut self,
        member: &mut Membership,
        told: &ConsumerGroupHeartbeatRequest,
    ) -> Answer<Option<ConsumerGroupHeartbeatResponse>> {
        let code = |answer: &ConsumerGroupHeartbeatResponse| answer.error_code;
        let answer = self
            .admin
            .coordinator("consumerGroupHeartbeat", &member.group, told, code)
            .await?;
        member.last_heartbeat = self.admin.client.elapsed();
        let error = ErrorCode::from_code(answer.error_code);
        match error.unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => {
                member.generation = answer.member_epoch;
                let interval_ms = answer.heartbeat_interval_ms.max(1) as u64;
                member.heartbeat_interval = Duration::from_millis(interval_ms);
                Ok(Some(answer))
            }
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => {
                // Others have these partitions by now.
                self.assign(Vec::new()).await?;
                member.forget();
                Ok(None)
            }
            error => {
                let message = answer.error_message.as_ref().map(|m| m.as_str());
                Err(AdminError::answer(error, message))
            }
        }
    }

    /// Gives up what is no longer this member's, starts with what is new, and tells so.
    async fn take_given(&mut self, member: &mut Membership, given: &Assignment) -> Answer<Kept> {
        let given = self.by_name(member, given).await?;
        let own: BTreeSet<(String, i32)> = self.partitions().into_iter().collect();
        if given == own {
            return Ok(Kept::Same);
        }
        if self.config.auto_commit.is_some() && !own.is_subset(&given) {
            self.commit(member).await?;
        }
        self.keep_only(&given);
        let new = given.difference(&own).cloned().collect::<Vec<_>>();
        if !new.is_empty() {
            let starts = self.starts(member, new).await?;
            self.assign_more(starts).await?;
        }
        let owned = self.by_id(&given);
        let told = self.place_kept(member).with_topic_partitions(Some(owned));
        // What else there is to take comes with the next one.
        if let Some(answer) = self.beat(member, &told).await?
            && answer.assignment.is_some()
        {
            member.heartbeat_interval = Duration::ZERO;
        }
        Ok(Kept::Rebalanced)
    }

    /// Topics that were deleted in between have no name and are left out.
    async fn by_name(
        &self,
        member: &Membership,
        given: &Assignment,
    ) -> Answer<BTreeSet<(String, i32)>> {
        let client = &self.admin.client;
        let id = |topic: &uuid::Uuid| client.topic_of_id(TopicId(*topic));
        if given
            .topic_partitions
            .iter()
            .any(|t| id(&t.topic_id).is_none())
        {
            let topics: Vec<&str> = member.topics.iter().map(String::as_str).collect();
            let asked = client.metadata(Some(&topics)).await;
            asked.map_err(|source| AdminError::peer("metadata", source))?;
        }
        let mut named = BTreeSet::new();
        for topic in &given.topic_partitions {
            if let Some(name) = id(&topic.topic_id) {
                named.extend(topic.partitions.iter().map(|index| (name.clone(), *index)));
            }
        }
        Ok(named)
    }

    fn by_id(&self, partitions: &BTreeSet<(String, i32)>) -> Vec<TopicPartitions> {
        let mut rows: Vec<(&str, TopicPartitions)> = Vec::new();
        for (topic, index) in partitions {
            if rows.last().is_none_or(|(last, _)| last != topic) {
                let Some(id) = self.admin.client.topic_id(topic) else {
                    continue;
                };
                rows.push((topic, TopicPartitions::default().with_topic_id(id.0)));
            }
            if let Some((last, row)) = rows.last_mut()
                && last == topic
            {
                row.partitions.push(*index);
            }
        }
        rows.into_iter().map(|(_, row)| row).collect()
    }

    pub(super) async fn give_up_place(&mut self, member: &mut Membership) -> Answer<()> {
        member.generation = match self.config.instance_id {
            Some(_) => LEAVES_FOR_NOW,
            None => LEAVES,
        };
        let told = self.place_kept(member);
        self.beat(member, &told).await?;
        member.forget();
        Ok(())
    }
}
