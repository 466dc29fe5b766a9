//! AlterPartition (key 56): the leader of a partition says who is in sync.

use kafka_protocol::messages::alter_partition_request::{AlterPartitionRequest, TopicData};
use kafka_protocol::messages::alter_partition_response::{
    AlterPartitionResponse, PartitionData, TopicData as AnsweredTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::{AlterPartition, AlteredPartition, plan_alter_partitions};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, TopicId};

/// Up to this version the ISR comes without the epochs of its brokers.
const VERSION_WITHOUT_EPOCHS: i16 = 2;

pub fn handle(context: Context, request: AlterPartitionRequest) -> Handled<AlterPartitionResponse> {
    Handled::later(async move {
        let failed =
            |error: ErrorCode| AlterPartitionResponse::default().with_error_code(error.code());
        let broker = BrokerId(request.broker_id.0);
        let epoch = BrokerEpoch(request.broker_epoch);
        let partitions = partitions_of(&request.topics, context.api_version);
        let node = context.node.clone();
        let config = node.config();
        let planned = node.submit(move |image| {
            let rules = super::rules::of_image(&config, image);
            plan_alter_partitions(image, broker, epoch, &partitions, &rules)
        });
        let altered = match planned.await {
            Ok(Ok(altered)) => altered,
            Ok(Err(refused)) => return failed(refused.code),
            Err(error) => return failed(of_quorum(&error)),
        };
        let mut altered = altered.into_iter();
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().zip(altered.by_ref());
            let partitions =
                partitions.map(|(asked, result)| answer(asked.partition_index, result));
            AnsweredTopic::default()
                .with_topic_id(topic.topic_id)
                .with_partitions(partitions.collect())
        });
        AlterPartitionResponse::default().with_topics(topics.collect())
    })
}

fn partitions_of(topics: &[TopicData], version: i16) -> Vec<AlterPartition> {
    let mut partitions = Vec::new();
    for topic in topics {
        partitions.extend(topic.partitions.iter().map(|asked| {
            let new_isr = if version <= VERSION_WITHOUT_EPOCHS {
                let ids = asked.new_isr.iter();
                ids.map(|id| (BrokerId(id.0), BrokerEpoch::NONE)).collect()
            } else {
                let states = asked.new_isr_with_epochs.iter();
                let state =
                    |state: &kafka_protocol::messages::alter_partition_request::BrokerState| {
                        (BrokerId(state.broker_id.0), BrokerEpoch(state.broker_epoch))
                    };
                states.map(state).collect()
            };
            AlterPartition {
                topic_id: TopicId(topic.topic_id),
                partition: asked.partition_index,
                leader_epoch: LeaderEpoch(asked.leader_epoch),
                partition_epoch: asked.partition_epoch,
                new_isr,
                leader_recovery_state: asked.leader_recovery_state,
            }
        }));
    }
    partitions
}

fn answer(index: i32, result: Result<AlteredPartition, ErrorCode>) -> PartitionData {
    let answer = PartitionData::default().with_partition_index(index);
    match result {
        Ok(altered) => answer
            .with_leader_id(altered.leader.0.into())
            .with_leader_epoch(altered.leader_epoch.0)
            .with_isr(altered.isr.iter().map(|id| id.0.into()).collect())
            .with_leader_recovery_state(altered.leader_recovery_state)
            .with_partition_epoch(altered.partition_epoch),
        Err(error) => answer.with_error_code(error.code()),
    }
}
