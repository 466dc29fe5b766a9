//! One broker of the simulation: its partitions on a disk, and its fetchers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;

use super::controller::{PARTITIONS, topic_id};
use crate::config::{NodeConfig, Sources, parse_properties};
use crate::host::{Clock, Disk};
use crate::log::ReadError;
use crate::log::tests::faulty_disk::{Crash, FaultyDisk};
use crate::log::{FileCache, Log, LogDir, LogSlice};
use crate::metadata::{BrokerEpoch, ImageDelta, MetadataImage};
use crate::partition::fetcher::Fetcher;
use crate::partition::{FetcherConfig, Partition, Partitions, ReplicaFetch, ReplicaFetchError};
use crate::peer::{FetchedFromLeader, ReplicaFetchAnswer, ReplicaFetchCall, WantedPartition};
use crate::record::Batches;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset, TimestampMs};

/// Its directories.
pub const DIRS: [&str; 3] = ["a", "b", "c"];

/// Moved by hand.
#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn add_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> TimestampMs {
        TimestampMs(1_700_000_000_000 + self.0.load(Ordering::Relaxed) as i64)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

pub fn node_config() -> NodeConfig {
    let text = "process.roles=broker,controller\nnode.id=1\n\
        listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
        controller.listener.names=CONTROLLER\n\
        controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs=/logs\n\
        min.insync.replicas=2\nreplica.fetch.wait.max.ms=100\n\
        replica.lag.time.max.ms=300\n";
    let file = Some(parse_properties("server.properties", text).expect("properties"));
    let sources = Sources {
        file,
        ..Sources::default()
    };
    NodeConfig::load(sources).expect("a configuration").0
}

/// A record as it stands in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub offset: Offset,
    pub epoch: LeaderEpoch,
    pub value: u64,
}

/// A fetcher, and the number of the request it waits for.
pub struct Fetching {
    pub fetcher: Fetcher,
    pub in_flight: Option<u64>,
}

pub struct SimBroker {
    pub id: BrokerId,
    pub epoch: BrokerEpoch,
    pub disk: FaultyDisk,
    clock: Arc<dyn Clock>,
    config: Arc<NodeConfig>,
    /// `None`: it is down.
    pub partitions: Option<Partitions>,
    /// By leader.
    pub fetching: BTreeMap<BrokerId, Fetching>,
    /// How much of the controller's history it has applied.
    pub applied: usize,
}

impl SimBroker {
    pub fn new(id: BrokerId, clock: Arc<dyn Clock>, config: Arc<NodeConfig>) -> SimBroker {
        SimBroker {
            id,
            epoch: BrokerEpoch::NONE,
            disk: FaultyDisk::new(),
            clock,
            config,
            partitions: None,
            fetching: BTreeMap::new(),
            applied: 0,
        }
    }

    /// Starts with the metadata as it knew it at `applied`.
    pub fn start(&mut self, image: &MetadataImage, applied: usize, epoch: BrokerEpoch) {
        let files = Arc::new(FileCache::new(100));
        let disk = Arc::new(self.disk.clone());
        let dirs = DIRS.map(|name| {
            let path = self.disk.root().join(name);
            Arc::new(LogDir::open(disk.clone(), &path, files.clone()).expect("a directory"))
        });
        // As directories that have been there for long.
        self.disk.sync_dir(&self.disk.root()).expect("synced");
        let (rolled, _) = mpsc::unbounded_channel();
        let partitions = Partitions::new(self.id, dirs.into(), self.clock.clone(), rolled);
        partitions
            .load(&self.config, image)
            .expect("what was written");
        self.epoch = epoch;
        self.applied = applied;
        self.partitions = Some(partitions);
        self.fetching.clear();
        self.apply(image, &ImageDelta::everything());
        let partitions = self.partitions.as_ref().expect("it was put there");
        partitions.surroundings().set_broker_epoch(epoch);
    }

    /// Has a replica moved to one of the directories.
    pub fn move_replica(&self, index: i32, to: usize) {
        let Some(partition) = self.partition(index) else {
            return;
        };
        let partitions = self.partitions.as_ref().expect("it is up");
        let to = &partitions.log_dirs()[to];
        partitions.move_replica(&partition, to).expect("it is here");
    }

    /// The directory that a replica is in.
    pub fn place(&self, index: i32) -> Option<usize> {
        let dirs = self.partitions.as_ref()?.log_dirs();
        let place = self.partition(index)?.log_dir();
        dirs.iter().position(|dir| Arc::ptr_eq(dir, &place))
    }

    pub fn move_on(&self) -> Option<Duration> {
        self.partitions.as_ref()?.move_on()
    }

    pub fn crash(&mut self, crash: Crash) {
        self.partitions = None;
        self.fetching.clear();
        self.disk = self.disk.crash(crash);
    }

    pub fn partition(&self, index: i32) -> Option<Arc<Partition>> {
        self.partitions.as_ref()?.get(topic_id(), index)
    }

