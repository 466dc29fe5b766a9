//! AssignReplicasToDirs (key 73): a broker says in which directories its replicas are (KIP-858).

use kafka_protocol::messages::assign_replicas_to_dirs_request::{
    AssignReplicasToDirsRequest, DirectoryData,
};
use kafka_protocol::messages::assign_replicas_to_dirs_response::{
    AssignReplicasToDirsResponse, DirectoryData as AnsweredDirectory,
    PartitionData as AnsweredPartition, TopicData as AnsweredTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use super::rules;
use crate::metadata::planners::{AssignReplica, plan_assign_replicas};
use crate::metadata::{BrokerEpoch, DirectoryId};
use crate::types::{BrokerId, ErrorCode, TopicId};

pub fn handle(
    context: Context,
    request: AssignReplicasToDirsRequest,
) -> Handled<AssignReplicasToDirsResponse> {
    Handled::later(async move {
        let failed = |error: ErrorCode| {
            AssignReplicasToDirsResponse::default().with_error_code(error.code())
        };
        let broker = BrokerId(request.broker_id.0);
        let epoch = BrokerEpoch(request.broker_epoch);
        let replicas = replicas_of(&request.directories);
        let config = context.node.config();
        let planned = context.node.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_assign_replicas(image, broker, epoch, &replicas, &rules)
        });
        let assigned = match planned.await {
            Ok(Ok(assigned)) => assigned,
            Ok(Err(refused)) => return failed(refused.code),
            Err(error) => return failed(of_quorum(&error)),
        };
        let directories = answers(&request.directories, assigned);
        AssignReplicasToDirsResponse::default().with_directories(directories)
    })
}

fn replicas_of(directories: &[DirectoryData]) -> Vec<AssignReplica> {
    let mut replicas = Vec::new();
    for directory in directories {
        for topic in &directory.topics {
            replicas.extend(topic.partitions.iter().map(|asked| AssignReplica {
                topic_id: TopicId(topic.topic_id),
                partition: asked.partition_index,
                directory: DirectoryId(directory.id),
            }));
        }
    }
    replicas
}

fn answers(
    directories: &[DirectoryData],
    assigned: Vec<Result<(), ErrorCode>>,
) -> Vec<AnsweredDirectory> {
    let mut assigned = assigned.into_iter();
    let mut answered = Vec::with_capacity(directories.len());
    for directory in directories {
        let mut topics = Vec::with_capacity(directory.topics.len());
        for topic in &directory.topics {
            let partitions = topic.partitions.iter().zip(assigned.by_ref());
            let partitions = partitions.map(|(asked, result)| {
                AnsweredPartition::default()
                    .with_partition_index(asked.partition_index)
                    .with_error_code(result.err().unwrap_or(ErrorCode::None).code())
            });
            let topic = AnsweredTopic::default().with_topic_id(topic.topic_id);
            topics.push(topic.with_partitions(partitions.collect()));
        }
        let directory = AnsweredDirectory::default().with_id(directory.id);
        answered.push(directory.with_topics(topics));
    }
    answered
}
