//! What configuration counts for a topic here: its overrides over this broker's values.

use std::sync::Arc;

use crate::config::{NodeConfig, Overrides, TopicConfig};
use crate::log::LogConfig;
use crate::metadata::{ConfigResource, MetadataImage};

/// How much is appended to a log before its write-back is started. The kernel's own way is to
/// wait for seconds and then to write everything at once, which stalls whoever appends.
const WRITE_BACK_BYTES: u32 = 1 << 20;

/// The configuration of a topic, in the forms that appends and the log need.
#[derive(Clone)]
pub struct PartitionConfig {
    pub topic: Arc<TopicConfig>,
    pub log: Arc<LogConfig>,
}

impl PartitionConfig {
    pub fn of_topic(node: &NodeConfig, image: &MetadataImage, topic: &str) -> Self {
        let topic = node.topic(&overrides_of(image, &ConfigResource::topic(topic)));
        let log = LogConfig {
            segment_bytes: topic.segment_bytes_max() as u32,
            segment_ms: topic.segment_ms,
            segment_jitter_ms: topic.segment_jitter_ms,
            segment_index_bytes: topic.segment_index_bytes as u32,
            index_interval_bytes: topic.index_interval_bytes as u32,
            retention_ms: topic.retention_ms,
            retention_bytes: topic.retention_bytes,
            delete: topic.cleanup_policy.delete,
            compact: topic.cleanup_policy.compact,
            min_cleanable_dirty_ratio: topic.min_cleanable_dirty_ratio,
            min_compaction_lag_ms: topic.min_compaction_lag_ms,
            max_compaction_lag_ms: topic.max_compaction_lag_ms,
            delete_retention_ms: topic.delete_retention_ms,
            file_delete_delay_ms: topic.file_delete_delay_ms,
            producer_id_expiration_ms: i64::from(node.broker.log.producer_id_expiration_ms),
            write_back_bytes: WRITE_BACK_BYTES,
        };
        PartitionConfig {
            topic: Arc::new(topic),
            log: Arc::new(log),
        }
    }
}

/// What the cluster has set for a resource.
pub fn overrides_of(image: &MetadataImage, resource: &ConfigResource) -> Overrides {
    let set = image
        .configs(resource)
        .into_iter()
        .flat_map(|configs| configs.iter());
    set.map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}
