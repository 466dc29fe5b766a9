//! In which directories replicas are found, begin, or wait; and what of it the controller hears.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::simulation::broker::{ManualClock, node_config};
use crate::host::{Clock, Disk};
use crate::log::tests::faulty_disk::{Crash, FaultyDisk};
use crate::log::{FileCache, LogDir, MetaProperties, Origin};
use crate::metadata::{
    BrokerEpoch, DirectoryId, ImageDelta, MetadataImage, PartitionRecord, RegisterBrokerRecord,
    TopicRecord,
};
use crate::partition::{Assignment, AssignmentAnswers, DirectoryController, Partition, Partitions};
use crate::record::BatchBuilder;
use crate::types::{BrokerId, LeaderEpoch, Offset, TopicId, base64_uuid};

pub(super) const THIS: BrokerId = BrokerId(1);
pub(super) const OTHER: BrokerId = BrokerId(2);
const EPOCH: BrokerEpoch = BrokerEpoch(7);

pub(super) fn dir(name: &str) -> DirectoryId {
    DirectoryId(Uuid::from_u128(1000 + u128::from(name.as_bytes()[0])))
}

pub(super) fn topic_id() -> TopicId {
    TopicId(Uuid::from_u128(5))
}

/// Partition 0 of `t`, as the metadata has it.
#[derive(Clone)]
pub(super) struct Said {
    pub topic_id: TopicId,
    pub directory: DirectoryId,
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    pub crashed: Vec<BrokerId>,
    pub leader: BrokerId,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
}

impl Said {
    pub fn of(directory: DirectoryId) -> Said {
        Said {
            topic_id: topic_id(),
            directory,
            replicas: vec![THIS, OTHER],
            isr: vec![THIS],
            crashed: Vec::new(),
            leader: BrokerId::NONE,
            leader_epoch: 3,
            partition_epoch: 1,
        }
    }

    pub fn image(&self, registered: &[&str]) -> MetadataImage {
        let mut image = MetadataImage::empty();
        image.begin_entry(Offset(10 + i64::from(self.partition_epoch)), 1);
        let broker = RegisterBrokerRecord {
            broker_id: THIS,
            incarnation_id: Uuid::from_u128(1),
            broker_epoch: EPOCH,
            end_points: Vec::new(),
            features: Vec::new(),
            rack: None,
            fenced: false,
            in_controlled_shutdown: false,
            log_dirs: registered.iter().map(|name| dir(name)).collect(),
            cordoned_log_dirs: Vec::new(),
        };
        let directory_of = |replica: &BrokerId| match *replica == THIS {
            true => self.directory,
            false => DirectoryId::UNASSIGNED,
        };
        let topic = TopicRecord {
            name: "t".into(),
            topic_id: self.topic_id,
        };
        let partition = PartitionRecord {
            partition_id: 0,
            topic_id: self.topic_id,
            replicas: self.replicas.clone().into(),
            isr: self.isr.clone().into(),
            removing_replicas: Arc::new([]),
            adding_replicas: Arc::new([]),
            leader: self.leader,
            leader_recovery_state: 0,
            leader_epoch: LeaderEpoch(self.leader_epoch),
            partition_epoch: self.partition_epoch,
            directories: self.replicas.iter().map(directory_of).collect(),
            eligible_leader_replicas: Arc::new([]),
            last_known_elr: self.crashed.clone().into(),
        };
        let records = [broker.into(), topic.into(), partition.into()];
        for record in &records {
            image.apply(record, &mut ImageDelta::default()).unwrap();
        }
        image
    }
}

/// A broker that has started with some of its directories.
pub(super) struct Started {
    pub clock: Arc<ManualClock>,
    pub partitions: Partitions,
    topic_id: TopicId,
}

impl Started {
    /// `before`: what it registered with the last time.
    pub fn new(disk: &FaultyDisk, names: &[&str], said: &Said, before: &[&str]) -> Started {
        Started::after(disk, names, &said.image(before), said)
    }

