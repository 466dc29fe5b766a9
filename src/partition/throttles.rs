//! How fast replicas may catch up, by Kafka's dynamic configurations: `leader.replication.
//! throttled.rate` and `follower.replication.throttled.rate` of a broker, and of topics the
//! replicas that they are for. And how fast replicas may move between the directories of a broker.
//!
//! 1. A replica that is in sync is never held back, though what it copies counts.
//! 2. Without a rate nothing is counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::effective::overrides_of;
use super::leader::Partition;
use super::surroundings::Surroundings;
use crate::machine::byte_rate::ByteRate;
use crate::metadata::{ConfigResource, ConfigResourceType, MetadataImage};
use crate::types::BrokerId;

const LEADER_RATE: &str = "leader.replication.throttled.rate";
const FOLLOWER_RATE: &str = "follower.replication.throttled.rate";
const ALTER_LOG_DIRS_RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

/// One side of this broker, or what goes on within it.
#[derive(Default)]
pub struct Throttle {
    is_on: AtomicBool,
    rate: Mutex<ByteRate>,
}

impl Throttle {
    fn set(&self, bytes_per_second: Option<u64>, now: Duration) {
        self.is_on
            .store(bytes_per_second.is_some(), Ordering::Relaxed);
        self.rate.lock().set(bytes_per_second, now);
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub fn take(&self, bytes: u64, now: Duration) {
        if self.is_on() && bytes > 0 {
            self.rate.lock().take(bytes, now);
        }
    }

    /// How long those that are held back have to wait.
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        match self.is_on() {
            true => self.rate.lock().wait(now),
            false => None,
        }
    }
}

#[derive(Default)]
pub struct Throttles {
    pub leader: Throttle,
    pub follower: Throttle,
    pub alter_log_dirs: Throttle,
}

impl Throttles {
    /// Takes over the rates that `image` has for a broker: its own, else those of all brokers.
    pub fn learn(&self, image: &MetadataImage, broker: BrokerId, now: Duration) {
        let own = overrides_of(
            image,
            &ConfigResource {
                resource_type: ConfigResourceType::Broker,
                resource_name: broker.to_string().into(),
            },
        );
        let all = overrides_of(image, &ConfigResource::all_brokers());
        let rate = |name: &str| {
            let set = own.get(name).or_else(|| all.get(name))?;
            let rate: i64 = set.trim().parse().ok()?;
            (rate < i64::MAX).then_some(rate.max(0) as u64)
        };
        let leader_replication_throttled_rate = rate(LEADER_RATE);
        let follower_replication_throttled_rate = rate(FOLLOWER_RATE);
        let replica_alter_log_dirs_io_max_bytes_per_second = rate(ALTER_LOG_DIRS_RATE);
        self.alter_log_dirs
            .set(replica_alter_log_dirs_io_max_bytes_per_second, now);
        self.leader.set(leader_replication_throttled_rate, now);
        self.follower.set(follower_replication_throttled_rate, now);
    }
}

impl Surroundings {
    fn now(&self) -> Duration {
        self.clock.monotonic()
    }
}

impl Partition {
    /// Whether what followers copy from here counts.
    fn counts_at_leader(&self) -> bool {
        let config = self.topic_config();
        let (index, broker) = (
            self.topic_partition.partition,
            self.surroundings.this_broker,
        );
        let throttled = &config.leader_replication_throttled_replicas;
        throttled.contains(index, broker.0)
    }

    fn counts_at_follower(&self) -> bool {
        let config = self.topic_config();
        let (index, broker) = (
            self.topic_partition.partition,
            self.surroundings.this_broker,
        );
        let throttled = &config.follower_replication_throttled_replicas;
        throttled.contains(index, broker.0)
    }

    /// Whether `replica` gets no records from this leader for now.
    pub fn holds_back(&self, replica: BrokerId) -> bool {
        let throttle = &self.surroundings.throttles.leader;
        throttle.is_on()
            && self.counts_at_leader()
            && !self.leadership().isr.contains(&replica)
            && throttle.wait(self.surroundings.now()).is_some()
    }

    /// A follower is being sent so many bytes.
    pub fn sent_to_replica(&self, bytes: u64) {
        let throttle = &self.surroundings.throttles.leader;
        if throttle.is_on() && self.counts_at_leader() {
            throttle.take(bytes, self.surroundings.now());
        }
    }

    /// How long this follower asks its leader for nothing; `None`: it may ask now.
    pub(super) fn is_held_back(&self) -> Option<Duration> {
        let throttle = &self.surroundings.throttles.follower;
        let broker = self.surroundings.this_broker;
        let counts = throttle.is_on()
            && self.counts_at_follower()
            && !self.leadership().isr.contains(&broker);
        match counts {
            true => throttle.wait(self.surroundings.now()),
            false => None,
        }
    }

    /// This follower was sent so many bytes.
    pub(super) fn copied_from_leader(&self, bytes: u64) {
        let throttle = &self.surroundings.throttles.follower;
        if throttle.is_on() && self.counts_at_follower() {
            throttle.take(bytes, self.surroundings.now());
        }
    }
}
