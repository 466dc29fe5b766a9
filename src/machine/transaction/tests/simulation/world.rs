//! Everything together: the network, time, faults, and the end in which all has to be settled.

use std::collections::BTreeMap;

use super::client::{Client, Request, Step, Told};
use super::coordinator::{Driver, UnderWay};
use super::invariants::{self, Invariant};
use super::partition::{Append, Partition};
use super::*;
use crate::types::ErrorCode;

const STEPS: usize = 4000;
const EXPIRATION_MS: i32 = 600_000;
const START: TimestampMs = TimestampMs(1_000_000_000);
/// Of every client.
pub const TIMEOUT_MS: i32 = 500;
const JUMP_MAX_MS: usize = 3_600_000;

/// Who waits for a decision.
#[derive(Debug, Clone)]
pub enum Origin {
    Client {
        index: usize,
        sequence: u32,
        /// An InitProducerId that names the producer it goes on from.
        resumes: bool,
    },
    /// Version 2: a partition that adds itself before it appends.
    Leader(Box<Produce>),
    Coordinator,
}

#[derive(Debug, Clone)]
pub struct Produce {
    index: usize,
    sequence: u32,
    partition: TopicPartition,
    producer: ProducerIdAndEpoch,
    txn: Txn,
    number: u32,
    /// Markers of this producer at the time of the check.
    marker_count: u32,
}

type Answer = Result<Option<ProducerIdAndEpoch>, ErrorCode>;

#[derive(Debug, Clone)]
enum Message {
    ToCoordinator {
        command: Command,
        origin: Origin,
    },
    ToPartition(Produce),
    /// Checked with the coordinator, about to be appended.
    Append(Produce),
    ToClient {
        index: usize,
        sequence: u32,
        answer: Answer,
    },
    Marker {
        partition: TopicPartition,
        markers: TxnMarkers,
    },
    MarkerWritten(MarkersWritten),
}

impl Message {
    fn client(&self) -> Option<usize> {
        match self {
            Message::ToCoordinator { origin, .. } => origin.client(),
            Message::ToPartition(produce) | Message::Append(produce) => Some(produce.index),
            Message::ToClient { index, .. } => Some(*index),
            Message::Marker { .. } | Message::MarkerWritten(_) => None,
        }
    }
}

impl Origin {
    fn client(&self) -> Option<usize> {
        match self {
            Origin::Client { index, .. } => Some(*index),
            Origin::Leader(produce) => Some(produce.index),
            Origin::Coordinator => None,
        }
    }
}

/// How much happened.
#[derive(Debug, Default)]
pub struct Counts {
    commits: u64,
    aborts: u64,
    fatal: u64,
    crashes: u64,
    time_outs: u64,
    refused_markers: u64,
    refused_appends: u64,
    id_changes: u64,
    jumps: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.fatal += other.fatal;
        self.crashes += other.crashes;
        self.time_outs += other.time_outs;
        self.refused_markers += other.refused_markers;
        self.refused_appends += other.refused_appends;
        self.id_changes += other.id_changes;
        self.jumps += other.jumps;
    }

    pub fn assert_rich(&self) {
        assert!(self.commits > 4000 && self.aborts > 2000 && self.fatal > 1000);
        assert!(self.crashes > 1000 && self.time_outs > 500 && self.id_changes > 50);
        assert!(self.jumps > 500);
        assert!(self.refused_markers > 3 && self.refused_appends > 30);
    }
}

