//! Brokers, elections, producer ids and configurations.

use super::planners::*;
use super::*;
use crate::types::{ErrorCode, ProducerId};

/// Kafka's defaults for every topic.
const DEFAULT: RulesOf<'static> = &|_| TopicRules::DEFAULT;

fn balance(image: &MetadataImage) -> Vec<MetadataRecord> {
    plan_preferred_leaders(image, 1000, DEFAULT).records
}

pub(super) fn request(id: i32, incarnation: u128, previous: i64) -> RegisterBroker {
    let known = broker(id, None);
    RegisterBroker {
        broker_id: BrokerId(id),
        cluster_id: "id".into(),
        incarnation_id: Uuid::from_u128(incarnation),
        end_points: known.end_points,
        features: SUPPORTED_FEATURES
            .iter()
            .map(|feature| BrokerFeature {
                name: feature.name.into(),
                min_supported_version: feature.min_version,
                max_supported_version: feature.max_version,
            })
            .collect(),
        rack: None,
        log_dirs: known.log_dirs,
        previous_broker_epoch: BrokerEpoch(previous),
    }
}

pub(super) fn run<T>(image: &mut MetadataImage, plan: Plan<Result<T, PlanError>>) -> T {
    let answer = plan.answer.unwrap();
    add(image, plan.records);
    answer
}

pub(super) fn epoch(image: &MetadataImage, id: i32) -> BrokerEpoch {
    image.broker(BrokerId(id)).unwrap().broker_epoch
}

/// A cluster with brokers 1 to `count` that registered and were unfenced.
pub(super) fn running(count: i32) -> MetadataImage {
    let mut image = image_of(bootstrap_records("id".into(), 1));
    for id in 1..=count {
        let plan = plan_register_broker(&image, request(id, id as u128, -1), DEFAULT);
        run(&mut image, plan);
        let plan = plan_unfence_broker(&image, BrokerId(id), epoch(&image, id), DEFAULT);
        run(&mut image, plan);
    }
    image
}

#[test]
fn a_broker_serves_once_it_is_unfenced() {
    let mut image = image_of(bootstrap_records("id".into(), 1));
    let plan = plan_register_broker(&image, request(1, 1, -1), DEFAULT);
    run(&mut image, plan);
    assert_eq!(epoch(&image, 1), BrokerEpoch(image.offset().0));
    assert!(!image.is_active(BrokerId(1)));
    let plan = plan_unfence_broker(&image, BrokerId(1), epoch(&image, 1), DEFAULT);
    run(&mut image, plan);
    assert!(image.is_active(BrokerId(1)));
    // Asked again, as a heartbeat does.
    let plan = plan_unfence_broker(&image, BrokerId(1), epoch(&image, 1), DEFAULT);
    assert_eq!((plan.records, plan.answer), (vec![], Ok(())));
}

#[test]
fn a_registration_of_another_cluster_or_without_a_finalized_feature_is_refused() {
    let image = running(0);
    let mut foreign = request(1, 1, -1);
    foreign.cluster_id = "other".into();
    let error = plan_register_broker(&image, foreign, DEFAULT)
        .answer
        .unwrap_err();
    let message = "Expected cluster ID id, but got cluster ID other";
    assert_eq!(
        error,
        PlanError::new(ErrorCode::InconsistentClusterId, message)
    );

    let mut old = request(1, 1, -1);
    old.features
        .retain(|feature| &*feature.name != "share.version");
    let error = plan_register_broker(&image, old, DEFAULT)
        .answer
        .unwrap_err();
    let message = "Unable to register because the broker does not support finalized version 2 of \
                   share.version. The broker wants a version between 0 and 0, inclusive.";
    assert_eq!(
        error,
        PlanError::new(ErrorCode::UnsupportedVersion, message)
    );
}

#[test]
fn the_same_incarnation_keeps_its_epoch() {
    let mut image = running(1);
    let before = epoch(&image, 1);
    let mut again = request(1, 1, -1);
    again.rack = Some("r".into());
    let plan = plan_register_broker(&image, again, DEFAULT);
    run(&mut image, plan);
    let known = image.broker(BrokerId(1)).unwrap();
    assert_eq!((known.broker_epoch, known.fenced), (before, false));
    assert_eq!(known.rack.as_deref(), Some("r"));
}

#[test]
fn a_clean_restart_keeps_the_leaders_and_a_crash_begins_new_epochs() {
    let mut image = with_topics(running(1), &[new_topic("t", 2, 1)]);
    let leader = |image: &MetadataImage| {
        let partition = image.partition("t", 1).unwrap();
        (partition.leader.0, partition.leader_epoch.0)
    };
    let previous = epoch(&image, 1).0;
    let plan = plan_register_broker(&image, request(1, 2, previous), DEFAULT);
    run(&mut image, plan);
    assert!(epoch(&image, 1).0 > previous);
    assert_eq!(leader(&image), (1, 0));

    let plan = plan_register_broker(&image, request(1, 3, -1), DEFAULT);
    run(&mut image, plan);
    assert_eq!(leader(&image), (-1, 1));
    assert_eq!(*image.partition("t", 1).unwrap().isr, *replicas(&[1]));
    let plan = plan_unfence_broker(&image, BrokerId(1), epoch(&image, 1), DEFAULT);
    run(&mut image, plan);
    assert_eq!(leader(&image), (1, 2));
}

