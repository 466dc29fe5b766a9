//! Reassignments, case by case, and by chance.

use super::planners::*;
use super::*;
use crate::types::{ErrorCode, TopicName};

const RULES: RulesOf<'static> = &|_| TopicRules::DEFAULT;
const UNCLEAN: RulesOf<'static> = &|_| TopicRules {
    unclean: true,
    min_isr: 1,
};

/// Brokers 1 to 6, and a topic `t` with one partition on 1, 2, 3.
fn one_partition() -> MetadataImage {
    let brokers = (1..=6).map(|id| {
        let mut broker = broker(id, None);
        broker.broker_epoch = BrokerEpoch(id.into());
        broker.into()
    });
    let image = image_of(bootstrap_records("id".into(), 1).into_iter().chain(brokers));
    let mut topic = new_topic("t", -1, -1);
    topic.assignments = vec![(0, [1, 2, 3].map(BrokerId).to_vec())];
    with_topics(image, &[topic])
}

fn partition(image: &MetadataImage) -> &PartitionRegistration {
    image.partition("t", 0).unwrap()
}

fn ids(brokers: &[BrokerId]) -> Vec<i32> {
    brokers.iter().map(|id| id.0).collect()
}

/// Replicas, adding, removing.
fn replicas_of(image: &MetadataImage) -> (Vec<i32>, Vec<i32>, Vec<i32>) {
    let known = partition(image);
    (
        ids(&known.replicas),
        ids(known.adding_replicas()),
        ids(known.removing_replicas()),
    )
}

fn ask(topic: &str, partition: i32, replicas: Option<&[i32]>) -> Reassign {
    Reassign {
        topic: TopicName::from(topic),
        partition,
        replicas: replicas.map(|ids| ids.iter().map(|id| BrokerId(*id)).collect()),
    }
}

fn run(
    image: &mut MetadataImage,
    replicas: Option<&[i32]>,
    rules: RulesOf<'_>,
) -> Result<(), ErrorCode> {
    let plan = plan_reassign_partitions(image, &[ask("t", 0, replicas)], true, rules);
    add(image, plan.records);
    plan.answer
        .unwrap()
        .remove(0)
        .map_err(|refused| refused.code)
}

/// The leader says who is in sync.
fn in_sync(image: &mut MetadataImage, isr: &[i32]) -> Result<AlteredPartition, ErrorCode> {
    let known = partition(image);
    let leader = known.leader;
    let change = AlterPartition {
        topic_id: image.topic("t").unwrap().id,
        partition: 0,
        leader_epoch: known.leader_epoch,
        partition_epoch: known.partition_epoch,
        new_isr: isr
            .iter()
            .map(|id| (BrokerId(*id), BrokerEpoch::NONE))
            .collect(),
        leader_recovery_state: known.leader_recovery_state(),
    };
    let epoch = image.broker(leader).unwrap().broker_epoch;
    let plan = plan_alter_partitions(image, leader, epoch, &[change], RULES);
    add(image, plan.records);
    plan.answer.unwrap().remove(0)
}

#[test]
fn it_is_complete_when_what_is_added_is_in_sync() {
    let mut image = one_partition();
    run(&mut image, Some(&[4, 5, 2]), RULES).unwrap();
    let expected = (vec![4, 5, 2, 1, 3], vec![4, 5], vec![1, 3]);
    assert_eq!(replicas_of(&image), expected);
    assert_eq!(partition(&image).leader, BrokerId(1), "as before");
    let epoch = partition(&image).leader_epoch;
    in_sync(&mut image, &[1, 2, 3, 4]).unwrap();
    assert_eq!(replicas_of(&image), expected, "5 is still missing");
    assert_eq!(partition(&image).leader_epoch, epoch);
    let told = in_sync(&mut image, &[1, 2, 3, 4, 5]);
    assert_eq!(told, Err(ErrorCode::NewLeaderElected), "1 leads no more");
    assert_eq!(replicas_of(&image), (vec![4, 5, 2], vec![], vec![]));
    assert_eq!(partition(&image).leader, BrokerId(4));
    assert_eq!(ids(&partition(&image).isr), [4, 5, 2], "in sync");
}

#[test]
fn a_leader_that_stays_is_answered_with_its_new_epoch() {
    let mut image = one_partition();
    run(&mut image, Some(&[1, 2, 4]), RULES).unwrap();
    let epoch = partition(&image).leader_epoch;
    let altered = in_sync(&mut image, &[1, 2, 3, 4]).unwrap();
    assert_eq!(altered.leader, BrokerId(1));
    assert_eq!(altered.leader_epoch.0, epoch.0 + 1, "3 was taken away");
    assert_eq!(ids(&altered.isr), [1, 2, 4]);
    assert_eq!(replicas_of(&image), (vec![1, 2, 4], vec![], vec![]));
}

