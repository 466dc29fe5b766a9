//! CreateTopics and DeleteTopics, case by case as Apache Kafka 4.4 answers them.

use super::planners::{DeletedTopic, TopicRef, plan_delete_topics};
use super::*;
use crate::types::ErrorCode::{
    self, InvalidConfig, InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor,
    InvalidRequest, InvalidTopicException, PolicyViolation, TopicAlreadyExists, UnknownTopicId,
    UnknownTopicOrPartition,
};

type Refusal<'a> = (ErrorCode, &'a str);

/// The answers in the order of the names, as code and message.
fn answers(image: &MetadataImage, topics: &[NewTopic]) -> Vec<(String, Result<(), PlanError>)> {
    let answer = plan_topics(image, topics, false).answer;
    let mut answers: Vec<_> = answer
        .into_iter()
        .map(|(name, result)| (name.to_string(), result.map(|_| ())))
        .collect();
    answers.sort_by(|a, b| a.0.cmp(&b.0));
    answers
}

fn refused((code, message): Refusal) -> Result<(), PlanError> {
    Err(PlanError::new(code, message))
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let ids = |brokers: &[i32]| brokers.iter().map(|id| BrokerId(*id)).collect();
    NewTopic {
        assignments: assignments
            .iter()
            .map(|(p, brokers)| (*p, ids(brokers)))
            .collect(),
        ..new_topic(name, -1, -1)
    }
}

fn configured(topic: NewTopic, key: &str, value: Option<&str>) -> NewTopic {
    NewTopic {
        configs: vec![(key.into(), value.map(String::from))],
        ..topic
    }
}

#[test]
fn one_topic_is_refused_as_kafka_refuses_it() {
    let image = with_topics(cluster(1), &[new_topic("t1", 3, 1), new_topic("a.b", 1, 1)]);
    let partitions = "Number of partitions was set to an invalid non-positive value.";
    let factor = "Replication factor must be larger than 0, or -1 to use the default value.";
    let exists = "Topic 't1' already exists.";
    let unknown = "Unknown topic config name: bad";
    let sequence = "partitions should be a consecutive 0-based integer sequence";
    let cases: Vec<(NewTopic, Refusal)> = vec![
        (
            new_topic("..", 1, 1),
            (
                InvalidTopicException,
                "Topic name is invalid: '..' is not allowed",
            ),
        ),
        (
            new_topic("__cluster_metadata", 20_000, 1),
            (
                InvalidRequest,
                "Creation of internal topic __cluster_metadata is prohibited.",
            ),
        ),
        (new_topic("t1", 3, 1), (TopicAlreadyExists, exists)),
        (new_topic("t1", 0, 1), (TopicAlreadyExists, exists)),
        (
            new_topic("a_b", 1, 1),
            (
                InvalidTopicException,
                "Topic 'a_b' collides with existing topic: a.b",
            ),
        ),
        (new_topic("p", 0, 1), (InvalidPartitions, partitions)),
        (new_topic("p", -2, 1), (InvalidPartitions, partitions)),
        (new_topic("p", 1, 0), (InvalidReplicationFactor, factor)),
        (new_topic("p", 1, -2), (InvalidReplicationFactor, factor)),
        (new_topic("p", 0, 0), (InvalidReplicationFactor, factor)),
        (
            new_topic("p", 1, 2),
            (
                InvalidReplicationFactor,
                "Unable to replicate the partition 2 time(s): The target replication factor of 2 \
                 cannot be reached because only 1 broker(s) are registered or some brokers have \
                 all their log directories cordoned.",
            ),
        ),
        (
            assigned("g", &[(0, &[1]), (2, &[1])]),
            (InvalidReplicaAssignment, sequence),
        ),
        (
            assigned("g", &[(-1, &[1])]),
            (InvalidReplicaAssignment, sequence),
        ),
        (
            assigned("g", &[(0, &[])]),
            (
                InvalidReplicaAssignment,
                "The manual partition assignment includes an empty replica list.",
            ),
        ),
        (
            assigned("g", &[(0, &[1]), (1, &[1, 2])]),
            (
                InvalidReplicaAssignment,
                "The manual partition assignment includes broker 2, but no such broker is \
                 registered.",
            ),
        ),
        (
            assigned("g", &[(0, &[1]), (1, &[1, 1])]),
            (
                InvalidReplicaAssignment,
                "The manual partition assignment includes the broker 1 more than once.",
            ),
        ),
        (
            assigned("g", &[(0, &[1]), (0, &[1])]),
            (
                InvalidReplicaAssignment,
                "Found multiple manual partition assignments for partition 0",
            ),
        ),
        (
            NewTopic {
                num_partitions: 1,
                ..assigned("g", &[(0, &[1])])
            },
            (
                InvalidRequest,
                "A manual partition assignment was specified, but numPartitions was not set to -1.",
            ),
        ),
        (
            NewTopic {
                replication_factor: 1,
                ..assigned("g", &[(0, &[1])])
            },
            (
                InvalidRequest,
                "A manual partition assignment was specified, but replication factor was not set \
                 to -1.",
            ),
        ),
        (
            configured(new_topic("g", 0, 1), "bad", Some("x")),
            (InvalidConfig, unknown),
        ),
        (
            configured(new_topic("g", 1, 1), "retention.ms", None),
            (
                InvalidConfig,
                "Null value not supported for topic configs: retention.ms",
            ),
        ),
    ];
    for (topic, refusal) in cases {
        let plan = plan_topics(&image, std::slice::from_ref(&topic), false);
        assert_eq!(plan.records, [], "{topic:?}");
        let name = topic.name.clone();
        assert_eq!(answers(&image, &[topic]), [(name, refused(refusal))]);
    }
}

