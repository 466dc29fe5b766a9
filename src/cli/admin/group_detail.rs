//! A group of consumers in detail, whichever protocol it speaks.
//!
//! A group of the newer protocol (KIP-848) is described by an API of its own; a broker answers it
//! with "no such group" for a classic one.

use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment as WireAssignment, DescribedGroup as WireGroup,
};
use kafka_protocol::messages::{ConsumerGroupDescribeRequest, GroupId};

use crate::cli::consume::Assignment;
use crate::peer::{Broker, CoordinatorKind, PeerError};
use crate::types::ErrorCode;

use super::{Admin, AdminError, Answer, check, text};

#[derive(Debug, Clone)]
pub struct GroupDetail {
    pub group: String,
    pub state: String,
    /// Empty: none.
    pub assignor: String,
    /// Of groups whose coordinator gives the partitions: the epoch, and that of what it gives.
    pub epochs: Option<(i32, i32)>,
    pub members: Vec<MemberDetail>,
}

#[derive(Debug, Clone)]
pub struct MemberDetail {
    pub id: String,
    pub instance_id: Option<String>,
    pub host: String,
    pub client_id: String,
    pub partitions: Vec<(String, i32)>,
    pub epoch: Option<i32>,
    pub target_epoch: Option<i32>,
    pub target: Option<Vec<(String, i32)>>,
}

impl Admin {
    pub async fn describe_group(&self, group: &str) -> Answer<GroupDetail> {
        match self.describe_consumer_group(group).await {
            Err(error) if is_classic(&error) => self.describe_classic(group).await,
            described => described,
        }
    }

    async fn describe_consumer_group(&self, group: &str) -> Answer<GroupDetail> {
        let request =
            ConsumerGroupDescribeRequest::default().with_group_ids(vec![GroupId(text(group))]);
        let first = |answer: &kafka_protocol::messages::ConsumerGroupDescribeResponse| {
            answer.groups.first().map_or(0, |g| g.error_code)
        };
        let answer = self
            .coordinator("describeConsumerGroups", group, &request, first)
            .await?;
        let found = answer.groups.into_iter().next();
        let found = found.ok_or_else(|| AdminError::answer(ErrorCode::GroupIdNotFound, None))?;
        check(found.error_code, found.error_message.as_ref())?;
        Ok(consumer_detail(&found))
    }

    async fn describe_classic(&self, group: &str) -> Answer<GroupDetail> {
        let found = self.describe_classic_group(group).await?;
        let members = found.members.iter().map(|member| {
            let assignment = Assignment::read(&member.member_assignment).unwrap_or_default();
            let rows = assignment.partitions.into_iter();
            let partitions =
                rows.flat_map(|(topic, list)| list.into_iter().map(move |p| (topic.clone(), p)));
            let mut partitions: Vec<_> = partitions.collect();
            partitions.sort();
            MemberDetail {
                id: member.member_id.to_string(),
                instance_id: member.group_instance_id.as_ref().map(|id| id.to_string()),
                host: member.client_host.to_string(),
                client_id: member.client_id.to_string(),
                partitions,
                epoch: None,
                target_epoch: None,
                target: None,
            }
        });
        Ok(GroupDetail {
            group: group.to_owned(),
            state: found.group_state.to_string(),
            assignor: found.protocol_data.to_string(),
            epochs: None,
            members: members.collect(),
        })
    }

    /// Who coordinates a group.
    pub async fn group_coordinator(&self, group: &str) -> Answer<Broker> {
        let attempt = async || {
            self.client
                .find_coordinator(CoordinatorKind::Group, group)
                .await
        };
        let found = self.client.retry(attempt).await;
        found.map_err(|source| AdminError::peer("findCoordinator", source))
    }
}

fn is_classic(error: &AdminError) -> bool {
    match error {
        AdminError::Answer { error, .. } => {
            matches!(
                error,
                ErrorCode::GroupIdNotFound | ErrorCode::UnsupportedVersion
            )
        }
        AdminError::Peer { source, .. } => matches!(**source, PeerError::Unsupported { .. }),
    }
}

fn consumer_detail(found: &WireGroup) -> GroupDetail {
    let partitions = |assignment: &WireAssignment| {
        let rows = assignment.topic_partitions.iter().flat_map(|topic| {
            let name = topic.topic_name.0.to_string();
            topic
                .partitions
                .iter()
                .map(move |partition| (name.clone(), *partition))
        });
        let mut rows: Vec<(String, i32)> = rows.collect();
        rows.sort();
        rows
    };
    let members = found.members.iter().map(|member| MemberDetail {
        id: member.member_id.to_string(),
        instance_id: member.instance_id.as_ref().map(|id| id.to_string()),
        host: member.client_host.to_string(),
        client_id: member.client_id.to_string(),
        partitions: partitions(&member.assignment),
        epoch: Some(member.member_epoch),
        target_epoch: Some(found.assignment_epoch),
        target: Some(partitions(&member.target_assignment)),
    });
    GroupDetail {
        group: found.group_id.0.to_string(),
        state: found.group_state.to_string(),
        assignor: found.assignor_name.to_string(),
        epochs: Some((found.group_epoch, found.assignment_epoch)),
        members: members.collect(),
    }
}
