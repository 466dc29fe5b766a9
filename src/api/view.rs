//! The cluster as a client of one listener sees it: what Metadata, DescribeCluster and
//! DescribeTopicPartitions have in common.

use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use super::context::Connection;
use super::{Node, told};
use crate::metadata::{MetadataImage, PartitionRegistration, RegisterBrokerRecord};
use crate::types::{BrokerId, ErrorCode};

/// "Not asked for", in place of a bit field of operations.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
/// Every operation that a topic has (`AclEntry.supportedOperations`): nobody is refused any
/// without an authorizer.
pub const TOPIC_OPERATIONS: i32 = 3576;
/// The same for a group.
pub const GROUP_OPERATIONS: i32 = 3400;
/// The same for the cluster.
pub const CLUSTER_OPERATIONS: i32 = 8096;

/// A broker that clients of a listener can reach.
pub struct ReachableBroker<'a> {
    pub registration: &'a Arc<RegisterBrokerRecord>,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

/// The brokers that have the listener of `connection`; fenced ones only if asked for.
pub fn brokers<'a>(
    node: &'a Node,
    connection: &'a Connection,
    image: &'a MetadataImage,
    include_fenced: bool,
) -> impl Iterator<Item = ReachableBroker<'a>> {
    let shown = move |broker: &&Arc<RegisterBrokerRecord>| include_fenced || !broker.fenced;
    image
        .brokers()
        .filter(shown)
        .filter_map(move |registration| {
            let (host, port) = told::address(node, connection, registration)?;
            Some(ReachableBroker {
                registration,
                host,
                port,
                rack: registration.rack.as_deref().map(text),
            })
        })
}

/// A copy of `text` as an answer holds it.
pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What a client of `listener` is told about a partition.
pub struct PartitionView {
    pub error: ErrorCode,
    pub leader: BrokerId,
    pub offline_replicas: Vec<BrokerId>,
}

/// A leader that is not known or cannot be reached is -1 with the error that says so, never a
/// guess.
pub fn partition(
    image: &MetadataImage,
    listener: &str,
    partition: &PartitionRegistration,
) -> PartitionView {
    let reachable = |id: BrokerId| {
        let broker = image.broker(id).filter(|broker| !broker.fenced);
        broker.is_some_and(|broker| broker.end_point(listener).is_some())
    };
    let leader = image
        .broker(partition.leader)
        .filter(|_| partition.has_leader());
    let (error, leader) = if leader.is_none_or(|broker| broker.fenced) {
        (ErrorCode::LeaderNotAvailable, BrokerId::NONE)
    } else if !reachable(partition.leader) {
        (ErrorCode::ListenerNotFound, BrokerId::NONE)
    } else {
        (ErrorCode::None, partition.leader)
    };
    let offline_replicas = partition
        .replicas
        .iter()
        .copied()
        .filter(|replica| !reachable(*replica) || !image.has_directory(*replica, partition))
        .collect();
    PartitionView {
        error,
        leader,
        offline_replicas,
    }
}
