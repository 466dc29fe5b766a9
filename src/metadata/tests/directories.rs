//! Log directories of brokers: which replicas may lead when one is away.

use super::brokers::{epoch, request, run, running};
use super::elections::{MIN_ISR_2, UNCLEAN};
use super::planners::*;
use super::*;
use crate::types::ErrorCode;

const DEFAULT: RulesOf<'static> = &|_| TopicRules::DEFAULT;

pub(super) fn dir(number: u128) -> DirectoryId {
    DirectoryId(Uuid::from_u128(number))
}

/// Registers a broker anew with these directories, and unfences it.
pub(super) fn restart(image: &mut MetadataImage, id: i32, dirs: &[DirectoryId], crashed: bool) {
    let known = image.broker(BrokerId(id)).unwrap();
    let previous = if crashed { -1 } else { known.broker_epoch.0 };
    let incarnation = known.incarnation_id.as_u128() + 100;
    let mut request = request(id, incarnation, previous);
    request.log_dirs = dirs.to_vec();
    let plan = plan_register_broker(image, request, DEFAULT);
    run(image, plan);
    unfence(image, id);
}

pub(super) fn unfence(image: &mut MetadataImage, id: i32) {
    let plan = plan_unfence_broker(image, BrokerId(id), epoch(image, id), DEFAULT);
    run(image, plan);
}

fn assign(image: &mut MetadataImage, id: i32, places: &[(i32, DirectoryId)]) -> AssignedReplicas {
    let topic_id = image.topic("t").unwrap().id;
    let asked = places.iter().map(|(partition, directory)| AssignReplica {
        topic_id,
        partition: *partition,
        directory: *directory,
    });
    let asked: Vec<_> = asked.collect();
    let plan = plan_assign_replicas(image, BrokerId(id), epoch(image, id), &asked, DEFAULT);
    run(image, plan)
}

pub(super) fn topic(image: MetadataImage, assignments: &[&[i32]]) -> MetadataImage {
    topic_named("t", image, assignments)
}

fn topic_named(name: &str, image: MetadataImage, assignments: &[&[i32]]) -> MetadataImage {
    let mut topic = new_topic(name, -1, -1);
    let of = |ids: &&[i32]| ids.iter().map(|id| BrokerId(*id)).collect();
    topic.assignments = (0..).zip(assignments.iter().map(of)).collect();
    with_topics(image, &[topic])
}

/// Leader and ISR of a partition of `t`.
pub(super) fn state(image: &MetadataImage, partition: i32) -> (i32, Vec<i32>) {
    state_of(image, "t", partition)
}

fn state_of(image: &MetadataImage, topic: &str, partition: i32) -> (i32, Vec<i32>) {
    let partition = image.partition(topic, partition).unwrap();
    let isr = partition.isr.iter().map(|id| id.0).collect();
    (partition.leader.0, isr)
}

/// Broker 1 alone, with partition 0 in directory 11 and 1 in 12.
fn alone() -> MetadataImage {
    let mut image = running(1);
    restart(&mut image, 1, &[dir(1011), dir(1012)], false);
    let mut image = topic(image, &[&[1], &[1]]);
    assert_eq!(
        assign(&mut image, 1, &[(0, dir(1011)), (1, dir(1012))]),
        [Ok(()), Ok(())]
    );
    image
}

#[test]
fn a_replica_whose_directory_is_not_registered_does_not_lead() {
    for crashed in [false, true] {
        let mut image = alone();
        restart(&mut image, 1, &[dir(1011)], crashed);
        assert_eq!(state(&image, 0), (1, vec![1]), "crashed: {crashed}");
        assert_eq!(state(&image, 1), (-1, vec![1]));
        // Whoever asks for an election gets none either.
        let plan = plan_elect_leaders(&image, Election::Preferred, None, DEFAULT);
        assert!(plan.records.is_empty());
        assert!(plan_unclean_leaders(&image, 10, UNCLEAN).records.is_empty());
        // It is back, among others and in another order.
        restart(&mut image, 1, &[dir(1013), dir(1012), dir(1011)], crashed);
        assert_eq!(state(&image, 1), (1, vec![1]));
    }
}

#[test]
fn another_in_sync_replica_leads_and_the_lost_one_is_not_in_sync() {
    let mut image = topic(running(2), &[&[1, 2]]);
    assert_eq!(
        image.partition("t", 0).unwrap().directory(BrokerId(1)),
        Some(dir(1001))
    );
    restart(&mut image, 1, &[dir(1011)], false);
    assert_eq!(state(&image, 0), (2, vec![2]));
    // It begins anew, and is a follower like others.
    assert_eq!(assign(&mut image, 1, &[(0, dir(1011))]), [Ok(())]);
    assert_eq!(state(&image, 0), (2, vec![2]));
    assert_eq!(
        image.partition("t", 0).unwrap().directory(BrokerId(2)),
        Some(dir(1002))
    );
}

