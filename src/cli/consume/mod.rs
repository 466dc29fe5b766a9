//! Reads records: of partitions that are named, or of those that a group gives this member.
//!
//! 1. Records of a partition come in the order of their offsets, each once.
//! 2. Control records are never shown; with `read_committed` neither are those of aborted or still
//!    open transactions.

mod assignor;
mod consumer_group;
mod fetch;
mod group;
mod protocol;
mod records;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::cli::admin::{Admin, AdminError, Answer, OffsetSpec};
use crate::cli::exit::Exit;
use crate::cli::settings::{Settings, config_error};
use crate::record::RecordHeader;

pub use group::{Kept, Membership};
pub use protocol::Assignment;

/// A record that was read.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub leader_epoch: i32,
    pub timestamp_ms: i64,
    pub is_append_time: bool,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<RecordHeader>,
}

/// Where to begin when there is no offset, or none that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    Earliest,
    Latest,
    None,
}

/// How members of a group come to their partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupProtocol {
    Classic,
    /// KIP-848, with `group.remote.assignor` if it is set.
    Consumer {
        assignor: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    pub reset: Reset,
    pub read_committed: bool,
    pub fetch_min_bytes: i32,
    pub fetch_max_bytes: i32,
    pub partition_max_bytes: i32,
    pub fetch_max_wait: Duration,
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    pub max_poll_interval: Duration,
    pub auto_commit: Option<Duration>,
    pub instance_id: Option<String>,
    pub group_protocol: GroupProtocol,
}

impl ConsumerConfig {
    pub fn read(settings: &Settings) -> Result<ConsumerConfig, Exit> {
        let invalid = |name: &str, value: &str, valid: &str| {
            config_error(&format!(
                "Invalid value {value} for configuration {name}: {valid}"
            ))
        };
        let reset = match settings.get("auto.offset.reset").unwrap_or("latest") {
            "earliest" => Reset::Earliest,
            "latest" => Reset::Latest,
            "none" => Reset::None,
            other => {
                let valid = "String must be one of: latest, earliest, none";
                return Err(invalid("auto.offset.reset", other, valid));
            }
        };
        let level = settings
            .get("isolation.level")
            .unwrap_or("read_uncommitted");
        let read_committed = match level {
            "read_committed" => true,
            "read_uncommitted" => false,
            other => {
                let valid = "String must be one of: read_committed, read_uncommitted";
                return Err(invalid("isolation.level", other, valid));
            }
        };
        let group_protocol = group_protocol(settings)?;
        let ms =
            |name: &str, default: u64| settings.number(name, default).map(Duration::from_millis);
        let commits = settings.flag("enable.auto.commit", true);
        let interval = ms("auto.commit.interval.ms", 5_000)?;
        Ok(ConsumerConfig {
            reset,
            read_committed,
            fetch_min_bytes: settings.number("fetch.min.bytes", 1)?,
            fetch_max_bytes: settings.number("fetch.max.bytes", 50 << 20)?,
            partition_max_bytes: settings.number("max.partition.fetch.bytes", 1 << 20)?,
            fetch_max_wait: ms("fetch.max.wait.ms", 500)?,
            session_timeout: ms("session.timeout.ms", 45_000)?,
            heartbeat_interval: ms("heartbeat.interval.ms", 3_000)?,
            max_poll_interval: ms("max.poll.interval.ms", 300_000)?,
            auto_commit: commits.then_some(interval),
            instance_id: settings.get("group.instance.id").map(str::to_owned),
            group_protocol,
        })
    }
}

fn group_protocol(settings: &Settings) -> Result<GroupProtocol, Exit> {
    let protocol = settings.get("group.protocol").unwrap_or("classic");
    match protocol.to_ascii_lowercase().as_str() {
        "classic" => {
            // The assignor that is spoken here is among those that are wanted.
            if let Some(wanted) = settings.peek("partition.assignment.strategy")
                && wanted.contains("RangeAssignor")
            {
                settings.get("partition.assignment.strategy");
            }
            Ok(GroupProtocol::Classic)
        }
        "consumer" => {
            let decided_by_group = [
                "partition.assignment.strategy",
                "heartbeat.interval.ms",
                "session.timeout.ms",
            ];
            if let Some(name) = decided_by_group.iter().find(|n| settings.peek(n).is_some()) {
                return Err(config_error(&format!(
                    "{name} cannot be set when group.protocol=CONSUMER"
                )));
            }
            let assignor = settings.get("group.remote.assignor").map(str::to_owned);
            Ok(GroupProtocol::Consumer { assignor })
        }
        _ => Err(config_error(&format!(
            "Invalid value {protocol} for configuration group.protocol: (case insensitive) String \
             must be one of: CLASSIC, CONSUMER"
        ))),
    }
}

