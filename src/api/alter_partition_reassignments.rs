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
use crate::types::BrokerId;

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
        let answer = AlterPartitionReassignmentsResponse::default()
            .with_allow_replication_factor_change(may_change_factor);
        let reassigned = match planned.await {
            Ok(Ok(reassigned)) => reassigned,
            Ok(Err(refused)) => {
                return answer
                    .with_error_code(refused.code.code())
                    .with_error_message(refused.message.as_deref().map(view::text));
            }
            Err(error) => {
                let code = of_quorum(&error);
                return answer
                    .with_error_code(code.code())
                    .with_error_message(Some(view::text(&error.to_string())));
            }
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
        answer
            .with_error_message(None)
            .with_responses(topics.collect())
    })
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
