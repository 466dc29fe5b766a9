//! Any sequence of records gives an image that its snapshot gives back.

use proptest::prelude::*;

use super::*;
use crate::types::{LeaderEpoch, ProducerId};

/// A record made of small numbers, so that some of them meet. Many will not fit; those are skipped.
fn record() -> impl Strategy<Value = MetadataRecord> {
    let ids = prop::collection::vec(1..4i32, 0..3).prop_map(|ids| replicas(&ids));
    let name = prop::sample::select(vec!["a", "a.b", "a_b", "c"]);
    let topic = (1..5u128).prop_map(topic_id);
    let partition = (
        topic.clone(),
        0..3i32,
        ids.clone(),
        ids.clone(),
        ids.clone(),
        0..2i8,
    );
    let change = (
        topic.clone(),
        0..3i32,
        prop::option::of(ids.clone()),
        ids,
        -1..3i32,
    );
    let resource = prop::sample::select(vec![
        ConfigResource::topic("a"),
        ConfigResource::topic("a.b"),
        ConfigResource::all_brokers(),
    ]);
    let config = (resource, "[ab]", prop::option::of("[xy]"));
    prop_oneof![
        2 => (name, topic.clone()).prop_map(|(name, topic_id)| {
            TopicRecord { name: name.into(), topic_id }.into()
        }),
        4 => partition.prop_map(|(topic_id, partition_id, replicas, isr, rare, state)| {
            PartitionRecord {
                partition_id,
                topic_id,
                directories: [DirectoryId::LOST].repeat(replicas.len()).into(),
                replicas,
                isr,
                removing_replicas: rare.clone(),
                adding_replicas: Replicas::default(),
                leader: BrokerId(1),
                leader_recovery_state: state,
                leader_epoch: LeaderEpoch(3),
                partition_epoch: 4,
                eligible_leader_replicas: Replicas::default(),
                last_known_elr: rare,
            }
            .into()
        }),
        3 => change.prop_map(|(topic_id, partition_id, replicas, isr, leader)| {
            let mut change = PartitionChangeRecord::of(topic_id, partition_id);
            change.replicas = replicas;
            change.eligible_leader_replicas = Some(isr.clone());
            change.isr = Some(isr);
            change.leader = (leader >= 0).then_some(BrokerId(leader));
            change.into()
        }),
        1 => topic.prop_map(|topic_id| RemoveTopicRecord { topic_id }.into()),
        2 => config.prop_map(|(resource, name, value)| {
            ConfigRecord::new(&resource, name.into(), value.map(Arc::from)).into()
        }),
        1 => (1..4i32, prop::option::of("[rs]")).prop_map(|(id, rack)| {
            broker(id, rack.as_deref()).into()
        }),
        1 => (1..4i32, 0..20i64, any::<bool>()).prop_map(|(id, epoch, fenced)| {
            BrokerRegistrationChangeRecord {
                broker_id: BrokerId(id),
                broker_epoch: BrokerEpoch(epoch),
                fenced: Some(fenced),
                in_controlled_shutdown: None,
                log_dirs: None,
                cordoned_log_dirs: None,
            }
            .into()
        }),
        1 => (0..3i16).prop_map(|feature_level| {
            FeatureLevelRecord { name: "f".into(), feature_level }.into()
        }),
        1 => (0..9i64).prop_map(|id| {
            ProducerIdsRecord {
                broker_id: BrokerId(1),
                broker_epoch: BrokerEpoch(0),
                next_producer_id: ProducerId(id),
            }
            .into()
        }),
        1 => "[mn]".prop_map(|id| ClusterRecord { cluster_id: id.into() }.into()),
    ]
}

proptest! {
    #[test]
    fn a_snapshot_gives_the_image_back(records in prop::collection::vec(record(), 0..60)) {
        let mut image = MetadataImage::empty();
        for (offset, record) in (0..).zip(&records) {
            let mut next = image.clone();
            next.begin_entry(Offset(offset), 2);
            if next.apply(record, &mut ImageDelta::default()).is_ok() {
                image = next;
            }
        }
        let mut copy = MetadataImage::empty();
        copy.begin_entry(image.offset(), image.epoch());
        for record in image.records() {
            let bytes = rmp_serde::to_vec_named(&record).unwrap();
            let read: MetadataRecord = rmp_serde::from_slice(&bytes).unwrap();
            prop_assert_eq!(&read, &record);
            copy.apply(&read, &mut ImageDelta::default()).unwrap();
        }
        prop_assert_eq!(copy, image);
    }
}

#[test]
fn a_field_of_a_later_version_is_skipped_and_a_missing_one_has_its_default() {
    #[derive(serde::Serialize)]
    struct Later {
        partition_id: i32,
        topic_id: TopicId,
        leader: Option<BrokerId>,
        invented: Vec<i32>,
    }
    let later = std::collections::BTreeMap::from([(
        "PartitionChangeRecord",
        Later {
            partition_id: 4,
            topic_id: topic_id(1),
            leader: Some(BrokerId(2)),
            invented: vec![1, 2],
        },
    )]);
    let bytes = rmp_serde::to_vec_named(&later).unwrap();
    let read: MetadataRecord = rmp_serde::from_slice(&bytes).unwrap();
    let mut expected = PartitionChangeRecord::of(topic_id(1), 4);
    expected.leader = Some(BrokerId(2));
    assert_eq!(read, expected.into());
}
