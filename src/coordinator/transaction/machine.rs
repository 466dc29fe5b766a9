//! [`TransactionMachine`] as a machine of the runtime: records to bytes and back, markers that wait
//! to be taken, deadlines from the wall clock to the monotonic one.
//!
//! What is decided is applied at once; the runtime holds back what is shown (`runtime.rs`, 2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::coordinator::runtime::{LogBatch, LogEntry, LogRecord, Machine, Moment, Step};
use crate::machine::transaction::{
    Command, CompleteTxn, Decision, MarkersWritten, RecordError, Reply, TransactionConfig,
    TransactionFilters, TransactionListing, TransactionMachine, TransactionMetadata,
    TransactionRecord, TransactionalId, TxnMarkers, VerifyPartitions,
};
use crate::types::{ErrorCode, ProducerId, TimestampMs, TopicPartition};

/// How long an expiry that could do nothing (no producer ids) waits.
const EXPIRE_RETRY: Duration = Duration::from_millis(100);

/// A clock that is set back by less is not worth a look at every transaction.
const SET_BACK_MIN_MS: i64 = 100;

/// Where fresh producer ids come from.
pub trait ProducerIdSource: Send + Sync {
    /// The next id, if one is at hand; COORDINATOR_LOAD_IN_PROGRESS if not.
    fn draw(&self) -> Result<ProducerId, ErrorCode>;
}

/// Whether a transactional id is to be listed.
pub type MatchesId = dyn Fn(&str) -> bool + Send + Sync;

/// The filters of ListTransactions, owned.
#[derive(Clone, Default)]
pub struct ListTransactions {
    pub states: BTreeSet<String>,
    pub producer_ids: BTreeSet<ProducerId>,
    pub duration_ms: Option<i64>,
    pub transactional_id: Option<Arc<MatchesId>>,
}

pub(super) enum TxnCommand {
    Decide(Command),
    MarkersWritten(MarkersWritten),
    /// The markers that came up since the last one of these; or all that are still to be written.
    TakeMarkers {
        all: bool,
    },
    Verify(VerifyPartitions),
    Describe(TransactionalId),
    List(ListTransactions),
    SetConfig(TransactionConfig),
}

#[derive(Debug)]
pub(super) enum TxnReply {
    Decided(Reply),
    Markers(Vec<TxnMarkers>),
    Verified(BTreeMap<TopicPartition, ErrorCode>),
    Described(Result<TransactionMetadata, ErrorCode>),
    Listed(Vec<TransactionListing>),
    Done,
}

/// The transactions of one partition of `__transaction_state`.
pub(super) struct Transactions {
    machine: TransactionMachine,
    ids: Arc<dyn ProducerIdSource>,
    markers: Vec<TxnMarkers>,
    /// Told when there are markers that no command brought about.
    on_markers: Box<dyn Fn() + Send>,
    /// When the last event was.
    now: Moment,
    /// `expire` is not wanted before.
    expire_from: Duration,
}

impl Transactions {
    pub(super) fn machine(&self) -> &TransactionMachine {
        &self.machine
    }

    pub(super) fn new(
        machine: TransactionMachine,
        ids: Arc<dyn ProducerIdSource>,
        on_markers: impl Fn() + Send + 'static,
    ) -> Self {
        let now = Moment {
            wall: TimestampMs(0),
            monotonic: Duration::ZERO,
        };
        Transactions {
            machine,
            ids,
            markers: Vec::new(),
            on_markers: Box::new(on_markers),
            now,
            expire_from: Duration::ZERO,
        }
    }

    /// The time of the next event.
    fn at(&mut self, now: Moment) {
        let passed = now.monotonic.saturating_sub(self.now.monotonic);
        let expected = self.now.wall.0.saturating_add(passed.as_millis() as i64);
        if now.wall.0 < expected - SET_BACK_MIN_MS {
            self.machine.clock_is(TimestampMs(expected), now.wall);
        }
        self.now = now;
    }

    fn decide(&mut self, command: &Command, step: &mut Step<TxnReply>) -> Reply {
        let ids = self.ids.clone();
        let decision = self
            .machine
            .decide(self.now.wall, command, &mut || ids.draw());
        self.take_in(decision, step)
    }

    /// Applies a decision and has its records appended.
    fn take_in(&mut self, decision: Decision, step: &mut Step<TxnReply>) -> Reply {
        if !decision.records.is_empty() {
            let records = decision.records.iter();
            step.batches.push(LogBatch::Records {
                records: records.map(|record| self.encode(record)).collect(),
                producer: None,
                timestamp: self.now.wall,
            });
        }
        for record in decision.records {
            self.machine.apply(record);
        }
        match decision.markers {
            Some(markers) if markers.partitions.is_empty() => {
                self.markers_written(
                    &MarkersWritten {
                        transactional_id: markers.transactional_id,
                        prepared_at: markers.prepared_at,
                        partitions: BTreeSet::new(),
                    },
                    step,
                );
            }
            Some(markers) => self.markers.push(markers),
            None => {}
        }
        decision.reply
    }

