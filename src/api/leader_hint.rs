//! The leader to turn to instead, and where it is (KIP-951): a client that is told need not ask for
//! the metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use super::{Node, view};
use crate::metadata::MetadataImage;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, TopicId};

/// A broker as the client's listener reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderEndpoint {
    pub id: BrokerId,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

/// Collects the hints of one answer. Looks at the metadata when the first one is needed.
pub struct LeaderHints<'a> {
    node: &'a Node,
    listener: &'a str,
    image: Option<Arc<MetadataImage>>,
    endpoints: BTreeMap<BrokerId, LeaderEndpoint>,
}

impl<'a> LeaderHints<'a> {
    pub fn new(node: &'a Node, listener: &'a str) -> Self {
        LeaderHints {
            node,
            listener,
            image: None,
            endpoints: BTreeMap::new(),
        }
    }

    /// The leader of a partition whose answer is `error`, where that asks for one. The topic goes
    /// by its id, or by its name where the id is nil.
    pub fn of(
        &mut self,
        topic: &str,
        topic_id: TopicId,
        partition: i32,
        error: ErrorCode,
    ) -> Option<(BrokerId, LeaderEpoch)> {
        let names_leader = matches!(
            error,
            ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch
        );
        if !names_leader {
            return None;
        }
        let node = self.node;
        let image = self.image.get_or_insert_with(|| node.image()).clone();
        let topic = match topic_id.is_none() {
            true => image.topic(topic),
            false => image.topic_by_id(topic_id),
        }?;
        let registered = topic.partitions.get(partition)?;
        // What this broker has acted upon may be behind the metadata, and is what refused.
        let known = node.partitions.get(topic.id, partition);
        let known = known.map(|partition| partition.leadership());
        let (leader, epoch) =
            match known.filter(|known| known.leader_epoch >= registered.leader_epoch) {
                Some(known) => (known.leader, known.leader_epoch),
                None => (registered.leader, registered.leader_epoch),
            };
        self.add_endpoint(&image, leader);
        Some((leader, epoch))
    }

    fn add_endpoint(&mut self, image: &MetadataImage, leader: BrokerId) {
        if leader == BrokerId::NONE || self.endpoints.contains_key(&leader) {
            return;
        }
        let broker = image.broker(leader).filter(|broker| !broker.fenced);
        if let Some(broker) = broker
            && let Some(end_point) = broker.end_point(self.listener)
        {
            let endpoint = LeaderEndpoint {
                id: leader,
                host: view::text(&end_point.host),
                port: i32::from(end_point.port),
                rack: broker.rack.as_deref().map(view::text),
            };
            self.endpoints.insert(leader, endpoint);
        }
    }

    /// Where the leaders are that were named.
    pub fn endpoints(self) -> Vec<LeaderEndpoint> {
        self.endpoints.into_values().collect()
    }
}
