//! What a coordinator can be asked, and what it answers: the fields of Kafka's messages that
//! matter to a group, without the versions. What a version changes is a flag or belongs to the
//! handler (a null or an empty name in an answer, say).

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;

use super::records::TopicPartitions;
use super::{GroupConfig, GroupId, MemberId};
use crate::types::{
    ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicId, TopicName,
};

/// Names a request until its reply comes, which may be much later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Who sent a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    pub client_id: String,
    /// Kafka's form of an address: `/127.0.0.1`.
    pub client_host: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    JoinGroup(JoinGroup),
    SyncGroup(SyncGroup),
    Heartbeat(Heartbeat),
    LeaveGroup(LeaveGroup),
    OffsetCommit(OffsetCommit),
    TxnOffsetCommit(TxnOffsetCommit),
    OffsetFetch(OffsetFetch),
    OffsetDelete(OffsetDelete),
    DescribeGroups(Vec<GroupId>),
    DeleteGroups(Vec<GroupId>),
    ListGroups(ListGroups),
    ConsumerGroupHeartbeat(Box<ConsumerGroupHeartbeat>),
    ConsumerGroupDescribe(Vec<GroupId>),
    /// Topics were made, deleted, or got partitions.
    TopicsChanged(Vec<TopicName>),
    /// Partitions that are gone: their committed offsets go with them.
    PartitionsDeleted(Vec<(TopicName, i32)>),
    /// A transaction that committed offsets here ends: its marker has to be written.
    EndTransaction(EndTransaction),
    /// Dynamic configurations have changed.
    SetConfig(Box<GroupConfig>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    JoinGroup(JoinGroupReply),
    SyncGroup(SyncGroupReply),
    Heartbeat(ErrorCode),
    LeaveGroup(LeaveGroupReply),
    OffsetCommit(OffsetCommitReply),
    TxnOffsetCommit(OffsetCommitReply),
    OffsetFetch(OffsetFetchReply),
    OffsetDelete(OffsetDeleteReply),
    DescribeGroups(Vec<DescribedGroup>),
    DeleteGroups(Vec<(GroupId, ErrorCode)>),
    ListGroups(Vec<ListedGroup>),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatReply),
    ConsumerGroupDescribe(Vec<ConsumerDescribedGroup>),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroup {
    pub group: GroupId,
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub client: Client,
    pub session_timeout_ms: i32,
    /// v0 has none: the session time-out.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: String,
    pub protocols: Vec<Protocol>,
    /// v4+: a new dynamic member is told its id and has to join again with it.
    pub requires_known_member_id: bool,
    /// v9+: a static leader that comes back may be told that nothing is to be assigned.
    pub supports_skipping_assignment: bool,
    /// Randomness for a new member's id.
    pub random_id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    pub name: String,
    pub metadata: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroupReply {
    pub error: ErrorCode,
    pub generation_id: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: String,
    pub skip_assignment: bool,
    pub member_id: MemberId,
    /// Everyone, for the leader; nobody, for others.
    pub members: Vec<JoinGroupMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroupMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub metadata: Bytes,
}

impl JoinGroupReply {
    pub fn failed(member_id: impl Into<MemberId>, error: ErrorCode) -> Self {
        JoinGroupReply {
            error,
            generation_id: -1,
            protocol_type: None,
            protocol_name: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.into(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncGroup {
    pub group: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignments: BTreeMap<MemberId, Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncGroupReply {
    pub error: ErrorCode,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}

impl SyncGroupReply {
    pub fn failed(error: ErrorCode) -> Self {
        SyncGroupReply {
            error,
            protocol_type: None,
            protocol_name: None,
            assignment: Bytes::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    pub group: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
}

/// v0-v2 name one member, v3+ any number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveGroup {
    pub group: GroupId,
    pub members: Vec<MemberIdentity>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberIdentity {
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
}

/// v0-v2 answer the one member's error as the error of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveGroupReply {
    pub error: ErrorCode,
    pub members: Vec<(MemberIdentity, ErrorCode)>,
}

/// One partition's offset in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPartition {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partition: i32,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Option<String>,
}

/// Topics that do not exist are the handler's to refuse (3, 100): the machine knows no topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommit {
    pub group: GroupId,
    pub generation_id_or_member_epoch: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    /// v2-v4; -1: the broker's default.
    pub retention_time_ms: i64,
    pub partitions: Vec<CommitPartition>,
    pub api_version: i16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnOffsetCommit {
    pub group: GroupId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub partitions: Vec<CommitPartition>,
}

/// The marker of WriteTxnMarkers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransaction {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub coordinator_epoch: i32,
    pub commit: bool,
    /// Of transaction version 2: a marker with the epoch of the open records is an old one.
    pub bumps_epoch: bool,
}

/// An error for all, or one per partition in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitReply {
    pub partitions: Vec<ErrorCode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetch {
    pub group: GroupId,
    /// v9+, `None` otherwise.
    pub member_id: Option<MemberId>,
    /// v9+, -1 otherwise.
    pub member_epoch: i32,
    /// `None`: everything the group has committed.
    pub partitions: Option<Vec<(TopicName, i32)>>,
    pub require_stable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetchReply {
    pub error: ErrorCode,
    pub partitions: Vec<FetchedOffset>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    pub topic: TopicName,
    /// As it was at the commit.
    pub topic_id: TopicId,
    pub partition: i32,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: String,
    pub error: ErrorCode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDelete {
    pub group: GroupId,
    pub partitions: Vec<(TopicName, i32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDeleteReply {
    pub error: ErrorCode,
    /// In the order of the request; empty if `error` is set.
    pub partitions: Vec<ErrorCode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    pub group: GroupId,
    /// v6+ shows it, with "Dead"; before, 0 and "Dead".
    pub error: ErrorCode,
    pub error_message: Option<String>,
    pub state: &'static str,
    pub protocol_type: String,
    pub protocol_data: String,
    pub members: Vec<DescribedMember>,
}

impl DescribedGroup {
    pub fn failed(group: GroupId, error: ErrorCode, message: impl Into<Option<String>>) -> Self {
        DescribedGroup {
            group,
            error,
            error_message: message.into(),
            state: "Dead",
            protocol_type: String::new(),
            protocol_data: String::new(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<String>,
    pub client: Client,
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// Empty filters let everything pass. Names compare without case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListGroups {
    pub states: Vec<String>,
    pub types: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    pub group: GroupId,
    pub protocol_type: String,
    pub state: &'static str,
    pub group_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupHeartbeat {
    pub group: GroupId,
    pub member_id: MemberId,
    pub member_epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub rebalance_timeout_ms: i32,
    pub subscribed_topic_names: Option<Vec<String>>,
    pub subscribed_topic_regex: Option<String>,
    pub server_assignor: Option<String>,
    pub owned: Option<TopicPartitions>,
    pub client: Client,
    /// v0 makes the id of a member that sends "".
    pub generates_member_id: bool,
    pub random_id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupHeartbeatReply {
    pub error: ErrorCode,
    pub error_message: Option<String>,
    pub member_id: Option<MemberId>,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    /// `None`: as before.
    pub assignment: Option<TopicPartitions>,
}

impl ConsumerGroupHeartbeatReply {
    pub fn failed(error: ErrorCode, message: impl Into<Option<String>>) -> Self {
        ConsumerGroupHeartbeatReply {
            error,
            error_message: message.into(),
            member_id: None,
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            assignment: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerDescribedGroup {
    pub group: GroupId,
    pub error: ErrorCode,
    pub error_message: Option<String>,
    pub state: &'static str,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub assignor_name: String,
    pub members: Vec<ConsumerDescribedMember>,
}

impl ConsumerDescribedGroup {
    pub fn failed(group: GroupId, error: ErrorCode, message: impl Into<Option<String>>) -> Self {
        ConsumerDescribedGroup {
            group,
            error,
            error_message: message.into(),
            state: "",
            group_epoch: 0,
            assignment_epoch: 0,
            assignor_name: String::new(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerDescribedMember {
    pub member_id: MemberId,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub member_epoch: i32,
    pub client: Client,
    pub subscribed_topic_names: Vec<String>,
    pub subscribed_topic_regex: Option<String>,
    /// Topic name, id, partitions; topics that are gone are left out.
    pub assignment: Vec<(TopicName, TopicId, Vec<i32>)>,
    pub target_assignment: Vec<(TopicName, TopicId, Vec<i32>)>,
    /// v1+: 0 a classic member, 1 a consumer member.
    pub member_type: i8,
}

/// The wall clock for what is stored, and a clock that never goes back for time-outs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub wall: TimestampMs,
    pub tick: Tick,
}

/// Milliseconds on the clock that never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    pub fn plus_ms(self, ms: i64) -> Tick {
        Tick(self.0.saturating_add(u64::try_from(ms).unwrap_or(0)))
    }
}
