//! Records about topics and their partitions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::types::{BrokerId, LeaderEpoch, TopicId, TopicName};

/// Brokers in order of preference. Shared: most partitions have the list of another one.
pub type Replicas = Arc<[BrokerId]>;

/// A log directory of a broker (KIP-858).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DirectoryId(pub Uuid);

impl DirectoryId {
    /// From a time before directories had ids; a Klamm of before wrote it for `UNASSIGNED`.
    pub const MIGRATING: DirectoryId = DirectoryId(Uuid::nil());
    /// The broker has not said yet where it put the replica.
    pub const UNASSIGNED: DirectoryId = DirectoryId(Uuid::from_u128(1));
    /// The replica was in a directory that the broker no longer has.
    pub const LOST: DirectoryId = DirectoryId(Uuid::from_u128(2));

    /// No directory was named yet.
    pub fn is_undecided(&self) -> bool {
        [DirectoryId::UNASSIGNED, DirectoryId::MIGRATING].contains(self)
    }

    /// Whether a replica that is said to be there may be, on a broker that has told of `log_dirs`.
    /// A broker that has told of none is trusted: it would not run without any.
    pub fn is_online(&self, log_dirs: &[DirectoryId]) -> bool {
        let is_there = || log_dirs.is_empty() || log_dirs.contains(self);
        self.is_undecided() || *self != DirectoryId::LOST && is_there()
    }

    /// The first hundred have a meaning of their own, or will have.
    pub fn is_reserved(&self) -> bool {
        self.0.as_u128() < 100
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicRecord {
    pub name: TopicName,
    pub topic_id: TopicId,
}

/// A new partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRecord {
    pub partition_id: i32,
    pub topic_id: TopicId,
    pub replicas: Replicas,
    pub isr: Replicas,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub removing_replicas: Replicas,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub adding_replicas: Replicas,
    /// [`BrokerId::NONE`]: no replica can lead.
    pub leader: BrokerId,
    /// 1 while the leader recovers from an unclean election, else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leader_recovery_state: i8,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    /// The directory of each replica, in the order of `replicas`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub directories: Arc<[DirectoryId]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub eligible_leader_replicas: Replicas,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub last_known_elr: Replicas,
}

/// What changed on a partition; `None` is "as before". The partition epoch goes up by one with each
/// of these, the leader epoch only when `leader` is given (also when it is the same leader again).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionChangeRecord {
    pub partition_id: i32,
    pub topic_id: TopicId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isr: Option<Replicas>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<BrokerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Replicas>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removing_replicas: Option<Replicas>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adding_replicas: Option<Replicas>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_recovery_state: Option<i8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directories: Option<Arc<[DirectoryId]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_leader_replicas: Option<Replicas>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_elr: Option<Replicas>,
}

impl PartitionChangeRecord {
    /// A record that changes nothing yet.
    pub fn of(topic_id: TopicId, partition_id: i32) -> Self {
        PartitionChangeRecord {
            partition_id,
            topic_id,
            isr: None,
            leader: None,
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery_state: None,
            directories: None,
            eligible_leader_replicas: None,
            last_known_elr: None,
        }
    }
}

/// Takes the topic, its partitions and its configurations away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveTopicRecord {
    pub topic_id: TopicId,
}

fn is_empty<T>(list: &Arc<[T]>) -> bool {
    list.is_empty()
}

fn is_zero(state: &i8) -> bool {
    *state == 0
}