#[test]
fn a_directory_that_fails_takes_its_replicas_out() {
    let mut image = topic(running(2), &[&[1, 2], &[2, 1]]);
    image = topic_named("alone", image, &[&[1]]);
    let (id, at) = (BrokerId(1), epoch(&image, 1));
    let offline = [dir(1001), dir(7)];
    let stale = plan_directories_offline(&image, id, BrokerEpoch(99), &offline, DEFAULT);
    assert_eq!(stale.answer.unwrap_err().code, ErrorCode::StaleBrokerEpoch);
    let plan = plan_directories_offline(&image, id, at, &[dir(7)], DEFAULT);
    assert!(plan.records.is_empty(), "it is not the broker's");
    let plan = plan_directories_offline(&image, id, at, &offline, MIN_ISR_2);
    run(&mut image, plan);
    assert_eq!(state(&image, 0), (2, vec![2]));
    assert_eq!(state(&image, 1), (2, vec![2]));
    assert_eq!(state_of(&image, "alone", 0), (-1, vec![1]));
    // What it has there is thought to be there.
    let elr = image.partition("t", 0).unwrap().eligible_leader_replicas();
    assert_eq!(elr, [BrokerId(1)]);
    assert!(image.is_active(id));
    assert!(image.broker(id).unwrap().log_dirs.is_empty());
}

#[test]
fn the_same_run_that_registers_again_without_a_directory_loses_what_is_there() {
    let mut image = alone();
    let known = image.broker(BrokerId(1)).unwrap();
    let mut again = request(1, known.incarnation_id.as_u128(), known.broker_epoch.0);
    again.log_dirs = vec![dir(1012)];
    let plan = plan_register_broker(&image, again, DEFAULT);
    run(&mut image, plan);
    assert_eq!(state(&image, 0), (-1, vec![1]));
    assert_eq!(state(&image, 1), (1, vec![1]));
}

#[test]
fn assignments_are_answered_one_by_one() {
    let mut image = topic(running(3), &[&[1, 2], &[2, 3]]);
    let topic_id = image.topic("t").unwrap().id;
    let directory = dir(1001);
    let of = |topic_id, partition| AssignReplica {
        topic_id,
        partition,
        directory,
    };
    let asked = [
        of(topic_id, 0),
        of(TopicId(Uuid::from_u128(5)), 0),
        of(topic_id, 7),
        of(topic_id, 1),
    ];
    let (id, at) = (BrokerId(1), epoch(&image, 1));
    let plan = plan_assign_replicas(&image, id, at, &asked, DEFAULT);
    assert!(plan.records.is_empty(), "it is there already");
    let expected = [
        Ok(()),
        Err(ErrorCode::UnknownTopicId),
        Err(ErrorCode::UnknownTopicOrPartition),
        Err(ErrorCode::NotLeaderOrFollower),
    ];
    assert_eq!(plan.answer.unwrap(), expected);
    let stale = plan_assign_replicas(&image, id, BrokerEpoch(99), &asked, DEFAULT);
    assert_eq!(stale.answer.unwrap_err().code, ErrorCode::StaleBrokerEpoch);
    // Of two places in one request the last one counts.
    restart(&mut image, 1, &[dir(1001), dir(1011)], false);
    assign(&mut image, 1, &[(0, dir(1011)), (0, dir(1001))]);
    let partition = image.partition("t", 0).unwrap();
    assert_eq!(partition.directory(id), Some(dir(1001)));
}

#[test]
fn an_assignment_to_a_directory_that_is_not_there_takes_the_replica_out() {
    let mut image = topic(running(2), &[&[1, 2]]);
    assert_eq!(assign(&mut image, 1, &[(0, dir(7))]), [Ok(())]);
    assert_eq!(state(&image, 0), (2, vec![2]));
    let mut image = topic(running(1), &[&[1]]);
    assign(&mut image, 1, &[(0, DirectoryId::LOST)]);
    assert_eq!(state(&image, 0), (-1, vec![1]));
    // Its log is found after all.
    assign(&mut image, 1, &[(0, dir(1001))]);
    assert_eq!(state(&image, 0), (1, vec![1]));
}

#[test]
fn an_unclean_election_that_is_asked_for_begins_anew() {
    let mut image = alone();
    restart(&mut image, 1, &[dir(1011)], false);
    let named = [("t".into(), 1), ("t".into(), 0)];
    let elect = |election| plan_elect_leaders(&image, election, Some(&named), DEFAULT);
    let plan = elect(Election::Preferred);
    assert!(plan.records.is_empty());
    let plan = elect(Election::Unclean);
    assert!(plan.answer[0].2.is_ok());
    let not_needed = plan.answer[1].2.as_ref().unwrap_err();
    assert_eq!(not_needed.code, ErrorCode::ElectionNotNeeded);
    let records = plan.records;
    add(&mut image, records);
    assert_eq!(state(&image, 1), (1, vec![1]));
    let partition = image.partition("t", 1).unwrap();
    // The broker will say: what the metadata names is where a log is.
    let open = Some(DirectoryId::UNASSIGNED);
    assert_eq!(partition.directory(BrokerId(1)), open);
    assert_eq!(partition.leader_recovery_state(), 1);
}

#[test]
fn a_replica_that_has_lost_its_log_is_not_counted_on_where_others_are() {
    let mut image = topic(running(2), &[&[1, 2]]);
    let (id, at) = (BrokerId(1), epoch(&image, 1));
    let plan = plan_directories_offline(&image, id, at, &[dir(1001)], MIN_ISR_2);
    run(&mut image, plan);
    let elr = |image: &MetadataImage| {
        let partition = image.partition("t", 0).unwrap();
        partition.eligible_leader_replicas().to_vec()
    };
    assert_eq!(elr(&image), [id]);
    let topic_id = image.topic("t").unwrap().id;
    let (partition, directory) = (0, DirectoryId::LOST);
    let asked = [AssignReplica {
        topic_id,
        partition,
        directory,
    }];
    let plan = plan_assign_replicas(&image, id, at, &asked, MIN_ISR_2);
    run(&mut image, plan);
    assert_eq!(state(&image, 0), (2, vec![2]));
    assert!(elr(&image).is_empty());
}
