//! Members as their clients run them: classic ones and those of KIP-848, static or not.

use bytes::Bytes;
use uuid::Uuid;

use super::world::topic_id;
use crate::machine::group::command::*;
use crate::machine::group::records::TopicPartitions;
use crate::machine::group::{GroupId, MemberId};
use crate::types::seeded::Random;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

/// A client gives up on a request after this long and sends the next one.
const REQUEST_TIMEOUT_MS: u64 = 90_000;
pub(super) const REBALANCE_TIMEOUT_MS: i32 = 20_000;
const SESSION_TIMEOUT_MS: i32 = 10_000;
const HEARTBEAT_MS: u64 = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Join,
    Sync { leads: bool },
    Stable,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) group: GroupId,
    pub(super) is_classic: bool,
    pub(super) instance: Option<String>,
    pub(super) member_id: MemberId,
    /// Generation or member epoch.
    pub(super) epoch: i32,
    /// What it uses (KIP-848), with what it is still giving back.
    pub(super) owned: TopicPartitions,
    revoking: TopicPartitions,
    phase: Phase,
    group_members: Vec<MemberId>,
    pub(super) waiting: Option<(Token, Tick)>,
    next_heartbeat: Tick,
    pub(super) alive: bool,
    /// It answers nothing any more: another client has its instance.
    pub(super) fenced: bool,
}

impl Client {
    pub(super) fn new(group: GroupId, is_classic: bool, instance: Option<String>, n: u64) -> Self {
        let member_id = match is_classic {
            true => "".into(),
            false => format!("consumer-{n}").into(),
        };
        Client {
            group,
            is_classic,
            instance,
            member_id,
            epoch: 0,
            owned: TopicPartitions::new(),
            revoking: TopicPartitions::new(),
            phase: Phase::Join,
            group_members: Vec::new(),
            waiting: None,
            next_heartbeat: Tick(0),
            alive: true,
            fenced: false,
        }
    }

    pub(super) fn is_stable(&self) -> bool {
        self.phase == Phase::Stable
    }

    /// Everything it may be using.
    pub(super) fn holds(&self) -> Vec<(crate::types::TopicId, i32)> {
        let both = self.owned.iter().chain(&self.revoking);
        both.flat_map(|(topic, partitions)| partitions.iter().map(|p| (*topic, *p)))
            .collect()
    }

    /// What it sends now, if anything.
    pub(super) fn act(&mut self, now: Tick, random: &mut Random, calm: bool) -> Option<Command> {
        if let Some((_, since)) = self.waiting {
            if now < since.plus_ms(REQUEST_TIMEOUT_MS as i64) {
                return None;
            }
            self.waiting = None;
            self.phase = Phase::Join;
        }
        if self.phase == Phase::Stable && now < self.next_heartbeat && !random.percent(10) {
            return None;
        }
        self.next_heartbeat = now.plus_ms(HEARTBEAT_MS as i64);
        if self.phase == Phase::Stable && random.percent(15) {
            return Some(self.commit(random));
        }
        if self.phase == Phase::Stable && !calm && random.percent(2) {
            return Some(self.leave());
        }
        match (self.is_classic, self.phase) {
            (true, Phase::Join) => Some(self.join(random)),
            (true, Phase::Sync { leads }) => Some(self.sync(leads)),
            (true, Phase::Stable) if !calm && random.percent(3) => Some(self.join(random)),
            (true, Phase::Stable) => Some(Command::Heartbeat(Heartbeat {
                group: self.group.clone(),
                generation_id: self.epoch,
                member_id: self.member_id.clone(),
                group_instance_id: self.instance.clone(),
            })),
            (false, _) => Some(self.consumer_heartbeat(random)),
        }
    }

    fn join(&self, random: &mut Random) -> Command {
        let mut metadata = vec![0, 0, 0, 0, 0, 1, 0, 1, b't'];
        metadata.extend((-1i32).to_be_bytes());
        let id = u128::from(random.draw()) << 64 | u128::from(random.draw());
        Command::JoinGroup(JoinGroup {
            group: self.group.clone(),
            member_id: self.member_id.clone(),
            group_instance_id: self.instance.clone(),
            client: crate::machine::group::command::Client::default(),
            session_timeout_ms: SESSION_TIMEOUT_MS,
            rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
            protocol_type: "consumer".into(),
            protocols: vec![Protocol {
                name: "range".into(),
                metadata: Bytes::from(metadata),
            }],
            requires_known_member_id: random.percent(70),
            supports_skipping_assignment: random.percent(50),
            random_id: Uuid::from_u128(id),
        })
    }

    fn sync(&self, leads: bool) -> Command {
        let members = self.group_members.iter().filter(|_| leads);
        Command::SyncGroup(SyncGroup {
            group: self.group.clone(),
            generation_id: self.epoch,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: None,
            protocol_name: None,
            assignments: members
                // Nothing assigned, in the consumers' form.
                .map(|m| {
                    (
                        m.clone(),
                        Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                    )
                })
                .collect(),
        })
    }

