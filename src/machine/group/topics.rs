//! What a coordinator has to know about the topics of the cluster.

use std::collections::BTreeMap;

use crate::types::{TopicId, TopicName};

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: i32,
}

/// The topics of the cluster as of one moment: a view of the metadata image.
pub trait Topics {
    fn by_name(&self, name: &str) -> Option<Topic>;

    fn by_id(&self, id: TopicId) -> Option<Topic>;

    /// Calls `visit` with every name.
    fn for_each_name(&self, visit: &mut dyn FnMut(&TopicName));

    /// Grows with each change of the metadata.
    fn version(&self) -> i64;
}

/// Topics in a map: for tests, and for a coordinator that has none.
#[derive(Debug, Clone, Default)]
pub struct TopicMap {
    pub topics: BTreeMap<TopicName, Topic>,
    pub version: i64,
}

impl Topics for TopicMap {
    fn by_name(&self, name: &str) -> Option<Topic> {
        self.topics.get(name).cloned()
    }

    fn by_id(&self, id: TopicId) -> Option<Topic> {
        self.topics.values().find(|t| t.id == id).cloned()
    }

    fn for_each_name(&self, visit: &mut dyn FnMut(&TopicName)) {
        self.topics.keys().for_each(visit);
    }

    fn version(&self) -> i64 {
        self.version
    }
}
