//! What each record does to the image.

use super::*;
use crate::types::{LeaderEpoch, ProducerId};

fn partition(topic: u128, partition_id: i32, brokers: &[i32]) -> PartitionRecord {
    PartitionRecord {
        partition_id,
        topic_id: topic_id(topic),
        replicas: replicas(brokers),
        isr: replicas(brokers),
        removing_replicas: Replicas::default(),
        adding_replicas: Replicas::default(),
        leader: BrokerId(brokers[0]),
        leader_recovery_state: 0,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: 0,
        directories: [DirectoryId::UNASSIGNED].repeat(brokers.len()).into(),
        eligible_leader_replicas: Replicas::default(),
        last_known_elr: Replicas::default(),
    }
}

fn topic(name: &str, id: u128) -> MetadataRecord {
    TopicRecord {
        name: name.into(),
        topic_id: topic_id(id),
    }
    .into()
}

fn config(resource: &ConfigResource, name: &str, value: Option<&str>) -> MetadataRecord {
    ConfigRecord::new(resource, name.into(), value.map(Arc::from)).into()
}

#[test]
fn a_topic_is_found_by_name_and_by_id_and_goes_with_its_configs() {
    let resource = ConfigResource::topic("a.b");
    let mut image = image_of([
        topic("a.b", 1),
        config(&resource, "retention.ms", Some("5")),
    ]);
    let delta = add(
        &mut image,
        [
            partition(1, 0, &[1, 2]).into(),
            partition(1, 1, &[2, 1]).into(),
        ],
    );
    assert_eq!(delta.topics[&topic_id(1)], [0, 1].into());
    assert_eq!(image.topic("a.b"), image.topic_by_id(topic_id(1)));
    assert_eq!(image.topic("a.b").unwrap().partitions.len(), 2);
    assert_eq!(image.partition("a.b", 1).unwrap().leader, BrokerId(2));
    assert_eq!(image.partition("a.b", 2), None);
    assert_eq!(image.partition("a.b", -1), None);
    assert_eq!(image.colliding_topic("a_b").map(|n| &**n), Some("a.b"));
    assert_eq!(image.colliding_topic("a.b"), None);

    let remove = RemoveTopicRecord {
        topic_id: topic_id(1),
    };
    let delta = add(&mut image, [remove.into()]);
    assert_eq!(delta.removed_topics[&topic_id(1)], "a.b".into());
    let mut expected = MetadataImage::empty();
    expected.begin_entry(image.offset(), image.epoch());
    assert_eq!(image, expected);
}

#[test]
fn topics_are_listed_by_name() {
    let image = image_of([topic("c", 1), topic("a", 3), topic("b", 2)]);
    let names = |topics: &mut dyn Iterator<Item = &Arc<TopicImage>>| {
        topics.map(|t| t.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut image.topics()), ["a", "b", "c"]);
    assert_eq!(names(&mut image.topics_from("aa")), ["b", "c"]);
    assert_eq!(names(&mut image.topics_from("b")), ["b", "c"]);
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let image = image_of([topic("a", 1), partition(1, 0, &[1]).into()]);
    let refused: [MetadataRecord; 8] = [
        topic("a", 2),
        topic("b", 1),
        partition(2, 0, &[1]).into(),
        partition(1, 0, &[1]).into(),
        partition(1, 2, &[1]).into(),
        PartitionChangeRecord::of(topic_id(1), 1).into(),
        RemoveTopicRecord {
            topic_id: topic_id(2),
        }
        .into(),
        UnregisterBrokerRecord {
            broker_id: BrokerId(1),
            broker_epoch: BrokerEpoch(0),
        }
        .into(),
    ];
    for record in refused {
        let mut image = image.clone();
        let applied = image.apply(&record, &mut ImageDelta::default());
        assert!(applied.is_err(), "{record:?}");
    }
}

