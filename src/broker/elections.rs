//! Elections of partitions' leaders, as the active controller sees them: it looks from time to time
//! for partitions without one that may have an unclean one by now, and counts those that changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Node;
use crate::host::tasks;
use crate::metadata::{MetadataImage, PartitionRegistration};
use crate::quorum::Change;
use crate::types::{BrokerId, some_of};

/// How many partitions one line names.
const NAMES_MAX: usize = 10;

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

/// Counts the leaders that `change` gives to partitions, on the active controller, and says which
/// partitions are left without one.
pub fn count_elections(node: &Node, before: &MetadataImage, change: &Change) {
    if !node.quorum.is_leader() {
        return;
    }
    let mut seen = Seen::default();
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
            if let (Some(old), Some(after)) = both {
                seen.note(|| format!("{}-{index}", new.name), old, after);
            }
        }
    }
    node.elections.all.add(seen.elected);
    node.elections.unclean.add(seen.unclean.len() as u64);
    seen.tell();
}

/// What one change has brought about.
#[derive(Default)]
struct Seen {
    elected: u64,
    /// Partitions.
    unclean: Vec<String>,
    leaderless: Vec<String>,
    /// Those that the leaderless ones wait for.
    waited_for: BTreeSet<BrokerId>,
}

impl Seen {
    fn note(
        &mut self,
        name: impl Fn() -> String,
        old: &PartitionRegistration,
        new: &PartitionRegistration,
    ) {
        if old.has_leader() && !new.has_leader() {
            self.leaderless.push(name());
            self.waited_for.extend(new.isr.iter().copied());
        }
        match Before::of(old).election(new.leader) {
            Election::None => {}
            Election::Clean => self.elected += 1,
            Election::Unclean => {
                self.elected += 1;
                self.unclean.push(name());
            }
        }
    }

    fn tell(&self) {
        if !self.unclean.is_empty() {
            let partitions = some_of(&self.unclean, self.unclean.len(), NAMES_MAX);
            tracing::warn!("led by replicas that may lack records: {partitions}");
        }
        if !self.leaderless.is_empty() {
            let partitions = some_of(&self.leaderless, self.leaderless.len(), NAMES_MAX);
            let brokers = some_of(&self.waited_for, self.waited_for.len(), usize::MAX);
            tracing::warn!("no leader until broker {brokers} is back: {partitions}");
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
    /// Their logs are compared before one of them leads.
    contesting: &'a [BrokerId],
}

impl<'a> Before<'a> {
    fn of(old: &'a PartitionRegistration) -> Self {
        Before {
            leader: old.leader,
            isr: &old.isr,
            eligible: old.eligible_leader_replicas(),
            contesting: match old.is_contested() {
                true => old.last_known_elr(),
                false => &[],
            },
        }
    }

    fn election(&self, leader: BrokerId) -> Election {
        if self.leader == leader || leader == BrokerId::NONE {
            return Election::None;
        }
        let mut counted_on = [self.isr, self.eligible, self.contesting].into_iter();
        match counted_on.any(|brokers| brokers.contains(&leader)) {
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
                contesting: &[],
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
