//! [`Groups`] as a machine of the runtime: records to bytes and back, and the topics of the moment.

use std::sync::Arc;

use crate::coordinator::runtime::{
    EndTransaction, LogBatch, LogEntry, LogRecord, Machine, Moment, Step,
};
use crate::machine::group::command::{Command, Now, Reply, Tick, Token};
use crate::machine::group::records::{Record, RecordError};
use crate::machine::group::{GroupConfig, Groups, Output, Topics};

/// What coordinators see of the cluster: the topics and configurations of the moment.
pub trait ClusterView: Send + Sync {
    fn topics(&self) -> Arc<dyn Topics>;

    fn config(&self) -> GroupConfig;
}

/// The bytes of records that one batch may have: well under the 1 MiB that the internal topic
/// takes. Only tombstones of many groups come in more than one batch.
const BATCH_BYTES_MAX: usize = 512 * 1024;

pub struct GroupMachine {
    groups: Groups,
    source: Arc<dyn ClusterView>,
}

impl GroupMachine {
    pub fn new(source: Arc<dyn ClusterView>) -> Self {
        GroupMachine {
            groups: Groups::new(source.config()),
            source,
        }
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    fn step(now: Moment, output: Output) -> Step<Reply> {
        let mut batches = Vec::new();
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in &output.records {
            let encoded = record.encode();
            let len = encoded.key.len() + encoded.value.as_ref().map_or(0, |v| v.len());
            if output.is_divisible && bytes + len > BATCH_BYTES_MAX && !records.is_empty() {
                batches.push(batch(std::mem::take(&mut records), &output, now));
                bytes = 0;
            }
            bytes += len;
            records.push(LogRecord {
                key: encoded.key,
                value: encoded.value,
            });
        }
        if !records.is_empty() {
            batches.push(batch(records, &output, now));
        }
        if let Some(end) = output.end_transaction {
            batches.push(LogBatch::EndTransaction(EndTransaction {
                producer_id: end.producer_id,
                producer_epoch: end.producer_epoch,
                coordinator_epoch: end.coordinator_epoch,
                commit: end.commit,
                bumps_epoch: end.bumps_epoch,
            }));
        }
        let replies = output.replies.into_iter();
        Step {
            batches,
            replies: replies.map(|(token, reply)| (token.0, reply)).collect(),
        }
    }
}

fn batch(records: Vec<LogRecord>, output: &Output, now: Moment) -> LogBatch {
    LogBatch::Records {
        records,
        producer: output.producer,
        timestamp: now.wall,
    }
}

fn now_of(now: Moment) -> Now {
    Now {
        wall: now.wall,
        tick: Tick(u64::try_from(now.monotonic.as_millis()).unwrap_or(u64::MAX)),
    }
}

impl Machine for GroupMachine {
    type Command = Command;
    type Reply = Reply;
    type LoadError = RecordError;

    fn may_append(command: &Command) -> bool {
        // Without a log to write to, members still keep their sessions, and what is committed can
        // be read.
        !matches!(
            command,
            Command::Heartbeat(_)
                | Command::OffsetFetch(_)
                | Command::DescribeGroups(_)
                | Command::ConsumerGroupDescribe(_)
                | Command::ListGroups(_)
                | Command::SetConfig(_)
                | Command::TopicsChanged(_)
        )
    }

    fn load(&mut self, entry: &LogEntry) -> Result<(), RecordError> {
        match entry {
            LogEntry::Record {
                record,
                producer_id,
            } => {
                if let Some(record) = Record::decode(&record.key, record.value.as_deref())? {
                    self.groups.apply(&record, *producer_id);
                }
            }
            LogEntry::EndTransaction {
                producer_id,
                commit,
            } => self.groups.apply_end_transaction(*producer_id, *commit),
        }
        Ok(())
    }

    fn on_loaded(&mut self, now: Moment) -> Step<Reply> {
        // It may have changed since loading began.
        self.groups.set_config(self.source.config());
        let topics = self.source.topics();
        let output = self.groups.on_loaded(now_of(now), &*topics);
        GroupMachine::step(now, output)
    }

    fn handle(&mut self, now: Moment, token: u64, command: Command) -> Step<Reply> {
        let topics = self.source.topics();
        let output = self
            .groups
            .handle(now_of(now), Token(token), command, &*topics);
        GroupMachine::step(now, output)
    }

    fn deadline(&self) -> Option<std::time::Duration> {
        let tick = self.groups.deadline()?;
        Some(std::time::Duration::from_millis(tick.0))
    }

    fn expire(&mut self, now: Moment) -> Step<Reply> {
        let topics = self.source.topics();
        let output = self.groups.expire(now_of(now), &*topics);
        GroupMachine::step(now, output)
    }
}
