//! CreatePartitions, case by case as Apache Kafka 4.4 answers them.

use super::planners::{NewPartitions, plan_create_partitions};
use super::*;
use crate::types::ErrorCode::{
    InvalidPartitions, InvalidReplicaAssignment, InvalidRequest, PolicyViolation,
    UnknownTopicOrPartition,
};

fn increase(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> NewPartitions {
    let ids = |brokers: &&[i32]| brokers.iter().map(|id| BrokerId(*id)).collect();
    NewPartitions {
        name: name.into(),
        count,
        assignments: assignments.map(|all| all.iter().map(ids).collect()),
    }
}

fn plan(image: &MetadataImage, topics: &[NewPartitions]) -> Plan<planners::MadePartitions> {
    plan_create_partitions(image, topics, false, &mut Fixed(0))
}

#[test]
fn an_increase_is_refused_as_kafka_refuses_it() {
    let image = with_topics(cluster(3), &[new_topic("t1", 3, 2)]);
    let no_increase = |count: i32| {
        format!("The topic t1 currently has 3 partition(s); {count} would not be an increase.")
    };
    let assigned = |count: i32| {
        format!(
            "Attempted to add 2 additional partition(s), but only {count} assignment(s) were specified."
        )
    };
    let includes = |rest: &str| format!("The manual partition assignment includes {rest}");
    let cases = [
        (increase("t1", 2, None), InvalidPartitions, no_increase(2)),
        (increase("t1", 0, None), InvalidPartitions, no_increase(0)),
        (increase("t1", -1, None), InvalidPartitions, no_increase(-1)),
        (
            increase("t1", 3, None),
            InvalidPartitions,
            "Topic already has 3 partition(s).".into(),
        ),
        (
            increase("t1", 5, Some(&[&[1]])),
            InvalidReplicaAssignment,
            assigned(1),
        ),
        (
            increase("t1", 5, Some(&[])),
            InvalidReplicaAssignment,
            assigned(0),
        ),
        (
            increase("t1", 4, Some(&[&[]])),
            InvalidReplicaAssignment,
            includes("an empty replica list."),
        ),
        (
            increase("t1", 4, Some(&[&[9, 1]])),
            InvalidReplicaAssignment,
            includes("broker 9, but no such broker is registered."),
        ),
        (
            increase("t1", 4, Some(&[&[1, 1]])),
            InvalidReplicaAssignment,
            includes("the broker 1 more than once."),
        ),
        (
            increase("t1", 4, Some(&[&[1]])),
            InvalidReplicaAssignment,
            includes(
                "a partition with 1 replica(s), but this is not consistent with previous \
                 partitions, which have 2 replica(s).",
            ),
        ),
    ];
    for (topic, code, message) in cases {
        let expected = vec![("t1".into(), Err(PlanError::new(code, message)))];
        let plan = plan(&image, &[topic]);
        assert_eq!((plan.records.len(), plan.answer), (0, expected));
    }
}

#[test]
fn one_topic_does_not_stop_the_others() {
    let topics = ["a", "b", "c"].map(|name| new_topic(name, 1, 2));
    let mut image = with_topics(cluster(3), &topics);
    let topics = [
        increase("a", 3, None),
        increase("b", 2, None),
        increase("b", 3, None),
        increase("nope", 20_000, None),
        increase("c", 2, Some(&[&[3, 1]])),
    ];
    let plan = plan(&image, &topics);
    let unknown = Err(PlanError::bare(UnknownTopicOrPartition));
    let twice = Err(PlanError::new(InvalidRequest, "Duplicate topic name."));
    for expected in [
        ("a".into(), Ok(())),
        ("b".into(), twice),
        ("nope".into(), unknown),
        ("c".into(), Ok(())),
    ] {
        assert!(plan.answer.contains(&expected), "{expected:?}");
    }
    assert_eq!(plan.answer.len(), 4);
    add(&mut image, plan.records);
    let count = |name: &str| image.topic(name).unwrap().partitions.len();
    assert_eq!((count("a"), count("b"), count("c")), (3, 1, 2));
    assert_eq!(image.partition("a", 2).unwrap().replicas.len(), 2);
    assert_eq!(image.partition("c", 1).unwrap().leader, BrokerId(3));
}

#[test]
fn too_many_partitions_refuse_the_whole_request() {
    let image = with_topics(cluster(1), &[new_topic("a", 1, 1), new_topic("b", 1, 1)]);
    assert_eq!(
        plan(&image, &[increase("a", 10_001, None)]).records.len(),
        10_000
    );
    let topics = [
        increase("a", 3, None),
        increase("a", 3, None),
        increase("b", 20_000, None),
    ];
    let message = "Excessively large number of additional partitions per request.";
    let refused = || Err(PlanError::new(PolicyViolation, message));
    let expected = ["a", "a", "b"].map(|name| (name.into(), refused()));
    assert_eq!(plan(&image, &topics).answer, expected);
}

#[test]
fn validate_only_makes_nothing() {
    let image = with_topics(cluster(1), &[new_topic("a", 1, 1)]);
    let plan = plan_create_partitions(&image, &[increase("a", 3, None)], true, &mut Fixed(0));
    assert_eq!(
        (plan.records.len(), plan.answer),
        (0, vec![("a".into(), Ok(()))])
    );
}
