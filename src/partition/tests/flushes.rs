//! Acknowledgements that wait for the disk (`flush.messages`), and one flush for many of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::simulation::broker::{ManualClock, SimBroker, node_config};
use super::simulation::controller::Controller;
use crate::host::Clock;
use crate::log::Origin;
use crate::metadata::{ConfigRecord, ConfigResource, ImageDelta, MetadataImage};
use crate::partition::flusher::Flusher;
use crate::partition::*;
use crate::record::{Batch, BatchBuilder};
use crate::types::{BrokerId, Offset};

/// A broker that leads both partitions, alone, and flushes after each record.
struct Alone {
    clock: Arc<ManualClock>,
    broker: SimBroker,
    flusher: Flusher,
}

impl Alone {
    fn new() -> Alone {
        let clock = Arc::new(ManualClock::default());
        let mut controller = Controller::new(1);
        let mut broker = SimBroker::new(BrokerId(0), clock.clone(), Arc::new(node_config()));
        let before = controller.image().clone();
        let epoch = controller.register(BrokerId(0));
        broker.start(&before, 0, epoch);
        let mut image = (**controller.image()).clone();
        let mut delta = ImageDelta::everything();
        image.begin_entry(Offset(image.offset().0 + 1), 1);
        let (topic, name) = (ConfigResource::topic("t"), "flush.messages");
        let record = ConfigRecord::new(&topic, name.into(), Some("1".into()));
        image.apply(&record.into(), &mut delta).unwrap();
        broker.apply(&image, &delta);
        Alone {
            clock,
            broker,
            flusher: Flusher::default(),
        }
    }

    fn partition(&self, index: i32) -> Arc<Partition> {
        self.broker.partition(index).unwrap()
    }

    fn batch(&self) -> Batch {
        let mut builder = BatchBuilder::new();
        builder.append(self.clock.now_ms(), None, Some(b"value"));
        builder.build().unwrap()
    }

    /// Whether it is to be flushed.
    fn produce(&self, index: i32) -> bool {
        let now = self.clock.now_ms();
        let batch = self.batch();
        let partition = self.partition(index);
        let (_, needs_flush) = partition
            .append_unflushed(batch, Origin::Client, now)
            .unwrap();
        needs_flush
    }

    fn changes(&self, work: impl FnOnce()) -> u64 {
        let before = self.broker.disk.changes();
        work();
        self.broker.disk.changes() - before
    }
}

#[test]
fn what_waits_for_the_disk_is_not_there_before_it_is_flushed() {
    let alone = Alone::new();
    assert!(alone.produce(0));
    let partition = alone.partition(0);
    assert_eq!(partition.high_watermark(), Offset(0));
    let (mut flushed, was_flushing) = alone.flusher.ask(partition.clone());
    assert!(!was_flushing);
    assert!(flushed.try_recv().is_err());
    assert!(alone.flusher.flush_group());
    flushed.try_recv().unwrap().unwrap();
    assert_eq!(partition.high_watermark(), Offset(1));
    assert_eq!(partition.log().recovery_point(), Offset(1));
    assert!(!alone.flusher.flush_group());
}

#[test]
fn one_flush_serves_all_who_wait_for_a_partition() {
    let alone = Alone::new();
    for index in [0, 1] {
        // The first flush of a log syncs its directory and its epochs too.
        alone.produce(index);
        let _ = alone.flusher.ask(alone.partition(index));
    }
    alone.flusher.flush_group();
    let of_one = alone.changes(|| {
        alone.produce(0);
        let _ = alone.flusher.ask(alone.partition(0));
        alone.flusher.flush_group();
    }) - alone.changes(|| {
        alone.produce(0);
    });
    let mut waiting = Vec::new();
    for index in [0, 1, 0, 0, 1] {
        alone.produce(index);
        waiting.push(alone.flusher.ask(alone.partition(index)));
    }
    // Only who asks first has to see to it.
    assert!(
        waiting
            .iter()
            .skip(1)
            .all(|(_, was_flushing)| *was_flushing)
    );
    let of_five = alone.changes(|| assert!(alone.flusher.flush_group()));
    assert_eq!(of_five, 2 * of_one);
    for (flushed, _) in &mut waiting {
        flushed.try_recv().unwrap().unwrap();
    }
    assert_eq!(alone.partition(0).high_watermark(), Offset(6));
    assert_eq!(alone.partition(1).high_watermark(), Offset(3));
}

#[test]
fn a_flush_that_fails_fails_for_all_who_wait_for_it() {
    let alone = Alone::new();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        alone.produce(0);
        waiting.push(alone.flusher.ask(alone.partition(0)).0);
    }
    alone.broker.disk.fail_at(1);
    alone.flusher.flush_group();
    for flushed in &mut waiting {
        assert!(flushed.try_recv().unwrap().is_err());
    }
    assert_eq!(alone.partition(0).high_watermark(), Offset(0));
    let (mut later, _) = alone.flusher.ask(alone.partition(0));
    alone.flusher.flush_group();
    assert!(later.try_recv().unwrap().is_err());
}

#[test]
fn a_flush_is_decided_once_however_the_configuration_changes_meanwhile() {
    let alone = Alone::new();
    let partition = alone.partition(0);
    let image = MetadataImage::empty();
    let plain = PartitionConfig::of_topic(&node_config(), &image, "t");
    let every_record = PartitionConfig {
        topic: partition.topic_config(),
        log: plain.log.clone(),
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                partition.configure(plain.clone());
                partition.configure(every_record.clone());
            }
        });
        let append = |n: i64| {
            let now = alone.clock.now_ms();
            if n % 2 == 0 {
                partition
                    .append(alone.batch(), Origin::Client, now)
                    .unwrap();
            } else if alone.produce(0) {
                let _ = alone.flusher.ask(partition.clone());
                alone.flusher.flush_group();
            }
            // What was acknowledged is there for all to read.
            partition.high_watermark() == Offset(n + 1)
        };
        let missed = (0..4000).find(|n| !append(*n));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(missed, None);
    });
}

#[tokio::test]
async fn a_flush_that_panics_is_no_success_and_others_are_flushed_after_it() {
    let alone = Alone::new();
    let dirs = alone.broker.partitions.as_ref().unwrap().log_dirs();
    let flusher = Arc::new(Flusher::default());
    let flush = async |index: i32| {
        let flushed = flusher.flush(alone.partition(index));
        let flushed = tokio::time::timeout(Duration::from_secs(60), flushed);
        flushed.await.expect("an answer")
    };
    assert!(alone.produce(0) && alone.produce(1));
    assert_ne!(alone.broker.place(0), alone.broker.place(1));
    alone.broker.disk.panic_at(1);
    assert!(flush(0).await.is_err());
    assert_eq!(alone.partition(0).high_watermark(), Offset(0));
    // What is durable there is not known any more, and nothing is made durable.
    let broken = &dirs[alone.broker.place(0).unwrap()];
    assert_eq!(
        broken.offline_reason(),
        Some("a flush has panicked".to_owned())
    );
    assert!(flush(0).await.is_err());
    flush(1).await.unwrap();
    assert_eq!(alone.partition(1).high_watermark(), Offset(1));
}
