//! Takes the ISR changes of this broker's leaders to the active controller.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::alter_partition_request::{
    AlterPartitionRequest, BrokerState, PartitionData, TopicData,
};

use crate::machine::replica_set::Decided;
use crate::partition::{IsrAnswers, IsrChange, IsrController};
use crate::peer::ControllerChannel;
use crate::quorum::Quorum;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, TopicId};

/// As Kafka's brokers wait for a controller.
const TIME: Duration = Duration::from_secs(30);

pub struct ControllerIsr {
    pub broker_id: BrokerId,
    pub channel: Arc<ControllerChannel>,
    pub quorum: Arc<Quorum>,
}

impl ControllerIsr {
    async fn ask(&self, broker_epoch: i64, changes: &[IsrChange]) -> IsrAnswers {
        let mut topics: BTreeMap<TopicId, Vec<PartitionData>> = BTreeMap::new();
        for change in changes {
            let proposal = &change.proposal;
            let isr = proposal.new_isr.iter().map(|(id, epoch)| {
                BrokerState::default()
                    .with_broker_id(id.0.into())
                    .with_broker_epoch(*epoch)
            });
            let partition = PartitionData::default()
                .with_partition_index(change.partition)
                .with_leader_epoch(proposal.leader_epoch.0)
                .with_partition_epoch(proposal.partition_epoch)
                .with_new_isr_with_epochs(isr.collect());
            topics.entry(change.topic_id).or_default().push(partition);
        }
        let topics = topics.into_iter().map(|(topic_id, partitions)| {
            TopicData::default()
                .with_topic_id(topic_id.0)
                .with_partitions(partitions)
        });
        let request = AlterPartitionRequest::default()
            .with_broker_id(self.broker_id.0.into())
            .with_broker_epoch(broker_epoch)
            .with_topics(topics.collect());
        let answer = self.channel.call(&request, TIME).await.map_err(|error| {
            tracing::warn!("ISR changes: {error}");
            ErrorCode::RequestTimedOut
        })?;
        ErrorCode::check(answer.error_code)?;
        let mut answers = BTreeMap::new();
        for topic in &answer.topics {
            for partition in &topic.partitions {
                let key = (TopicId(topic.topic_id), partition.partition_index);
                answers.insert(key, partition);
            }
        }
        let image = self.quorum.image();
        let decided = |change: &IsrChange| {
            let key = (change.topic_id, change.partition);
            let answer = answers.get(&key).ok_or(ErrorCode::UnknownServerError)?;
            ErrorCode::check(answer.error_code)?;
            // A change of the replicas comes with the metadata.
            let topic = image.topic_by_id(change.topic_id);
            let known = topic.and_then(|topic| topic.partitions.get(change.partition));
            let known = known.ok_or(ErrorCode::UnknownTopicOrPartition)?;
            Ok(Decided {
                leader_epoch: LeaderEpoch(answer.leader_epoch),
                partition_epoch: answer.partition_epoch,
                replicas: known.replicas.clone(),
                isr: answer.isr.iter().map(|id| BrokerId(id.0)).collect(),
            })
        };
        Ok(changes.iter().map(decided).collect())
    }
}

impl IsrController for ControllerIsr {
    fn alter<'a>(
        &'a self,
        broker_epoch: i64,
        changes: &'a [IsrChange],
    ) -> Pin<Box<dyn Future<Output = IsrAnswers> + Send + 'a>> {
        Box::pin(self.ask(broker_epoch, changes))
    }
}
