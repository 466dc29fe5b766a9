//! One situation each.

mod simulation;

use super::*;

const LAG_MAX: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ids(ids: &[i32]) -> Arc<[BrokerId]> {
    ids.iter().map(|id| BrokerId(*id)).collect()
}

fn decided(partition_epoch: i32, isr: &[i32]) -> Decided {
    Decided {
        leader_epoch: LeaderEpoch(5),
        partition_epoch,
        replicas: ids(&[1, 2, 3]),
        isr: ids(isr),
    }
}

/// Broker 1 leads from offset 10 on; 4 is committed.
fn leader(isr: &[i32]) -> ReplicaSet {
    ReplicaSet::lead(BrokerId(1), decided(7, isr), Offset(10), Offset(4), at(100))
}

/// Everybody has registered once, with ten times its id as epoch.
fn registered(broker: BrokerId) -> Option<i64> {
    Some(i64::from(broker.0) * 10)
}

fn fetch(set: &mut ReplicaSet, broker: i32, offset: i64, end: i64, now: Duration) {
    let fetched = Fetched {
        broker: BrokerId(broker),
        broker_epoch: i64::from(broker) * 10,
        fetch_offset: Offset(offset),
        log_start_offset: Offset(0),
        leader_log_end_offset: Offset(end),
        now,
    };
    set.on_fetch(&fetched, registered(BrokerId(broker)))
        .unwrap();
}

fn advance(set: &mut ReplicaSet, end: i64, now: Duration) -> Option<i64> {
    let moved = set.advance(Offset(end), 1, LAG_MAX, now, &registered);
    moved.map(|offset| offset.0)
}

fn members(proposal: Option<IsrProposal>) -> Option<Vec<i32>> {
    proposal.map(|p| p.new_isr.iter().map(|(broker, _)| broker.0).collect())
}

#[test]
fn committed_is_what_all_in_sync_have() {
    let mut set = leader(&[1, 2, 3]);
    assert_eq!(advance(&mut set, 20, at(100)), None, "nobody has fetched");
    fetch(&mut set, 2, 20, 20, at(101));
    assert_eq!(advance(&mut set, 20, at(101)), None, "3 has not");
    fetch(&mut set, 3, 15, 20, at(101));
    assert_eq!(advance(&mut set, 20, at(101)), Some(15));
    fetch(&mut set, 3, 12, 20, at(102));
    assert_eq!(advance(&mut set, 20, at(102)), None, "never back");
    assert_eq!(set.high_watermark(), Offset(15));
}

#[test]
fn alone_in_sync_commits_but_waits_for_one_who_keeps_up() {
    let mut set = leader(&[1]);
    assert_eq!(advance(&mut set, 20, at(100)), Some(20));
    fetch(&mut set, 2, 20, 20, at(101));
    // It is about to join.
    assert_eq!(advance(&mut set, 25, at(102)), None);
    // A broker that is fenced will not, and is not waited for.
    let fenced = |_: BrokerId| None;
    let moved = set.advance(Offset(25), 1, LAG_MAX, at(102), &fenced);
    assert_eq!(moved, Some(Offset(25)));
    assert_eq!(advance(&mut set, 30, at(200)), Some(30), "it lags");
}

#[test]
fn one_that_was_cut_off_is_not_waited_for_before_it_is_back_at_the_end() {
    let mut set = leader(&[1]);
    fetch(&mut set, 2, 20, 20, at(100));
    assert_eq!(advance(&mut set, 25, at(101)), Some(20), "it keeps up");
    // It is fenced, and unfenced again.
    assert_eq!(advance(&mut set, 900, at(112)), Some(900));
    fetch(&mut set, 2, 20, 900, at(112));
    assert_eq!(advance(&mut set, 950, at(113)), Some(950));
    fetch(&mut set, 2, 900, 950, at(113));
    assert_eq!(
        advance(&mut set, 960, at(113)),
        None,
        "one fetch more and it is there"
    );
    fetch(&mut set, 2, 950, 960, at(113));
    assert_eq!(advance(&mut set, 970, at(113)), None);
    fetch(&mut set, 2, 960, 970, at(113));
    assert_eq!(advance(&mut set, 970, at(113)), Some(960));
}

