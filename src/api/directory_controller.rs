//! Tells the active controller in which directories this broker's replicas are.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::assign_replicas_to_dirs_request::{
    AssignReplicasToDirsRequest, DirectoryData, PartitionData, TopicData,
};

use crate::metadata::DirectoryId;
use crate::partition::{Assignment, AssignmentAnswers, DirectoryController};
use crate::peer::ControllerChannel;
use crate::types::{BrokerId, ErrorCode, TopicId};

/// As Kafka's brokers wait for a controller.
const TIME: Duration = Duration::from_secs(30);

pub struct ControllerDirectories {
    pub broker_id: BrokerId,
    pub channel: Arc<ControllerChannel>,
}

impl ControllerDirectories {
    async fn ask(&self, broker_epoch: i64, assignments: &[Assignment]) -> AssignmentAnswers {
        let request = AssignReplicasToDirsRequest::default()
            .with_broker_id(self.broker_id.0.into())
            .with_broker_epoch(broker_epoch)
            .with_directories(directories_of(assignments));
        let answer = self.channel.call(&request, TIME).await.map_err(|error| {
            tracing::warn!("the directories of replicas: {error}");
            ErrorCode::RequestTimedOut
        })?;
        ErrorCode::check(answer.error_code)?;
        let mut answers = BTreeMap::new();
        for topic in answer.directories.iter().flat_map(|dir| &dir.topics) {
            for partition in &topic.partitions {
                let key = (TopicId(topic.topic_id), partition.partition_index);
                answers.insert(key, partition.error_code);
            }
        }
        let answer_to = |assignment: &Assignment| {
            let key = (assignment.topic_id, assignment.partition);
            let code = answers.get(&key).ok_or(ErrorCode::UnknownServerError)?;
            ErrorCode::check(*code)
        };
        Ok(assignments.iter().map(answer_to).collect())
    }
}

fn directories_of(assignments: &[Assignment]) -> Vec<DirectoryData> {
    let mut directories: BTreeMap<DirectoryId, BTreeMap<TopicId, Vec<PartitionData>>> =
        BTreeMap::new();
    for assignment in assignments {
        let topics = directories.entry(assignment.directory).or_default();
        let partition = PartitionData::default().with_partition_index(assignment.partition);
        topics
            .entry(assignment.topic_id)
            .or_default()
            .push(partition);
    }
    let topic = |(topic_id, partitions): (TopicId, Vec<PartitionData>)| {
        let topic = TopicData::default().with_topic_id(topic_id.0);
        topic.with_partitions(partitions)
    };
    let directories = directories.into_iter().map(|(directory, topics)| {
        let topics = topics.into_iter().map(topic);
        DirectoryData::default()
            .with_id(directory.0)
            .with_topics(topics.collect())
    });
    directories.collect()
}

impl DirectoryController for ControllerDirectories {
    fn assign<'a>(
        &'a self,
        broker_epoch: i64,
        assignments: &'a [Assignment],
    ) -> Pin<Box<dyn Future<Output = AssignmentAnswers> + Send + 'a>> {
        Box::pin(self.ask(broker_epoch, assignments))
    }
}
