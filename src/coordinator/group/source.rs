//! Topics and configurations as the group machines see them, from the metadata of the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::machine::ClusterView;
use crate::config::NodeConfig;
use crate::machine::group::{GroupConfig, GroupOverrides, MigrationPolicy, Topic, Topics};
use crate::metadata::{ConfigResourceType, MetadataImage, TopicImage};
use crate::quorum::Quorum;
use crate::types::{TopicId, TopicName};

/// The topics of one image.
struct ImageTopics(Arc<MetadataImage>);

impl Topics for ImageTopics {
    fn by_name(&self, name: &str) -> Option<Topic> {
        self.0.topic(name).map(|topic| topic_of(topic))
    }

    fn by_id(&self, id: TopicId) -> Option<Topic> {
        self.0.topic_by_id(id).map(|topic| topic_of(topic))
    }

    fn for_each_name(&self, visit: &mut dyn FnMut(&TopicName)) {
        self.0.topics().for_each(|topic| visit(&topic.name));
    }

    fn version(&self) -> i64 {
        self.0.offset().0
    }
}

fn topic_of(topic: &TopicImage) -> Topic {
    Topic {
        id: topic.id,
        name: topic.name.clone(),
        partitions: topic.partitions.len() as i32,
    }
}

/// The newest image and configuration of this node.
pub struct ClusterSource {
    pub quorum: Arc<Quorum>,
    pub config: Arc<ArcSwap<NodeConfig>>,
}

impl ClusterView for ClusterSource {
    fn topics(&self) -> Arc<dyn Topics> {
        Arc::new(ImageTopics(self.quorum.image()))
    }

    fn config(&self) -> GroupConfig {
        group_config(&self.config.load(), &self.quorum.image())
    }
}

/// What the node and the cluster have configured for groups.
pub fn group_config(node: &NodeConfig, image: &MetadataImage) -> GroupConfig {
    let broker = &node.broker.group;
    let defaults = &node.group_defaults;
    GroupConfig {
        group_min_session_timeout_ms: broker.group_min_session_timeout_ms,
        group_max_session_timeout_ms: broker.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms: broker.group_initial_rebalance_delay_ms,
        group_max_size: broker.group_max_size.max(1) as usize,
        offset_metadata_max_bytes: broker.offset_metadata_max_bytes.max(0) as usize,
        offsets_retention_ms: i64::from(broker.offsets_retention_minutes) * 60_000,
        offsets_retention_check_interval_ms: broker.offsets_retention_check_interval_ms,
        consumer_session_timeout_ms: defaults.consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms: defaults.consumer_heartbeat_interval_ms,
        consumer_assignment_interval_ms: defaults.consumer_assignment_interval_ms,
        consumer_max_size: broker.group_consumer_max_size.max(1) as usize,
        consumer_assignors: broker.group_consumer_assignors.clone(),
        consumer_migration_policy: migration_policy(&broker.group_consumer_migration_policy),
        overrides: overrides(node, image),
    }
}

fn migration_policy(name: &str) -> MigrationPolicy {
    match name.to_ascii_lowercase().as_str() {
        "upgrade" => MigrationPolicy::Upgrade,
        "downgrade" => MigrationPolicy::Downgrade,
        "disabled" => MigrationPolicy::Disabled,
        _ => MigrationPolicy::Bidirectional,
    }
}

/// A group's own values. The broker's limits may have been changed since they were set: what is
/// outside counts as the limit.
fn overrides(node: &NodeConfig, image: &MetadataImage) -> BTreeMap<String, GroupOverrides> {
    let broker = &node.broker.group;
    let groups = image
        .config_resources()
        .filter(|(resource, _)| resource.resource_type == ConfigResourceType::Group);
    groups
        .map(|(resource, configs)| {
            let number = |name: &str, min: i32, max: i32| {
                let value: i32 = configs.get(name)?.trim().parse().ok()?;
                Some(value.min(max).max(min))
            };
            let overrides = GroupOverrides {
                consumer_session_timeout_ms: number(
                    "consumer.session.timeout.ms",
                    broker.group_consumer_min_session_timeout_ms,
                    broker.group_consumer_max_session_timeout_ms,
                ),
                consumer_heartbeat_interval_ms: number(
                    "consumer.heartbeat.interval.ms",
                    broker.group_consumer_min_heartbeat_interval_ms,
                    broker.group_consumer_max_heartbeat_interval_ms,
                ),
                consumer_assignment_interval_ms: number(
                    "consumer.assignment.interval.ms",
                    broker.group_consumer_min_assignment_interval_ms,
                    broker.group_consumer_max_assignment_interval_ms,
                ),
            };
            (resource.resource_name.to_string(), overrides)
        })
        .collect()
}
