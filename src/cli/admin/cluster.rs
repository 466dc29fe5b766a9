//! The cluster: its id, its brokers, running reassignments.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_partition_reassignments_request as reassignments;
use kafka_protocol::messages::{
    BrokerId, DescribeClusterRequest, ListPartitionReassignmentsRequest, TopicName,
};

use crate::peer::{Address, Broker};

use super::{Admin, Answer, check, text};

#[derive(Debug, Clone)]
pub struct ClusterDescription {
    pub cluster_id: String,
    /// With whether each is fenced.
    pub brokers: BTreeMap<i32, (Broker, bool)>,
}

/// A reassignment that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassignment {
    pub replicas: Vec<i32>,
    pub adding: Vec<i32>,
    pub removing: Vec<i32>,
}

impl Admin {
    /// The cluster and its brokers, or its controllers if they are asked.
    pub async fn describe_cluster(&self, include_fenced: bool) -> Answer<ClusterDescription> {
        let endpoint_type = if self.is_controller { 2 } else { 1 };
        let request = DescribeClusterRequest::default()
            .with_endpoint_type(endpoint_type)
            .with_include_fenced_brokers(include_fenced);
        let answer = self.any("describeCluster", &request).await?;
        check(answer.error_code, answer.error_message.as_ref())?;
        let brokers = answer.brokers.iter().filter_map(|broker| {
            let id = broker.broker_id.0;
            let address = Address::new(&broker.host, u16::try_from(broker.port).ok()?);
            let rack = broker.rack.as_ref().map(|rack| rack.to_string());
            Some((id, (Broker { id, address, rack }, broker.is_fenced)))
        });
        Ok(ClusterDescription {
            cluster_id: answer.cluster_id.to_string(),
            brokers: brokers.collect(),
        })
    }

    /// The reassignments of these partitions, or of all.
    pub async fn list_reassignments(
        &self,
        partitions: Option<&[(String, Vec<i32>)]>,
    ) -> Answer<BTreeMap<(String, i32), Reassignment>> {
        let row = |(topic, partitions): &(String, Vec<i32>)| {
            reassignments::ListPartitionReassignmentsTopics::default()
                .with_name(TopicName(text(topic)))
                .with_partition_indexes(partitions.clone())
        };
        let request = ListPartitionReassignmentsRequest::default()
            .with_topics(partitions.map(|rows| rows.iter().map(row).collect()))
            .with_timeout_ms(self.timeout_ms());
        let answer = self.any("listPartitionReassignments", &request).await?;
        check(answer.error_code, answer.error_message.as_ref())?;
        let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
        let mut found = BTreeMap::new();
        for topic in &answer.topics {
            for partition in &topic.partitions {
                let reassignment = Reassignment {
                    replicas: ids(&partition.replicas),
                    adding: ids(&partition.adding_replicas),
                    removing: ids(&partition.removing_replicas),
                };
                let key = (topic.name.0.to_string(), partition.partition_index);
                found.insert(key, reassignment);
            }
        }
        Ok(found)
    }
}
