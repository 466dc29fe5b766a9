//! Where new replicas go.

use std::collections::BTreeMap;

use super::*;

/// The replicas of a new topic.
fn placed(image: &MetadataImage, count: i32, factor: i16) -> Vec<Vec<i32>> {
    let image = with_topics(image.clone(), &[new_topic("t", count, factor)]);
    let partitions = image.topic("t").unwrap().partitions.iter();
    let ids = |(_, p): (i32, &PartitionRegistration)| p.replicas.iter().map(|b| b.0).collect();
    partitions.map(ids).collect()
}

fn counts(brokers: impl Iterator<Item = i32>) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for broker in brokers {
        *counts.entry(broker).or_default() += 1;
    }
    counts
}

#[test]
fn leaders_and_replicas_are_spread_evenly() {
    let placed = placed(&cluster(4), 12, 3);
    let even = |each: usize| (1..=4).map(|id| (id, each)).collect::<BTreeMap<_, _>>();
    assert_eq!(counts(placed.iter().map(|r| r[0])), even(3));
    assert_eq!(counts(placed.iter().flatten().copied()), even(9));
    for replicas in &placed {
        assert_eq!(counts(replicas.iter().copied()).len(), 3, "{replicas:?}");
    }
    // The second replicas of one broker's partitions are on different brokers.
    let second = placed.iter().filter(|r| r[0] == 1).map(|r| r[1]);
    assert_eq!(counts(second).len(), 3);
}

#[test]
fn each_rack_gets_a_replica_before_one_gets_two() {
    let racks = ["a", "a", "a", "b", "c", "c"];
    let rack = |id: i32| racks[id as usize - 1];
    let image = image_of((1..=6).map(|id| broker(id, Some(rack(id))).into()));
    for replicas in placed(&image, 24, 3) {
        let mut used: Vec<&str> = replicas.iter().map(|id| rack(*id)).collect();
        used.sort();
        assert_eq!(used, ["a", "b", "c"], "{replicas:?}");
    }
    for replicas in placed(&image, 24, 6) {
        assert_eq!(counts(replicas.iter().copied()).len(), 6, "{replicas:?}");
    }
}

#[test]
fn fenced_brokers_follow_but_do_not_lead() {
    let fenced = |id: i32| RegisterBrokerRecord {
        fenced: id > 2,
        ..broker(id, None)
    };
    let image = image_of((1..=4).map(|id| fenced(id).into()));
    for replicas in placed(&image, 8, 2) {
        assert!(replicas.iter().all(|id| *id <= 2), "{replicas:?}");
    }
    let image = with_topics(image, &[new_topic("t", 8, 3)]);
    for (_, partition) in image.topic("t").unwrap().partitions.iter() {
        assert!(partition.leader.0 <= 2);
        assert_eq!(partition.replicas.len(), 3);
        assert_eq!(partition.isr.len(), 2, "a fenced replica is not in sync");
    }
}
