//! The topics that coordinators keep their state in, made when they are first needed.

use std::sync::Arc;

use super::node::Node;
use crate::metadata::planners::NewTopic;
use crate::quorum::QuorumError;
use crate::types::ErrorCode;

pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
pub const TRANSACTION_STATE: &str = "__transaction_state";
pub const SHARE_GROUP_STATE: &str = "__share_group_state";

/// A topic that brokers keep for themselves (`Topic.INTERNAL_TOPICS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InternalTopic {
    ConsumerOffsets,
    TransactionState,
}

/// Why an internal topic is not there.
#[derive(Debug, thiserror::Error)]
pub enum NoInternalTopic {
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error("the controller refused to create it: {0}")]
    Refused(ErrorCode),
}

impl InternalTopic {
    pub const fn name(self) -> &'static str {
        match self {
            InternalTopic::ConsumerOffsets => CONSUMER_OFFSETS,
            InternalTopic::TransactionState => TRANSACTION_STATE,
        }
    }

    fn new_topic(self, node: &Node) -> NewTopic {
        let config = node.config();
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let (num_partitions, replication_factor, configs) = match self {
            InternalTopic::ConsumerOffsets => {
                let group = &config.broker.group;
                let configs = vec![
                    set("cleanup.policy", "compact"),
                    set(
                        "segment.bytes",
                        &group.offsets_topic_segment_bytes.to_string(),
                    ),
                    set("compression.type", "producer"),
                ];
                let factor = group.offsets_topic_replication_factor;
                (group.offsets_topic_num_partitions, factor, configs)
            }
            InternalTopic::TransactionState => {
                let transaction = &config.broker.transaction;
                let segment_bytes = transaction.transaction_state_log_segment_bytes;
                let min_isr = transaction.transaction_state_log_min_isr;
                let configs = vec![
                    set("unclean.leader.election.enable", "false"),
                    set("compression.type", "uncompressed"),
                    set("cleanup.policy", "compact"),
                    set("min.insync.replicas", &min_isr.to_string()),
                    set("segment.bytes", &segment_bytes.to_string()),
                ];
                let factor = transaction.transaction_state_log_replication_factor;
                (
                    transaction.transaction_state_log_num_partitions,
                    factor,
                    configs,
                )
            }
        };
        // A lone broker serves groups and transactions whatever factor the defaults ask for.
        let image = node.image();
        let brokers = image.brokers().filter(|broker| broker.is_active()).count();
        NewTopic {
            name: self.name().to_owned(),
            num_partitions,
            replication_factor: replication_factor.min(brokers.max(1) as i16),
            configs,
            ..NewTopic::default()
        }
    }
}

/// Makes `topic` unless it is there.
pub async fn ensure(node: &Arc<Node>, topic: InternalTopic) -> Result<(), NoInternalTopic> {
    if node.image().topic(topic.name()).is_some() {
        return Ok(());
    }
    let new = topic.new_topic(node);
    let created = node.create_topics(vec![new], false).await?;
    for (name, result) in created {
        match result {
            Ok(_) => tracing::info!(topic = &*name, "created"),
            // Somebody else was quicker.
            Err(error) if error.code == ErrorCode::TopicAlreadyExists => {}
            Err(error) => {
                tracing::error!(topic = &*name, "not created: {error}");
                return Err(NoInternalTopic::Refused(error.code));
            }
        }
    }
    Ok(())
}
