//! Which of a partition's replicas has most of its log: what the active controller has been told,
//! and when that is enough.
//!
//! 1. As in Raft, the later epoch of the last record counts, then the longer log.
//! 2. A broker tells it again after each start: what it told before may be gone.
//! 3. Who is down is waited for ([`WANTED_MAX`] from when all that have to be heard are), unless it
//!    has to be heard itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::metadata::BrokerEpoch;
use crate::metadata::planners::Contest;
use crate::types::{BrokerId, LeaderEpoch, Offset, TopicId};

/// How long those are waited for that may be down for good.
const WANTED_MAX: Duration = Duration::from_secs(30);

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEnd {
    /// Of the last record.
    pub epoch: LeaderEpoch,
    pub offset: Offset,
}

type Place = (TopicId, i32);

/// What brokers have told.
#[derive(Debug, Default)]
pub struct LogComparison(BTreeMap<Place, BTreeMap<BrokerId, Told>>);

#[derive(Debug, Clone, Copy)]
struct Told {
    /// When it was told first in this epoch.
    since: Duration,
    epoch: BrokerEpoch,
    end: LogEnd,
}

impl LogComparison {
    /// `broker` tells at `now` where its log ends.
    pub fn told(
        &mut self,
        place: Place,
        broker: BrokerId,
        epoch: BrokerEpoch,
        end: LogEnd,
        now: Duration,
    ) {
        let told = self.0.entry(place).or_default();
        let before = told.get(&broker).filter(|before| before.epoch == epoch);
        let since = before.map_or(now, |before| before.since);
        told.insert(broker, Told { since, epoch, end });
    }

    /// Who is to lead, once enough is known. `active`: the epoch of a broker that may lead.
    pub fn leader(
        &self,
        place: Place,
        contest: &Contest,
        active: impl Fn(BrokerId) -> Option<BrokerEpoch>,
        now: Duration,
    ) -> Option<BrokerId> {
        let all = self.0.get(&place)?;
        let told = |broker: &BrokerId| {
            let told = all.get(broker)?;
            (active(*broker)? == told.epoch).then_some((told, *broker))
        };
        let needed: Option<Vec<_>> = contest.needed.iter().map(told).collect();
        let since = needed?.into_iter().map(|(told, _)| told.since).max()?;
        let waited = now.saturating_sub(since) >= WANTED_MAX;
        if !waited && !contest.wanted.iter().all(|broker| told(broker).is_some()) {
            return None;
        }
        let brokers = contest.needed.iter().chain(&contest.wanted);
        // Of equal logs that of the first one.
        let ends = brokers.filter_map(told).rev();
        ends.max_by_key(|(told, _)| told.end)
            .map(|(_, broker)| broker)
    }

    /// It is to have a leader: should it be asked about again, that begins anew.
    pub fn forget(&mut self, place: Place) {
        self.0.remove(&place);
    }

    /// Only what is still asked about is kept.
    pub fn retain(&mut self, asked: impl Fn(Place) -> bool) {
        self.0.retain(|place, _| asked(*place));
    }

    /// This node has become the active controller: nobody has told it anything.
    pub fn begin(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = (TopicId(uuid::Uuid::from_u128(7)), 0);
    const START: Duration = Duration::from_secs(1);

    fn end(epoch: i32, offset: i64) -> LogEnd {
        LogEnd {
            epoch: LeaderEpoch(epoch),
            offset: Offset(offset),
        }
    }

    fn brokers(ids: &[i32]) -> Vec<BrokerId> {
        ids.iter().copied().map(BrokerId).collect()
    }

    /// Brokers 1, 2, 3 in their epochs 10, 20, 30, of which 3 was the last one in sync.
    struct Run(LogComparison, Contest);

    impl Run {
        fn new() -> Run {
            let (needed, wanted) = (brokers(&[3]), brokers(&[1, 2]));
            Run(LogComparison::default(), Contest { needed, wanted })
        }

        fn told(&mut self, id: i32, end: LogEnd) {
            let epoch = BrokerEpoch(i64::from(id) * 10);
            self.0.told(PLACE, BrokerId(id), epoch, end, START);
        }

        fn leader(&self, active: &[i32], after: Duration) -> Option<i32> {
            let epoch = |broker: BrokerId| {
                let is_active = active.contains(&broker.0);
                is_active.then_some(BrokerEpoch(i64::from(broker.0) * 10))
            };
            let leader = self.0.leader(PLACE, &self.1, epoch, START + after);
            leader.map(|broker| broker.0)
        }
    }

    #[test]
    fn the_log_with_most_wins_once_all_have_told() {
        let mut run = Run::new();
        run.told(3, end(4, 10));
        run.told(1, end(5, 100));
        assert_eq!(run.leader(&[1, 2, 3], START), None, "2 has not told");
        run.told(2, end(4, 120));
        assert_eq!(run.leader(&[1, 2, 3], START), Some(1), "the later epoch");
        run.told(2, end(5, 101));
        assert_eq!(run.leader(&[1, 2, 3], START), Some(2));
        run.told(1, end(5, 101));
        run.told(3, end(5, 101));
        assert_eq!(
            run.leader(&[1, 2, 3], START),
            Some(3),
            "of equal logs the one in sync"
        );
    }

    #[test]
    fn who_is_down_is_waited_for_but_the_last_one_in_sync_for_ever() {
        let mut run = Run::new();
        for (id, offset) in [(1, 9), (2, 8), (3, 7)] {
            run.told(id, end(1, offset));
        }
        assert_eq!(run.leader(&[2, 3], Duration::ZERO), None);
        assert_eq!(run.leader(&[2, 3], WANTED_MAX), Some(2));
        assert_eq!(run.leader(&[1, 2], WANTED_MAX), None);
    }

    #[test]
    fn the_wait_begins_anew_when_one_that_has_to_be_heard_was_started_again() {
        let mut run = Run::new();
        run.told(3, end(1, 7));
        assert_eq!(run.leader(&[3], WANTED_MAX), Some(3));
        let (again, later) = (BrokerEpoch(31), START + WANTED_MAX);
        run.0.told(PLACE, BrokerId(3), again, end(1, 7), later);
        let leader = |now| {
            run.0
                .leader(PLACE, &run.1, |b| (b.0 == 3).then_some(again), now)
        };
        assert_eq!(leader(later), None);
        assert_eq!(leader(later + WANTED_MAX), Some(BrokerId(3)));
    }

    #[test]
    fn what_a_broker_told_before_its_last_start_does_not_count() {
        let mut run = Run::new();
        for id in [1, 2, 3] {
            run.told(id, end(1, 7));
        }
        let again = BrokerEpoch(31);
        run.0.told(PLACE, BrokerId(3), again, end(1, 7), START);
        assert_eq!(run.leader(&[1, 2, 3], START), None);
        run.0.begin();
        assert_eq!(run.leader(&[1, 2, 3], START), None);
    }
}