#[test]
fn the_isr_grows_by_who_has_reached_high_watermark_and_epoch_start() {
    let mut set = leader(&[1]);
    fetch(&mut set, 2, 9, 20, at(101));
    assert_eq!(
        members(set.propose_growth(BrokerId(2), &registered)),
        None,
        "epoch starts at 10"
    );
    fetch(&mut set, 2, 10, 20, at(101));
    let proposal = set.propose_growth(BrokerId(2), &registered).unwrap();
    assert_eq!(proposal.partition_epoch, 7);
    assert_eq!(
        proposal.new_isr,
        [(BrokerId(1), NO_BROKER_EPOCH), (BrokerId(2), 20)]
    );
    // From now on it counts, whether the controller has said so or not.
    assert_eq!(advance(&mut set, 30, at(150)), Some(10));
    fetch(&mut set, 3, 30, 30, at(150));
    assert_eq!(
        members(set.propose_growth(BrokerId(3), &registered)),
        None,
        "one at a time"
    );
    assert!(set.settle(decided(8, &[1, 2]), at(151)));
    assert_eq!(
        members(set.propose_growth(BrokerId(3), &registered)),
        Some(vec![1, 2, 3])
    );
}

#[test]
fn another_incarnation_does_not_join() {
    let mut set = leader(&[1]);
    fetch(&mut set, 2, 20, 20, at(101));
    let newer = |_: BrokerId| Some(21);
    assert_eq!(members(set.propose_growth(BrokerId(2), &newer)), None);
    let old = Fetched {
        broker: BrokerId(2),
        broker_epoch: 20,
        fetch_offset: Offset(20),
        log_start_offset: Offset(0),
        leader_log_end_offset: Offset(20),
        now: at(102),
    };
    assert_eq!(
        set.on_fetch(&old, Some(21)),
        Err(ErrorCode::NotLeaderOrFollower)
    );
    let nobody = Fetched {
        broker: BrokerId(9),
        ..old
    };
    assert_eq!(
        set.on_fetch(&nobody, None),
        Err(ErrorCode::UnknownLeaderEpoch)
    );
}

#[test]
fn the_isr_shrinks_by_who_was_not_at_the_end_for_too_long() {
    let mut set = leader(&[1, 2, 3]);
    fetch(&mut set, 2, 20, 20, at(125));
    fetch(&mut set, 3, 5, 20, at(125));
    assert_eq!(
        members(set.propose_shrink(Offset(20), LAG_MAX, at(130))),
        None,
        "still has time"
    );
    assert_eq!(
        members(set.propose_shrink(Offset(20), LAG_MAX, at(131))),
        Some(vec![1, 2])
    );
    fetch(&mut set, 2, 20, 30, at(131));
    assert_eq!(
        advance(&mut set, 30, at(140)),
        Some(5),
        "3 may still be elected"
    );
    assert!(set.settle(decided(8, &[1, 2]), at(141)));
    assert_eq!(advance(&mut set, 30, at(141)), Some(20));
}

#[test]
fn never_quite_at_the_end_of_a_growing_log_is_caught_up() {
    let mut set = leader(&[1, 2]);
    for second in 0..60 {
        let end = 20 + second as i64 * 10;
        fetch(&mut set, 2, end - 10, end, at(100 + second));
    }
    assert_eq!(
        members(set.propose_shrink(Offset(700), LAG_MAX, at(161))),
        None
    );
    assert_eq!(
        members(set.propose_shrink(Offset(700), LAG_MAX, at(200))),
        Some(vec![1])
    );
}

#[test]
fn too_few_in_sync_commit_nothing() {
    let mut set = leader(&[1]);
    let moved = set.advance(Offset(20), 2, LAG_MAX, at(100), &registered);
    assert_eq!(moved, None);
    assert_eq!(set.effective_min_isr(2), 2);
    assert_eq!(set.effective_min_isr(9), 3, "there are not more replicas");
}

#[test]
fn refusals() {
    let cases = [
        (ErrorCode::IneligibleReplica, Refusal::Dropped),
        (ErrorCode::InvalidUpdateVersion, Refusal::WaitForMetadata),
        (ErrorCode::FencedLeaderEpoch, Refusal::WaitForMetadata),
        (ErrorCode::RequestTimedOut, Refusal::Retry),
        (ErrorCode::NotController, Refusal::Retry),
    ];
    for (error, expected) in cases {
        let mut set = leader(&[1]);
        fetch(&mut set, 2, 20, 20, at(101));
        let proposal = set.propose_growth(BrokerId(2), &registered).unwrap();
        assert_eq!(set.refuse(&proposal, error), expected, "{error:?}");
        let again = set.propose_growth(BrokerId(2), &registered);
        assert_eq!(again.is_some(), expected == Refusal::Dropped, "{error:?}");
    }
}

#[test]
fn an_answer_that_is_older_than_the_metadata_changes_nothing() {
    let mut set = leader(&[1, 2]);
    assert!(set.settle(decided(9, &[1]), at(101)));
    assert!(!set.settle(decided(8, &[1, 2]), at(101)));
    assert_eq!(set.isr_len(), 1);
}
