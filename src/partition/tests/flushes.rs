//! Acknowledgements that wait for the disk (`flush.messages`), and one flush for many of them.

use std::sync::Arc;

use super::simulation::broker::{ManualClock, SimBroker, node_config};
use super::simulation::controller::Controller;
use crate::host::Clock;
use crate::log::Origin;
use crate::metadata::{ConfigRecord, ConfigResource, ImageDelta};
use crate::partition::flusher::Flusher;
use crate::partition::*;
use crate::record::BatchBuilder;
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
        let every = Some("1".into());
        let record = ConfigRecord::new(&ConfigResource::topic("t"), "flush.messages".into(), every);
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

    /// Whether it is to be flushed.
    fn produce(&self, index: i32) -> bool {
        let now = self.clock.now_ms();
        let mut builder = BatchBuilder::new();
        builder.append(now, None, Some(b"value"));
        let batch = builder.build().unwrap();
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
