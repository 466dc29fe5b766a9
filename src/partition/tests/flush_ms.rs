//! Records that wait for a flush no longer than `flush.ms`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::simulation::broker::{SimBroker, node_config};
use super::simulation::controller::{Controller, topic_id};
use crate::host::simulated::SimulatedClock;
use crate::host::{Clock, tasks};
use crate::log::Origin;
use crate::log::tests::faulty_disk::Crash;
use crate::metadata::{ConfigRecord, ConfigResource, ImageDelta, MetadataImage};
use crate::partition::*;
use crate::record::{Batch, BatchBuilder};
use crate::types::{BrokerId, Offset, TimestampMs};

/// A broker that leads both partitions, alone; its time is the runtime's, which jumps.
struct Alone {
    controller: Controller,
    image: MetadataImage,
    clock: Arc<SimulatedClock>,
    broker: SimBroker,
}

impl Alone {
    fn new() -> Alone {
        let clock = Arc::new(SimulatedClock::new(Instant::now(), 0));
        let mut controller = Controller::new(1);
        let mut broker = SimBroker::new(BrokerId(0), clock.clone(), Arc::new(node_config()));
        let before = controller.image().clone();
        let epoch = controller.register(BrokerId(0));
        broker.start(&before, 0, epoch);
        let image = (**controller.image()).clone();
        broker.apply(&image, &ImageDelta::everything());
        Alone {
            controller,
            image,
            clock,
            broker,
        }
    }

    fn set_flush_ms(&mut self, flush_ms: Option<i64>) {
        let mut delta = ImageDelta::default();
        self.image.begin_entry(Offset(self.image.offset().0 + 1), 1);
        let value = flush_ms.map(|ms| ms.to_string().into());
        let record = ConfigRecord::new(&ConfigResource::topic("t"), "flush.ms".into(), value);
        self.image.apply(&record.into(), &mut delta).unwrap();
        self.broker.apply(&self.image, &delta);
    }

    fn partition(&self, index: i32) -> Arc<Partition> {
        self.broker.partition(index).unwrap()
    }

    fn produce(&self, index: i32) {
        let now = self.clock.now_ms();
        let partition = self.partition(index);
        partition.append(batch(now), Origin::Client, now).unwrap();
    }

    /// Milliseconds until the next flush.
    fn wait(&self) -> Option<u128> {
        let partitions = self.broker.partitions.as_ref().unwrap();
        let deadlines = &partitions.surroundings().flush_deadlines;
        let wait = deadlines.wait(self.clock.monotonic());
        wait.map(|wait| wait.as_millis())
    }

    fn flush_overdue(&self) {
        self.broker.partitions.as_ref().unwrap().flush_overdue();
    }

    /// Up to where the partitions are flushed.
    fn flushed(&self) -> [i64; 2] {
        [0, 1].map(|index| self.partition(index).log().recovery_point().0)
    }
}

fn batch(now: TimestampMs) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.append(now, None, Some(b"value"));
    builder.build().unwrap()
}

async fn sleep_ms(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_that_of_the_first_record_and_goes_with_the_flush() {
    let mut alone = Alone::new();
    alone.produce(0);
    assert_eq!(alone.wait(), None, "the topic has no flush.ms");
    alone.partition(0).on_log(crate::log::Log::flush).unwrap();
    alone.set_flush_ms(Some(100));
    assert_eq!(alone.wait(), None, "there is nothing to flush");
    alone.produce(0);
    sleep_ms(60).await;
    alone.produce(0);
    alone.produce(1);
    assert_eq!(alone.wait(), Some(40));
    sleep_ms(39).await;
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [1, 0]);
    sleep_ms(1).await;
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [3, 0]);
    assert_eq!(alone.wait(), Some(60));
    sleep_ms(60).await;
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [3, 1]);
    assert_eq!(alone.wait(), None);
    alone.produce(0);
    assert_eq!(alone.wait(), Some(100), "the next record has its own");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_follows_the_configuration() {
    let mut alone = Alone::new();
    alone.produce(0);
    alone.set_flush_ms(Some(10_000));
    assert_eq!(alone.wait(), Some(10_000), "what was there before counts");
    sleep_ms(5).await;
    alone.set_flush_ms(Some(20));
    assert_eq!(alone.wait(), Some(20));
    alone.set_flush_ms(None);
    sleep_ms(20).await;
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [0, 0], "nobody asks for it any more");
    alone.set_flush_ms(Some(i64::MAX - 1));
    alone.produce(0);
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_left_unflushed_has_a_deadline() {
    let mut alone = Alone::new();
    alone.set_flush_ms(Some(100));
    alone.produce(0);
    alone.broker.crash(Crash::Kill);
    let epoch = alone.controller.register(BrokerId(0));
    alone.broker.start(&alone.image, 0, epoch);
    assert_eq!(alone.flushed(), [0, 0]);
    assert_eq!(alone.wait(), Some(100));
    sleep_ms(100).await;
    alone.flush_overdue();
    assert_eq!(alone.flushed(), [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_flush_is_neither_late_nor_early() {
    let mut alone = Alone::new();
    let partitions = Arc::new(alone.broker.partitions.take().unwrap());
    let flushing = tasks::spawn(partitions.clone().flush_in_time());
    let mut image = alone.image;
    let mut configure = |flush_ms: u128| {
        let mut delta = ImageDelta::default();
        image.begin_entry(Offset(image.offset().0 + 1), 1);
        let (topic, value) = (ConfigResource::topic("t"), flush_ms.to_string().into());
        let record = ConfigRecord::new(&topic, "flush.ms".into(), Some(value));
        image.apply(&record.into(), &mut delta).unwrap();
        partitions.apply(&node_config(), &image, &delta);
    };
    let append = |index: i32| {
        let partition = partitions.get(topic_id(), index).unwrap();
        let now = alone.clock.now_ms();
        partition.append(batch(now), Origin::Client, now).unwrap();
        partition
    };
    // While it waits for this one an earlier one comes.
    configure(600_000);
    append(1);
    sleep_ms(5).await;
    for flush_ms in [1, 50, 3, 700, 60_000] {
        configure(flush_ms);
        let partition = append(0);
        let start = Instant::now();
        while partition.log().recovery_point() < partition.log().log_end_offset() {
            sleep_ms(1).await;
            assert!(start.elapsed() < Duration::from_secs(100), "never");
        }
        let took_ms = start.elapsed().as_millis();
        let expected = flush_ms..flush_ms + 3;
        assert!(expected.contains(&took_ms), "{took_ms} for {flush_ms}");
    }
    flushing.abort();
}