#[test]
fn a_fenced_broker_hands_over_its_partitions() {
    let mut image = with_topics(
        running(2),
        &[new_topic("t", 2, 2), new_topic("single", 2, 1)],
    );
    let plan = plan_fence_broker(&image, BrokerId(1), epoch(&image, 1), DEFAULT);
    run(&mut image, plan);
    for (_, partition) in image.topic("t").unwrap().partitions.iter() {
        assert_eq!(
            (partition.leader, &*partition.isr),
            (BrokerId(2), &*replicas(&[2]))
        );
    }
    let single = &image.topic("single").unwrap().partitions;
    let mut leaders: Vec<i32> = single.iter().map(|(_, p)| p.leader.0).collect();
    leaders.sort();
    assert_eq!(leaders, [-1, 2]);
    assert!(single.iter().all(|(_, p)| p.isr.len() == 1));

    let plan = plan_unfence_broker(&image, BrokerId(1), epoch(&image, 1), DEFAULT);
    run(&mut image, plan);
    let single = &image.topic("single").unwrap().partitions;
    assert!(single.iter().all(|(_, p)| p.has_leader()));
    // It does not take back what another leads before it is in sync there.
    assert_eq!(balance(&image), []);
}

#[test]
fn preferred_leaders_take_over_again() {
    let mut image = with_topics(running(2), &[new_topic("t", 2, 2)]);
    let topic = image.topic("t").unwrap().clone();
    assert_eq!(balance(&image), []);
    let changes = [0, 1].map(|index| {
        let mut change = PartitionChangeRecord::of(topic.id, index);
        change.leader = Some(BrokerId(1));
        change.into()
    });
    add(&mut image, changes);
    let records = balance(&image);
    assert_eq!(records.len(), 1);
    add(&mut image, records);
    let leaders: Vec<BrokerId> = image
        .topic("t")
        .unwrap()
        .partitions
        .iter()
        .map(|(_, p)| p.leader)
        .collect();
    assert_eq!(leaders.iter().filter(|leader| leader.0 == 2).count(), 1);
}

#[test]
fn an_unregistered_broker_is_forgotten() {
    let mut image = with_topics(running(2), &[new_topic("t", 1, 2)]);
    let plan = plan_unregister_broker(&image, BrokerId(1), DEFAULT);
    run(&mut image, plan);
    assert_eq!(image.broker(BrokerId(1)), None);
    assert_eq!(image.partition("t", 0).unwrap().leader, BrokerId(2));
    let error = plan_unregister_broker(&image, BrokerId(1), DEFAULT)
        .answer
        .unwrap_err();
    let message = "Broker ID 1 is not currently registered";
    assert_eq!(
        error,
        PlanError::new(ErrorCode::BrokerIdNotRegistered, message)
    );
}

#[test]
fn producer_ids_come_in_blocks_that_do_not_overlap() {
    let mut image = running(1);
    for first in [0, 1000, 2000] {
        let plan = plan_allocate_producer_ids(&image, BrokerId(1), epoch(&image, 1));
        let block = run(&mut image, plan);
        assert_eq!((block.first, block.count), (ProducerId(first), 1000));
    }
    let stale = plan_allocate_producer_ids(&image, BrokerId(1), BrokerEpoch(0));
    assert_eq!(stale.answer.unwrap_err().code, ErrorCode::StaleBrokerEpoch);
    let unknown = plan_allocate_producer_ids(&image, BrokerId(9), BrokerEpoch(0));
    assert_eq!(
        unknown.answer.unwrap_err().code,
        ErrorCode::StaleBrokerEpoch
    );
}

#[test]
fn only_configs_that_change_become_records() {
    let topic = ConfigResource::topic("t");
    let set = |name: &str, value: &str| (Arc::from(name), Some(Arc::from(value)));
    let mut image = MetadataImage::empty();
    let change = |image: &MetadataImage, resource: &ConfigResource, changes: &[_]| {
        config_change_records(image, resource, changes.to_vec())
    };
    let records = change(
        &image,
        &topic,
        &[set("a", "1"), set("b", "2"), ("c".into(), None)],
    );
    assert_eq!(records.len(), 2);
    add(&mut image, records);
    let records = change(&image, &topic, &[set("a", "1"), ("b".into(), None)]);
    assert_eq!(
        records,
        [ConfigRecord::new(&topic, "b".into(), None).into()]
    );
    add(&mut image, records);

    let wanted: Configs = [("b".into(), "3".into()), ("d".into(), "4".into())].into();
    let records = config_replacement_records(&image, &topic, &wanted);
    add(&mut image, records);
    assert_eq!(**image.configs(&topic).unwrap(), wanted);

    // A broker reads the files behind its values again.
    let all = ConfigResource::all_brokers();
    let records = change(&image, &all, &[set("a", "1")]);
    add(&mut image, records);
    assert_eq!(change(&image, &all, &[set("a", "1")]).len(), 1);
}
