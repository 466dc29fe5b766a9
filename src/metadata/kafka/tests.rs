//! Against records that a Kafka 4.4.0 wrote (`testdata/records.txt`).

use super::*;
use crate::metadata::bootstrap_records;
use crate::types::{BrokerId, LeaderEpoch, ProducerId};

fn recorded() -> Vec<(Offset, Vec<u8>)> {
    let lines = include_str!("testdata/records.txt").lines();
    let record = |line: &str| {
        let (offset, hex) = line.split_once(' ').unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let value = (0..hex.len()).step_by(2).map(byte).collect();
        (Offset(offset.parse().unwrap()), value)
    };
    lines.filter(|l| !l.starts_with('#')).map(record).collect()
}

fn taken() -> KafkaMetadata {
    let mut kafka = KafkaMetadata::default();
    for (offset, value) in recorded() {
        kafka.take(offset, &value).unwrap();
    }
    kafka
}

fn set(image: &MetadataImage, resource: &ConfigResource) -> Vec<String> {
    let configs = image.configs(resource).into_iter().flat_map(|c| c.iter());
    configs
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[test]
fn kafkas_records_give_its_image() {
    let kafka = taken();
    let image = kafka.image();
    let names: Vec<&str> = image.topics().map(|topic| &*topic.name).collect();
    assert_eq!(names, ["__transaction_state", "kept"]);
    let kept = image.topic("kept").unwrap();
    assert_eq!(kept.id.to_string(), "MkxetHCoTpmZOGWAT_QFZw");
    assert_eq!(kept.partitions.len(), 3);
    // The broker has stopped: it was the only one in sync, and may lead again.
    for (index, partition) in kept.partitions.iter() {
        assert_eq!(*partition.replicas, [BrokerId(1)], "{index}");
        assert_eq!(partition.leader, BrokerId::NONE);
        assert_eq!(partition.leader_epoch, LeaderEpoch(1));
        assert_eq!(partition.partition_epoch, 1);
        assert!(partition.isr.is_empty());
        assert_eq!(partition.eligible_leader_replicas(), [BrokerId(1)]);
        assert_eq!(partition.directories.len(), 1);
    }
    assert_eq!(
        set(image, &ConfigResource::topic("kept")),
        ["cleanup.policy=compact"]
    );
    assert_eq!(set(image, &ConfigResource::topic("gone")), [""; 0]);
    assert_eq!(
        set(image, &ConfigResource::all_brokers()),
        ["min.insync.replicas=1"]
    );
    assert_eq!(image.next_producer_id(), ProducerId(1000));
    assert_eq!(image.feature_level("metadata.version"), 33);
    assert_eq!(image.feature_level("transaction.version"), 2);
    assert_eq!(image.broker(BrokerId(1)).unwrap().broker_epoch.0, 14);
    assert_eq!(kafka.unsupported_feature(), None);
    assert_eq!(*kafka.left_out(), BTreeMap::from([("client quotas", 1)]));
}

fn new_cluster() -> MetadataImage {
    let mut image = MetadataImage::empty();
    for record in bootstrap_records("c".into(), 1) {
        image.apply(&record, &mut ImageDelta::default()).unwrap();
    }
    image
}

/// Takes over in pieces of so many records, with a crash after each piece.
fn taken_over(kafka: &MetadataImage, records_max: usize) -> (MetadataImage, usize) {
    let mut image = new_cluster();
    for pieces in 1.. {
        let plan = plan_take_over(&image, kafka, records_max);
        for record in &plan.records {
            image.apply(record, &mut ImageDelta::default()).unwrap();
        }
        // Only with the last piece is it known to be done.
        assert_eq!(plan.answer, image.brokers().next().is_some());
        if plan.answer {
            return (image, pieces);
        }
    }
    unreachable!()
}

#[test]
fn a_new_cluster_becomes_kafkas_in_pieces_of_any_size() {
    let kafka = taken();
    for records_max in [1, 3, 10_000] {
        let (image, pieces) = taken_over(kafka.image(), records_max);
        assert_eq!(pieces == 1, records_max == 10_000);
        let relevant = |image: &MetadataImage| -> Vec<MetadataRecord> {
            let records = image.records().filter(|record| match record {
                MetadataRecord::ClusterRecord(_) => false,
                MetadataRecord::FeatureLevelRecord(f) => &*f.name != "kraft.version",
                MetadataRecord::ProducerIdsRecord(_) => false,
                _ => true,
            });
            records.collect()
        };
        assert_eq!(relevant(&image), relevant(kafka.image()));
    }
}

#[test]
fn producer_ids_go_on_where_kafka_does_not_come() {
    let kafka = taken();
    let (mut image, _) = taken_over(kafka.image(), 10_000);
    let first = ProducerId(1000 + PRODUCER_IDS_APART);
    assert_eq!(image.next_producer_id(), first);
    // What has been handed out since is not handed out again after another start.
    let next = ProducerId(first.0 + 5000);
    let record = ProducerIdsRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(1),
        next_producer_id: next,
    };
    image
        .apply(&record.into(), &mut ImageDelta::default())
        .unwrap();
    let again = plan_take_over(&image, kafka.image(), 10_000);
    let apply = |image: &mut MetadataImage, record| {
        image.apply(record, &mut ImageDelta::default()).unwrap();
    };
    again.records.iter().for_each(|r| apply(&mut image, r));
    assert_eq!(image.next_producer_id(), next);
}

#[test]
fn what_kafka_has_not_set_is_taken_away() {
    let mut image = new_cluster();
    let plan = plan_take_over(&image, &MetadataImage::empty(), 10);
    assert!(plan.answer);
    for record in &plan.records {
        image.apply(record, &mut ImageDelta::default()).unwrap();
    }
    assert_eq!(set(&image, &ConfigResource::all_brokers()), [""; 0]);
    assert_eq!(image.feature_level("transaction.version"), 0);
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    let (begin, abort, end) = ([1, 23, 0, 0], [1, 25, 0, 0], [1, 24, 0, 0]);
    let records = recorded();
    let topic = &records.iter().find(|(offset, _)| offset.0 == 18).unwrap().1;
    let topics = |last: Option<[u8; 4]>| {
        let mut kafka = KafkaMetadata::default();
        kafka.take(Offset(0), &begin).unwrap();
        kafka.take(Offset(1), topic).unwrap();
        last.iter()
            .for_each(|last| kafka.take(Offset(2), last).unwrap());
        kafka.image().topic_count()
    };
    assert_eq!(topics(Some(end)), 1);
    assert_eq!(topics(Some(abort)), 0);
    assert_eq!(topics(None), 0);
}

#[test]
fn what_is_not_known_is_an_error() {
    let error = |value: &[u8]| KafkaMetadata::default().take(Offset(0), value).unwrap_err();
    assert_eq!(error(&[2, 2, 0]), KafkaRecordError::Frame(2));
    assert_eq!(error(&[1, 99, 0]), KafkaRecordError::Unknown { key: 99 });
    let (name, version) = ("TopicRecord", 1);
    assert_eq!(
        error(&[1, 2, 1]),
        KafkaRecordError::Version { name, version }
    );
    let source = FieldError::Ends;
    assert_eq!(
        error(&[1, 2, 0, 200]),
        KafkaRecordError::Field { name, source }
    );
    // Cut anywhere, a record is refused or means less; nothing panics and nothing is allocated.
    for (_, value) in recorded() {
        for end in 0..value.len() {
            let _ = taken().take(Offset(1000), &value[..end]);
        }
    }
}
