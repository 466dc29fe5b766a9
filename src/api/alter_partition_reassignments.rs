//! AlterPartitionReassignments (key 45): other replicas for partitions, or the ones before.

use kafka_protocol::messages::AlterPartitionReassignmentsRequest;
use kafka_protocol::messages::alter_partition_reassignments_response::{
    AlterPartitionReassignmentsResponse, ReassignablePartitionResponse, ReassignableTopicResponse,
};

use super::by_topic::timeout;
use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use super::{rules, view};
use crate::metadata::PlanError;
use crate::metadata::planners::{Reassign, plan_reassign_partitions};
use crate::quorum::QuorumError;
use crate::types::{BrokerId, ErrorCode};

/// Up to this version the number of replicas may always change.
const VERSION_ANY_FACTOR: i16 = 0;

pub fn handle(
    context: Context,
    request: AlterPartitionReassignmentsRequest,
) -> Handled<AlterPartitionReassignmentsResponse> {
    Handled::later(async move {
        let may_change_factor =
            context.api_version <= VERSION_ANY_FACTOR || request.allow_replication_factor_change;
        let asked = reassign(&request);
        let config = context.node.config();
        let planned = context
            .node
            .submit_within(timeout(request.timeout_ms), move |image| {
                let rules = rules::of_image(&config, image);
                plan_reassign_partitions(image, &asked, may_change_factor, &rules)
            });
        let reassigned = match planned.await {
            Ok(Ok(reassigned)) => reassigned,
            Ok(Err(error)) => return refused(&request, &error),
            Err(error) => return refused(&request, &plan_error(&error)),
        };
        let mut results = reassigned.into_iter();
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().zip(results.by_ref());
            let partitions =
                partitions.map(|(asked, result)| outcome(asked.partition_index, result));
            ReassignableTopicResponse::default()
                .with_partitions(partitions.collect())
                .with_name(topic.name)
        });
        AlterPartitionReassignmentsResponse::default()
            .with_allow_replication_factor_change(may_change_factor)
            .with_error_message(None)
            .with_responses(topics.collect())
    })
}

/// Everything is refused for the same reason.
fn refused(
    request: &AlterPartitionReassignmentsRequest,
    error: &PlanError,
) -> AlterPartitionReassignmentsResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|asked| outcome(asked.partition_index, Err(error.clone())));
        ReassignableTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    AlterPartitionReassignmentsResponse::default()
        .with_error_code(error.code.code())
        .with_error_message(error.message.as_deref().map(view::text))
        .with_responses(topics.collect())
}

fn plan_error(error: &QuorumError) -> PlanError {
    match error {
        QuorumError::TimedOut => PlanError::bare(ErrorCode::RequestTimedOut),
        error => PlanError::new(of_quorum(error), error.to_string()),
    }
}

fn reassign(request: &AlterPartitionReassignmentsRequest) -> Vec<Reassign> {
    let mut asked = Vec::new();
    for topic in &request.topics {
        asked.extend(topic.partitions.iter().map(|partition| {
            let replicas = partition.replicas.as_ref();
            Reassign {
                topic: topic.name.0.as_str().into(),
                partition: partition.partition_index,
                replicas: replicas.map(|ids| ids.iter().map(|id| BrokerId(id.0)).collect()),
            }
        }));
    }
    asked
}

fn outcome(index: i32, result: Result<(), PlanError>) -> ReassignablePartitionResponse {
    let answer = ReassignablePartitionResponse::default().with_partition_index(index);
    match result {
        Ok(()) => answer.with_error_message(None),
        Err(error) => answer
            .with_error_code(error.code.code())
            .with_error_message(error.message.as_deref().map(view::text)),
    }
}
