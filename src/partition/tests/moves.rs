//! Replicas that are moved between the directories of one broker.

use std::sync::Arc;
use std::time::Duration;

use super::ends;
use super::simulation::broker::{DIRS, ManualClock, SimBroker, entries, node_config};
use super::simulation::controller::{Controller, topic_id};
use crate::host::{Clock, Disk};
use crate::log::tests::faulty_disk::Crash;
use crate::log::{AppendError, Appended, Origin};
use crate::metadata::{ConfigResource, ImageDelta, MetadataImage};
use crate::partition::*;
use crate::record::BatchBuilder;
use crate::types::{BrokerId, Offset, TopicPartition};

/// A broker that leads both partitions, alone.
pub struct Alone {
    pub controller: Controller,
    pub clock: Arc<ManualClock>,
    pub broker: SimBroker,
}

impl Alone {
    pub fn new() -> Alone {
        let clock = Arc::new(ManualClock::default());
        let config = Arc::new(node_config());
        let mut alone = Alone {
            controller: Controller::new(1),
            broker: SimBroker::new(BrokerId(0), clock.clone(), config),
            clock,
        };
        alone.start();
        alone
    }

    pub fn start(&mut self) {
        let before = self.controller.image().clone();
        let epoch = self.controller.register(BrokerId(0));
        self.broker.start(&before, 0, epoch);
        let image = self.controller.image().clone();
        self.broker.apply(&image, &ImageDelta::everything());
    }

    pub fn partition(&self) -> Arc<Partition> {
        self.broker.partition(0).unwrap()
    }

    pub fn partitions(&self) -> &Partitions {
        self.broker.partitions.as_ref().unwrap()
    }

    pub fn produce(&self, records: u64) {
        self.try_produce(records).unwrap();
    }

    pub fn try_produce(&self, records: u64) -> Result<Appended, AppendError> {
        let now = self.clock.now_ms();
        let mut builder = BatchBuilder::new();
        for n in 0..records {
            builder.append(now, None, Some(&n.to_le_bytes()));
        }
        let batch = builder.build().unwrap();
        self.partition().append(batch, Origin::Client, now)
    }

    pub fn finish(&self) {
        while self.broker.move_on().is_some() {
            self.clock.add_ms(1000);
        }
    }

    /// The directories of partition 0 in each of the broker's.
    pub fn kinds(&self) -> [Vec<&'static str>; DIRS.len()] {
        DIRS.map(|dir| {
            let entries = self.broker.disk.list(&self.broker.disk.root().join(dir));
            let entries = entries.unwrap().into_iter();
            let of_partition = entries.filter(|entry| entry.name.starts_with("t-0"));
            let kind = |name: &str| match name {
                "t-0" => "current",
                name if name.ends_with("-future") => "future",
                name if name.ends_with("-delete") => "deleted",
                name if name.ends_with("-stray") => "stray",
                _ => "?",
            };
            of_partition.map(|entry| kind(&entry.name)).collect()
        })
    }

    pub fn delete_old(&self) {
        self.clock.add_ms(100_000);
        self.partitions().run_deletions(self.clock.now_ms());
    }
}

#[test]
fn a_replica_is_moved_and_goes_on() {
    let alone = Alone::new();
    alone.produce(10);
    alone.partition().delete_records(Offset(4)).unwrap();
    assert_eq!(alone.kinds(), [vec!["current"], vec![], vec![]]);
    alone.broker.move_replica(0, 1);
    assert_eq!(alone.kinds(), [vec!["current"], vec!["future"], vec![]]);
    alone.broker.move_on();
    alone.produce(5);
    alone.finish();
    assert_eq!(alone.kinds(), [vec!["deleted"], vec!["current"], vec![]]);
    assert_eq!(ends(&alone.partition()), (4, 15, 15));
    alone.produce(1);
    assert_eq!(ends(&alone.partition()), (4, 16, 16));
    alone.delete_old();
    assert_eq!(alone.kinds(), [vec![], vec!["current"], vec![]]);
    // And back.
    alone.broker.move_replica(0, 0);
    alone.finish();
    assert_eq!(alone.kinds(), [vec!["current"], vec!["deleted"], vec![]]);
    assert_eq!(
        entries(&alone.partition().log(), Offset(4), Offset(16)).len(),
        12
    );
}