#[test]
fn a_partition_change_raises_the_epochs() {
    let mut image = image_of([topic("a", 1), partition(1, 0, &[1, 2, 3]).into()]);
    let mut change = PartitionChangeRecord::of(topic_id(1), 0);
    change.isr = Some(replicas(&[1, 3]));
    change.eligible_leader_replicas = Some(replicas(&[2]));
    add(&mut image, [change.clone().into()]);
    let now = image.partition("a", 0).unwrap();
    assert_eq!((now.leader_epoch, now.partition_epoch), (LeaderEpoch(0), 1));
    assert_eq!(*now.isr, *replicas(&[1, 3]));
    assert_eq!(now.eligible_leader_replicas(), [BrokerId(2)]);

    let mut change = PartitionChangeRecord::of(topic_id(1), 0);
    change.leader = Some(BrokerId(3));
    change.eligible_leader_replicas = Some(Replicas::default());
    change.leader_recovery_state = Some(1);
    add(&mut image, [change.into()]);
    let now = image.partition("a", 0).unwrap();
    assert_eq!(
        (now.leader, now.leader_epoch),
        (BrokerId(3), LeaderEpoch(1))
    );
    assert_eq!(now.partition_epoch, 2);
    assert!(now.eligible_leader_replicas().is_empty());
    assert_eq!(now.leader_recovery_state(), 1);
}

#[test]
fn a_replica_that_stays_keeps_its_directory() {
    let directory = |n| DirectoryId(Uuid::from_u128(n));
    let mut first = partition(1, 0, &[1, 2]);
    first.directories = [directory(11), directory(12)].into();
    let mut image = image_of([topic("a", 1), first.into()]);
    let mut change = PartitionChangeRecord::of(topic_id(1), 0);
    change.replicas = Some(replicas(&[3, 1]));
    change.adding_replicas = Some(replicas(&[3]));
    change.removing_replicas = Some(replicas(&[2]));
    change.last_known_elr = Some(replicas(&[2]));
    add(&mut image, [change.into()]);
    let now = image.partition("a", 0).unwrap();
    assert_eq!(*now.directories, [DirectoryId::UNASSIGNED, directory(11)]);
    assert_eq!(now.directory(BrokerId(1)), Some(directory(11)));
    assert_eq!(now.directory(BrokerId(2)), None);
    assert_eq!(now.adding_replicas(), [BrokerId(3)]);
    assert_eq!(now.removing_replicas(), [BrokerId(2)]);
    assert_eq!(now.last_known_elr(), [BrokerId(2)]);
}

#[test]
fn a_clone_keeps_what_it_saw() {
    let mut image = image_of([topic("a", 1)]);
    add(&mut image, (0..200).map(|i| partition(1, i, &[1]).into()));
    let before = image.clone();
    let mut change = PartitionChangeRecord::of(topic_id(1), 100);
    change.leader = Some(BrokerId::NONE);
    add(&mut image, [change.into(), partition(1, 200, &[1]).into()]);
    assert!(before.partition("a", 100).unwrap().has_leader());
    assert!(!image.partition("a", 100).unwrap().has_leader());
    assert_eq!(before.topic("a").unwrap().partitions.len(), 200);
    let indexes = image.topic("a").unwrap().partitions.iter().map(|(i, _)| i);
    assert!(indexes.eq(0..201));
}

#[test]
fn equal_lists_are_shared() {
    let image = image_of([
        topic("a", 1),
        partition(1, 0, &[1]).into(),
        partition(1, 1, &[1]).into(),
    ]);
    let [first, second] = [0, 1].map(|i| image.partition("a", i).unwrap());
    assert!(Arc::ptr_eq(&first.replicas, &first.isr));
    assert!(Arc::ptr_eq(&first.replicas, &second.replicas));
    assert!(Arc::ptr_eq(&first.directories, &second.directories));
    assert_eq!(size_of::<PartitionRegistration>(), 72);
}

#[test]
fn configs_are_set_and_taken_away() {
    let all = ConfigResource::all_brokers();
    let mut image = image_of([config(&all, "a", Some("1")), config(&all, "b", Some("2"))]);
    let delta = add(
        &mut image,
        [config(&all, "a", None), config(&all, "b", Some("3"))],
    );
    assert_eq!(delta.configs, [all.clone()].into());
    let expected: Configs = [("b".into(), "3".into())].into();
    assert_eq!(image.configs(&all).map(|c| &**c), Some(&expected));
    add(
        &mut image,
        [config(&all, "b", None), config(&all, "c", None)],
    );
    assert_eq!(image.configs(&all), None);
    assert_eq!(image.config_resources().count(), 0);
}

