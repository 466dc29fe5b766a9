//! What is true at every moment, looked at from the outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::SimNode;
use crate::metadata::MetadataImage;
use crate::types::{BrokerId, LeaderEpoch, Offset, TopicId};

#[derive(Default)]
pub struct Watch {
    terms: BTreeMap<u64, BrokerId>,
    leaders: BTreeMap<(TopicId, i32, LeaderEpoch), BrokerId>,
    images: BTreeMap<Offset, Arc<MetadataImage>>,
    /// What was said last.
    told: Option<Arc<MetadataImage>>,
    /// What each node had when it was last looked at.
    last: BTreeMap<i32, Arc<MetadataImage>>,
}

impl Watch {
    pub fn look(&mut self, nodes: &[SimNode]) {
        for sim in nodes {
            let Some(node) = sim.node() else { continue };
            let (leader, term) = node.quorum.leader_and_term();
            if let Some(leader) = leader {
                let known = *self.terms.entry(term).or_insert(leader);
                assert_eq!(known, leader, "two controllers in term {term}");
            }
            let image = node.quorum.image();
            let last = self.last.insert(sim.id, image.clone());
            if last.is_none_or(|last| !Arc::ptr_eq(&last, &image)) {
                self.look_at(sim.id, image);
            }
        }
    }

    fn look_at(&mut self, id: i32, image: Arc<MetadataImage>) {
        let offset = image.offset();
        let known = self.images.entry(offset).or_insert_with(|| image.clone());
        assert!(
            **known == *image,
            "node {id} has other metadata at {offset}"
        );
        self.tell(&image);
        for topic in image.topics() {
            for (index, partition) in topic.partitions.iter() {
                if !partition.has_leader() {
                    continue;
                }
                let key = (topic.id, index, partition.leader_epoch);
                let leader = *self.leaders.entry(key).or_insert(partition.leader);
                assert_eq!(leader, partition.leader, "two leaders in {key:?}");
            }
        }
    }

    /// Says in the log what is new in the newest image.
    fn tell(&mut self, image: &Arc<MetadataImage>) {
        let newest = self
            .told
            .as_ref()
            .map_or(Offset::NONE, |told| told.offset());
        if image.offset() <= newest {
            return;
        }
        let Some(before) = self.told.replace(image.clone()) else {
            return;
        };
        let at = image.offset();
        for broker in image.brokers() {
            if before.broker(broker.broker_id) != Some(broker) {
                let (id, epoch, fenced) = (broker.broker_id, broker.broker_epoch, broker.fenced);
                tracing::info!(%at, broker = id.0, epoch = epoch.0, fenced, "metadata");
            }
        }
        for topic in image.topics() {
            for (index, is) in topic.partitions.iter() {
                if before.partition(&topic.name, index) != Some(is) {
                    let (leader, epoch, isr) = (is.leader.0, is.leader_epoch.0, &is.isr);
                    let (elr, last) = (is.eligible_leader_replicas(), is.last_known_elr());
                    let name = &topic.name;
                    tracing::info!(
                        %at, leader, epoch, ?isr, ?elr, ?last, "metadata of {name}-{index}"
                    );
                }
            }
        }
    }

    /// The newest metadata that any node ever had.
    pub fn newest(&self) -> Option<&Arc<MetadataImage>> {
        self.images.last_key_value().map(|(_, image)| image)
    }

    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    pub fn epochs(&self) -> usize {
        self.leaders.len()
    }
}
