//! What a batch of records changed, so that nobody has to compare two images.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::records::ConfigResource;
use crate::types::{BrokerId, TopicId, TopicName};

/// The parts of an image that differ from an earlier one. What is named here may also be unchanged;
/// what is not named is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageDelta {
    /// The image was loaded as a whole: look at everything. The rest is empty then.
    pub everything: bool,
    /// New topics and topics with new or changed partitions. A topic may stand here and in
    /// `removed_topics` when it was made and taken away since; then it is not in the image.
    pub topics: BTreeMap<TopicId, BTreeSet<i32>>,
    pub removed_topics: BTreeMap<TopicId, TopicName>,
    /// Not listed for removed topics, whose configurations go with them.
    pub configs: BTreeSet<ConfigResource>,
    /// Registered, changed or unregistered.
    pub brokers: BTreeSet<BrokerId>,
    pub features: bool,
}

impl ImageDelta {
    /// "Look at everything".
    pub fn everything() -> Self {
        ImageDelta {
            everything: true,
            ..ImageDelta::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == ImageDelta::default()
    }

    /// Adds what changed after this delta.
    pub fn merge(&mut self, later: &ImageDelta) {
        if self.everything || later.everything {
            *self = ImageDelta::everything();
            return;
        }
        for (topic, partitions) in &later.topics {
            self.topics.entry(*topic).or_default().extend(partitions);
        }
        let removed = later.removed_topics.iter();
        self.removed_topics
            .extend(removed.map(|(id, name)| (*id, name.clone())));
        self.configs.extend(later.configs.iter().cloned());
        self.brokers.extend(&later.brokers);
        self.features |= later.features;
    }
}
