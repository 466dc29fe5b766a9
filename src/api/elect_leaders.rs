//! ElectLeaders (key 43): preferred leaders, or unclean ones where no other is left.

use std::collections::BTreeMap;

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::elect_leaders_request::ElectLeadersRequest;
use kafka_protocol::messages::elect_leaders_response::{
    ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use super::{rules, view};
use crate::metadata::PlanError;
use crate::metadata::planners::{Election, plan_elect_leaders};
use crate::types::{ErrorCode, TopicName};

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;
/// From this version on the answer has an error code of its own.
const VERSION_ERROR_CODE: i16 = 1;

type Results = BTreeMap<TopicName, Vec<(i32, Result<(), PlanError>)>>;

pub fn handle(context: Context, request: ElectLeadersRequest) -> Handled<ElectLeadersResponse> {
    let election = match request.election_type {
        PREFERRED => Election::Preferred,
        UNCLEAN => Election::Unclean,
        kind => {
            let message = format!("Unknown election type {kind}");
            let answer = refused(&context, &request, ErrorCode::InvalidRequest, &message);
            return Handled::Ready(answer);
        }
    };
    let named = request.topic_partitions.as_ref().map(|topics| {
        let of = |topic: &kafka_protocol::messages::elect_leaders_request::TopicPartitions| {
            let name: TopicName = topic.topic.0.as_str().into();
            let partitions = topic.partitions.clone();
            partitions
                .into_iter()
                .map(move |index| (name.clone(), index))
        };
        topics.iter().flat_map(of).collect::<Vec<_>>()
    });
    Handled::later(async move {
        let node = context.node.clone();
        let config = node.config();
        let all = named.is_none();
        let planned = node.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_elect_leaders(image, election, named.as_deref(), &rules)
        });
        let elected = match planned.await {
            Ok(elected) => elected,
            Err(error) => {
                let code = of_quorum(&error);
                return refused(&context, &request, code, &error.to_string());
            }
        };
        let mut results = Results::new();
        if all {
            // Each topic is answered, if without partitions.
            let image = node.image();
            results.extend(image.topics().map(|topic| (topic.name.clone(), Vec::new())));
        }
        for (topic, index, result) in elected {
            results.entry(topic).or_default().push((index, result));
        }
        let results = results.into_iter().map(|(topic, partitions)| {
            ReplicaElectionResult::default()
                .with_topic(WireName(view::text(&topic)))
                .with_partition_result(partitions.into_iter().map(answer).collect())
        });
        ElectLeadersResponse::default().with_replica_election_results(results.collect())
    })
}

fn answer((index, result): (i32, Result<(), PlanError>)) -> PartitionResult {
    let answer = PartitionResult::default().with_partition_id(index);
    match result {
        Ok(()) => answer.with_error_message(None),
        Err(error) => answer
            .with_error_code(error.code.code())
            .with_error_message(error.message.as_deref().map(view::text)),
    }
}

/// Everything that was named is refused for the same reason.
fn refused(
    context: &Context,
    request: &ElectLeadersRequest,
    code: ErrorCode,
    message: &str,
) -> ElectLeadersResponse {
    let error = PlanError::new(code, message);
    let topics = request.topic_partitions.iter().flatten().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|index| answer((*index, Err(error.clone()))));
        ReplicaElectionResult::default()
            .with_topic(topic.topic.clone())
            .with_partition_result(partitions.collect())
    });
    let answer = ElectLeadersResponse::default().with_replica_election_results(topics.collect());
    match context.api_version >= VERSION_ERROR_CODE {
        true => answer.with_error_code(code.code()),
        false => answer,
    }
}
