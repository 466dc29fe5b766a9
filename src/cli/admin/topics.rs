//! Topics: list, describe, create, delete, more partitions.
//!
//! A describe goes page by page (DescribeTopicPartitions, KIP-966); a broker that does not know
//! that is asked for metadata instead, and then nothing is known of eligible leader replicas.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::describe_topic_partitions_response as described;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeTopicPartitionsRequest, TopicName,
};

use crate::peer::{PartitionView, PeerError, TopicView};
use crate::types::{ErrorCode, TopicId};

use super::{Admin, AdminError, Answer, check, text};

#[derive(Debug, Clone)]
pub struct TopicListing {
    pub name: String,
    pub id: TopicId,
    pub is_internal: bool,
}

#[derive(Debug, Clone)]
pub struct TopicDetail {
    pub name: String,
    pub id: TopicId,
    pub partitions: Vec<PartitionDetail>,
}

#[derive(Debug, Clone)]
pub struct PartitionDetail {
    pub index: i32,
    /// -1: none.
    pub leader: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    /// `None`: the broker does not say.
    pub elr: Option<Vec<i32>>,
    pub last_known_elr: Option<Vec<i32>>,
}

#[derive(Debug, Clone, Default)]
pub struct NewTopic {
    pub name: String,
    /// -1: the cluster's default, as for `replication_factor`.
    pub partitions: i32,
    pub replication_factor: i16,
    pub assignment: BTreeMap<i32, Vec<i32>>,
    pub configs: Vec<(String, String)>,
}

fn name(topic: &str) -> TopicName {
    TopicName(text(topic))
}

fn broker_ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn plain_ids(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}

impl Admin {
    /// Every topic, by name.
    pub async fn list_topics(&self) -> Answer<Vec<TopicListing>> {
        let cluster = self.client.metadata(None).await;
        let cluster = cluster.map_err(|source| AdminError::peer("listTopics", source))?;
        let listing = |topic: TopicView| TopicListing {
            name: topic.name,
            id: topic.id,
            is_internal: topic.is_internal,
        };
        Ok(cluster.topics.into_values().map(listing).collect())
    }

    /// The partitions of a topic, which the broker may create if it is missing.
    pub async fn partitions_of(&self, topic: &str) -> Answer<Vec<i32>> {
        let cluster = self.client.metadata_creating(topic).await;
        let cluster = cluster.map_err(|source| AdminError::peer("metadata", source))?;
        match cluster.topics.get(topic) {
            Some(view) if view.error == ErrorCode::None => {
                Ok(view.partitions.iter().map(|p| p.index).collect())
            }
            Some(view) => Err(AdminError::answer(view.error, None)),
            None => Err(AdminError::answer(ErrorCode::UnknownTopicOrPartition, None)),
        }
    }

    /// Fails unless the topic has this partition.
    pub async fn require_partition(&self, topic: &str, partition: i32) -> Answer<()> {
        match self.partitions_of(topic).await?.contains(&partition) {
            true => Ok(()),
            false => Err(AdminError::answer(ErrorCode::UnknownTopicOrPartition, None)),
        }
    }

    /// The details of these topics, in the order of `names`.
    pub async fn describe_topics(
        &self,
        names: &[String],
        partitions_per_answer: i32,
    ) -> Answer<Vec<TopicDetail>> {
        let paged = self.describe_paged(names, partitions_per_answer).await;
        let unsupported = |error: &AdminError| {
            let source = match error {
                AdminError::Peer { source, .. } => Some(&**source),
                AdminError::Answer { .. } => None,
            };
            matches!(source, Some(PeerError::Unsupported { .. }))
        };
        match paged {
            Err(error) if unsupported(&error) => self.describe_by_metadata(names).await,
            paged => paged,
        }
    }

    async fn describe_paged(&self, names: &[String], limit: i32) -> Answer<Vec<TopicDetail>> {
        let mut found: BTreeMap<String, TopicDetail> = BTreeMap::new();
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        let mut cursor: Option<Cursor> = None;
        loop {
            let from = cursor.as_ref().map_or("", |c| c.topic_name.as_str());
            let rest = sorted.iter().filter(|n| n.as_str() >= from);
            let rows = rest.map(|n| TopicRequest::default().with_name(name(n)));
            let request = DescribeTopicPartitionsRequest::default()
                .with_topics(rows.collect())
                .with_response_partition_limit(limit)
                .with_cursor(cursor.take());
            let answer = self.any("describeTopics", &request).await?;
            for topic in answer.topics {
                check(topic.error_code, None)?;
                let topic_name = topic.name.map(|n| n.0.to_string()).unwrap_or_default();
                let detail = found.entry(topic_name.clone()).or_insert(TopicDetail {
                    name: topic_name,
                    id: TopicId(topic.topic_id),
                    partitions: Vec::new(),
                });
                detail
                    .partitions
                    .extend(topic.partitions.iter().map(PartitionDetail::read));
            }
            match answer.next_cursor {
                Some(next) => {
                    let mut at = Cursor::default();
                    at.topic_name = next.topic_name;
                    at.partition_index = next.partition_index;
                    cursor = Some(at);
                }
                None => break,
            }
        }
        for detail in found.values_mut() {
            detail.partitions.sort_by_key(|p| p.index);
        }
        Ok(names.iter().filter_map(|n| found.remove(n)).collect())
    }