    fn commit(&self, random: &mut Random) -> Command {
        Command::OffsetCommit(OffsetCommit {
            group: self.group.clone(),
            generation_id_or_member_epoch: self.epoch,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance.clone(),
            retention_time_ms: -1,
            partitions: vec![CommitPartition {
                topic: "t".into(),
                topic_id: topic_id(0),
                partition: random.below(3) as i32,
                offset: Offset(random.below(1_000_000) as i64),
                leader_epoch: LeaderEpoch::NONE,
                metadata: None,
            }],
            api_version: 9,
        })
    }

    fn leave(&mut self) -> Command {
        if self.is_classic {
            return Command::LeaveGroup(LeaveGroup {
                group: self.group.clone(),
                members: vec![MemberIdentity {
                    member_id: self.member_id.clone(),
                    group_instance_id: self.instance.clone(),
                }],
            });
        }
        self.owned.clear();
        self.revoking.clear();
        let epoch = if self.instance.is_some() { -2 } else { -1 };
        Command::ConsumerGroupHeartbeat(Box::new(ConsumerGroupHeartbeat {
            member_epoch: epoch,
            ..self.heartbeat()
        }))
    }

    fn heartbeat(&self) -> ConsumerGroupHeartbeat {
        ConsumerGroupHeartbeat {
            group: self.group.clone(),
            member_id: self.member_id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance.clone(),
            rack_id: None,
            rebalance_timeout_ms: -1,
            subscribed_topic_names: None,
            subscribed_topic_regex: None,
            server_assignor: None,
            owned: None,
            client: crate::machine::group::command::Client::default(),
            generates_member_id: false,
            random_id: Uuid::nil(),
        }
    }

    fn consumer_heartbeat(&mut self, random: &mut Random) -> Command {
        let mut request = self.heartbeat();
        if self.phase == Phase::Join {
            self.epoch = 0;
            self.owned.clear();
            self.revoking.clear();
            request.member_epoch = 0;
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS;
            match random.percent(30) {
                true => request.subscribed_topic_regex = Some("t.*".into()),
                false => request.subscribed_topic_names = Some(vec!["t".into()]),
            }
            request.owned = Some(TopicPartitions::new());
        } else {
            if random.percent(60) {
                self.revoking.clear();
            }
            let mut owned = TopicPartitions::new();
            for (topic, partition) in self.holds() {
                owned.entry(topic).or_default().push(partition);
            }
            request.owned = (!random.percent(20)).then_some(owned);
        }
        Command::ConsumerGroupHeartbeat(Box::new(request))
    }

    pub(super) fn on_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::JoinGroup(reply) => self.on_join(reply),
            Reply::SyncGroup(reply) => match reply.error {
                ErrorCode::None => self.phase = Phase::Stable,
                error => self.on_error(error),
            },
            Reply::Heartbeat(ErrorCode::None) => {}
            Reply::Heartbeat(error) => self.on_error(*error),
            Reply::LeaveGroup(_) => {
                self.phase = Phase::Join;
                self.member_id = "".into();
            }
            Reply::ConsumerGroupHeartbeat(reply) => self.on_consumer(reply),
            _ => {}
        }
    }

    fn on_join(&mut self, reply: &JoinGroupReply) {
        match reply.error {
            ErrorCode::None => {
                self.member_id = reply.member_id.clone();
                self.epoch = reply.generation_id;
                self.group_members = reply.members.iter().map(|m| m.member_id.clone()).collect();
                let leads = *reply.leader == *self.member_id && !reply.skip_assignment;
                self.phase = Phase::Sync { leads };
            }
            ErrorCode::MemberIdRequired => self.member_id = reply.member_id.clone(),
            error => self.on_error(error),
        }
    }

    fn on_error(&mut self, error: ErrorCode) {
        self.phase = Phase::Join;
        match error {
            ErrorCode::UnknownMemberId => self.member_id = "".into(),
            ErrorCode::FencedInstanceId => self.fenced = true,
            _ => {}
        }
    }

    fn on_consumer(&mut self, reply: &ConsumerGroupHeartbeatReply) {
        match reply.error {
            ErrorCode::None if reply.member_epoch < 0 => self.phase = Phase::Join,
            ErrorCode::None => {
                self.phase = Phase::Stable;
                self.epoch = reply.member_epoch;
                if let Some(assignment) = &reply.assignment {
                    for (topic, partition) in self.holds() {
                        let kept = assignment
                            .get(&topic)
                            .is_some_and(|p| p.contains(&partition));
                        let revoking = self.revoking.entry(topic).or_default();
                        revoking.retain(|p| *p != partition || !kept);
                        if !kept && !revoking.contains(&partition) {
                            revoking.push(partition);
                        }
                    }
                    self.owned = assignment.clone();
                }
            }
            ErrorCode::FencedInstanceId => self.fenced = true,
            _ => self.phase = Phase::Join,
        }
    }
}