#[test]
fn another_directory_replaces_the_move_and_the_own_one_ends_it() {
    let alone = Alone::new();
    alone.produce(10);
    alone.broker.move_replica(0, 1);
    alone.broker.move_on();
    alone.broker.move_replica(0, 2);
    assert_eq!(
        alone.kinds(),
        [vec!["current"], vec!["deleted"], vec!["future"]]
    );
    alone.broker.move_on();
    alone.broker.move_replica(0, 0);
    assert_eq!(
        alone.kinds(),
        [vec!["current"], vec!["deleted"], vec!["deleted"]]
    );
    assert_eq!(alone.broker.move_on(), Some(Duration::ZERO));
    alone.finish();
    assert_eq!(alone.broker.place(0), Some(0));
    assert_eq!(ends(&alone.partition()), (0, 10, 10));
}

#[test]
fn a_move_goes_on_after_a_crash_and_after_a_stop() {
    for is_clean in [true, false] {
        let mut alone = Alone::new();
        alone.produce(10);
        alone.broker.move_replica(0, 1);
        alone.broker.move_on();
        if is_clean {
            for dir in alone.partitions().log_dirs() {
                dir.close(1).unwrap();
            }
        }
        alone.broker.crash(Crash::Kill);
        alone.start();
        assert_eq!(alone.kinds(), [vec!["current"], vec!["future"], vec![]]);
        alone.produce(3);
        alone.finish();
        assert_eq!(alone.kinds(), [vec!["deleted"], vec!["current"], vec![]]);
        assert_eq!(ends(&alone.partition()), (0, 13, 13));
    }
}

#[test]
fn of_a_move_that_was_cut_short_the_old_log_goes() {
    let mut alone = Alone::new();
    alone.produce(10);
    alone.broker.move_replica(0, 1);
    while alone.broker.place(0) == Some(0) {
        // As if the process were killed between the two renames.
        let before = alone.broker.disk.crash(Crash::Kill);
        alone.broker.move_on();
        if alone.broker.place(0) == Some(1) {
            alone.produce(2);
            let moved = alone.broker.disk.crash(Crash::Kill);
            alone.broker.crash(Crash::Kill);
            alone.broker.disk = moved;
            let (from, to) = (before.root().join("a/t-0"), before.root().join("a/t-0"));
            for entry in before.list(&from).unwrap() {
                let file = before.open(&from.join(&entry.name), crate::host::OpenMode::Write);
                let mut bytes = vec![0; entry.len as usize];
                file.unwrap().read_at(&mut bytes, 0).unwrap();
                alone.broker.disk.create_dir_all(&to).unwrap();
                let to = to.join(&entry.name);
                let copy = alone.broker.disk.open(&to, crate::host::OpenMode::Create);
                let mut bytes = [std::io::IoSlice::new(&bytes)];
                copy.unwrap().write_at(&mut bytes, 0).unwrap();
            }
            alone.start();
            break;
        }
    }
    assert_eq!(alone.broker.place(0), Some(1));
    assert_eq!(ends(&alone.partition()), (0, 12, 12));
    assert_eq!(alone.kinds()[1..], [vec!["current"], vec![]]);
    // The one that stayed behind when its directory was copied, and the one of the copy: it has
    // nothing that the new one has not.
    assert_eq!(alone.kinds()[0], ["deleted", "deleted"]);
    alone.delete_old();
    assert_eq!(alone.kinds(), [vec![], vec!["current"], vec![]]);
}

