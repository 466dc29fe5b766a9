//! A log directory for a test, and batches to put into it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::ProptestConfig;

use super::super::*;
use crate::host::{Disk, RealDisk};
use crate::record::{Batch, BatchBuilder, Batches, Marker, MarkerType};
use crate::types::*;

pub const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

pub fn partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition {
        topic: topic.into(),
        partition,
    }
}

pub fn topic_id() -> TopicId {
    TopicId(uuid::Uuid::from_u128(7))
}

/// Small enough that a test meets many segments and index entries.
pub fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 2000,
        index_interval_bytes: 200,
        ..LogConfig::default()
    }
}

pub struct Fixture {
    pub disk: Arc<dyn Disk>,
    pub path: PathBuf,
    pub dir: Option<LogDir>,
    pub log: Option<Arc<Log>>,
    pub config: LogConfig,
    _temporary: Option<tempfile::TempDir>,
}

impl Fixture {
    /// One empty log, `t-0`, on the real disk.
    pub fn new(config: LogConfig) -> Fixture {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().to_owned();
        let mut fixture = Fixture::on(Arc::new(RealDisk), &path, config);
        fixture._temporary = Some(temporary);
        fixture.open();
        fixture.create();
        fixture
    }

    /// Nothing is opened yet.
    pub fn on(disk: Arc<dyn Disk>, path: &Path, config: LogConfig) -> Fixture {
        Fixture {
            disk,
            path: path.to_owned(),
            dir: None,
            log: None,
            config,
            _temporary: None,
        }
    }

    pub fn try_open(&mut self) -> Result<LoadReport, LogDirError> {
        let files = Arc::new(FileCache::new(100));
        let dir = LogDir::open(Arc::clone(&self.disk), &self.path, files)?;
        let config = Arc::new(self.config.clone());
        let options = LoadOptions {
            shared_links: &crate::log::SharedLinks::default(),
            now: NOW,
            file_delete_delay_ms: self.config.file_delete_delay_ms,
            threads: 2,
            config_of: &|_| Arc::clone(&config),
            is_known: &|_| true,
        };
        let report = dir.load(&options);
        self.log = dir.log(&partition("t", 0));
        self.dir = Some(dir);
        report
    }

    pub fn open(&mut self) -> LoadReport {
        self.try_open().unwrap()
    }

    pub fn create(&mut self) {
        let config = Arc::new(self.config.clone());
        let created = self
            .dir()
            .create_log(partition("t", 0), topic_id(), config, NOW);
        self.log = Some(created.unwrap());
    }

    pub fn dir(&self) -> &LogDir {
        self.dir.as_ref().unwrap()
    }

    pub fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    /// As a process that is killed.
    pub fn kill(&mut self) {
        self.log = None;
        self.dir = None;
    }

    pub fn reopen_after_kill(&mut self) -> LoadReport {
        self.kill();
        self.open()
    }

    pub fn reopen_cleanly(&mut self) -> LoadReport {
        self.dir().close(3).unwrap();
        self.kill();
        let report = self.open();
        assert_eq!(report.clean_stop, Some(3));
        report
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join("t-0").join(name)
    }

    /// The names in the log's directory.
    pub fn names(&self) -> Vec<String> {
        let entries = self.disk.list(&self.path.join("t-0")).unwrap();
        entries.into_iter().map(|e| e.name).collect()
    }

    pub fn append(&self, batch: Batch) -> Appended {
        self.log().append_as_leader(batch, &client(0)).unwrap()
    }

    pub fn append_many(&self, batches: usize) {
        for _ in 0..batches {
            self.append(batch(3));
        }
    }
}

pub fn client(epoch: i32) -> AppendContext {
    AppendContext {
        leader_epoch: LeaderEpoch(epoch),
        origin: Origin::Client,
        now: NOW,
    }
}

pub fn coordinator() -> AppendContext {
    AppendContext {
        origin: Origin::Coordinator,
        ..client(0)
    }
}

/// A batch of so many records, about 150 bytes with 3 of them.
pub fn batch(records: i32) -> Batch {
    batch_at(records, NOW)
}

pub fn batch_at(records: i32, timestamp: TimestampMs) -> Batch {
    let mut builder = BatchBuilder::new();
    for n in 0..records {
        builder.append(timestamp, Some(&[n as u8]), Some(b"a value of some bytes"));
    }
    builder.build().unwrap()
}

pub fn idempotent(id: i64, epoch: i16, sequence: i32, records: i32) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.producer_id = ProducerId(id);
    builder.producer_epoch = ProducerEpoch(epoch);
    builder.base_sequence = sequence;
    for n in 0..records {
        builder.append(NOW, None, Some(&[n as u8]));
    }
    builder.build().unwrap()
}

pub fn transactional(id: i64, epoch: i16, sequence: i32, records: i32) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.producer_id = ProducerId(id);
    builder.producer_epoch = ProducerEpoch(epoch);
    builder.base_sequence = sequence;
    builder.is_transactional = true;
    for n in 0..records {
        builder.append(NOW, None, Some(&[n as u8]));
    }
    builder.build().unwrap()
}

pub fn marker(id: i64, epoch: i16, marker_type: MarkerType, coordinator_epoch: i32) -> Batch {
    let marker = Marker {
        marker_type,
        coordinator_epoch,
    };
    let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
    BatchBuilder::marker(id, epoch, marker, NOW)
        .build()
        .unwrap()
}

pub fn bytes_of(slice: &LogSlice) -> Vec<u8> {
    let mut bytes = vec![0; slice.len as usize];
    if let Some(file) = &slice.file {
        let read_bytes = file.read_at(&mut bytes, slice.position).unwrap();
        assert_eq!(read_bytes, bytes.len());
    }
    bytes
}

pub fn batches_of(slice: &LogSlice) -> Vec<Batch> {
    Batches::new(bytes_of(slice).into())
        .map(|b| b.unwrap())
        .collect()
}

/// So many runs of a property, or as many as `PROPTEST_CASES` says.
pub fn cases(usual: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES");
    let wanted = wanted.ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(usual))
}

/// Every batch of the log, read segment by segment.
pub fn all_batches(log: &Log) -> Vec<Batch> {
    let mut all = Vec::new();
    let mut at = log.log_start_offset();
    let end = log.log_end_offset();
    while at < end {
        let slice = log.read(at, u32::MAX, end, true).unwrap();
        let batches = batches_of(&slice);
        let Some(last) = batches.last() else { break };
        assert!(last.header.next_offset() > at);
        at = last.header.next_offset();
        all.extend(batches);
    }
    all
}
