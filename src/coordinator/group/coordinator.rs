//! The calls that the API handlers make, one per API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::machine::{ClusterView, GroupMachine};
use crate::coordinator::runtime::{CoordinatorLog, Coordinators, Runtime};
use crate::host::Clock;
use crate::machine::group::command::*;
use crate::machine::group::{GroupConfig, GroupId, GroupStates};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicName};

/// The group coordinator of a broker.
pub struct GroupCoordinator<L> {
    runtime: Arc<Runtime<GroupMachine, L>>,
    /// Of `__consumer_offsets`.
    partition_count: AtomicI32,
}

/// Takes the reply that belongs to a command out of the runtime's result.
macro_rules! expect_reply {
    ($reply:expr, $variant:ident) => {
        match $reply {
            Reply::$variant(reply) => reply,
            other => unreachable!("a command was answered with {other:?}"),
        }
    };
}

impl<L: CoordinatorLog> GroupCoordinator<L> {
    pub fn new(
        log: Arc<L>,
        clock: Arc<dyn Clock>,
        commit_timeout: Duration,
        source: Arc<dyn ClusterView>,
        partition_count: i32,
    ) -> Self {
        GroupCoordinator {
            runtime: Runtime::new(log, clock, commit_timeout, move |_, _| {
                GroupMachine::new(source.clone())
            }),
            partition_count: AtomicI32::new(partition_count),
        }
    }

    /// The internal topic was made with this many partitions.
    pub fn set_partition_count(&self, count: i32) {
        self.partition_count.store(count, Ordering::Relaxed);
    }

    /// The partition of `__consumer_offsets` that a group lives in.
    pub fn partition_for(&self, group: &str) -> i32 {
        partition_for(group, self.partition_count.load(Ordering::Relaxed))
    }

    /// This broker leads a partition of `__consumer_offsets` now.
    pub fn elect(&self, partition: i32, leader_epoch: LeaderEpoch) {
        self.runtime.elect(partition, leader_epoch);
    }

    pub fn resign(&self, partition: i32) {
        self.runtime.resign(partition);
    }

    pub fn on_high_watermark(&self, partition: i32, high_watermark: Offset) {
        self.runtime.on_high_watermark(partition, high_watermark);
    }

    /// Tells every coordinator that topics were made, deleted, or got partitions.
    pub fn on_topics_changed(&self, topics: Vec<TopicName>) {
        for partition in self.runtime.led_partitions() {
            let command = Command::TopicsChanged(topics.clone());
            drop(self.runtime.submit(partition, command));
        }
    }

    /// Tells every coordinator that partitions are gone.
    pub fn on_partitions_deleted(&self, partitions: Vec<(TopicName, i32)>) {
        for partition in self.runtime.led_partitions() {
            let command = Command::PartitionsDeleted(partitions.clone());
            drop(self.runtime.submit(partition, command));
        }
    }

    /// Tells every coordinator the new values of dynamic configurations.
    pub fn on_config_changed(&self, config: &GroupConfig) {
        for partition in self.runtime.led_partitions() {
            let command = Command::SetConfig(Box::new(config.clone()));
            drop(self.runtime.submit(partition, command));
        }
    }

    async fn call(&self, group: &str, command: Command) -> Result<Reply, ErrorCode> {
        let partition = self.partition_for(group);
        self.runtime
            .call(partition, command)
            .await
            .map_err(client_error)
    }

    pub async fn join_group(&self, request: JoinGroup) -> JoinGroupReply {
        let (group, member_id) = (request.group.clone(), request.member_id.clone());
        match self.call(&group, Command::JoinGroup(request)).await {
            Ok(reply) => expect_reply!(reply, JoinGroup),
            Err(error) => JoinGroupReply::failed(member_id, error),
        }
    }

    pub async fn sync_group(&self, request: SyncGroup) -> SyncGroupReply {
        let group = request.group.clone();
        match self.call(&group, Command::SyncGroup(request)).await {
            Ok(reply) => expect_reply!(reply, SyncGroup),
            Err(error) => SyncGroupReply::failed(error),
        }
    }

    pub async fn heartbeat(&self, request: Heartbeat) -> ErrorCode {
        let group = request.group.clone();
        match self.call(&group, Command::Heartbeat(request)).await {
            Ok(reply) => expect_reply!(reply, Heartbeat),
            // A coordinator that is loading cannot judge the member; its session starts when it
            // is loaded. An error would only make the member look for the coordinator again.
            Err(ErrorCode::CoordinatorLoadInProgress) => ErrorCode::None,
            Err(error) => error,
        }
    }

    pub async fn leave_group(&self, request: LeaveGroup) -> LeaveGroupReply {
        let group = request.group.clone();
        match self.call(&group, Command::LeaveGroup(request)).await {
            Ok(reply) => expect_reply!(reply, LeaveGroup),
            Err(error) => LeaveGroupReply {
                error,
                members: Vec::new(),
            },
        }
    }

    pub async fn commit_offsets(&self, request: OffsetCommit) -> OffsetCommitReply {
        let (group, count) = (request.group.clone(), request.partitions.len());
        match self.call(&group, Command::OffsetCommit(request)).await {
            Ok(reply) => expect_reply!(reply, OffsetCommit),
            Err(error) => OffsetCommitReply {
                partitions: vec![error; count],
            },
        }
    }

    pub async fn commit_txn_offsets(&self, request: TxnOffsetCommit) -> OffsetCommitReply {
        let (group, count) = (request.group.clone(), request.partitions.len());
        match self.call(&group, Command::TxnOffsetCommit(request)).await {
            Ok(reply) => expect_reply!(reply, TxnOffsetCommit),
            Err(error) => OffsetCommitReply {
                partitions: vec![error; count],
            },
        }
    }

