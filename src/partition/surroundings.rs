//! What every partition of this broker needs to know of the rest: who this broker is, which others
//! there are, what time it is, and where changes of an ISR go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use super::assignments::Assignments;
use super::flush_ms::FlushDeadlines;
use super::flusher::Flusher;
use super::isr_changes::IsrChanges;
use super::throttles::Throttles;
use super::traffic::Traffic;
use crate::host::Clock;
use crate::log::Log;
use crate::metadata::{BrokerEpoch, DirectoryId, MetadataImage};
use crate::peer::{Address, BrokerFinder};
use crate::types::{BrokerId, LeaderEpoch};

/// A registered broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBroker {
    pub epoch: BrokerEpoch,
    /// Neither fenced nor shutting down.
    pub is_active: bool,
    pub rack: Option<Arc<str>>,
    /// Where brokers reach it.
    pub address: Option<(Arc<str>, u16)>,
}

pub type KnownBrokers = BTreeMap<BrokerId, KnownBroker>;

pub struct Surroundings {
    pub this_broker: BrokerId,
    pub clock: Arc<dyn Clock>,
    pub isr_changes: IsrChanges,
    pub assignments: Assignments,
    pub throttles: Throttles,
    pub traffic: Traffic,
    /// Takes logs that began a new segment: the old one is to be flushed, aside.
    pub rolled: mpsc::UnboundedSender<Arc<Log>>,
    pub(super) flusher: Arc<Flusher>,
    pub(super) flush_deadlines: FlushDeadlines,
    broker_epoch: AtomicI64,
    brokers: ArcSwap<KnownBrokers>,
    replica_lag_time_max_ms: AtomicI64,
}

impl Surroundings {
    pub fn new(
        this_broker: BrokerId,
        clock: Arc<dyn Clock>,
        rolled: mpsc::UnboundedSender<Arc<Log>>,
    ) -> Surroundings {
        Surroundings {
            this_broker,
            clock,
            isr_changes: IsrChanges::default(),
            assignments: Assignments::default(),
            throttles: Throttles::default(),
            traffic: Traffic::default(),
            rolled,
            flusher: Arc::default(),
            flush_deadlines: FlushDeadlines::default(),
            broker_epoch: AtomicI64::new(BrokerEpoch::NONE.0),
            brokers: ArcSwap::default(),
            replica_lag_time_max_ms: AtomicI64::new(30_000),
        }
    }

    /// Of this run's registration; [`BrokerEpoch::NONE`] before there is one.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        BrokerEpoch(self.broker_epoch.load(Ordering::SeqCst))
    }

    pub fn set_broker_epoch(&self, epoch: BrokerEpoch) {
        self.broker_epoch.store(epoch.0, Ordering::SeqCst);
    }

    /// Whether the metadata is of this run of the broker. Older metadata may name it as the leader
    /// of an epoch in which it has lost records by a crash: going on in it would put other records
    /// at their offsets under the same epoch, and no follower could tell. Or it may name a leader
    /// that another one, this broker perhaps, has followed since: to copy from it would confirm
    /// records to it that the later leader never had.
    pub fn is_registered_in(&self, image: &MetadataImage) -> bool {
        let own = self.broker_epoch();
        own != BrokerEpoch::NONE
            && image
                .broker(self.this_broker)
                .is_some_and(|known| known.broker_epoch == own)
    }

    pub fn brokers(&self) -> Arc<KnownBrokers> {
        self.brokers.load_full()
    }

    /// Takes over the brokers of `image`, which speak to each other on `listener`.
    pub fn learn_brokers(&self, image: &MetadataImage, listener: &str) {
        let known = image.brokers().map(|broker| {
            let end_point = broker.end_point(listener);
            let known = KnownBroker {
                epoch: broker.broker_epoch,
                is_active: broker.is_active(),
                rack: broker.rack.clone(),
                address: end_point.map(|at| (at.host.clone(), at.port)),
            };
            (broker.broker_id, known)
        });
        self.brokers.store(Arc::new(known.collect()));
    }

    /// The registration epoch of a broker that may be in sync.
    pub fn eligible(&self, broker: BrokerId) -> Option<i64> {
        let brokers = self.brokers.load();
        let known = brokers.get(&broker).filter(|known| known.is_active);
        known.map(|known| known.epoch.0)
    }

    /// The registration epoch of a broker.
    pub fn registered(&self, broker: BrokerId) -> Option<i64> {
        self.brokers.load().get(&broker).map(|known| known.epoch.0)
    }

    pub fn lag_max(&self) -> Duration {
        let lag_ms = self.replica_lag_time_max_ms.load(Ordering::Relaxed);
        Duration::from_millis(lag_ms.max(0) as u64)
    }

    pub fn set_lag_max_ms(&self, lag_ms: i64) {
        self.replica_lag_time_max_ms
            .store(lag_ms, Ordering::Relaxed);
    }
}

impl BrokerFinder for Surroundings {
    fn broker_address(&self, broker: BrokerId) -> Option<Address> {
        let brokers = self.brokers.load();
        let (host, port) = brokers.get(&broker)?.address.as_ref()?;
        Some(Address::new(host, *port))
    }
}

/// Who leads a partition, as the metadata says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
    pub isr: Arc<[BrokerId]>,
    pub replicas: Arc<[BrokerId]>,
    /// Of this broker's replica.
    pub directory: DirectoryId,
}

impl Leadership {
    pub fn unknown() -> Self {
        Leadership {
            leader: BrokerId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            partition_epoch: -1,
            isr: Arc::new([]),
            replicas: Arc::new([]),
            directory: DirectoryId::UNASSIGNED,
        }
    }
}
