//! What the group APIs share: who asks, texts in the coordinator's form, offsets to commit.

use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use crate::machine::group::command::{Client, CommitPartition};
use crate::metadata::TopicImage;
use crate::types::{ErrorCode, LeaderEpoch, Offset};

/// The client as DescribeGroups shows it.
pub fn client(context: &Context) -> Client {
    Client {
        client_id: context
            .client_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        client_host: format!("/{}", context.connection.peer.ip().to_canonical()),
    }
}

pub fn owned(text: Option<&StrBytes>) -> Option<String> {
    text.map(ToString::to_string)
}

pub fn wire(text: Option<&str>) -> Option<StrBytes> {
    text.map(super::view::text)
}

/// A topic of a commit: what it is, if it exists, and what is to be committed.
pub struct AskedTopic {
    pub topic: Option<Arc<TopicImage>>,
    pub partitions: Vec<AskedPartition>,
}

pub struct AskedPartition {
    pub index: i32,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Option<String>,
}

/// The partitions of a commit that exist, and the errors of all.
pub struct SortedOut {
    pub known: Vec<CommitPartition>,
    /// By topic and partition, in the order of the request.
    pub errors: Vec<Vec<ErrorCode>>,
    /// Where in `errors` each of `known` stands.
    places: Vec<(usize, usize)>,
}

impl SortedOut {
    pub fn new(asked: Vec<AskedTopic>, unknown_topic: ErrorCode) -> Self {
        let mut sorted = SortedOut {
            known: Vec::new(),
            errors: Vec::with_capacity(asked.len()),
            places: Vec::new(),
        };
        for (at, AskedTopic { topic, partitions }) in asked.into_iter().enumerate() {
            let unknown = match topic {
                Some(_) => ErrorCode::UnknownTopicOrPartition,
                None => unknown_topic,
            };
            sorted.errors.push(vec![unknown; partitions.len()]);
            let Some(topic) = topic else { continue };
            for (nth, partition) in partitions.into_iter().enumerate() {
                if topic.partitions.get(partition.index).is_none() {
                    continue;
                }
                sorted.places.push((at, nth));
                sorted.known.push(CommitPartition {
                    topic: topic.name.clone(),
                    topic_id: topic.id,
                    partition: partition.index,
                    offset: partition.offset,
                    leader_epoch: partition.leader_epoch,
                    metadata: partition.metadata,
                });
            }
        }
        sorted
    }

    /// All errors, with what became of those that are known.
    pub fn with_known(mut self, stored: Vec<ErrorCode>) -> Vec<Vec<ErrorCode>> {
        for ((at, nth), error) in self.places.into_iter().zip(stored) {
            self.errors[at][nth] = error;
        }
        self.errors
    }
}
