//! Which replica a consumer reads from (KIP-392): with Kafka's `RackAwareReplicaSelector` one in
//! the consumer's rack, else the leader.

use std::sync::Arc;

use super::Node;
use crate::config::RACK_AWARE_SELECTOR;
use crate::partition::{KnownBrokers, Partition};
use crate::types::{BrokerId, Offset};

/// The brokers a consumer may be sent to.
pub struct ReadReplicas {
    this_broker: BrokerId,
    brokers: Arc<KnownBrokers>,
}

impl ReadReplicas {
    /// `None`: consumers read from the leader.
    pub fn of(node: &Node) -> Option<ReadReplicas> {
        let config = node.config.load();
        let selector = config.broker.replication.replica_selector_class.as_deref();
        (selector == Some(RACK_AWARE_SELECTOR)).then(|| ReadReplicas {
            this_broker: node.broker_id,
            brokers: node.partitions.surroundings().brokers(),
        })
    }

    /// The follower that a consumer in `rack_id` should read from; `None`: this broker, or this
    /// broker does not lead. Only one that is in sync and has the offset is named: the consumer
    /// would come back at once, or fall behind with it.
    pub fn preferred(
        &self,
        partition: &Partition,
        rack_id: &str,
        from: Offset,
    ) -> Option<BrokerId> {
        if rack_id.is_empty() || !partition.is_leader() {
            return None;
        }
        let is_near = |broker: BrokerId| {
            let known = self.brokers.get(&broker).filter(|known| known.is_active);
            known.is_some_and(|known| known.rack.as_deref() == Some(rack_id))
        };
        if is_near(self.this_broker) {
            return None;
        }
        let isr = partition.leadership().isr.clone();
        let mut near = partition.followers();
        near.retain(|follower| {
            isr.contains(&follower.broker)
                && follower.log_end_offset >= from
                && follower.log_start_offset <= from
                && is_near(follower.broker)
        });
        let best = near
            .iter()
            .max_by_key(|f| (f.log_end_offset, f.last_caught_up, f.broker));
        best.map(|follower| follower.broker)
    }
}