    fn encode(&self, record: &TransactionRecord) -> LogRecord {
        let version = self.machine.transaction_version();
        LogRecord {
            key: Bytes::from(record.encode_key()),
            value: record.encode_value(version).map(Bytes::from),
        }
    }

    fn markers_written(&mut self, written: &MarkersWritten, step: &mut Step<TxnReply>) {
        if self.machine.on_markers_written(written) {
            let complete = Command::CompleteTxn(CompleteTxn {
                transactional_id: written.transactional_id.clone(),
                prepared_at: written.prepared_at,
            });
            self.decide(&complete, step);
        }
    }

    fn take_markers(&mut self, all: bool) -> Vec<TxnMarkers> {
        let markers = std::mem::take(&mut self.markers);
        if all {
            self.machine.prepared()
        } else {
            markers
        }
    }

    fn list(&self, filters: &ListTransactions) -> Vec<TransactionListing> {
        let matches = filters.transactional_id.as_deref();
        let matches = matches.map(|matches| move |id: &str| matches(id));
        let filters = TransactionFilters {
            states: filters.states.iter().map(String::as_str).collect(),
            producer_ids: filters.producer_ids.clone(),
            duration_ms: filters.duration_ms,
            transactional_id: matches.as_ref().map(|m| m as &dyn Fn(&str) -> bool),
        };
        self.machine.list(self.now.wall, &filters)
    }
}

impl Machine for Transactions {
    type Command = TxnCommand;
    type Reply = TxnReply;
    type LoadError = RecordError;

    fn may_append(command: &TxnCommand) -> bool {
        matches!(
            command,
            TxnCommand::Decide(_) | TxnCommand::MarkersWritten(_)
        )
    }

    fn load(&mut self, entry: &LogEntry) -> Result<(), RecordError> {
        if let LogEntry::Record { record, .. } = entry {
            let record = TransactionRecord::decode(&record.key, record.value.as_deref())?;
            self.machine.apply(record);
        }
        Ok(())
    }

    fn on_loaded(&mut self, now: Moment) -> Step<TxnReply> {
        self.now = now;
        self.machine.clock_is(now.wall, now.wall);
        let mut step = Step::default();
        for markers in self.machine.prepared() {
            if markers.partitions.is_empty() {
                let written = MarkersWritten {
                    transactional_id: markers.transactional_id,
                    prepared_at: markers.prepared_at,
                    partitions: BTreeSet::new(),
                };
                self.markers_written(&written, &mut step);
            } else {
                self.markers.push(markers);
            }
        }
        if !self.markers.is_empty() {
            (self.on_markers)();
        }
        step
    }

    fn handle(&mut self, now: Moment, token: u64, command: TxnCommand) -> Step<TxnReply> {
        self.at(now);
        let mut step = Step::default();
        let reply = match command {
            TxnCommand::Decide(command) => TxnReply::Decided(self.decide(&command, &mut step)),
            TxnCommand::MarkersWritten(written) => {
                self.markers_written(&written, &mut step);
                TxnReply::Done
            }
            TxnCommand::TakeMarkers { all } => TxnReply::Markers(self.take_markers(all)),
            TxnCommand::Verify(verify) => TxnReply::Verified(self.machine.verify(&verify)),
            TxnCommand::Describe(id) => TxnReply::Described(self.machine.describe(&id)),
            TxnCommand::List(filters) => TxnReply::Listed(self.list(&filters)),
            TxnCommand::SetConfig(config) => {
                self.machine.set_config(config);
                TxnReply::Done
            }
        };
        step.replies.push((token, reply));
        step
    }

    fn deadline(&self) -> Option<Duration> {
        let wait_ms = self.machine.deadline()?.0.saturating_sub(self.now.wall.0);
        let wait = Duration::from_millis(wait_ms.max(0) as u64);
        Some((self.now.monotonic + wait).max(self.expire_from))
    }

    fn expire(&mut self, now: Moment) -> Step<TxnReply> {
        self.at(now);
        let mut step = Step::default();
        let ids = self.ids.clone();
        let decisions = self.machine.expire(now.wall, &mut || ids.draw());
        if decisions.is_empty() {
            self.expire_from = now.monotonic + EXPIRE_RETRY;
        }
        for decision in decisions {
            self.take_in(decision, &mut step);
        }
        if !self.markers.is_empty() {
            (self.on_markers)();
        }
        step
    }
}
