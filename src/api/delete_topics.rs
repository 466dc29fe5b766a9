//! DeleteTopics (key 20).

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use kafka_protocol::messages::delete_topics_response::{
    DeletableTopicResult, DeleteTopicsResponse,
};
use uuid::Uuid;

use super::by_topic::{not_done, timeout};
use super::codec::Handled;
use super::context::Context;
use super::{error, view};
use crate::metadata::planners::{DeletedTopic, TopicRef, plan_delete_topics};
use crate::metadata::{MetadataImage, PlanError};
use crate::quorum::QuorumError;
use crate::types::{ErrorCode, TopicId};

/// From this version on topics may be named by id.
const VERSION_BY_ID: i16 = 6;

pub fn handle(context: Context, request: DeleteTopicsRequest) -> Handled<DeleteTopicsResponse> {
    let asked: Vec<DeleteTopicState> = if context.api_version >= VERSION_BY_ID {
        request.topics
    } else {
        let by_name = |name| DeleteTopicState::default().with_name(Some(name));
        request.topic_names.into_iter().map(by_name).collect()
    };
    Handled::later(async move {
        let mut results = Vec::with_capacity(asked.len());
        let mut topics = Vec::with_capacity(asked.len());
        for topic in asked {
            match (topic.name, topic.topic_id) {
                (Some(name), id) if id.is_nil() => {
                    topics.push(TopicRef::Name(name.0.as_str().into()));
                }
                (None, id) if !id.is_nil() => topics.push(TopicRef::Id(TopicId(id))),
                (name, id) => results.push(both_or_none(name, id)),
            }
        }
        if !context.node.config().broker.topics.delete_topic_enable {
            return disabled(&context, topics, results);
        }
        let plan_topics = topics.clone();
        let plan = move |image: &MetadataImage| plan_delete_topics(image, &plan_topics);
        let deleted = context
            .node
            .submit_within(timeout(request.timeout_ms), plan)
            .await;
        match deleted {
            Ok(deleted) => results.extend(deleted.into_iter().map(answer)),
            Err(quorum_error) => {
                if let QuorumError::NotController { .. } = quorum_error
                    && let Some(refused) = none_here(&context, &topics)
                {
                    results.extend(refused.into_iter().map(answer));
                    return DeleteTopicsResponse::default().with_responses(results);
                }
                let not_done = not_done(topics, PlanError::bare(error::of_quorum(&quorum_error)));
                let failed = not_done
                    .iter()
                    .map(|(topic, error)| failed(topic, error.code, error.message.as_deref()));
                results.extend(failed);
            }
        }
        DeleteTopicsResponse::default().with_responses(results)
    })
}

/// A controller that does not lead looks for the topics, too, and passes nothing on when it finds
/// none of them.
fn none_here(context: &Context, topics: &[TopicRef]) -> Option<Vec<DeletedTopic>> {
    let answers = plan_delete_topics(&context.node.image(), topics).answer;
    let none = answers.iter().all(|deleted| deleted.result.is_err());
    none.then_some(answers)
}

/// `delete.topic.enable=false`: refused by name of the setting from v3 on.
fn disabled(
    context: &Context,
    topics: Vec<TopicRef>,
    results: Vec<DeletableTopicResult>,
) -> DeleteTopicsResponse {
    let code = if context.api_version < 3 {
        ErrorCode::InvalidRequest
    } else {
        ErrorCode::TopicDeletionDisabled
    };
    let failed = topics.iter().map(|topic| failed(topic, code, None));
    DeleteTopicsResponse::default().with_responses(results.into_iter().chain(failed).collect())
}

fn both_or_none(name: Option<WireName>, id: Uuid) -> DeletableTopicResult {
    let message = if name.is_none() {
        "Neither topic name nor id were specified."
    } else {
        "You may not specify both topic name and topic id."
    };
    DeletableTopicResult::default()
        .with_name(name)
        .with_topic_id(id)
        .with_error_code(ErrorCode::InvalidRequest.code())
        .with_error_message(Some(view::text(message)))
}

fn failed(topic: &TopicRef, code: ErrorCode, message: Option<&str>) -> DeletableTopicResult {
    let result = match topic {
        TopicRef::Name(name) => {
            DeletableTopicResult::default().with_name(Some(WireName(view::text(name))))
        }
        TopicRef::Id(id) => DeletableTopicResult::default()
            .with_name(None)
            .with_topic_id(id.0),
    };
    result
        .with_error_code(code.code())
        .with_error_message(message.map(view::text))
}

fn answer(deleted: DeletedTopic) -> DeletableTopicResult {
    let result = DeletableTopicResult::default()
        .with_name(
            deleted
                .name
                .as_deref()
                .map(|name| WireName(view::text(name))),
        )
        .with_topic_id(deleted.topic_id.0);
    match deleted.result {
        Ok(()) => result,
        Err(error) => result
            .with_error_code(error.code.code())
            .with_error_message(error.message.as_deref().map(view::text)),
    }
}
