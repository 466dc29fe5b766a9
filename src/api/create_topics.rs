//! CreateTopics (key 19).

use std::time::Duration;

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse,
};

use super::by_topic::{not_done, timeout};
use super::codec::Handled;
use super::context::Context;
use super::{Node, error, view};
use crate::metadata::PlanError;
use crate::metadata::planners::{CreatedTopic, CreatedTopics, NewTopic};
use crate::quorum::QuorumError;
use crate::types::{BrokerId, ErrorCode, Offset, TopicId, TopicName};

/// From this version on a created topic's configurations are told, and its id (KIP-525).
const VERSION_TELLS_CONFIGS: i16 = 5;

pub fn handle(context: Context, request: CreateTopicsRequest) -> Handled<CreateTopicsResponse> {
    Handled::later(async move {
        let topics: Vec<NewTopic> = request.topics.iter().map(new_topic).collect();
        let timeout = timeout(request.timeout_ms);
        let validate_only = request.validate_only;
        let created = context
            .node
            .create_topics_within(timeout, topics.clone(), validate_only)
            .await;
        let results = match created {
            Ok(created) => created
                .into_iter()
                .map(|(name, result)| answer(&context, &topics, &name, result))
                .collect(),
            Err(quorum_error) => {
                let names = topics.iter().map(|topic| topic.name.as_str());
                let not_done = not_done(names, error::plan_error(&quorum_error));
                not_done
                    .iter()
                    .map(|(name, error)| refused(name, error))
                    .collect()
            }
        };
        CreateTopicsResponse::default().with_topics(results)
    })
}

/// Has the active controller, which is elsewhere, create topics; returns once this broker has them.
pub async fn forward(
    node: &Node,
    time: Duration,
    topics: Vec<NewTopic>,
    validate_only: bool,
) -> Result<CreatedTopics, QuorumError> {
    let request = CreateTopicsRequest::default()
        .with_topics(topics.iter().map(creatable).collect())
        .with_timeout_ms(i32::try_from(time.as_millis()).unwrap_or(i32::MAX))
        .with_validate_only(validate_only);
    let listener = node.config().listeners.inter_broker_name.clone();
    let answered = node.forwarding.forward_own(&listener, &request, time).await;
    let answered = answered.map_err(|error| {
        tracing::warn!("topics not created: {error}");
        QuorumError::TimedOut
    })?;
    // This node became the controller meanwhile.
    let Some((answer, offset)) = answered else {
        let leader = node.quorum.leader();
        return Err(QuorumError::NotController { leader });
    };
    node.partitions.wait_applied(Offset(offset)).await;
    let created = answer.topics.into_iter().map(|topic| {
        let name: TopicName = topic.name.0.as_str().into();
        let code = ErrorCode::from_code(topic.error_code);
        let result = match code.unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => Ok(CreatedTopic {
                topic_id: TopicId(topic.topic_id),
                num_partitions: topic.num_partitions,
                replication_factor: topic.replication_factor,
            }),
            code => Err(PlanError {
                code,
                message: topic.error_message.map(|message| message.as_str().into()),
            }),
        };
        (name, result)
    });
    Ok(created.collect())
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let configs = topic.configs.iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name(view::text(name))
            .with_value(value.as_deref().map(view::text))
    });
    let assignments = topic.assignments.iter().map(|(index, replicas)| {
        CreatableReplicaAssignment::default()
            .with_partition_index(*index)
            .with_broker_ids(replicas.iter().map(|id| id.0.into()).collect())
    });
    CreatableTopic::default()
        .with_name(WireName(view::text(&topic.name)))
        .with_num_partitions(topic.num_partitions)
        .with_replication_factor(topic.replication_factor)
        .with_assignments(assignments.collect())
        .with_configs(configs.collect())
}

fn new_topic(topic: &CreatableTopic) -> NewTopic {
    let assignment = |assigned: &CreatableReplicaAssignment| {
        let replicas = assigned.broker_ids.iter().map(|id| BrokerId(id.0));
        (assigned.partition_index, replicas.collect())
    };
    let config = |config: &CreatableTopicConfig| {
        (
            config.name.to_string(),
            config.value.as_ref().map(ToString::to_string),
        )
    };
    NewTopic {
        name: topic.name.0.to_string(),
        num_partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(assignment).collect(),
        configs: topic.configs.iter().map(config).collect(),
    }
}

fn answer(
    context: &Context,
    topics: &[NewTopic],
    name: &TopicName,
    result: Result<CreatedTopic, PlanError>,
) -> CreatableTopicResult {
    match result {
        Err(error) => refused(name, &error),
        Ok(created) => {
            let result = CreatableTopicResult::default()
                .with_name(WireName(view::text(name)))
                .with_error_message(None)
                .with_topic_id(created.topic_id.0);
            if context.api_version < VERSION_TELLS_CONFIGS {
                return result;
            }
            let asked = topics.iter().find(|topic| *topic.name == **name);
            result
                .with_num_partitions(created.num_partitions)
                .with_replication_factor(created.replication_factor)
                .with_configs(asked.map(|topic| configs(&context.node, topic)))
        }
    }
}

fn refused(name: &str, error: &PlanError) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(WireName(view::text(name)))
        .with_error_code(error.code.code())
        .with_error_message(error.message.as_deref().map(view::text))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_configs(Some(Vec::new()))
}

/// Every configuration of the new topic, by name; those that were given as they were given.
fn configs(node: &Node, topic: &NewTopic) -> Vec<CreatableTopicConfigs> {
    let described = node.describe_new_topic(topic);
    let given = |name: &str| topic.configs.iter().rev().find(|(given, _)| given == name);
    let config = described.into_iter().map(|config| {
        let value = given(&config.name).map_or(config.value, |(_, value)| value.clone());
        CreatableTopicConfigs::default()
            .with_name(view::text(&config.name))
            .with_value(value.as_deref().map(view::text))
            .with_read_only(config.read_only)
            .with_config_source(config.source.code())
            .with_is_sensitive(config.sensitive)
    });
    config.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ErrorCode;

    #[test]
    fn a_refused_topic_says_so_in_every_field() {
        let result = refused("t", &PlanError::bare(ErrorCode::TopicAlreadyExists));
        assert!(result.topic_id.is_nil());
        assert_eq!((result.num_partitions, result.replication_factor), (-1, -1));
        assert_eq!(result.configs, Some(Vec::new()));
    }
}
