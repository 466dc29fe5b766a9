//! A leader and its follower, one situation each.

use std::sync::Arc;

use super::ends;
use super::simulation::broker::{ManualClock, SimBroker, entries, node_config};
use super::simulation::controller::Controller;
use crate::host::Clock;
use crate::log::{AppendError, Appended, Origin};
use crate::metadata::ImageDelta;
use crate::partition::follower::FromLeader;
use crate::partition::*;
use crate::peer::ReplicaFetchCall;
use crate::record::BatchBuilder;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset};

/// Brokers 0 and 1; both know all that the controller has decided.
struct Pair {
    controller: Controller,
    clock: Arc<ManualClock>,
    brokers: [SimBroker; 2],
}

impl Pair {
    /// Broker 0 leads.
    fn new() -> Pair {
        let clock = Arc::new(ManualClock::default());
        let config = Arc::new(node_config());
        let broker = |id| SimBroker::new(BrokerId(id), clock.clone(), config.clone());
        let mut pair = Pair {
            controller: Controller::new(2),
            brokers: [broker(0), broker(1)],
            clock: clock.clone(),
        };
        for at in 0..2 {
            let (image, applied) = pair.newest();
            let epoch = pair.controller.register(BrokerId(at as i32));
            pair.brokers[at].start(&image, applied, epoch);
        }
        pair.learn(0);
        pair.learn(1);
        pair
    }

    fn newest(&self) -> (Arc<crate::metadata::MetadataImage>, usize) {
        let applied = self.controller.history.len() - 1;
        (self.controller.image().clone(), applied)
    }

    fn learn(&mut self, at: usize) {
        let (image, applied) = self.newest();
        let broker = &mut self.brokers[at];
        let mut delta = ImageDelta::default();
        for (_, of_entry) in &self.controller.history[broker.applied + 1..] {
            delta.merge(of_entry);
        }
        broker.applied = applied;
        broker.apply(&image, &delta);
    }

    fn partition(&self, at: usize) -> Arc<Partition> {
        self.brokers[at].partition(0).unwrap()
    }

    fn produce(&self, at: usize, records: u64) -> Result<Appended, AppendError> {
        let now = self.clock.now_ms();
        let mut builder = BatchBuilder::new();
        for n in 0..records {
            builder.append(now, None, Some(&n.to_le_bytes()));
        }
        let batch = builder.build().unwrap();
        self.partition(at).append(batch, Origin::Client, now)
    }

    /// Broker 1 fetches from broker 0 once.
    fn fetch(&mut self) {
        let (now, wall) = (self.clock.monotonic(), self.clock.now_ms());
        let epoch = self.brokers[1].epoch.0;
        let fetching = self.brokers[1].fetching.get_mut(&BrokerId(0)).unwrap();
        let call: ReplicaFetchCall = fetching.fetcher.request(now, epoch).unwrap();
        let answer = self.brokers[0].serve(&call, 1 << 20).unwrap();
        let fetching = self.brokers[1].fetching.get_mut(&BrokerId(0)).unwrap();
        let asked = fetching.fetcher.on_answer(answer, now, wall);
        for out_of_range in asked {
            let log = self.brokers[0].partition(out_of_range.key.1).unwrap();
            let bounds = (log.log().log_start_offset(), log.log().log_end_offset());
            let fetching = self.brokers[1].fetching.get_mut(&BrokerId(0)).unwrap();
            let fetcher = &mut fetching.fetcher;
            fetcher.on_bounds(&out_of_range, Some(bounds), now, wall);
        }
    }
}

#[test]
fn acks_all_waits_until_the_follower_has_it_and_has_said_so() {
    let mut pair = Pair::new();
    let leader = pair.partition(0);
    let appended = pair.produce(0, 3).unwrap();
    let end = appended.last_offset.next();
    assert_eq!(leader.replicated(appended.leader_epoch, end), None);
    pair.fetch();
    assert_eq!(pair.partition(1).log().log_end_offset(), Offset(3));
    assert_eq!(
        leader.replicated(appended.leader_epoch, end),
        None,
        "not told yet"
    );
    assert_eq!(ends(&leader), (0, 0, 3));
    pair.fetch();
    assert_eq!(leader.replicated(appended.leader_epoch, end), Some(Ok(())));
    assert_eq!(
        ends(&pair.partition(1)),
        (0, 3, 3),
        "told with the same answer"
    );
}

