//! CreatePartitions (key 37).

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsRequest, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_partitions_response::{
    CreatePartitionsResponse, CreatePartitionsTopicResult,
};

use super::by_topic::{not_done, timeout};
use super::codec::Handled;
use super::context::Context;
use super::{error, view};
use crate::metadata::PlanError;
use crate::metadata::planners::{NewPartitions, plan_create_partitions};
use crate::types::BrokerId;

pub fn handle(
    context: Context,
    request: CreatePartitionsRequest,
) -> Handled<CreatePartitionsResponse> {
    Handled::later(async move {
        let topics: Vec<NewPartitions> = request.topics.iter().map(new_partitions).collect();
        let planned = topics.clone();
        let validate_only = request.validate_only;
        let node = context.node.clone();
        let timeout = timeout(request.timeout_ms);
        let made = context.node.submit_within(timeout, move |image| {
            plan_create_partitions(image, &planned, validate_only, &mut node.draw())
        });
        let results = match made.await {
            Ok(made) => made
                .into_iter()
                .map(|(name, result)| answer(&name, result.err()))
                .collect(),
            Err(quorum_error) => {
                let names = topics.iter().map(|topic| topic.name.clone());
                let not_done = not_done(names, error::plan_error(&quorum_error));
                not_done
                    .into_iter()
                    .map(|(name, error)| answer(&name, Some(error)))
                    .collect()
            }
        };
        CreatePartitionsResponse::default().with_results(results)
    })
}

fn new_partitions(topic: &CreatePartitionsTopic) -> NewPartitions {
    let assignments = topic.assignments.as_ref().map(|assignments| {
        let replicas = assignments.iter().map(|assignment| {
            assignment
                .broker_ids
                .iter()
                .map(|id| BrokerId(id.0))
                .collect()
        });
        replicas.collect()
    });
    NewPartitions {
        name: topic.name.0.as_str().into(),
        count: topic.count,
        assignments,
    }
}

fn answer(name: &str, error: Option<PlanError>) -> CreatePartitionsTopicResult {
    let result = CreatePartitionsTopicResult::default().with_name(WireName(view::text(name)));
    match error {
        None => result,
        Some(error) => result
            .with_error_code(error.code.code())
            .with_error_message(error.message.as_deref().map(view::text)),
    }
}
