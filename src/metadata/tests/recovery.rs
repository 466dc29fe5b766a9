//! Partitions whose replicas in sync have all crashed.

use super::brokers::{epoch, request, run, running};
use super::directories::{restart, state, topic, unfence};
use super::elections::MIN_ISR_2;
use super::planners::*;
use super::*;

const RULES: RulesOf<'static> = &|_| TopicRules::DEFAULT;

/// Brokers 1 to 3 with a partition of three replicas.
fn three() -> MetadataImage {
    topic(running(3), &[&[1, 2, 3]])
}

fn partition(image: &MetadataImage) -> &PartitionRegistration {
    image.partition("t", 0).unwrap()
}

/// The broker registers after a crash and stays fenced.
fn crash(image: &mut MetadataImage, id: i32) {
    crash_with(image, id, RULES);
}

fn crash_with(image: &mut MetadataImage, id: i32, rules: RulesOf<'_>) {
    let incarnation = epoch(image, id).0 as u128 + 100;
    let plan = plan_register_broker(image, request(id, incarnation, -1), rules);
    run(image, plan);
}

/// The broker tells that its log is lost.
fn lose(image: &mut MetadataImage, id: i32, rules: RulesOf<'_>) {
    let lost = AssignReplica {
        topic_id: image.topic("t").unwrap().id,
        partition: 0,
        directory: DirectoryId::LOST,
    };
    let at = epoch(image, id);
    let plan = plan_assign_replicas(image, BrokerId(id), at, &[lost], rules);
    run(image, plan);
}

fn recover(image: &mut MetadataImage, leader: i32) {
    let recovered = Recovered {
        topic_id: image.topic("t").unwrap().id,
        partition: 0,
        leader: BrokerId(leader),
    };
    let plan = plan_recovered(image, &[recovered], RULES);
    add(image, plan.records);
}