#[test]
fn a_leader_that_was_replaced_acknowledges_nothing_and_appends_nothing() {
    let mut pair = Pair::new();
    let old = pair.partition(0);
    let appended = pair.produce(0, 3).unwrap();
    let end = appended.last_offset.next();
    pair.controller.move_leader(0, 1);
    pair.learn(0);
    let outcome = old.replicated(appended.leader_epoch, end);
    assert_eq!(outcome, Some(Err(ErrorCode::NotLeaderOrFollower)));
    assert!(matches!(
        pair.produce(0, 1),
        Err(AppendError::Fenced { .. })
    ));
    // Not even when it leads again, and the new records are as many.
    pair.learn(1);
    pair.controller.move_leader(0, 0);
    pair.learn(0);
    pair.produce(0, 3).unwrap();
    let outcome = old.replicated(appended.leader_epoch, end);
    assert_eq!(outcome, Some(Err(ErrorCode::NotLeaderOrFollower)));
}

#[test]
fn a_leader_that_slept_through_its_fencing_acknowledges_nothing() {
    let mut pair = Pair::new();
    let old = pair.partition(0);
    pair.controller.fence(BrokerId(0), false);
    pair.learn(1);
    assert!(pair.partition(1).is_leader());
    // What lay in its sockets is appended: it does not know yet.
    let appended = pair.produce(0, 3).unwrap();
    let end = appended.last_offset.next();
    assert_eq!(old.replicated(appended.leader_epoch, end), None);
    // A follower that has not fetched for so long would leave the ISR, if the controller let it.
    pair.clock.add_ms(60_000);
    old.check_lag();
    let partitions = pair.brokers[0].partitions.as_ref().unwrap();
    let changes = partitions.surroundings().isr_changes.take();
    assert_eq!(changes.len(), 1);
    let epoch = pair.brokers[0].epoch.0;
    let refused = pair.controller.alter(BrokerId(0), epoch, &changes[0]);
    assert_eq!(refused.unwrap_err(), ErrorCode::StaleBrokerEpoch);
    partitions.take_isr_answers(changes, Ok(vec![Err(ErrorCode::StaleBrokerEpoch)]));
    assert_eq!(old.replicated(appended.leader_epoch, end), None);
    pair.learn(0);
    let outcome = old.replicated(appended.leader_epoch, end);
    assert_eq!(outcome, Some(Err(ErrorCode::NotLeaderOrFollower)));
}

#[test]
fn a_leader_that_does_not_know_yet_that_it_leads_is_asked_again_soon() {
    let mut pair = Pair::new();
    pair.controller.move_leader(0, 1);
    pair.learn(0);
    let waits = |pair: &mut Pair| {
        let now = pair.clock.monotonic();
        let (call, answer) = {
            let epoch = pair.brokers[0].epoch.0;
            let fetching = pair.brokers[0].fetching.get_mut(&BrokerId(1)).unwrap();
            let call = fetching.fetcher.request(now, epoch).unwrap();
            let answer = pair.brokers[1].serve(&call, 1 << 20).unwrap();
            (call, answer)
        };
        assert_eq!(call.partitions.len(), 1);
        let wall = pair.clock.now_ms();
        let fetching = pair.brokers[0].fetching.get_mut(&BrokerId(1)).unwrap();
        fetching.fetcher.on_answer(answer, now, wall);
        let retry_at = fetching.fetcher.retry_at(now);
        retry_at.map_or(std::time::Duration::ZERO, |at| at - now)
    };
    let first = waits(&mut pair);
    assert_eq!(first.as_millis(), 10);
    pair.clock.add_ms(10);
    assert_eq!(waits(&mut pair).as_millis(), 20);
    pair.clock.add_ms(20);
    pair.learn(1);
    assert_eq!(waits(&mut pair), std::time::Duration::ZERO);
}

#[test]
fn what_an_earlier_leader_sent_is_not_copied() {
    let mut pair = Pair::new();
    let follower = pair.partition(1);
    let epoch = follower.leadership().leader_epoch;
    pair.controller.move_leader(0, 1);
    pair.learn(1);
    let late = FromLeader {
        fetch_offset: Offset(0),
        high_watermark: Offset(0),
        log_start_offset: Offset(0),
        records: Default::default(),
    };
    let now = pair.clock.now_ms();
    assert!(follower.copy(epoch, late, now).is_err());
    assert!(
        follower
            .cut_at_divergence(epoch, (epoch, Offset(0)), now)
            .is_err()
    );
    assert!(follower.follower_position(epoch).is_none());
}