#[test]
fn replica_lists_of_one_length_on_active_brokers_are_wanted() {
    let mut fenced = broker(3, None);
    fenced.fenced = true;
    let image = image_of([
        broker(1, None).into(),
        broker(2, None).into(),
        fenced.into(),
    ]);
    let lengths = assigned("a", &[(0, &[1]), (1, &[1, 2])]);
    let stopped = assigned("b", &[(0, &[3])]);
    let expected = [
        (
            "a".to_owned(),
            refused((
                InvalidReplicaAssignment,
                "The manual partition assignment includes a partition with 2 replica(s), but this \
                 is not consistent with previous partitions, which have 1 replica(s).",
            )),
        ),
        (
            "b".to_owned(),
            refused((
                InvalidReplicaAssignment,
                "All brokers specified in the manual partition assignment for partition 0 are \
                 fenced or in controlled shutdown.",
            )),
        ),
    ];
    assert_eq!(answers(&image, &[lengths, stopped]), expected);

    let image = with_topics(image, &[assigned("c", &[(1, &[3, 2]), (0, &[1, 3])])]);
    let second = image.partition("c", 1).unwrap();
    assert_eq!(*second.replicas, *replicas(&[3, 2]));
    assert_eq!(
        (second.leader, &*second.isr),
        (BrokerId(2), &*replicas(&[2]))
    );
    assert_eq!(
        second.directory(BrokerId(2)),
        Some(DirectoryId(Uuid::from_u128(1002)))
    );
}

#[test]
fn a_topic_without_any_active_broker_is_refused() {
    let mut fenced = broker(1, None);
    fenced.fenced = true;
    let image = image_of([fenced.into()]);
    let refusal = (
        InvalidReplicationFactor,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have \
         all their log directories cordoned.",
    );
    let expected = [("t".to_owned(), refused(refusal))];
    assert_eq!(answers(&image, &[new_topic("t", 1, 1)]), expected);
}

#[test]
fn a_refused_topic_does_not_stop_the_others() {
    let topics = [
        new_topic("twice", 1, 1),
        new_topic("twice", 2, 1),
        new_topic("c.d", 1, 1),
        new_topic("c_d", 1, 1),
        new_topic("zero", 0, 1),
    ];
    let plan = plan_topics(&cluster(1), &topics, false);
    let mut image = cluster(1);
    add(&mut image, plan.records);
    let made: Vec<&str> = image.topics().map(|topic| &*topic.name).collect();
    assert_eq!(
        made,
        ["c.d", "c_d"],
        "names that collide may come in one request"
    );
    let twice = refused((InvalidRequest, "Duplicate topic name."));
    let answers = answers(&cluster(1), &topics);
    assert_eq!(
        answers.iter().filter(|(name, _)| name == "twice").count(),
        1
    );
    assert!(answers.contains(&("twice".into(), twice)));
}