fn brokers(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

#[test]
fn when_all_have_crashed_none_leads_until_their_logs_are_compared() {
    let mut image = three();
    for id in [1, 2, 3] {
        restart(&mut image, id, &[broker_dir(id)], true);
    }
    assert_eq!(
        state(&image, 0),
        (-1, vec![3]),
        "the last one in sync does not lead by itself"
    );
    let asked = contest(partition(&image), 1).unwrap();
    assert_eq!(
        (asked.needed, asked.wanted),
        (brokers(&[3]), brokers(&[1, 2]))
    );
    let before = partition(&image).leader_epoch;
    recover(&mut image, 2);
    assert_eq!(state(&image, 0), (2, vec![2]));
    assert!(partition(&image).leader_epoch > before);
    assert!(partition(&image).last_known_elr().is_empty());
    recover(&mut image, 1);
    assert_eq!(state(&image, 0), (2, vec![2]), "it is contested no more");
}

#[test]
fn where_one_did_not_crash_it_leads() {
    let mut image = three();
    restart(&mut image, 1, &[broker_dir(1)], true);
    restart(&mut image, 2, &[broker_dir(2)], true);
    assert_eq!(state(&image, 0), (3, vec![3]));
    assert!(!partition(&image).is_contested());
    let told = |id| (BrokerId(id), epoch(&image, id));
    let asked = AlterPartition {
        topic_id: image.topic("t").unwrap().id,
        partition: 0,
        leader_epoch: partition(&image).leader_epoch,
        partition_epoch: partition(&image).partition_epoch,
        new_isr: vec![told(1), told(3)],
        leader_recovery_state: 0,
    };
    let at = epoch(&image, 3);
    let plan = plan_alter_partitions(&image, BrokerId(3), at, &[asked], RULES);
    run(&mut image, plan)[0].clone().unwrap();
    assert_eq!(
        partition(&image).last_known_elr(),
        brokers(&[2]),
        "1 is in sync again"
    );
}

#[test]
fn who_was_only_seen_to_be_away_is_compared_too() {
    let mut image = three();
    for id in [1, 2, 3] {
        let plan = plan_fence_broker(&image, BrokerId(id), epoch(&image, id), RULES);
        run(&mut image, plan);
    }
    assert_eq!(state(&image, 0), (-1, vec![3]));
    crash(&mut image, 3);
    unfence(&mut image, 3);
    assert_eq!(state(&image, 0), (-1, vec![3]));
    let asked = contest(partition(&image), 1).unwrap();
    assert_eq!(
        (asked.needed, asked.wanted),
        (brokers(&[3]), brokers(&[1, 2]))
    );
}

fn unfence_of_two(image: &mut MetadataImage, id: i32) {
    let plan = plan_unfence_broker(image, BrokerId(id), epoch(image, id), MIN_ISR_2);
    run(image, plan);
}

/// Of two replicas 1 is away and eligible; 2, the last one in sync, is back after a crash.
fn one_away_and_one_crashed() -> MetadataImage {
    let mut image = topic(running(2), &[&[1, 2]]);
    let plan = plan_fence_broker(&image, BrokerId(1), epoch(&image, 1), MIN_ISR_2);
    run(&mut image, plan);
    assert_eq!(partition(&image).eligible_leader_replicas(), brokers(&[1]));
    let plan = plan_register_broker(&image, request(2, 99, -1), MIN_ISR_2);
    run(&mut image, plan);
    unfence_of_two(&mut image, 2);
    image
}

#[test]
fn who_crashed_is_not_eligible_before_it_is_in_sync_again() {
    let mut image = one_away_and_one_crashed();
    unfence_of_two(&mut image, 1);
    assert_eq!(state(&image, 0), (1, vec![1]));
    assert!(partition(&image).eligible_leader_replicas().is_empty());
    let plan = plan_fence_broker(&image, BrokerId(1), epoch(&image, 1), MIN_ISR_2);
    run(&mut image, plan);
    assert_eq!(
        state(&image, 0),
        (-1, vec![1]),
        "2 does not have what 1 took"
    );
}

#[test]
fn a_replica_that_has_nobody_to_compare_with_leads_when_it_is_back() {
    let mut image = topic(running(1), &[&[1]]);
    crash(&mut image, 1);
    assert_eq!(state(&image, 0), (-1, vec![1]));
    unfence(&mut image, 1);
    assert_eq!(state(&image, 0), (1, vec![1]));
}

#[test]
fn a_crash_counts_though_the_broker_was_unregistered_before_it_is_back() {
    let mut image = three();
    crash(&mut image, 1);
    crash(&mut image, 2);
    let plan = plan_unregister_broker(&image, BrokerId(3), RULES);
    run(&mut image, plan);
    let plan = plan_register_broker(&image, request(3, 300, -1), RULES);
    run(&mut image, plan);
    unfence(&mut image, 3);
    assert_eq!(
        state(&image, 0),
        (-1, vec![3]),
        "it may lack what it took alone"
    );
    assert!(contest(partition(&image), 1).is_some());
}

#[test]
fn who_was_unregistered_and_did_not_crash_leads_when_it_is_back() {
    let mut image = three();
    crash(&mut image, 1);
    crash(&mut image, 2);
    let stopped = epoch(&image, 3).0;
    let plan = plan_unregister_broker(&image, BrokerId(3), RULES);
    run(&mut image, plan);
    let plan = plan_register_broker(&image, request(3, 300, stopped), RULES);
    run(&mut image, plan);
    unfence(&mut image, 3);
    assert_eq!(state(&image, 0), (3, vec![3]));
}

#[test]
fn who_was_eligible_and_did_not_crash_is_waited_for() {
    let mut image = one_away_and_one_crashed();
    assert_eq!(
        state(&image, 0),
        (-1, vec![2]),
        "1 has all that was committed"
    );
    assert_eq!(contest(partition(&image), 2), None);
    unfence_of_two(&mut image, 1);
    assert_eq!(state(&image, 0), (1, vec![1]));
}

#[test]
fn where_the_last_log_is_lost_others_lead_if_it_could_not_take_anything_alone() {
    let mut image = three();
    for id in [1, 2, 3] {
        restart(&mut image, id, &[broker_dir(id)], true);
    }
    lose(&mut image, 3, RULES);
    assert_eq!(state(&image, 0), (-1, vec![3]));
    assert_eq!(
        contest(partition(&image), 1),
        None,
        "3 may have taken records alone"
    );
    let asked = contest(partition(&image), 2).unwrap();
    assert_eq!((asked.needed, asked.wanted), (brokers(&[1, 2]), vec![]));
    recover(&mut image, 1);
    assert_eq!(state(&image, 0), (1, vec![1]));
}

#[test]
fn where_the_last_log_is_lost_who_was_not_in_sync_need_not_be_heard() {
    let mut image = three();
    let plan = plan_fence_broker(&image, BrokerId(2), epoch(&image, 2), MIN_ISR_2);
    run(&mut image, plan);
    for id in [1, 3] {
        crash_with(&mut image, id, MIN_ISR_2);
    }
    assert_eq!(state(&image, 0), (-1, vec![3]));
    lose(&mut image, 3, MIN_ISR_2);
    let asked = contest(partition(&image), 2).unwrap();
    assert_eq!((asked.needed, asked.wanted), (brokers(&[1]), brokers(&[2])));
}

fn broker_dir(id: i32) -> DirectoryId {
    broker(id, None).log_dirs[0]
}