/// What of a partition has been read.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// The next offset to hand out.
    offset: i64,
    /// Of the record before it; -1: none was read.
    leader_epoch: i32,
}

pub struct Consumer {
    pub admin: Admin,
    pub config: ConsumerConfig,
    positions: BTreeMap<(String, i32), Position>,
    ready: VecDeque<Incoming>,
    /// Partitions of brokers that answered last time go to the end, so that all get a turn.
    turn: usize,
}

impl Consumer {
    pub fn new(admin: Admin, config: ConsumerConfig) -> Consumer {
        Consumer {
            admin,
            config,
            positions: BTreeMap::new(),
            ready: VecDeque::new(),
            turn: 0,
        }
    }

    /// Reads these partitions from now on, each from its offset or by its time.
    pub async fn assign(&mut self, wanted: Vec<((String, i32), Start)>) -> Answer<()> {
        let keep: BTreeSet<_> = wanted
            .iter()
            .map(|(partition, _)| partition.clone())
            .collect();
        self.keep_only(&keep);
        self.assign_more(wanted).await
    }

    fn keep_only(&mut self, keep: &BTreeSet<(String, i32)>) {
        self.positions
            .retain(|partition, _| keep.contains(partition));
        self.ready
            .retain(|r| keep.contains(&(r.topic.clone(), r.partition)));
    }

    /// Reads these partitions as well.
    pub async fn assign_more(&mut self, wanted: Vec<((String, i32), Start)>) -> Answer<()> {
        let mut by_time = Vec::new();
        for (partition, start) in wanted {
            match start {
                Start::Offset(offset) => self.set_position(partition, offset),
                Start::Time(spec) => by_time.push((partition, spec)),
            }
        }
        self.seek_by_time(&by_time).await
    }

    async fn seek_by_time(&mut self, wanted: &[((String, i32), OffsetSpec)]) -> Answer<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let read_committed = self.config.read_committed;
        for (partition, found) in self.admin.list_offsets(wanted, read_committed).await? {
            self.set_position(partition, found?.offset.max(0));
        }
        Ok(())
    }

    fn set_position(&mut self, partition: (String, i32), offset: i64) {
        let leader_epoch = -1;
        let position = Position {
            offset,
            leader_epoch,
        };
        self.positions.insert(partition, position);
    }

    /// Where an offset that does not exist is replaced by one that does.
    fn reset_spec(&self) -> Option<OffsetSpec> {
        match self.config.reset {
            Reset::Earliest => Some(OffsetSpec::EARLIEST),
            Reset::Latest => Some(OffsetSpec::LATEST),
            Reset::None => None,
        }
    }

    /// The next offset of each partition, for a commit. The leader epoch with it, as Kafka's tools
    /// commit it: only with `group.protocol=consumer`.
    pub fn positions(&self) -> Vec<((String, i32), i64, i32)> {
        let is_classic = self.config.group_protocol == GroupProtocol::Classic;
        let row = |(partition, p): (&(String, i32), &Position)| {
            let leader_epoch = if is_classic { -1 } else { p.leader_epoch };
            (partition.clone(), p.offset, leader_epoch)
        };
        self.positions.iter().map(row).collect()
    }

    pub fn partitions(&self) -> Vec<(String, i32)> {
        self.positions.keys().cloned().collect()
    }

    /// The next record, waiting for one at most `wait`. `Ok(None)`: there is none yet.
    pub async fn next(&mut self, wait: Duration) -> Answer<Option<Incoming>> {
        if let Some(record) = self.pop() {
            return Ok(Some(record));
        }
        self.fetch(wait).await?;
        Ok(self.pop())
    }

    /// The position moves when a record is handed out, so that what is committed was seen.
    fn pop(&mut self) -> Option<Incoming> {
        let record = self.ready.pop_front()?;
        let partition = (record.topic.clone(), record.partition);
        if let Some(position) = self.positions.get_mut(&partition) {
            position.offset = record.offset + 1;
            position.leader_epoch = record.leader_epoch;
        }
        Some(record)
    }

    /// Whether records are at hand without asking a broker.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// Where reading of a partition begins.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    Offset(i64),
    Time(OffsetSpec),
}

/// Why an offset was refused and cannot be replaced.
pub fn no_offset(partition: &(String, i32)) -> AdminError {
    AdminError::Answer {
        error: crate::types::ErrorCode::OffsetOutOfRange,
        message: format!(
            "Undefined offset with no reset policy for partitions: [{}-{}]",
            partition.0, partition.1
        ),
    }
}