    /// What `Fetchers` does in a broker.
    pub fn apply(&mut self, image: &MetadataImage, delta: &ImageDelta) {
        let Some(partitions) = &self.partitions else {
            return;
        };
        let before: Vec<_> = (0..PARTITIONS)
            .map(|index| {
                self.partition(index)
                    .map(|partition| partition.leadership())
            })
            .collect();
        partitions.apply(&self.config, image, delta);
        for index in 0..PARTITIONS {
            let Some(partition) = self.partition(index) else {
                continue;
            };
            let is = partition.leadership();
            let was = before[index as usize].clone();
            let same = was
                .is_some_and(|was| (was.leader, was.leader_epoch) == (is.leader, is.leader_epoch));
            if same {
                continue;
            }
            for fetching in self.fetching.values_mut() {
                fetching.fetcher.remove((topic_id(), index));
            }
            if is.leader == self.id || is.leader == BrokerId::NONE {
                continue;
            }
            let new = || Fetching {
                fetcher: Fetcher::new(self.id, fetcher_config()),
                in_flight: None,
            };
            let fetching = self.fetching.entry(is.leader).or_insert_with(new);
            let now = self.clock.now_ms();
            fetching.fetcher.put(partition, is.leader_epoch, now);
        }
    }

    /// Answers a fetch as the API does, without a session.
    pub fn serve(&self, call: &ReplicaFetchCall, max_bytes: u32) -> Option<ReplicaFetchAnswer> {
        self.partitions.as_ref()?;
        let answers = call.partitions.iter();
        let answers = answers.map(|wanted| self.serve_one(call, wanted, max_bytes));
        Some(ReplicaFetchAnswer {
            error: ErrorCode::None,
            session_id: 0,
            partitions: answers.collect(),
        })
    }

    fn serve_one(
        &self,
        call: &ReplicaFetchCall,
        wanted: &WantedPartition,
        max_bytes: u32,
    ) -> FetchedFromLeader {
        let mut fetched = FetchedFromLeader {
            topic_id: wanted.topic_id,
            partition: wanted.partition,
            error: ErrorCode::None,
            high_watermark: Offset::NONE,
            log_start_offset: Offset::NONE,
            diverging_epoch: None,
            records: Bytes::new(),
        };
        let Some(partition) = self.partition(wanted.partition) else {
            fetched.error = ErrorCode::UnknownTopicId;
            return fetched;
        };
        let fetch = ReplicaFetch {
            replica: call.replica,
            replica_epoch: call.replica_epoch,
            current_leader_epoch: wanted.current_leader_epoch.0,
            fetch_offset: wanted.fetch_offset,
            last_fetched_epoch: wanted.last_fetched_epoch,
            log_start_offset: wanted.log_start_offset,
            max_bytes,
        };
        match partition.read_for_replica(&fetch, true) {
            Ok(read) => {
                fetched.high_watermark = read.watermarks.high_watermark;
                fetched.log_start_offset = read.watermarks.log_start_offset;
                fetched.diverging_epoch = read.diverging_epoch;
                fetched.records = read
                    .records
                    .map(|slice| bytes_of(&slice))
                    .unwrap_or_default();
                partition.tell_replica(call.replica, fetched.high_watermark);
            }
            Err(ReplicaFetchError::Refused(error)) => fetched.error = error,
            Err(ReplicaFetchError::Read(ReadError::OffsetOutOfRange { .. })) => {
                fetched.error = ErrorCode::OffsetOutOfRange;
            }
            Err(ReplicaFetchError::Read(error)) => panic!("{error}"),
        }
        fetched
    }

    /// As the background task of a broker.
    pub fn checkpoint(&self, flushes: bool) {
        let Some(partitions) = &self.partitions else {
            return;
        };
        for dir in partitions.log_dirs() {
            partitions.write_high_watermarks(dir).expect("written");
        }
        if flushes {
            for partition in partitions.all() {
                partition.log().flush().expect("flushed");
            }
        }
    }
}

fn fetcher_config() -> FetcherConfig {
    FetcherConfig {
        partition_max_bytes: 1 << 20,
        response_max_bytes: 1 << 20,
        min_bytes: 1,
        max_wait: Duration::from_millis(500),
        backoff: Duration::from_millis(40),
        timeout: Duration::from_secs(30),
    }
}

fn bytes_of(slice: &LogSlice) -> Bytes {
    let Some(file) = &slice.file else {
        return Bytes::new();
    };
    let mut buffer = BytesMut::zeroed(slice.len as usize);
    let read_bytes = file.read_at(&mut buffer, slice.position).expect("read");
    buffer.truncate(read_bytes);
    buffer.freeze()
}

/// The records from `from` to `up_to`.
pub fn entries(log: &Log, from: Offset, up_to: Offset) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut at = from;
    while at < up_to {
        let slice = log.read(at, 1 << 20, up_to, true).expect("readable");
        let before = at;
        for batch in Batches::new(bytes_of(&slice)).map_while(Result::ok) {
            for record in batch.records() {
                let record = record.expect("a record");
                let value = record.value.expect("a value");
                let offset = batch
                    .header
                    .base_offset
                    .plus(i64::from(record.offset_delta));
                if offset < from || offset >= up_to {
                    continue;
                }
                entries.push(Entry {
                    offset,
                    epoch: batch.header.leader_epoch,
                    value: u64::from_le_bytes(value[..8].try_into().expect("eight bytes")),
                });
            }
            at = batch.header.next_offset();
        }
        assert!(at > before, "nothing to read at {at} below {up_to}");
    }
    entries
}