    /// With metadata of before that was not the newest.
    pub fn after(disk: &FaultyDisk, names: &[&str], image: &MetadataImage, said: &Said) -> Started {
        let files = Arc::new(FileCache::new(100));
        let clock = Arc::new(ManualClock::default());
        let open = |name: &&str| {
            let path = disk.root().join(name);
            let opened = LogDir::open(Arc::new(disk.clone()), &path, files.clone()).unwrap();
            if opened.meta_properties().unwrap().is_none() {
                let meta = MetaProperties {
                    cluster_id: "c".to_owned(),
                    node_id: THIS,
                    directory_id: Some(dir(name).0),
                };
                opened.format(&meta).unwrap();
                // As one that was in use before the partition was made.
                let checkpoint = path.join("recovery-point-offset-checkpoint");
                disk.replace(&checkpoint, b"0\n0\n").unwrap();
            }
            Arc::new(opened)
        };
        let (rolled, _) = mpsc::unbounded_channel();
        let dirs = names.iter().map(open).collect();
        let partitions = Partitions::new(THIS, dirs, clock.clone(), rolled);
        partitions.load(&node_config(), image).unwrap();
        let started = Started {
            clock,
            partitions,
            topic_id: said.topic_id,
        };
        started.apply(image);
        started.partitions.surroundings().set_broker_epoch(EPOCH);
        started.apply(&said.image(names));
        started
    }

    pub fn apply(&self, image: &MetadataImage) {
        let everything = ImageDelta::everything();
        self.partitions.apply(&node_config(), image, &everything);
    }

    /// The next of what the metadata says.
    pub fn hear(&self, said: &Said, names: &[&str]) {
        let delta = ImageDelta {
            topics: [(self.topic_id, [0].into())].into(),
            ..ImageDelta::default()
        };
        let image = said.image(names);
        self.partitions.apply(&node_config(), &image, &delta);
    }

    /// A clean stop.
    pub fn stop(self) {
        for dir in self.partitions.log_dirs() {
            dir.close(EPOCH.0).unwrap();
        }
    }

    pub fn partition(&self) -> Option<Arc<Partition>> {
        self.partitions.get(self.topic_id, 0)
    }

    pub fn place(&self) -> Option<String> {
        let dir = self.partition()?.log_dir();
        Some(dir.path().file_name()?.to_str()?.to_owned())
    }

    pub fn told(&self) -> Option<DirectoryId> {
        let told = self.partitions.surroundings().assignments.take();
        let of_one = |one: &Assignment| one.directory;
        assert!(told.len() < 2);
        told.first().map(of_one)
    }

    pub fn produce(&self) {
        let now = self.clock.now_ms();
        let mut builder = BatchBuilder::new();
        builder.append(now, None, Some(b"acknowledged"));
        let batch = builder.build().unwrap();
        let partition = self.partition().unwrap();
        partition.append(batch, Origin::Client, now).unwrap();
        partition.log().flush().unwrap();
    }
}

/// A record was acknowledged by a replica in directory b.
fn written() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let mut said = Said::of(dir("b"));
    said.leader = THIS;
    let started = Started::new(&disk, &["a", "b"], &said, &[]);
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(started.told(), None);
    started.produce();
    disk
}

#[test]
fn what_is_counted_on_waits_for_its_directory_and_is_there_when_that_is_back() {
    let disk = written();
    let said = Said::of(dir("b"));
    let both: &[&str] = &["a", "b"];
    for names in [&["a"][..], &["a", "c"]] {
        let started = Started::new(&disk, names, &said, both);
        assert_eq!(started.place(), None);
        assert_eq!(started.told(), None);
        let said = started.partitions.what_waits(&said.image(names));
        let [line] = &said[..] else {
            panic!("{said:?}");
        };
        let id = base64_uuid(dir("b").0);
        let expected = format!("1 replica waits for the log directory with directory.id={id}");
        assert!(
            line.starts_with(&expected) && line.ends_with(": t-0"),
            "{line}"
        );
    }
    let started = Started::new(&disk, &["b", "a"], &said, &["a"]);
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(
        started.partition().unwrap().log().log_end_offset(),
        Offset(1)
    );
}

#[test]
fn one_that_crashed_waits_for_its_directory_as_long_as_nobody_leads() {
    let disk = written();
    let mut said = Said::of(dir("b"));
    (said.isr, said.crashed, said.leader) = (vec![OTHER], vec![THIS], BrokerId::NONE);
    let started = Started::new(&disk, &["a"], &said, &["a", "b"]);
    assert_eq!(started.place(), None, "its log may have most");
    said.leader = OTHER;
    let started = Started::new(&disk, &["a"], &said, &["a", "b"]);
    assert_eq!(started.place().as_deref(), Some("a"));
}

/// What this broker applies first may be older than what it had: a topic's records must not make
/// way for a topic that was deleted before them.
#[test]
fn old_metadata_makes_nothing_and_sets_nothing_aside() {
    let disk = written();
    let mut old = Said::of(dir("b"));
    old.topic_id = TopicId(Uuid::from_u128(4));
    let said = Said::of(dir("b"));
    let both: &[&str] = &["a", "b"];
    let started = Started::after(&disk, both, &old.image(both), &said);
    let partition = started.partition().unwrap();
    assert_eq!(partition.log().log_end_offset(), Offset(1));
}