#[test]
fn defaults_and_configs_are_taken() {
    let topic = NewTopic {
        configs: vec![
            ("retention.ms".into(), Some("1".into())),
            ("retention.ms".into(), Some("2".into())),
        ],
        ..new_topic("t", -1, -1)
    };
    let plan = plan_topics(&cluster(1), &[topic], false);
    let created = plan.answer[0].1.clone().unwrap();
    assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
    let mut image = cluster(1);
    add(&mut image, plan.records);
    let topic = image.topic_by_id(created.topic_id).unwrap();
    assert_eq!(topic.partitions.len(), 3);
    let first = topic.partitions.get(0).unwrap();
    assert_eq!((first.leader, first.leader_epoch.0), (BrokerId(1), 0));
    let configs = image.configs(&ConfigResource::topic("t")).unwrap();
    assert_eq!(**configs, [("retention.ms".into(), "2".into())].into());
}

#[test]
fn validate_only_answers_the_same_and_makes_nothing() {
    let topics = [new_topic("t", 1, 1), new_topic("t2", 0, 1)];
    let plan = plan_topics(&cluster(1), &topics, true);
    assert_eq!(plan.records, []);
    assert_eq!(plan.answer, plan_topics(&cluster(1), &topics, false).answer);
}

#[test]
fn too_many_partitions_refuse_the_whole_request() {
    let image = cluster(1);
    let made = |topics: &[NewTopic]| plan_topics(&image, topics, false).records.len();
    assert_eq!(made(&[new_topic("a", 9_999, 1)]), 10_000);

    // One more record than allowed, though as many partitions as allowed.
    let records = (
        PolicyViolation,
        "Unable to perform excessively large batch operation.",
    );
    let topics = [new_topic("a", 10_000, 1), new_topic("b", -5, 1)];
    let expected = ["a", "b"].map(|name| (name.to_owned(), refused(records)));
    assert_eq!(answers(&image, &topics), expected);
    assert_eq!(made(&topics), 0);

    // Each topic of the request is named, also those that come twice.
    let partitions = (
        PolicyViolation,
        "Excessively large number of partitions per request.",
    );
    let topics = [
        new_topic("a", 1, 1),
        new_topic("a", 1, 1),
        new_topic("b", 10_001, 1),
        new_topic("c/", 1, 1),
    ];
    let expected = ["a", "a", "b", "c/"].map(|name| (name.to_owned(), refused(partitions)));
    assert_eq!(answers(&image, &topics), expected);
}

#[test]
fn topics_are_deleted_by_name_or_by_id() {
    let topics = ["a", "b", "c", "d"].map(|name| new_topic(name, 1, 1));
    let image = with_topics(cluster(1), &topics);
    let id = |name: &str| image.topic(name).unwrap().id;
    let name = |name: &str| TopicRef::Name(name.into());
    let request = [
        name("a"),
        TopicRef::Id(id("b")),
        name("c"),
        TopicRef::Id(id("c")),
        name("d"),
        name("d"),
        name("a/b"),
        TopicRef::Id(topic_id(999)),
        TopicRef::Id(topic_id(998)),
        TopicRef::Id(topic_id(998)),
    ];
    let plan = plan_delete_topics(&image, &request);
    let result = |answer: &DeletedTopic| {
        let name = answer.name.as_deref().unwrap_or("null").to_owned();
        let (code, message) = match &answer.result {
            Ok(()) => (ErrorCode::None, String::new()),
            Err(error) => (
                error.code,
                error.message.as_deref().unwrap_or("null").to_owned(),
            ),
        };
        (name, answer.topic_id, code, message)
    };
    let mut results: Vec<_> = plan.answer.iter().map(result).collect();
    results.sort();
    let twice = "The provided topic name maps to an ID that was already supplied.";
    let no_id = "This server does not host this topic ID.";
    let no_name = "This server does not host this topic-partition.";
    let none = TopicId::NONE;
    let expected = [
        ("a", id("a"), ErrorCode::None, ""),
        ("a/b", none, UnknownTopicOrPartition, no_name),
        ("b", id("b"), ErrorCode::None, ""),
        ("c", id("c"), InvalidRequest, twice),
        ("d", none, InvalidRequest, "Duplicate topic name."),
        ("null", topic_id(998), InvalidRequest, "Duplicate topic id."),
        ("null", topic_id(999), UnknownTopicId, no_id),
    ];
    let expected = expected.map(|(n, id, code, m)| (n.to_owned(), id, code, m.to_owned()));
    assert_eq!(results, expected);

    let mut after = image.clone();
    add(&mut after, plan.records);
    let left: Vec<&str> = after.topics().map(|topic| &*topic.name).collect();
    assert_eq!(left, ["c", "d"]);
}
