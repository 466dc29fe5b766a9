//! Metadata (key 3): brokers, topics, leaders. Asking for a topic may create it.

use std::collections::BTreeSet;

use kafka_protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use kafka_protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{self, TopicName as WireName};
use uuid::Uuid;

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::metadata::planners::check_topic_name;
use crate::metadata::{MetadataImage, TopicImage};
use crate::types::{BrokerId, ErrorCode, TopicId};

const VERSION_TOPIC_IDS: i16 = 10;
/// From this version on topics may be asked for by id.
const VERSION_BY_ID: i16 = 12;
/// From this version on the answer has an error of its own.
const VERSION_ERROR_CODE: i16 = 13;
/// Up to this version there is no flag, and asking always creates.
const VERSION_ALWAYS_CREATES: i16 = 3;

pub fn handle(context: Context, request: MetadataRequest) -> Handled<MetadataResponse> {
    let image = context.node.image();
    let version = context.api_version;
    let asked = match request.topics {
        Some(ref topics) if topics.is_empty() && version == 0 => None,
        ref topics => topics.as_ref(),
    };
    if let Some(refusal) = asked.and_then(|topics| refuse(version, topics)) {
        return Handled::Ready(refusal);
    }
    let topic = |topic: &TopicImage| describe(&context, &image, topic);
    let topics: Vec<MetadataResponseTopic> = match asked {
        None => image.topics().map(|known| topic(known)).collect(),
        Some(asked) => {
            let may_create = request.allow_auto_topic_creation || version <= VERSION_ALWAYS_CREATES;
            named(&context, &image, asked, may_create)
        }
    };
    let operations = if request.include_topic_authorized_operations {
        view::TOPIC_OPERATIONS
    } else {
        view::OPERATIONS_NOT_ASKED
    };
    let with_operations = |topic: MetadataResponseTopic| {
        // A topic that is not there has none to tell.
        let operations = if topic.error_code == ErrorCode::None.code() {
            operations
        } else {
            view::OPERATIONS_NOT_ASKED
        };
        topic.with_topic_authorized_operations(operations)
    };
    let topics = topics.into_iter().map(with_operations).collect();
    let mut response = cluster(&context, &image).with_topics(topics);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = view::CLUSTER_OPERATIONS;
    }
    Handled::Ready(response)
}

fn cluster(context: &Context, image: &MetadataImage) -> MetadataResponse {
    let brokers = view::brokers(&context.node, &context.connection, image, false).map(|broker| {
        MetadataResponseBroker::default()
            .with_node_id(broker.registration.broker_id.0.into())
            .with_host(broker.host)
            .with_port(broker.port)
            .with_rack(broker.rack)
    });
    let brokers: Vec<MetadataResponseBroker> = brokers.collect();
    // The controllers are not for clients: any live broker takes what is meant for them.
    let controller = brokers
        .first()
        .map_or(messages::BrokerId(-1), |broker| broker.node_id);
    MetadataResponse::default()
        .with_brokers(brokers)
        .with_cluster_id(image.cluster_id().map(|id| view::text(id)))
        .with_controller_id(controller)
}

/// The answer to a request that names topics in a way its version does not have: an error for each
/// topic, and nothing about the cluster.
fn refuse(version: i16, topics: &[MetadataRequestTopic]) -> Option<MetadataResponse> {
    let nameless = topics.iter().any(|topic| topic.name.is_none());
    let error = if version < VERSION_BY_ID && (nameless || topics.iter().any(has_id)) {
        ErrorCode::InvalidRequest
    } else if topics
        .iter()
        .any(|topic| topic.name.is_none() && !has_id(topic))
    {
        ErrorCode::UnknownServerError
    } else {
        return None;
    };
    let topics = topics.iter().map(|topic| {
        MetadataResponseTopic::default()
            .with_error_code(error.code())
            .with_name(Some(topic.name.clone().unwrap_or_default()))
            .with_topic_id(topic.topic_id)
    });
    let answer = MetadataResponse::default()
        .with_topics(topics.collect())
        .with_cluster_id(None);
    Some(if version >= VERSION_ERROR_CODE {
        answer.with_error_code(error.code())
    } else {
        answer
    })
}

fn has_id(topic: &MetadataRequestTopic) -> bool {
    !topic.topic_id.is_nil()
}

/// The topics of a request that names them. As soon as one goes by its id, those that go by name
/// alone are left out.
fn named(
    context: &Context,
    image: &MetadataImage,
    asked: &[MetadataRequestTopic],
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    if asked.iter().any(has_id) {
        let ids: BTreeSet<Uuid> = asked
            .iter()
            .filter(|t| has_id(t))
            .map(|t| t.topic_id)
            .collect();
        let by_id = |id: Uuid| match image.topic_by_id(TopicId(id)) {
            Some(topic) => describe(context, image, topic),
            None => failed(ErrorCode::UnknownTopicId)
                .with_name(None)
                .with_topic_id(id),
        };
        return ids.into_iter().map(by_id).collect();
    }
    let names = asked.iter().filter_map(|topic| topic.name.as_ref());
    let names: BTreeSet<&str> = names.map(|name| name.0.as_str()).collect();
    let mut missing = Vec::new();
    let mut topics = Vec::with_capacity(names.len());
    for name in names {
        topics.push(match image.topic(name) {
            Some(topic) => describe(context, image, topic),
            None => {
                let error = match check_topic_name(name) {
                    Ok(()) => ErrorCode::UnknownTopicOrPartition,
                    Err(_) => ErrorCode::InvalidTopicException,
                };
                if error == ErrorCode::UnknownTopicOrPartition {
                    missing.push(name.to_owned());
                }
                let internal = context.node.is_internal(name);
                let name = Some(WireName(view::text(name)));
                failed(error).with_name(name).with_is_internal(internal)
            }
        });
    }
    if may_create && !missing.is_empty() {
        context.node.auto_create(missing);
    }
    topics
}

fn failed(error: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic::default().with_error_code(error.code())
}

fn describe(context: &Context, image: &MetadataImage, topic: &TopicImage) -> MetadataResponseTopic {
    let listener = &context.connection.listener;
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0.into()).collect();
    let partitions = topic.partitions.iter().map(|(index, partition)| {
        let view = view::partition(image, listener, partition);
        // Up to v0 errors of replicas were told; since then only those of the leader.
        MetadataResponsePartition::default()
            .with_error_code(view.error.code())
            .with_partition_index(index)
            .with_leader_id(view.leader.0.into())
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(ids(&partition.replicas))
            .with_isr_nodes(ids(&partition.isr))
            .with_offline_replicas(ids(&view.offline_replicas))
    });
    let described = MetadataResponseTopic::default()
        .with_name(Some(WireName(view::text(&topic.name))))
        .with_is_internal(context.node.is_internal(&topic.name))
        .with_partitions(partitions.collect());
    if context.api_version >= VERSION_TOPIC_IDS {
        described.with_topic_id(topic.id.0)
    } else {
        described
    }
}