#[test]
fn a_replica_that_the_others_can_fill_begins_elsewhere_and_is_told() {
    let disk = written();
    let mut said = Said::of(dir("b"));
    said.isr = vec![OTHER];
    said.leader = OTHER;
    let started = Started::new(&disk, &["a"], &said, &["a", "b"]);
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(started.told(), Some(dir("a")));
    // Not while its log may be in one that only cannot be read.
    let mut said = Said::of(dir("c"));
    said.isr = vec![OTHER];
    said.leader = OTHER;
    let offline = FaultyDisk::new();
    let files = Arc::new(FileCache::new(100));
    let path = offline.root().join("x");
    let broken = LogDir::unusable(Arc::new(offline.clone()), &path, files, "for a test");
    let fresh = FaultyDisk::new();
    let mut started = Started::new(&fresh, &["a"], &said, &["a"]);
    assert_eq!(started.place().as_deref(), Some("a"), "none is offline");
    let dirs = [started.partitions.log_dirs(), &[Arc::new(broken)]].concat();
    let (rolled, _) = mpsc::unbounded_channel();
    started.partitions = Partitions::new(THIS, dirs, started.clock.clone(), rolled);
    started.partitions.surroundings().set_broker_epoch(EPOCH);
    started.apply(&said.image(&["a"]));
    assert_eq!(started.place(), None);
}

#[test]
fn what_the_metadata_does_not_know_the_place_of_is_told_or_said_to_be_lost() {
    let disk = written();
    let said = Said::of(DirectoryId::UNASSIGNED);
    let started = Started::new(&disk, &["a", "b"], &said, &["a", "b"]);
    assert_eq!(started.told(), Some(dir("b")));
    drop(started);
    let started = Started::new(&disk, &["a"], &said, &["a", "b"]);
    assert_eq!(started.place(), None);
    assert_eq!(started.told(), Some(DirectoryId::LOST));
    drop(started);
    // No directory is missing: it never had a log.
    let started = Started::new(&FaultyDisk::new(), &["a"], &said, &["a"]);
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(started.told(), Some(dir("a")));
}

/// A controller that looks at the disk when it is told.
struct Looks {
    disk: FaultyDisk,
    heard: Notify,
}

impl DirectoryController for Looks {
    fn assign<'a>(
        &'a self,
        _broker_epoch: i64,
        assignments: &'a [Assignment],
    ) -> Pin<Box<dyn Future<Output = AssignmentAnswers> + Send + 'a>> {
        let after = self.disk.crash(Crash::PowerCut);
        assert!(after.exists(&after.root().join("a/t-0")), "{assignments:?}");
        self.heard.notify_one();
        Box::pin(std::future::ready(Ok(vec![Ok(())])))
    }
}

#[tokio::test]
async fn the_controller_hears_of_a_log_that_a_power_cut_leaves_there() {
    let disk = FaultyDisk::new();
    let said = Said::of(DirectoryId::UNASSIGNED);
    let started = Started::new(&disk, &["a"], &said, &[]);
    assert_eq!(started.place().as_deref(), Some("a"));
    disk.sync_dir(&disk.root()).unwrap();
    let partitions = Arc::new(started.partitions);
    let heard = Notify::new();
    let controller = Looks { disk, heard };
    tokio::select! {
        () = partitions.run_assignments(&controller) => {}
        () = controller.heard.notified() => {}
    }
}

#[test]
fn a_replica_takes_its_new_place_once_the_metadata_names_it() {
    let disk = written();
    let mut said = Said::of(dir("b"));
    said.leader = THIS;
    let started = Started::new(&disk, &["a", "b"], &said, &["a", "b"]);
    let to = started.partitions.log_dirs()[0].clone();
    let partition = started.partition().unwrap();
    started.partitions.move_replica(&partition, &to).unwrap();
    for _ in 0..5 {
        started.partitions.move_on();
        started.clock.add_ms(1000);
    }
    assert_eq!(started.place().as_deref(), Some("b"));
    assert_eq!(started.told(), Some(dir("a")));
    said.directory = dir("a");
    said.partition_epoch += 1;
    started.apply(&said.image(&["a", "b"]));
    assert_eq!(started.told(), None, "it is on its way there");
    while started.partitions.move_on().is_some() {}
    assert_eq!(started.place().as_deref(), Some("a"));
    assert_eq!(started.told(), None);
    assert_eq!(partition.log().log_end_offset(), Offset(1));
}