#[test]
fn a_broker_registers_changes_and_goes() {
    let mut image = image_of([topic("a", 1)]);
    let delta = add(&mut image, [broker(7, Some("r")).into()]);
    assert_eq!(delta.brokers, [BrokerId(7)].into());
    let known = image.broker(BrokerId(7)).unwrap();
    assert_eq!(
        known.broker_epoch,
        BrokerEpoch(1),
        "the offset of its entry"
    );
    assert_eq!(known.end_point("PLAINTEXT").unwrap().port, 9092);
    assert!(image.is_active(BrokerId(7)));

    let change = BrokerRegistrationChangeRecord {
        broker_id: BrokerId(7),
        broker_epoch: BrokerEpoch(1),
        fenced: Some(true),
        in_controlled_shutdown: Some(true),
        log_dirs: Some(vec![DirectoryId::LOST]),
        cordoned_log_dirs: Some(vec![DirectoryId::LOST]),
    };
    add(&mut image, [change.into()]);
    let known = image.broker(BrokerId(7)).unwrap();
    assert!(known.fenced && known.in_controlled_shutdown && known.is_cordoned());
    assert!(!image.is_active(BrokerId(7)));

    let own = ConfigResource {
        resource_type: ConfigResourceType::Broker,
        resource_name: "7".into(),
    };
    add(&mut image, [config(&own, "a", Some("1"))]);
    let gone = UnregisterBrokerRecord {
        broker_id: BrokerId(7),
        broker_epoch: BrokerEpoch(1),
    };
    let delta = add(&mut image, [gone.into()]);
    assert_eq!(image.broker(BrokerId(7)), None);
    assert_eq!(
        (delta.brokers, delta.configs),
        ([BrokerId(7)].into(), [own].into())
    );
}

#[test]
fn the_first_records_make_a_cluster_with_kafkas_features() {
    let mut image = MetadataImage::empty();
    let delta = add(&mut image, bootstrap_records("id".into(), 2));
    assert!(delta.features);
    assert_eq!(image.cluster_id().map(|id| &**id), Some("id"));
    let features: Vec<(&str, i16)> = image.features().iter().map(|(n, l)| (&**n, *l)).collect();
    let expected = [
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("kraft.version", 1),
        ("metadata.version", 33),
        ("share.version", 2),
        ("streams.version", 1),
        ("transaction.version", 2),
    ];
    assert_eq!(features, expected);
    let defaults = image.configs(&ConfigResource::all_brokers()).unwrap();
    assert_eq!(defaults["min.insync.replicas"], "2".into());

    let off = FeatureLevelRecord {
        name: "share.version".into(),
        feature_level: 0,
    };
    add(&mut image, [off.into()]);
    assert_eq!(image.feature_level("share.version"), 0);
    assert_eq!(image.features().len(), 6);
}

#[test]
fn producer_ids_go_on_from_the_last_record() {
    let record = ProducerIdsRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(0),
        next_producer_id: ProducerId(3000),
    };
    assert_eq!(
        image_of([record.into()]).next_producer_id(),
        ProducerId(3000)
    );
}

#[test]
fn deltas_add_up() {
    let mut delta = ImageDelta::default();
    let mut image = image_of([topic("a", 1)]);
    delta.merge(&add(&mut image, [partition(1, 0, &[1]).into()]));
    delta.merge(&add(
        &mut image,
        [partition(1, 1, &[1]).into(), broker(1, None).into()],
    ));
    assert_eq!(delta.topics, [(topic_id(1), [0, 1].into())].into());
    assert_eq!(delta.brokers, [BrokerId(1)].into());
    assert!(!delta.is_empty());
    delta.merge(&ImageDelta::everything());
    assert_eq!(delta, ImageDelta::everything());
    delta.merge(&add(&mut image, [broker(2, None).into()]));
    assert_eq!(delta, ImageDelta::everything());
}