    async fn describe_by_metadata(&self, names: &[String]) -> Answer<Vec<TopicDetail>> {
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let cluster = self.client.metadata(Some(&asked)).await;
        let mut cluster = cluster.map_err(|source| AdminError::peer("describeTopics", source))?;
        let mut details = Vec::new();
        for topic in names {
            let missing = || AdminError::answer(ErrorCode::UnknownTopicOrPartition, None);
            let view = cluster.topics.remove(topic).ok_or_else(missing)?;
            if view.error != ErrorCode::None {
                return Err(AdminError::answer(view.error, None));
            }
            details.push(TopicDetail {
                name: view.name,
                id: view.id,
                partitions: view
                    .partitions
                    .iter()
                    .map(PartitionDetail::of_view)
                    .collect(),
            });
        }
        Ok(details)
    }

    pub async fn create_topic(&self, topic: &NewTopic) -> Answer<()> {
        let config = |(name, value): &(String, String)| {
            CreatableTopicConfig::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
        };
        let assignment = |(partition, brokers): (&i32, &Vec<i32>)| {
            CreatableReplicaAssignment::default()
                .with_partition_index(*partition)
                .with_broker_ids(broker_ids(brokers))
        };
        let row = CreatableTopic::default()
            .with_name(name(&topic.name))
            .with_num_partitions(topic.partitions)
            .with_replication_factor(topic.replication_factor)
            .with_assignments(topic.assignment.iter().map(assignment).collect())
            .with_configs(topic.configs.iter().map(config).collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![row])
            .with_timeout_ms(self.timeout_ms());
        let answer = self.any("createTopics", &request).await?;
        for topic in &answer.topics {
            check(topic.error_code, topic.error_message.as_ref())?;
        }
        Ok(())
    }

    pub async fn delete_topics(&self, names: &[String]) -> Answer<()> {
        let row = |n: &String| DeleteTopicState::default().with_name(Some(name(n)));
        // Before version 6 a topic is named in a list of its own.
        let request = DeleteTopicsRequest::default()
            .with_topics(names.iter().map(row).collect())
            .with_timeout_ms(self.timeout_ms());
        let answer = self.any("deleteTopics", &request).await?;
        for topic in &answer.responses {
            check(topic.error_code, topic.error_message.as_ref())?;
        }
        Ok(())
    }

    /// Raises the number of partitions; `new_replicas` are those of the added ones.
    pub async fn create_partitions(
        &self,
        topics: &[(String, Option<Vec<Vec<i32>>>)],
        count: i32,
    ) -> Answer<()> {
        let row = |(topic, new_replicas): &(String, Option<Vec<Vec<i32>>>)| {
            let assignment = |replicas: &Vec<i32>| {
                CreatePartitionsAssignment::default().with_broker_ids(broker_ids(replicas))
            };
            let assignments = new_replicas.as_ref();
            CreatePartitionsTopic::default()
                .with_name(name(topic))
                .with_count(count)
                .with_assignments(assignments.map(|a| a.iter().map(assignment).collect()))
        };
        let request = CreatePartitionsRequest::default()
            .with_topics(topics.iter().map(row).collect())
            .with_timeout_ms(self.timeout_ms());
        let answer = self.any("createPartitions", &request).await?;
        for topic in &answer.results {
            check(topic.error_code, topic.error_message.as_ref())?;
        }
        Ok(())
    }

    /// How long a broker may take over a request.
    pub(super) fn timeout_ms(&self) -> i32 {
        let millis = self.client.config().request_timeout.as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }
}

impl PartitionDetail {
    fn read(partition: &described::DescribeTopicPartitionsResponsePartition) -> PartitionDetail {
        let known = |ids: &Option<Vec<BrokerId>>| Some(plain_ids(ids.as_deref().unwrap_or(&[])));
        PartitionDetail {
            index: partition.partition_index,
            leader: partition.leader_id.0,
            replicas: plain_ids(&partition.replica_nodes),
            isr: plain_ids(&partition.isr_nodes),
            elr: known(&partition.eligible_leader_replicas),
            last_known_elr: known(&partition.last_known_elr),
        }
    }

    fn of_view(partition: &PartitionView) -> PartitionDetail {
        PartitionDetail {
            index: partition.index,
            leader: partition.leader,
            replicas: partition.replicas.clone(),
            isr: partition.isr.clone(),
            elr: None,
            last_known_elr: None,
        }
    }
}
