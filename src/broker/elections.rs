//! Elections of partitions' leaders, as the active controller sees them: it looks from time to time
//! for partitions without one that may have an unclean one by now, and counts those that changed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Node;
use crate::host::tasks;
use crate::metadata::MetadataImage;
use crate::quorum::Change;
use crate::types::BrokerId;

/// Looks every `unclean.leader.election.interval.ms`, while this node leads the quorum.
pub fn start_elections(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    if !node.quorum.is_voter() {
        return;
    }
    let interval_ms = node
        .config()
        .broker
        .replication
        .unclean_leader_election_interval_ms;
    let interval = Duration::from_millis(interval_ms.max(1) as u64);
    let (node, mut stopping) = (node.clone(), stopping.clone());
    let work = async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = stopping.wait_for(|stop| *stop) => return,
            }
            if node.quorum.is_leader() {
                node.elect_unclean_leaders().await;
            }
        }
    };
    drop(tasks::spawn(work));
}

/// Counts the leaders that `change` gives to partitions, on the active controller.
pub fn count_elections(node: &Node, before: &MetadataImage, change: &Change) {
    if !node.quorum.is_leader() {
        return;
    }
    for (topic_id, partitions) in &change.delta.topics {
        let topics = (
            before.topic_by_id(*topic_id),
            change.image.topic_by_id(*topic_id),
        );
        let (Some(old), Some(new)) = topics else {
            continue;
        };
        for index in partitions {
            let both = (old.partitions.get(*index), new.partitions.get(*index));
            let (Some(old), Some(new)) = both else {
                continue;
            };
            let before = Before {
                leader: old.leader,
                isr: &old.isr,
                eligible: old.eligible_leader_replicas(),
            };
            match before.election(new.leader) {
                Election::None => {}
                Election::Clean => node.elections.all.increment(),
                Election::Unclean => {
                    node.elections.all.increment();
                    node.elections.unclean.increment();
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Election {
    None,
    Clean,
    /// The new leader need not have what was committed.
    Unclean,
}

/// A partition before a change.
struct Before<'a> {
    leader: BrokerId,
    isr: &'a [BrokerId],
    eligible: &'a [BrokerId],
}

impl Before<'_> {
    fn election(&self, leader: BrokerId) -> Election {
        if self.leader == leader || leader == BrokerId::NONE {
            return Election::None;
        }
        match self.isr.contains(&leader) || self.eligible.contains(&leader) {
            true => Election::Clean,
            false => Election::Unclean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_need_not_have_everything_is_an_unclean_one() {
        let brokers = [1, 2, 3].map(BrokerId);
        let election = |leader: i32, to: i32| {
            let (isr, eligible) = (&brokers[..1], &brokers[1..2]);
            let leader = BrokerId(leader);
            let before = Before {
                leader,
                isr,
                eligible,
            };
            before.election(BrokerId(to))
        };
        assert_eq!(election(-1, 1), Election::Clean);
        assert_eq!(election(-1, 2), Election::Clean, "it is eligible");
        assert_eq!(election(-1, 3), Election::Unclean);
        assert_eq!(election(1, -1), Election::None);
        assert_eq!(election(1, 1), Election::None);
    }
}
