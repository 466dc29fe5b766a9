//! DescribeQuorum (key 55): who votes on the metadata, who follows, and how far each has come. The
//! leader of the quorum answers.

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::describe_quorum_request::DescribeQuorumRequest;
use kafka_protocol::messages::describe_quorum_response::{
    DescribeQuorumResponse, Listener, Node as WireNode, PartitionData, ReplicaState, TopicData,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::peer::Address;
use crate::quorum::OBSERVER_MAX;
use crate::types::{ErrorCode, Offset};

const METADATA_TOPIC: &str = "__cluster_metadata";
const UNKNOWN: (ErrorCode, &str) = (
    ErrorCode::UnknownTopicOrPartition,
    "This server does not host this topic-partition.",
);
const NOT_LEADER: (ErrorCode, &str) = (
    ErrorCode::NotLeaderOrFollower,
    "For requests intended only for the leader, this error indicates that the broker is not the \
     current leader. For requests intended for any replica, this error indicates that the broker \
     is not a replica of the topic partition.",
);
/// From this version on there are addresses and directory ids (KIP-853).
const VERSION_NODES: i16 = 2;

pub fn handle(context: Context, request: DescribeQuorumRequest) -> Handled<DescribeQuorumResponse> {
    let refused = match (is_of_metadata(&request), context.node.quorum.is_leader()) {
        (false, _) => Some(UNKNOWN),
        (true, false) => Some(NOT_LEADER),
        (true, true) => None,
    };
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| match refused {
            None => describe(&context),
            Some((error, message)) => PartitionData::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(error.code())
                .with_error_message(Some(view::text(message))),
        });
        TopicData::default()
            .with_topic_name(WireName(view::text(&topic.topic_name.0)))
            .with_partitions(partitions.collect())
    });
    let nodes = match refused {
        None if context.api_version >= VERSION_NODES => nodes(&context),
        _ => Vec::new(),
    };
    let topics: Vec<TopicData> = topics.collect();
    Handled::Ready(
        DescribeQuorumResponse::default()
            .with_topics(topics)
            .with_nodes(nodes),
    )
}

/// Kafka answers only who asks for the one partition of the metadata, and for nothing else.
fn is_of_metadata(request: &DescribeQuorumRequest) -> bool {
    let [topic] = &request.topics[..] else {
        return false;
    };
    let [partition] = &topic.partitions[..] else {
        return false;
    };
    &*topic.topic_name.0 == METADATA_TOPIC && partition.partition_index == 0
}

fn describe(context: &Context) -> PartitionData {
    let node = &context.node;
    let quorum = &node.quorum;
    let (leader, term) = quorum.leader_and_term();
    let now_ms = node.clock.now_ms().0;
    let offsets = quorum.voter_offsets();
    let end = |offset: Offset| offset.0 + 1;
    let own_end = offsets.get(&node.broker_id).copied().map_or(0, end);
    let voters = quorum.voters().into_iter().map(|voter| {
        let is_leader = Some(voter.id) == leader;
        let log_end_offset = offsets.get(&voter.id).copied().map_or(-1, end);
        // A voter is told of each entry as it is made: at the end it was just now.
        let at = |seen: bool| if seen { now_ms } else { -1 };
        let directory_id = match context.api_version >= VERSION_NODES {
            true => voter.directory_id,
            false => uuid::Uuid::nil(),
        };
        ReplicaState::default()
            .with_replica_id(voter.id.0.into())
            .with_replica_directory_id(directory_id)
            .with_log_end_offset(log_end_offset)
            .with_last_fetch_timestamp(at(is_leader || log_end_offset >= 0))
            .with_last_caught_up_timestamp(at(log_end_offset >= own_end))
    });
    let monotonic = node.clock.monotonic();
    let observers = node.endpoint.observers().into_iter();
    let observers = observers.filter_map(|(id, observed)| {
        let age = monotonic.saturating_sub(observed.fetched_at);
        let at_ms = now_ms - age.as_millis() as i64;
        let log_end_offset = end(observed.offset);
        let caught_up_ms = if log_end_offset >= own_end { at_ms } else { -1 };
        (age < OBSERVER_MAX).then(|| {
            ReplicaState::default()
                .with_replica_id(id.0.into())
                .with_log_end_offset(log_end_offset)
                .with_last_fetch_timestamp(at_ms)
                .with_last_caught_up_timestamp(caught_up_ms)
        })
    });
    let learners = quorum.learners().into_iter().map(|learner| {
        let log_end_offset = offsets.get(&learner.id).copied().map_or(-1, end);
        let at = |seen: bool| if seen { now_ms } else { -1 };
        let directory_id = match context.api_version >= VERSION_NODES {
            true => learner.directory_id,
            false => uuid::Uuid::nil(),
        };
        ReplicaState::default()
            .with_replica_id(learner.id.0.into())
            .with_replica_directory_id(directory_id)
            .with_log_end_offset(log_end_offset)
            .with_last_fetch_timestamp(at(log_end_offset >= 0))
            .with_last_caught_up_timestamp(at(log_end_offset >= own_end))
    });
    let observers = learners.chain(observers);
    PartitionData::default()
        .with_leader_id(leader.map_or(-1, |leader| leader.0).into())
        .with_leader_epoch(i32::try_from(term).unwrap_or(i32::MAX))
        .with_high_watermark(end(node.image().offset()))
        .with_current_voters(voters.collect())
        .with_observers(observers.collect())
}

/// The voters' addresses, under the name of the listener that controllers speak on.
fn nodes(context: &Context) -> Vec<WireNode> {
    let config = context.node.config();
    let name = config.listeners.controller_names.first();
    let name = name.map_or("CONTROLLER", String::as_str);
    let voters = context.node.quorum.voters().into_iter();
    let node = |voter: crate::quorum::VoterInfo| {
        let listener = Address::parse(&voter.address).ok().map(|address| {
            Listener::default()
                .with_name(view::text(name))
                .with_host(view::text(&address.host))
                .with_port(address.port)
        });
        WireNode::default()
            .with_node_id(voter.id.0.into())
            .with_listeners(listener.into_iter().collect())
    };
    voters.map(node).collect()
}
