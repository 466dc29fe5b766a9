//! What planners need to know of the configuration of a topic.

use crate::config::NodeConfig;
use crate::metadata::planners::TopicRules;
use crate::metadata::{ConfigResource, MetadataImage};
use crate::partition::overrides_of;

/// Looks up the rules of topics as `image` and this controller's configuration have them.
pub fn of_image<'a>(
    config: &'a NodeConfig,
    image: &'a MetadataImage,
) -> impl Fn(&str) -> TopicRules + 'a {
    move |topic| {
        let topic = config.topic(&overrides_of(image, &ConfigResource::topic(topic)));
        TopicRules {
            unclean: topic.unclean_leader_election_enable,
            min_isr: topic.min_insync_replicas.max(1) as usize,
        }
    }
}