#[test]
fn a_broker_leads_nothing_before_its_registration_is_known() {
    let mut pair = Pair::new();
    let (image, applied) = pair.newest();
    pair.brokers[0].crash(crate::log::tests::faulty_disk::Crash::Kill);
    // The metadata that it has still says that it leads.
    let epoch = pair.controller.register(BrokerId(0));
    pair.brokers[0].start(&image, applied, epoch);
    assert!(!pair.partition(0).is_leader());
    assert!(matches!(
        pair.produce(0, 1),
        Err(AppendError::Fenced { .. })
    ));
    pair.learn(0);
    assert_eq!(
        pair.partition(0).leadership().leader,
        BrokerId(1),
        "it crashed"
    );
}

#[test]
fn a_broker_follows_nobody_before_its_registration_is_known() {
    let mut pair = Pair::new();
    let (image, applied) = pair.newest();
    pair.brokers[1].crash(crate::log::tests::faulty_disk::Crash::Kill);
    // The metadata that it has still says who leads, and that may be over.
    let epoch = pair.controller.register(BrokerId(1));
    pair.brokers[1].start(&image, applied, epoch);
    assert_eq!(pair.partition(1).leadership().leader, BrokerId::NONE);
    assert!(pair.brokers[1].fetching.is_empty());
    pair.learn(1);
    assert_eq!(pair.partition(1).leadership().leader, BrokerId(0));
}

#[test]
fn a_follower_begins_where_the_leaders_log_does_even_inside_a_batch() {
    let mut pair = Pair::new();
    pair.produce(0, 10).unwrap();
    pair.fetch();
    pair.fetch();
    let leader = pair.partition(0);
    leader.delete_records(Offset(5)).unwrap();
    // A new replica: its log is empty.
    let follower = pair.partition(1);
    let now = pair.clock.now_ms();
    follower
        .log()
        .truncate_fully_and_start_at(Offset(0), now)
        .unwrap();
    pair.fetch();
    assert_eq!(
        follower.log().log_end_offset(),
        Offset(5),
        "out of range: starts at 5"
    );
    pair.fetch();
    assert_eq!(ends(&follower), (5, 10, 10));
    let same = entries(&leader.log(), Offset(5), Offset(10));
    assert_eq!(entries(&follower.log(), Offset(5), Offset(10)), same);
}

#[test]
fn a_fetch_is_refused_by_epoch_and_from_strangers() {
    let pair = Pair::new();
    let leader = pair.partition(0);
    let epoch = leader.leadership().leader_epoch;
    let fetch = ReplicaFetch {
        replica: BrokerId(1),
        replica_epoch: pair.brokers[1].epoch.0,
        current_leader_epoch: epoch.0,
        fetch_offset: Offset(0),
        last_fetched_epoch: LeaderEpoch::NONE,
        log_start_offset: Offset(0),
        max_bytes: 1000,
    };
    let refused = |fetch: ReplicaFetch| match leader.read_for_replica(&fetch, true) {
        Err(ReplicaFetchError::Refused(error)) => error,
        Err(ReplicaFetchError::Read(_)) => ErrorCode::OffsetOutOfRange,
        Ok(_) => ErrorCode::None,
    };
    let stranger = BrokerId(9);
    let cases = [
        (fetch, ErrorCode::None),
        (
            ReplicaFetch {
                current_leader_epoch: epoch.0 - 1,
                ..fetch
            },
            ErrorCode::FencedLeaderEpoch,
        ),
        (
            ReplicaFetch {
                current_leader_epoch: epoch.0 + 1,
                ..fetch
            },
            ErrorCode::UnknownLeaderEpoch,
        ),
        (
            ReplicaFetch {
                replica: stranger,
                ..fetch
            },
            ErrorCode::UnknownLeaderEpoch,
        ),
        (
            ReplicaFetch {
                replica: stranger,
                current_leader_epoch: -1,
                ..fetch
            },
            ErrorCode::NotLeaderOrFollower,
        ),
        (
            ReplicaFetch {
                replica_epoch: 0,
                ..fetch
            },
            ErrorCode::NotLeaderOrFollower,
        ),
        (
            ReplicaFetch {
                fetch_offset: Offset(1),
                ..fetch
            },
            ErrorCode::OffsetOutOfRange,
        ),
        (
            ReplicaFetch {
                last_fetched_epoch: LeaderEpoch(epoch.0 + 1),
                ..fetch
            },
            ErrorCode::OffsetOutOfRange,
        ),
    ];
    for (fetch, expected) in cases {
        assert_eq!(refused(fetch), expected, "{fetch:?}");
    }
}