#[test]
fn a_move_ends_with_its_topic() {
    let mut alone = Alone::new();
    alone.produce(10);
    alone.broker.move_replica(0, 1);
    alone.broker.move_on();
    let partition = alone.partition();
    let mut empty = MetadataImage::empty();
    empty.begin_entry(Offset(1000), 1);
    alone.broker.apply(&empty, &ImageDelta::everything());
    assert_eq!(alone.kinds(), [vec!["deleted"], vec!["deleted"], vec![]]);
    alone.finish();
    let to = alone.partitions().log_dirs()[1].clone();
    let refused = alone.partitions().move_replica(&partition, &to);
    assert!(matches!(refused, Err(MoveRefused::Gone)));
    assert_eq!(alone.kinds(), [vec!["deleted"], vec!["deleted"], vec![]]);
}

#[test]
fn a_directory_that_fails_ends_the_move_and_the_replica_goes_on() {
    let alone = Alone::new();
    alone.produce(10);
    alone.broker.move_replica(0, 1);
    alone.broker.disk.fail_at(1);
    alone.finish();
    assert!(alone.broker.disk.has_failed());
    let dirs = alone.partitions().log_dirs();
    assert!(dirs[0].offline_reason().is_none() && dirs[1].offline_reason().is_some());
    alone.produce(3);
    assert_eq!(ends(&alone.partition()), (0, 13, 13));
    assert_eq!(alone.broker.place(0), Some(0));
    let path = |at: usize| dirs[at].path().to_str().unwrap().to_owned();
    let offline = alone.partitions().working_dir(&path(1)).map(drop);
    assert_eq!(offline, Err(LogDirRefused::Offline));
    let unknown = alone.partitions().working_dir(&(path(2) + "/")).map(drop);
    assert_eq!(unknown, Err(LogDirRefused::Unknown));
    // It can still go elsewhere.
    alone.broker.move_replica(0, 2);
    alone.finish();
    assert_eq!(alone.broker.place(0), Some(2));
    assert_eq!(ends(&alone.partition()), (0, 13, 13));
}

#[test]
fn a_partition_is_made_where_it_was_wanted() {
    let clock = Arc::new(ManualClock::default());
    let mut broker = SimBroker::new(BrokerId(0), clock, Arc::new(node_config()));
    let mut controller = Controller::new(1);
    let epoch = controller.register(BrokerId(0));
    broker.start(&MetadataImage::empty(), 0, epoch);
    let partitions = broker.partitions.as_ref().unwrap();
    let wanted = partitions.log_dirs()[2].clone();
    for partition in 0..2 {
        let topic = "t".into();
        partitions.place_in(TopicPartition { topic, partition }, wanted.clone());
    }
    let image = controller.image().clone();
    broker.apply(&image, &ImageDelta::everything());
    assert_eq!([broker.place(0), broker.place(1)], [Some(2), Some(2)]);
    assert!(broker.partitions.unwrap().get(topic_id(), 0).is_some());
}

#[test]
fn a_move_keeps_to_its_rate() {
    let mut alone = Alone::new();
    for _ in 0..5 {
        alone.produce(10);
    }
    let mut image = (**alone.controller.image()).clone();
    let mut delta = ImageDelta::everything();
    image.begin_entry(Offset(image.offset().0 + 1), 1);
    let record = crate::metadata::ConfigRecord {
        resource_type: crate::metadata::ConfigResourceType::Broker,
        resource_name: ConfigResource::all_brokers().resource_name,
        name: "replica.alter.log.dirs.io.max.bytes.per.second".into(),
        value: Some("100".into()),
    };
    image.apply(&record.into(), &mut delta).unwrap();
    alone.broker.apply(&image, &delta);
    alone.broker.move_replica(0, 1);
    let bytes = alone.partition().log().size_bytes();
    assert!((900..2000).contains(&bytes), "{bytes}");
    assert_eq!(alone.broker.move_on(), Some(Duration::ZERO));
    let rest = alone.broker.move_on().unwrap();
    assert!(rest > Duration::from_millis(900), "{rest:?}");
    let start = alone.clock.monotonic();
    alone.finish();
    assert_eq!(alone.broker.place(0), Some(1));
    assert!(alone.clock.monotonic() - start >= Duration::from_secs(7));
}
