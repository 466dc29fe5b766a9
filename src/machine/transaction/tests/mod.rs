//! Tests of the machine as a whole: scenarios as text, Kafka's own log, the simulation.

mod clocks;
mod kafka_log;
mod scenario;
mod scenarios;
mod simulation;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::types::{
    ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TimestampMs, TopicPartition,
};

fn config(transaction_version: TransactionVersion) -> TransactionConfig {
    TransactionConfig {
        transaction_max_timeout_ms: 900_000,
        transactional_id_expiration_ms: 604_800_000,
        transaction_version,
    }
}

fn producer(id: i64, epoch: i16) -> ProducerIdAndEpoch {
    ProducerIdAndEpoch {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
    }
}

/// `tp-0` as a partition.
fn partition(text: &str) -> TopicPartition {
    let (topic, number) = text.rsplit_once('-').expect("topic-partition");
    TopicPartition {
        topic: topic.into(),
        partition: number.parse().expect("a number"),
    }
}

fn partitions<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<TopicPartition> {
    texts.into_iter().map(partition).collect()
}

/// A coordinator whose records are committed at once, unless they are held back.
struct Coordinator {
    machine: TransactionMachine,
    log: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    now: TimestampMs,
    next_producer_id: i64,
    markers: Vec<TxnMarkers>,
    /// Leave the records of the next decision under way.
    hold: bool,
    held: Vec<TransactionRecord>,
}

impl Coordinator {
    fn new(version: TransactionVersion) -> Self {
        Coordinator {
            machine: TransactionMachine::new(config(version), LeaderEpoch(0)),
            log: Vec::new(),
            now: TimestampMs(1_000_000),
            next_producer_id: 1000,
            markers: Vec::new(),
            hold: false,
            held: Vec::new(),
        }
    }

    fn run(&mut self, command: &Command) -> Reply {
        let next = &mut self.next_producer_id;
        let mut ids = || {
            *next += 1;
            Ok(ProducerId(*next - 1))
        };
        let before = self.machine.clone();
        let decision = self.machine.decide(self.now, command, &mut ids);
        assert_eq!(before.transactions, self.machine.transactions);
        self.carry_out(decision)
    }

    fn carry_out(&mut self, decision: Decision) -> Reply {
        self.machine.begin(&decision.records);
        if std::mem::take(&mut self.hold) {
            self.held = decision.records;
        } else {
            self.commit(decision.records);
        }
        self.markers.extend(decision.markers);
        decision.reply
    }

    fn commit(&mut self, records: Vec<TransactionRecord>) {
        for record in records {
            let version = self.machine.transaction_version();
            self.log
                .push((record.encode_key(), record.encode_value(version)));
            self.machine.apply(record);
        }
    }

    fn expire(&mut self) -> usize {
        let next = &mut self.next_producer_id;
        let mut ids = || {
            *next += 1;
            Ok(ProducerId(*next - 1))
        };
        let decisions = self.machine.expire(self.now, &mut ids);
        let count = decisions.len();
        for decision in decisions {
            assert_eq!(decision.reply, Reply::Nobody);
            self.carry_out(decision);
        }
        count
    }

    /// All markers of an id are written.
    fn write_markers(&mut self, id: &str) {
        let markers = std::mem::take(&mut self.markers);
        let (mine, others) = markers
            .into_iter()
            .partition(|m| &*m.transactional_id == id);
        self.markers = others;
        for markers in mine {
            let written = MarkersWritten {
                transactional_id: markers.transactional_id.clone(),
                prepared_at: markers.prepared_at,
                partitions: markers.partitions.clone(),
            };
            assert!(self.machine.on_markers_written(&written));
            let reply = self.run(&Command::CompleteTxn(CompleteTxn {
                transactional_id: markers.transactional_id,
                prepared_at: markers.prepared_at,
            }));
            assert_eq!(reply, Reply::Nobody);
        }
    }

    /// Another coordinator takes over, with the log.
    fn reload(&mut self) {
        let epoch = LeaderEpoch(self.machine.coordinator_epoch.0 + 1);
        let mut machine = TransactionMachine::new(self.machine.config, epoch);
        for (key, value) in &self.log {
            machine.apply(TransactionRecord::decode(key, value.as_deref()).unwrap());
        }
        self.machine = machine;
        self.held.clear();
        self.markers = self.machine.prepared();
    }
}

#[test]
fn partitions_of_ids_are_those_of_java() {
    // "b".hashCode() is 98; seen in the broker: b in 48, v1 in 7, unlike v2 in 8, x1 in 19.
    for (id, at) in [
        ("b", 48),
        ("v1", 7),
        ("v2", 8),
        ("x1", 19),
        ("to1", 16),
        ("", 0),
    ] {
        assert_eq!(partition_for(id, 50), at, "{id}");
    }
    // A hash of -2^31 has no absolute value.
    assert_eq!(partition_for("polygenelubricants", 50), 0);
}

#[test]
fn an_unused_id_keeps_its_bytes() {
    let id: TransactionalId = Arc::from("a");
    let record = TransactionRecord {
        transactional_id: id,
        metadata: None,
    };
    assert_eq!(record.encode_value(TransactionVersion::V2), None);
    let decoded = TransactionRecord::decode(&record.encode_key(), None);
    assert_eq!(decoded, Ok(record));
}