#[test]
fn another_order_or_fewer_replicas_need_no_copying() {
    let mut image = one_partition();
    run(&mut image, Some(&[3, 2, 1]), RULES).unwrap();
    assert_eq!(replicas_of(&image), (vec![3, 2, 1], vec![], vec![]));
    assert_eq!(partition(&image).leader, BrokerId(1));
    run(&mut image, Some(&[3]), RULES).unwrap();
    assert_eq!(replicas_of(&image), (vec![3], vec![], vec![]));
    assert_eq!(partition(&image).leader, BrokerId(3));
    let before = image.clone();
    run(&mut image, Some(&[3]), RULES).unwrap();
    assert_eq!(partition(&image), partition(&before), "nothing to do");
}

#[test]
fn what_is_cancelled_is_as_before() {
    let mut image = one_partition();
    run(&mut image, Some(&[4, 5, 2]), RULES).unwrap();
    in_sync(&mut image, &[1, 2, 3, 4]).unwrap();
    run(&mut image, None, RULES).unwrap();
    // Kafka, too, leaves the order in which they stood meanwhile.
    assert_eq!(replicas_of(&image), (vec![2, 1, 3], vec![], vec![]));
    assert_eq!(ids(&partition(&image).isr), [2, 1, 3]);
    let again = run(&mut image, None, RULES);
    assert_eq!(again, Err(ErrorCode::NoReassignmentInProgress));
}

#[test]
fn cancelling_asks_for_an_unclean_election_when_only_new_ones_are_in_sync() {
    let mut image = one_partition();
    run(&mut image, Some(&[4, 5]), RULES).unwrap();
    in_sync(&mut image, &[1, 4]).unwrap();
    let known = partition(&image).clone();
    for id in [1, 2, 3] {
        let epoch = image.broker(BrokerId(id)).unwrap().broker_epoch;
        let plan = plan_fence_broker(&image, BrokerId(id), epoch, RULES);
        add(&mut image, plan.records);
    }
    assert_eq!(ids(&partition(&image).isr), [4], "{known:?}");
    let refused = run(&mut image, None, RULES);
    assert_eq!(refused, Err(ErrorCode::InvalidReplicaAssignment));
    run(&mut image, None, UNCLEAN).unwrap();
    assert_eq!(replicas_of(&image), (vec![1, 2, 3], vec![], vec![]));
}

#[test]
fn a_second_one_takes_the_place_of_the_first() {
    let mut image = one_partition();
    run(&mut image, Some(&[4, 5, 6]), RULES).unwrap();
    run(&mut image, Some(&[1, 2, 4]), RULES).unwrap();
    let expected = (vec![1, 2, 4, 3, 5, 6], vec![4], vec![3, 5, 6]);
    assert_eq!(
        replicas_of(&image),
        expected,
        "4 is waited for all the same"
    );
    in_sync(&mut image, &[1, 2, 3, 4]).unwrap();
    assert_eq!(replicas_of(&image), (vec![1, 2, 4], vec![], vec![]));
}

#[test]
fn each_partition_is_refused_for_itself() {
    let image = one_partition();
    let asked = [
        ask("u", 0, Some(&[1])),
        ask("t", 1, Some(&[1])),
        ask("t", 0, Some(&[])),
        ask("t", 0, Some(&[1, 1])),
        ask("t", 0, Some(&[1, 9])),
        ask("t", 0, None),
        ask("t", 0, Some(&[1, 2])),
        ask("t", 0, Some(&[2, 3, 4])),
    ];
    let plan = plan_reassign_partitions(&image, &asked, false, RULES);
    let codes = plan.answer.unwrap();
    let codes: Vec<_> = codes
        .into_iter()
        .map(|result| result.err().map(|refused| refused.code))
        .collect();
    let invalid = Some(ErrorCode::InvalidReplicaAssignment);
    assert_eq!(
        codes,
        [
            Some(ErrorCode::UnknownTopicOrPartition),
            Some(ErrorCode::UnknownTopicOrPartition),
            invalid,
            invalid,
            invalid,
            Some(ErrorCode::NoReassignmentInProgress),
            Some(ErrorCode::InvalidReplicationFactor),
            None,
        ]
    );
    assert_eq!(plan.records.len(), 1);
}
