//! What clients were told: which record stands where. It never changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::record::Batch;
use crate::types::Offset;

/// The n-th record of a producer.
pub fn value(producer: usize, n: u64) -> String {
    format!("{producer}:{n}")
}

pub fn parse(value: &[u8]) -> (usize, u64) {
    let text = std::str::from_utf8(value).expect("a value of a producer");
    let (producer, n) = text.split_once(':').expect("a value of a producer");
    (producer.parse().unwrap(), n.parse().unwrap())
}

#[derive(Debug, Clone)]
struct OfProducer {
    /// So many of its first records are acknowledged.
    acknowledged: u64,
    /// When what was acknowledged last had been sent.
    sent: Instant,
    last_failure: String,
    /// From these on it sent everything once more.
    again: Vec<u64>,
}

#[derive(Default)]
struct State {
    /// By partition and offset.
    known: BTreeMap<(i32, Offset), (usize, u64)>,
    producers: BTreeMap<usize, OfProducer>,
    producer_ids: BTreeSet<i64>,
    longest_wait: Duration,
    read: u64,
}

pub struct Ledger {
    state: Mutex<State>,
    start: Instant,
}

impl Ledger {
    pub fn new() -> Ledger {
        Ledger {
            state: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn learn(state: &mut State, partition: i32, offset: Offset, record: (usize, u64)) {
        let known = *state.known.entry((partition, offset)).or_insert(record);
        assert_eq!(
            known, record,
            "partition {partition}, offset {offset}: another record stood there"
        );
    }

    fn producer<'a>(&self, state: &'a mut State, number: usize) -> &'a mut OfProducer {
        state.producers.entry(number).or_insert(OfProducer {
            acknowledged: 0,
            sent: self.start,
            last_failure: String::new(),
            again: Vec::new(),
        })
    }

    /// A producer sends what comes from `first` on once more, in a new epoch.
    pub fn begins_again(&self, producer: usize, first: u64) {
        let state = &mut *self.state.lock();
        self.producer(state, producer).again.push(first);
    }

    pub fn producer_id(&self, id: i64) {
        let is_new = self.state.lock().producer_ids.insert(id);
        assert!(is_new, "producer id {id} was given twice");
    }

    pub fn acknowledged(
        &self,
        producer: usize,
        partition: i32,
        first: u64,
        count: u64,
        base: Option<Offset>,
        sent: Instant,
    ) {
        let state = &mut *self.state.lock();
        let of_producer = self.producer(state, producer);
        assert_eq!(of_producer.acknowledged, first, "in the order of sending");
        of_producer.acknowledged += count;
        of_producer.sent = sent;
        state.longest_wait = state.longest_wait.max(sent.elapsed());
        for n in 0..count {
            if let Some(base) = base {
                Self::learn(state, partition, base.plus(n as i64), (producer, first + n));
            }
        }
    }

    pub fn failed(&self, producer: usize, why: String) {
        let state = &mut *self.state.lock();
        self.producer(state, producer).last_failure = why;
    }

    pub fn read(&self, partition: i32, batch: &Batch, from: Offset) {
        let state = &mut *self.state.lock();
        for (offset, record) in records(batch) {
            if offset >= from {
                Self::learn(state, partition, offset, record);
                state.read += 1;
            }
        }
    }

    /// The producers of which nothing that was sent after `since` is acknowledged, and why.
    pub fn waiting(&self, producers: usize, since: Instant) -> Vec<(usize, String)> {
        let state = self.state.lock();
        let waits = |producer: usize| match state.producers.get(&producer) {
            None => Some((producer, "it did nothing".to_owned())),
            Some(of) if of.acknowledged == 0 || of.sent <= since => {
                Some((producer, of.last_failure.clone()))
            }
            Some(_) => None,
        };
        (0..producers).filter_map(waits).collect()
    }

    pub fn acknowledged_count(&self) -> u64 {
        let state = self.state.lock();
        state.producers.values().map(|of| of.acknowledged).sum()
    }

    pub fn has_acknowledged(&self, producer: usize) -> bool {
        let state = self.state.lock();
        let of = state.producers.get(&producer);
        of.is_some_and(|of| of.acknowledged > 0)
    }

    pub fn read_count(&self) -> u64 {
        self.state.lock().read
    }

    /// How often producers had to begin again.
    pub fn again_count(&self) -> usize {
        let state = self.state.lock();
        state.producers.values().map(|of| of.again.len()).sum()
    }

    pub fn longest_wait(&self) -> Duration {
        self.state.lock().longest_wait
    }

    /// Holds the records of a partition against what clients were told.
    pub fn check(&self, partition: i32, log: &BTreeMap<Offset, (usize, u64)>) {
        let state = self.state.lock();
        for ((_, offset), record) in state
            .known
            .range((partition, Offset::ZERO)..(partition + 1, Offset::ZERO))
        {
            assert_eq!(
                log.get(offset),
                Some(record),
                "partition {partition}, offset {offset}: a client saw it there"
            );
        }
        // Of each producer the next record, and how often it has begun again.
        let mut next: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for (offset, (producer, n)) in log {
            let (next, begun) = next.entry(*producer).or_default();
            if n != next {
                let of = state.producers.get(producer);
                let again = of.map_or(&[][..], |of| &of.again);
                let at = again[*begun..].iter().position(|first| first == n);
                let Some(at) = at else {
                    panic!(
                        "partition {partition}, offset {offset}: record {n} of producer \
                         {producer}, not {next}: each once, in order"
                    );
                };
                *begun += at + 1;
            }
            *next = n + 1;
        }
        for (producer, (count, _)) in &next {
            let acknowledged = state
                .producers
                .get(producer)
                .map_or(0, |of| of.acknowledged);
            assert!(
                *count >= acknowledged,
                "partition {partition}: {count} records of producer {producer}, {acknowledged} \
                 are acknowledged"
            );
        }
    }
}

/// The records of a batch by offset.
pub fn records(batch: &Batch) -> Vec<(Offset, (usize, u64))> {
    let base = batch.header.base_offset;
    let records = batch.records().map(|record| {
        let record = record.expect("a record");
        let offset = base.plus(i64::from(record.offset_delta));
        (offset, parse(&record.value.expect("a value")))
    });
    records.collect()
}