pub struct World {
    random: Random,
    /// What the coordinator's clock shows; it jumps.
    now: TimestampMs,
    latest: TimestampMs,
    /// What has really passed.
    elapsed_ms: i64,
    loaded_at_ms: i64,
    /// When the transactions that are open began.
    open_since_ms: BTreeMap<TransactionalId, i64>,
    version: TransactionVersion,
    driver: Driver,
    names: Vec<TopicPartition>,
    partitions: BTreeMap<TopicPartition, Partition>,
    clients: Vec<Client>,
    network: Vec<Message>,
    invariants: Vec<Box<dyn Invariant>>,
    counts: Counts,
    healed: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let version = match seed % 4 {
            0 => TransactionVersion::V0,
            1 => TransactionVersion::V1,
            _ => TransactionVersion::V2,
        };
        let names: Vec<_> = (0..1 + random.index(4))
            .map(|n| partition(&format!("t-{n}")))
            .collect();
        let config = TransactionConfig {
            transactional_id_expiration_ms: EXPIRATION_MS,
            ..config(version)
        };
        let mut world = World {
            random,
            now: START,
            latest: START,
            elapsed_ms: 0,
            loaded_at_ms: 0,
            open_since_ms: BTreeMap::new(),
            version,
            driver: Driver::new(config, seed % 8 < 4),
            partitions: names
                .iter()
                .map(|name| (name.clone(), Partition::default()))
                .collect(),
            names,
            clients: Vec::new(),
            network: Vec::new(),
            invariants: invariants::all(),
            counts: Counts::default(),
            healed: false,
        };
        for _ in 0..1 + world.random.index(4) {
            world.start_client();
        }
        world.near_the_last_epoch();
        world
    }

    /// In some worlds the ids begin with few epochs left.
    fn near_the_last_epoch(&mut self) {
        if !self.random.one_in(3) {
            return;
        }
        for id in ["a", "b", "c"] {
            self.driver.fill_ids();
            let init = Command::InitProducerId(InitProducerId {
                transactional_id: id.into(),
                transaction_timeout_ms: TIMEOUT_MS,
                expected: None,
            });
            let epoch = ProducerEpoch(i16::MAX - 2 - self.random.index(6) as i16);
            let record = self.driver.start_at(self.now, &init, epoch);
            self.emit(Event::Record {
                record,
                client: None,
                resumes: false,
            });
        }
    }

    fn start_client(&mut self) {
        let id = ["a", "b", "c"][self.random.index(3)];
        // Old clients exist in every cluster.
        let old = self.version != TransactionVersion::V2 || self.random.one_in(3);
        let version = if old {
            TransactionVersion::V0
        } else {
            TransactionVersion::V2
        };
        self.clients.push(Client::new(id.into(), version));
    }

    pub fn run(mut self) -> Counts {
        for _ in 0..STEPS {
            self.step();
        }
        self.heal();
        self.counts
    }

    fn step(&mut self) {
        match self.random.index(1000) {
            0..=1 => self.crash(),
            2..=31 => self.load(),
            32..=61 => self.pass_time(),
            62 if self.clients.len() < 20 => self.start_client(),
            63..=83 => self.duplicate(),
            84..=89 => self.lose(),
            90..=389 => self.commit(),
            390..=589 => self.client_acts(),
            _ => self.deliver(),
        }
    }

    fn emit(&mut self, event: Event) {
        self.invariants
            .iter_mut()
            .for_each(|invariant| invariant.on(&event));
    }

    fn pass_time(&mut self) {
        let passed_ms = self.random.index(60) as i64;
        self.elapsed_ms += passed_ms;
        self.now.0 += passed_ms;
        if !self.healed && self.random.one_in(40) {
            self.jump();
        }
        self.latest = self.latest.max(self.now);
        self.driver.fill_ids();
        self.driver.expire(self.now);
        self.check_time_outs();
    }

    /// The coordinator's wall clock is put right, or wrong.
    fn jump(&mut self) {
        self.counts.jumps += 1;
        let by_ms = self.random.index(JUMP_MAX_MS) as i64;
        if self.random.one_in(3) {
            self.now.0 += by_ms;
            return;
        }
        let expected = self.now;
        self.now.0 -= by_ms;
        if let Some(machine) = &mut self.driver.machine {
            machine.clock_is(expected, self.now);
        }
    }

    /// Nothing is open for longer than its time-out, by real time, where its coordinator was there.
    fn check_time_outs(&self) {
        let Some(machine) = &self.driver.machine else {
            return;
        };
        for (id, metadata) in &machine.transactions {
            if metadata.state != TransactionState::Ongoing || machine.pending.contains_key(id) {
                continue;
            }
            let began_ms = self.open_since_ms.get(id).copied();
            let since_ms = began_ms.unwrap_or(self.elapsed_ms).max(self.loaded_at_ms);
            let open_ms = self.elapsed_ms - since_ms;
            assert!(
                open_ms <= i64::from(TIMEOUT_MS),
                "{id} is open for {open_ms} ms"
            );
        }
    }

    fn crash(&mut self) {
        if self.driver.machine.is_none() {
            return;
        }
        self.counts.crashes += 1;
        let survivors = self.random.index(self.driver.under_way.len() + 1);
        for UnderWay { decision, origin } in self.driver.crash(survivors) {
            self.recorded(&decision, &origin);
        }
        let random = &mut self.random;
        self.network.retain(|message| match message {
            Message::Marker { .. } | Message::MarkerWritten(_) => !random.one_in(2),
            _ => true,
        });
    }

    fn load(&mut self) {
        if self.driver.machine.is_some() {
            return;
        }
        let compact = self.random.one_in(2);
        self.loaded_at_ms = self.elapsed_ms;
        for markers in self.driver.load(self.now, compact) {
            self.send_markers(markers);
        }
    }

    fn commit(&mut self) {
        if let Some(under_way) = self.driver.commit(self.now) {
            self.committed(under_way);
        }
    }

    fn committed(&mut self, under_way: UnderWay) {
        let UnderWay { decision, origin } = under_way;
        self.recorded(&decision, &origin);
        self.reply(decision.reply, origin);
        if let Some(markers) = decision.markers {
            self.send_markers(markers);
        }
    }

    fn recorded(&mut self, decision: &Decision, origin: &Origin) {
        for record in &decision.records {
            let by_itself = decision.reply == Reply::Nobody && decision.markers.is_some();
            self.counts.time_outs += u64::from(by_itself);
            if let Some(metadata) = &record.metadata {
                let changed = metadata.next_producer_id != ProducerId::NONE;
                self.counts.id_changes += u64::from(changed);
            }
            let is_open = record.metadata.as_ref();
            let is_open = is_open.is_some_and(|m| m.state == TransactionState::Ongoing);
            let id = record.transactional_id.clone();
            match is_open {
                true => _ = self.open_since_ms.entry(id).or_insert(self.elapsed_ms),
                false => _ = self.open_since_ms.remove(&id),
            }
            let client = origin.client();
            let resumes = matches!(origin, Origin::Client { resumes: true, .. });
            self.emit(Event::Record {
                resumes,
                record: record.clone(),
                client,
            });
        }
    }

    fn send_markers(&mut self, markers: TxnMarkers) {
        if markers.partitions.is_empty() {
            let written = MarkersWritten {
                transactional_id: markers.transactional_id,
                prepared_at: markers.prepared_at,
                partitions: BTreeSet::new(),
            };
            return self.network.push(Message::MarkerWritten(written));
        }
        for partition in markers.partitions.clone() {
            self.network.push(Message::Marker {
                partition,
                markers: markers.clone(),
            });
        }
    }

    fn reply(&mut self, reply: Reply, origin: Origin) {
        let answer: Answer = match reply {
            Reply::InitProducerId(result) | Reply::EndTxn(result) => result.map(Some),
            Reply::AddPartitions(result) => result.map(|()| None),
            Reply::Nobody => return,
        };
        match origin {
            Origin::Client {
                index, sequence, ..
            } => {
                self.network.push(Message::ToClient {
                    index,
                    sequence,
                    answer,
                });
            }
            Origin::Leader(produce) => match answer {
                Ok(_) => self.network.push(Message::Append(*produce)),
                Err(error) => self.answer_produce(&produce, Err(error)),
            },
            Origin::Coordinator => {}
        }
    }

    fn answer_produce(&mut self, produce: &Produce, answer: Result<(), ErrorCode>) {
        let (index, sequence) = (produce.index, produce.sequence);
        let answer = answer.map(|()| None);
        self.network.push(Message::ToClient {
            index,
            sequence,
            answer,
        });
    }

    fn client_acts(&mut self) {
        let alive = |index: &usize| self.clients[*index].step != Step::Stopped;
        let alive: Vec<_> = (0..self.clients.len()).filter(alive).collect();
        if alive.is_empty() {
            return;
        }
        let index = alive[self.random.index(alive.len())];
        let before = self.clients[index].sequence;
        self.clients[index].choose(&mut self.random, &self.names);
        let client = &self.clients[index];
        // On one connection nothing is asked again while the first try is under way.
        let retry = before == client.sequence;
        if retry && !client.version.bumps_epoch() && self.is_waiting(index) {
            return;
        }
        if retry && !self.random.one_in(8) {
            return;
        }
        let sequence = client.sequence;
        let message = match client.request(index) {
            None => return,
            Some(Request::Coordinator(command)) => {
                let resumes = matches!(&command,
                    Command::InitProducerId(init) if init.expected.is_some());
                let origin = Origin::Client {
                    index,
                    sequence,
                    resumes,
                };
                Message::ToCoordinator { command, origin }
            }
            Some(Request::Produce {
                partition,
                producer,
                txn,
                number,
            }) => Message::ToPartition(Produce {
                index,
                sequence,
                partition,
                producer,
                txn,
                number,
                marker_count: 0,
            }),
        };
        self.network.push(message);
    }

    fn is_waiting(&self, index: usize) -> bool {
        self.network
            .iter()
            .any(|message| message.client() == Some(index))
            || self
                .driver
                .under_way
                .iter()
                .any(|u| u.origin.client() == Some(index))
    }

    fn duplicate(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let message = self.network[self.random.index(self.network.len())].clone();
        let safe = match &message {
            Message::Marker { markers, .. } => markers.transaction_version.bumps_epoch(),
            Message::MarkerWritten(_) => true,
            other => other
                .client()
                .is_some_and(|index| self.clients[index].version.bumps_epoch()),
        };
        if safe {
            self.network.push(message);
        }
    }

    fn lose(&mut self) {
        if self.network.is_empty() || self.healed {
            return;
        }
        let at = self.random.index(self.network.len());
        // Markers are sent until they are written.
        let marker = self.network[at].client().is_none();
        if !marker {
            self.network.swap_remove(at);
        }
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.random.index(self.network.len());
        match self.network.swap_remove(at) {
            Message::ToCoordinator { command, origin } => self.at_coordinator(command, origin),
            Message::ToPartition(produce) => self.at_partition(produce),
            Message::Append(produce) => self.append(&produce),
            Message::ToClient {
                index,
                sequence,
                answer,
            } => {
                if self.clients[index].sequence == sequence {
                    self.at_client(index, answer);
                }
            }
            Message::Marker { partition, markers } => self.write_marker(partition, markers),
            Message::MarkerWritten(written) => {
                // Some answers come again, perhaps in the middle of the next transaction.
                if !self.healed && self.random.one_in(4) {
                    self.network.push(Message::MarkerWritten(written.clone()));
                }
                self.marker_written(written);
            }
        }
    }

    fn at_coordinator(&mut self, command: Command, origin: Origin) {
        if self.driver.machine.is_none() {
            let answer = Err(ErrorCode::NotCoordinator);
            match origin {
                Origin::Client {
                    index, sequence, ..
                } => {
                    self.network.push(Message::ToClient {
                        index,
                        sequence,
                        answer,
                    });
                }
                Origin::Leader(produce) => {
                    self.answer_produce(&produce, Err(ErrorCode::NotCoordinator));
                }
                Origin::Coordinator => {}
            }
        } else if let Some(answered) = self.driver.decide(self.now, &command, origin) {
            self.reply(answered.decision.reply, answered.origin);
        }
    }

    fn at_partition(&mut self, mut produce: Produce) {
        let partition = &self.partitions[&produce.partition];
        produce.marker_count = partition.marker_count(produce.producer);
        let client = &self.clients[produce.index];
        if partition.has_open(produce.producer) {
            return self.append(&produce);
        }
        let partitions = [produce.partition.clone()].into();
        let transactional_id = client.transactional_id.clone();
        if client.version.bumps_epoch() {
            let command = Command::AddPartitions(AddPartitions {
                transactional_id,
                producer: produce.producer,
                partitions,
                client_transaction_version: TransactionVersion::V2,
            });
            let origin = Origin::Leader(Box::new(produce));
            return self
                .network
                .push(Message::ToCoordinator { command, origin });
        }
        let Some(machine) = &self.driver.machine else {
            return self.answer_produce(&produce, Err(ErrorCode::NotCoordinator));
        };
        let verify = VerifyPartitions {
            transactional_id,
            producer: produce.producer,
            partitions,
        };
        match machine.verify(&verify)[&produce.partition] {
            ErrorCode::None => self.network.push(Message::Append(produce)),
            error => self.answer_produce(&produce, Err(error)),
        }
    }

    fn append(&mut self, produce: &Produce) {
        let Produce {
            producer,
            txn,
            number,
            marker_count,
            ..
        } = *produce;
        let partition = self.partitions.get_mut(&produce.partition).unwrap();
        let answer = match partition.append(producer, txn, number, marker_count) {
            Append::Appended => {
                let partition = produce.partition.clone();
                self.emit(Event::Appended {
                    partition,
                    txn,
                    producer,
                });
                Ok(())
            }
            Append::Repeated => Ok(()),
            Append::Refused => {
                self.counts.refused_appends += 1;
                Err(ErrorCode::TransactionAbortable)
            }
        };
        self.answer_produce(produce, answer);
    }

    fn at_client(&mut self, index: usize, answer: Answer) {
        let txn = (index, self.clients[index].txn_number);
        match self.clients[index].answer(answer) {
            Told::Nothing => {}
            Told::Outcome(result) => {
                match result {
                    TransactionResult::Commit => self.counts.commits += 1,
                    TransactionResult::Abort => self.counts.aborts += 1,
                }
                self.emit(Event::Told { txn, result });
            }
            Told::Fatal => {
                self.counts.fatal += 1;
                let stays = self
                    .clients
                    .iter()
                    .filter(|c| c.step != Step::Stopped)
                    .count();
                if stays < 3 && !self.healed {
                    self.start_client();
                }
            }
        }
    }

    fn write_marker(&mut self, name: TopicPartition, markers: TxnMarkers) {
        let partition = self.partitions.get_mut(&name).unwrap();
        let Some(decided) = partition.write_marker(&markers) else {
            self.counts.refused_markers += 1;
            return;
        };
        let result = markers.result;
        let written = MarkersWritten {
            transactional_id: markers.transactional_id.clone(),
            prepared_at: markers.prepared_at,
            partitions: [name.clone()].into(),
        };
        self.emit(Event::Marker {
            partition: name,
            markers,
        });
        decided
            .into_iter()
            .for_each(|txn| self.emit(Event::Decided { txn, result }));
        self.network.push(Message::MarkerWritten(written));
    }

    fn marker_written(&mut self, written: MarkersWritten) {
        let Some(machine) = &mut self.driver.machine else {
            return;
        };
        if machine.on_markers_written(&written) {
            let complete = Command::CompleteTxn(CompleteTxn {
                transactional_id: written.transactional_id,
                prepared_at: written.prepared_at,
            });
            self.driver.decide(self.now, &complete, Origin::Coordinator);
        }
    }

    /// No more faults and no more work: what is open has to end by itself.
    fn heal(&mut self) {
        self.healed = true;
        self.clients
            .iter_mut()
            .for_each(|client| client.step = Step::Stopped);
        self.load();
        for _ in 0..100 {
            self.pass_time();
            while !self.network.is_empty() || !self.driver.under_way.is_empty() {
                self.deliver();
                self.commit();
            }
        }
        let machine = self.driver.machine.as_ref().unwrap();
        for (id, metadata) in &machine.transactions {
            assert!(
                metadata.state.may_expire(),
                "{id} is still {:?}",
                metadata.state
            );
        }
        for (name, partition) in &self.partitions {
            assert_eq!(
                partition.open_count(),
                0,
                "{name} has an open transaction for ever"
            );
        }
        self.driver.assert_replay_equals_live();
        self.invariants
            .iter()
            .for_each(|invariant| invariant.at_end());
        // Their last change may be in the future of this clock, and, as each takes a millisecond of
        // its own, a little ahead of what any clock has shown.
        self.now.0 = self.latest.0 + i64::from(EXPIRATION_MS) + STEPS as i64;
        self.driver.expire(self.now);
        while self.driver.commit(self.now).is_some() {}
        let machine = self.driver.machine.as_ref().unwrap();
        assert!(machine.transactions.is_empty() && machine.deadline().is_none());
    }
}