    /// Writes a transaction's marker to a partition of `__consumer_offsets`.
    pub async fn end_transaction(
        &self,
        partition: i32,
        end: EndTransaction,
    ) -> Result<(), ErrorCode> {
        let command = Command::EndTransaction(end);
        self.runtime.call(partition, command).await.map(|_| ())
    }

    pub async fn fetch_offsets(&self, request: OffsetFetch) -> OffsetFetchReply {
        let group = request.group.clone();
        match self.call(&group, Command::OffsetFetch(request)).await {
            Ok(reply) => expect_reply!(reply, OffsetFetch),
            Err(error) => OffsetFetchReply {
                error,
                partitions: Vec::new(),
            },
        }
    }

    pub async fn delete_offsets(&self, request: OffsetDelete) -> OffsetDeleteReply {
        let group = request.group.clone();
        match self.call(&group, Command::OffsetDelete(request)).await {
            Ok(reply) => expect_reply!(reply, OffsetDelete),
            Err(error) => OffsetDeleteReply {
                error,
                partitions: Vec::new(),
            },
        }
    }

    pub async fn consumer_group_heartbeat(
        &self,
        request: ConsumerGroupHeartbeat,
    ) -> ConsumerGroupHeartbeatReply {
        let group = request.group.clone();
        let command = Command::ConsumerGroupHeartbeat(Box::new(request));
        match self.call(&group, command).await {
            Ok(reply) => expect_reply!(reply, ConsumerGroupHeartbeat),
            Err(error) => ConsumerGroupHeartbeatReply::failed(error, None),
        }
    }

    /// The groups by their partitions, each list in the order asked.
    fn by_partition(&self, groups: Vec<GroupId>) -> BTreeMap<i32, Vec<GroupId>> {
        let mut by_partition: BTreeMap<i32, Vec<GroupId>> = BTreeMap::new();
        for group in groups {
            let partition = self.partition_for(&group);
            by_partition.entry(partition).or_default().push(group);
        }
        by_partition
    }

    pub async fn describe_groups(&self, groups: Vec<GroupId>) -> Vec<DescribedGroup> {
        let mut described = Vec::new();
        for (partition, groups) in self.by_partition(groups) {
            let command = Command::DescribeGroups(groups.clone());
            match self.runtime.call(partition, command).await {
                Ok(reply) => described.extend(expect_reply!(reply, DescribeGroups)),
                Err(error) => described.extend(
                    groups
                        .into_iter()
                        .map(|group| DescribedGroup::failed(group, client_error(error), None)),
                ),
            }
        }
        described
    }

    pub async fn consumer_group_describe(
        &self,
        groups: Vec<GroupId>,
    ) -> Vec<ConsumerDescribedGroup> {
        let mut described = Vec::new();
        for (partition, groups) in self.by_partition(groups) {
            let command = Command::ConsumerGroupDescribe(groups.clone());
            match self.runtime.call(partition, command).await {
                Ok(reply) => described.extend(expect_reply!(reply, ConsumerGroupDescribe)),
                Err(error) => {
                    described.extend(groups.into_iter().map(|group| {
                        ConsumerDescribedGroup::failed(group, client_error(error), None)
                    }))
                }
            }
        }
        described
    }

    pub async fn delete_groups(&self, groups: Vec<GroupId>) -> Vec<(GroupId, ErrorCode)> {
        let mut deleted = Vec::new();
        for (partition, groups) in self.by_partition(groups) {
            let command = Command::DeleteGroups(groups.clone());
            match self.runtime.call(partition, command).await {
                Ok(reply) => deleted.extend(expect_reply!(reply, DeleteGroups)),
                Err(error) => {
                    let error = client_error(error);
                    deleted.extend(groups.into_iter().map(|group| (group, error)));
                }
            }
        }
        deleted
    }

    /// How many groups are in which state, and how many coordinators there are.
    pub fn survey(&self) -> (GroupStates, Coordinators) {
        let mut states = GroupStates::new();
        let look = |machine: &GroupMachine| machine.groups().count_states(&mut states);
        let coordinators = self.runtime.survey(look);
        (states, coordinators)
    }

    /// The groups whose coordinator this broker is. One that is loading fails the whole list, as
    /// in Kafka: the client asks again.
    pub async fn list_groups(&self, filter: ListGroups) -> Result<Vec<ListedGroup>, ErrorCode> {
        let mut listed = Vec::new();
        for partition in self.runtime.led_partitions() {
            let command = Command::ListGroups(filter.clone());
            match self.runtime.call(partition, command).await {
                Ok(reply) => listed.extend(expect_reply!(reply, ListGroups)),
                // It has moved away meanwhile: its new coordinator lists it.
                Err(ErrorCode::NotCoordinator) => {}
                Err(error) => return Err(client_error(error)),
            }
        }
        Ok(listed)
    }
}

/// Java's `String.hashCode`, made positive, modulo the partitions.
pub(super) fn partition_for(group: &str, partition_count: i32) -> i32 {
    let mut hash = 0i32;
    for unit in group.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    }
    // Kafka's Utils.abs makes 0 of the one number whose absolute value does not fit.
    hash.checked_abs().unwrap_or(0) % partition_count.max(1)
}

/// What a client of a coordinator gets to see of an error of the log.
pub(in crate::coordinator) fn client_error(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower
        | ErrorCode::FencedLeaderEpoch
        | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge
        | ErrorCode::RecordListTooLarge
        | ErrorCode::InvalidFetchSize => ErrorCode::UnknownServerError,
        other => other,
    }
}
