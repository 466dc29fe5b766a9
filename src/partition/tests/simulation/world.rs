//! What happens, in which order, and what must hold.

use std::sync::Arc;
use std::time::Duration;

use super::broker::{DIRS, Entry, ManualClock, SimBroker, entries, node_config};
use super::controller::{Controller, PARTITIONS};
use crate::host::Clock;
use crate::log::Origin;
use crate::log::tests::faulty_disk::Crash;
use crate::machine::replica_set::Decided;
use crate::metadata::ImageDelta;
use crate::partition::{IsrAnswers, IsrChange, Partition};
use crate::peer::{ReplicaFetchAnswer, ReplicaFetchCall};
use crate::record::BatchBuilder;
use crate::types::seeded::Random;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset};

const BROKERS: usize = 3;
const STEPS: usize = 1_200;
const HEALING_ROUNDS: usize = 60;

/// How often something happened.
#[derive(Debug, Default)]
pub struct Counts {
    acknowledged: usize,
    elections: usize,
    kills: usize,
    power_cuts: usize,
    cuts: usize,
    joins: usize,
    moves: usize,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.acknowledged += other.acknowledged;
        self.elections += other.elections;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.cuts += other.cuts;
        self.joins += other.joins;
        self.moves += other.moves;
    }

    pub fn assert_rich(&self) {
        let all = [
            self.acknowledged,
            self.elections,
            self.kills,
            self.power_cuts,
            self.cuts,
            self.joins,
            self.moves,
        ];
        assert!(all.iter().all(|count| *count > 40), "{self:?}");
    }
}

enum Message {
    Fetch {
        from: usize,
        to: usize,
        number: u64,
        call: ReplicaFetchCall,
    },
    Fetched {
        from: usize,
        to: usize,
        number: u64,
        answer: ReplicaFetchAnswer,
    },
    Alter {
        from: usize,
        broker_epoch: i64,
        changes: Vec<IsrChange>,
    },
    Altered {
        to: usize,
        broker_epoch: i64,
        changes: Vec<IsrChange>,
        answers: IsrAnswers,
    },
}

/// A record whose producer waits for acks=all.
struct Waiting {
    partition: Arc<Partition>,
    index: i32,
    leader_epoch: LeaderEpoch,
    entry: Entry,
}

pub struct World {
    random: Random,
    clock: Arc<ManualClock>,
    controller: Controller,
    brokers: Vec<SimBroker>,
    network: Vec<Message>,
    waiting: Vec<Waiting>,
    /// What any leader has committed, by partition.
    committed: Vec<Vec<Entry>>,
    /// Members of an ISR that have all they ever had, by partition.
    intact: Vec<[bool; BROKERS]>,
    next_number: u64,
    faulty: bool,
    counts: Counts,
}

fn id(broker: usize) -> BrokerId {
    BrokerId(broker as i32)
}

impl World {
    pub fn new(seed: u64) -> World {
        let clock = Arc::new(ManualClock::default());
        let config = Arc::new(node_config());
        let broker = |at| SimBroker::new(id(at), clock.clone(), config.clone());
        let mut world = World {
            random: Random::new(seed),
            controller: Controller::new(BROKERS as i32),
            brokers: (0..BROKERS).map(broker).collect(),
            clock: clock.clone(),
            network: Vec::new(),
            waiting: Vec::new(),
            committed: vec![Vec::new(); PARTITIONS as usize],
            intact: vec![[true; BROKERS]; PARTITIONS as usize],
            next_number: 0,
            faulty: true,
            counts: Counts::default(),
        };
        for at in 0..BROKERS {
            world.start(at);
        }
        world
    }

    pub fn run(mut self) -> Counts {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.heal();
        self.counts
    }

    fn step(&mut self) {
        let at = self.random.index(BROKERS);
        if self.random.one_in(5) {
            self.move_on(at);
        }
        match self.random.index(100) {
            0..15 => self.produce(at),
            15..40 => self.fetch(at),
            40..82 => self.deliver(),
            82..90 => self.learn(at),
            90..94 => self.tick(at),
            94..96 => {
                let flushes = self.random.one_in(2);
                self.brokers[at].checkpoint(flushes);
            }
            96..97 => self.crash(at),
            97..98 => self.start(at),
            98..99 => {
                self.start(at);
                let index = self.random.index(PARTITIONS as usize) as i32;
                let to = self.random.index(DIRS.len());
                self.brokers[at].move_replica(index, to);
            }
            _ => {
                let index = self.random.index(PARTITIONS as usize) as i32;
                self.controller.move_leader(index, at as i32);
            }
        }
    }

    /// Works at a replica that is being moved to another directory.
    fn move_on(&mut self, at: usize) -> Option<Duration> {
        let broker = &self.brokers[at];
        let places = || (0..PARTITIONS).map(|index| broker.place(index));
        let before: Vec<_> = places().collect();
        let rest = broker.move_on();
        self.counts.moves += places().zip(before).filter(|(is, was)| is != was).count();
        rest
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn produce(&mut self, at: usize) {
        let index = self.random.index(PARTITIONS as usize) as i32;
        let Some(partition) = self.brokers[at].partition(index) else {
            return;
        };
        let value = self.number();
        let now = self.clock.now_ms();
        let mut builder = BatchBuilder::new();
        builder.append(now, None, Some(&value.to_le_bytes()));
        let batch = builder.build().expect("a batch");
        if partition.check_leader(-1).is_err() || !partition.has_enough_replicas() {
            return;
        }
        let appended = partition
            .append(batch, Origin::Client, now)
            .expect("appended");
        let entry = Entry {
            offset: appended.base_offset,
            epoch: appended.leader_epoch,
            value,
        };
        self.waiting.push(Waiting {
            partition,
            index,
            leader_epoch: appended.leader_epoch,
            entry,
        });
    }

    fn fetch(&mut self, at: usize) {
        let number = self.number();
        let now = self.clock.monotonic();
        let broker = &mut self.brokers[at];
        let epoch = broker.epoch.0;
        let count = broker.fetching.len();
        if count == 0 {
            return;
        }
        let place = self.random.index(count);
        let (leader, fetching) = broker.fetching.iter_mut().nth(place).expect("one of them");
        if fetching.in_flight.is_some() {
            // It waits no longer, now and then.
            if self.random.one_in(6) {
                fetching.in_flight = None;
                fetching.fetcher.on_lost(now);
            }
            return;
        }
        if let Some(call) = fetching.fetcher.request(now, epoch) {
            fetching.in_flight = Some(number);
            self.network.push(Message::Fetch {
                from: at,
                to: leader.0 as usize,
                number,
                call,
            });
        }
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let place = self.random.index(self.network.len());
        let message = self.network.swap_remove(place);
        let is_lost = self.faulty && self.random.one_in(15);
        match message {
            // Whoever sent it finds out, and asks again.
            Message::Alter {
                from: to,
                broker_epoch,
                changes,
            }
            | Message::Altered {
                to,
                broker_epoch,
                changes,
                ..
            } if is_lost => self.network.push(Message::Altered {
                to,
                broker_epoch,
                changes,
                answers: Err(ErrorCode::RequestTimedOut),
            }),
            _ if is_lost => {}
            Message::Fetch {
                from,
                to,
                number,
                call,
            } => {
                let max_bytes = 60 + self.random.index(400) as u32;
                if let Some(answer) = self.brokers[to].serve(&call, max_bytes) {
                    self.network.push(Message::Fetched {
                        from: to,
                        to: from,
                        number,
                        answer,
                    });
                }
            }
            Message::Fetched {
                from,
                to,
                number,
                answer,
            } => self.take(from, to, number, answer),
            Message::Alter {
                from,
                broker_epoch,
                changes,
            } => self.alter(from, broker_epoch, changes),
            Message::Altered {
                to,
                broker_epoch,
                changes,
                answers,
            } => {
                let broker = &self.brokers[to];
                if let Some(partitions) = &broker.partitions
                    && broker.epoch.0 == broker_epoch
                {
                    partitions.take_isr_answers(changes, answers);
                }
            }
        }
        self.send_isr_changes();
    }

    fn take(&mut self, from: usize, to: usize, number: u64, answer: ReplicaFetchAnswer) {
        let (now, wall) = (self.clock.monotonic(), self.clock.now_ms());
        let cuts = answer.partitions.iter();
        self.counts.cuts += cuts.filter(|p| p.diverging_epoch.is_some()).count();
        let Some(fetching) = self.brokers[to].fetching.get_mut(&id(from)) else {
            return;
        };
        if fetching.in_flight != Some(number) {
            return;
        }
        fetching.in_flight = None;
        let out_of_range = fetching.fetcher.on_answer(answer, now, wall);
        for asked in out_of_range {
            let of_leader = self.brokers[from].partition(asked.key.1);
            let bounds = of_leader.map(|p| (p.log().log_start_offset(), p.log().log_end_offset()));
            let fetching = self.brokers[to].fetching.get_mut(&id(from));
            let fetcher = &mut fetching.expect("as before").fetcher;
            fetcher.on_bounds(&asked, bounds, now, wall);
        }
    }

    fn alter(&mut self, from: usize, broker_epoch: i64, changes: Vec<IsrChange>) {
        // Else a leader that has lost records may be the last one in the ISR.
        if self.brokers[from].partitions.is_none() {
            return;
        }
        let mut answers: Vec<Result<Decided, ErrorCode>> = Vec::new();
        for change in &changes {
            let answer = self.controller.alter(id(from), broker_epoch, change);
            if let Ok((_, added)) = &answer {
                for member in added {
                    let at = member.0 as usize;
                    let is_alive = self.brokers[at].partitions.is_some();
                    self.intact[change.partition as usize][at] = is_alive;
                    self.counts.joins += 1;
                }
            }
            answers.push(answer.map(|(decided, _)| decided));
        }
        self.network.push(Message::Altered {
            to: from,
            broker_epoch,
            changes,
            answers: Ok(answers),
        });
    }

    fn send_isr_changes(&mut self) {
        for (from, broker) in self.brokers.iter().enumerate() {
            let Some(partitions) = &broker.partitions else {
                continue;
            };
            let changes = partitions.surroundings().isr_changes.take();
            if changes.is_empty() {
                continue;
            }
            let broker_epoch = broker.epoch.0;
            self.network.push(Message::Alter {
                from,
                broker_epoch,
                changes,
            });
        }
    }

    fn learn(&mut self, at: usize) {
        let broker = &mut self.brokers[at];
        let left = self.controller.history.len() - 1 - broker.applied;
        if broker.partitions.is_none() || left == 0 {
            return;
        }
        let some = 1 + self.random.index(left);
        let mut delta = ImageDelta::default();
        for (_, of_entry) in &self.controller.history[broker.applied + 1..][..some] {
            delta.merge(of_entry);
        }
        let epoch_of = |broker: &SimBroker, index| {
            let partition = broker.partition(index)?;
            partition
                .is_leader()
                .then(|| partition.leadership().leader_epoch)
        };
        let before: Vec<_> = (0..PARTITIONS)
            .map(|index| epoch_of(broker, index))
            .collect();
        broker.applied += some;
        let image = self.controller.history[broker.applied].0.clone();
        broker.apply(&image, &delta);
        for index in 0..PARTITIONS {
            let epoch = epoch_of(&self.brokers[at], index);
            if epoch.is_some() && epoch != before[index as usize] {
                self.counts.elections += 1;
                self.check_elected(at, index);
            }
        }
        self.send_isr_changes();
    }

    fn tick(&mut self, at: usize) {
        self.clock.add_ms(20);
        if let Some(partitions) = &self.brokers[at].partitions {
            partitions.check_lag();
        }
        self.send_isr_changes();
    }

    fn start(&mut self, at: usize) {
        if self.brokers[at].partitions.is_some() {
            return;
        }
        // What it knew when it went down, or less.
        let applied = self.random.index(self.brokers[at].applied + 1);
        let image = self.controller.history[applied].0.clone();
        let epoch = self.controller.register(id(at));
        self.brokers[at].start(&image, applied, epoch);
    }

    fn crash(&mut self, at: usize) {
        if self.brokers[at].partitions.is_none() {
            return;
        }
        let mut may_lose = true;
        for index in 0..PARTITIONS {
            let isr = self.controller.partition(index).isr.clone();
            let intact = &self.intact[index as usize];
            // Two do not fail at once where one of them loses records.
            if !isr.iter().all(|member| intact[member.0 as usize]) {
                return;
            }
            may_lose &= isr.iter().any(|member| {
                let other = member.0 as usize;
                other != at && intact[other] && self.brokers[other].partitions.is_some()
            });
        }
        if may_lose && self.random.one_in(2) {
            let kind = Crash::ALL[1 + self.random.index(Crash::ALL.len() - 1)];
            self.brokers[at].crash(kind);
            self.intact
                .iter_mut()
                .for_each(|of_partition| of_partition[at] = false);
            self.counts.power_cuts += 1;
        } else {
            self.brokers[at].crash(Crash::Kill);
            self.counts.kills += 1;
        }
        if self.random.one_in(2) {
            self.controller.fence(id(at), false);
        }
    }

    /// What must hold after every step.
    fn check(&mut self) {
        for at in 0..BROKERS {
            for index in 0..PARTITIONS {
                let partition = self.brokers[at].partition(index);
                if let Some(partition) = partition.filter(|partition| partition.is_leader()) {
                    self.check_watermark(&partition, index);
                }
            }
        }
        let waiting = std::mem::take(&mut self.waiting);
        for record in waiting {
            match record
                .partition
                .replicated(record.leader_epoch, record.entry.offset.next())
            {
                None => self.waiting.push(record),
                Some(Ok(())) => {
                    let committed = &self.committed[record.index as usize];
                    let at = record.entry.offset.0 as usize;
                    assert_eq!(
                        committed.get(at),
                        Some(&record.entry),
                        "acknowledged too early"
                    );
                    self.counts.acknowledged += 1;
                }
                Some(Err(_)) => {}
            }
        }
        let alive = |record: &Waiting| {
            let here = self.brokers.iter();
            let mut here = here.filter_map(|broker| broker.partition(record.index));
            here.any(|partition| Arc::ptr_eq(&partition, &record.partition))
        };
        let gone: Vec<bool> = self.waiting.iter().map(|record| !alive(record)).collect();
        let mut gone = gone.into_iter();
        self.waiting.retain(|_| !gone.next().expect("one each"));
    }

    /// What a leader commits has to go on where the last one stopped.
    fn check_watermark(&mut self, partition: &Partition, index: i32) {
        let committed = &mut self.committed[index as usize];
        let known = Offset(committed.len() as i64);
        let high_watermark = partition.high_watermark();
        assert!(high_watermark <= partition.log().log_end_offset());
        if high_watermark > known {
            // The last known one again, to see that they agree.
            let from = Offset((known.0 - 1).max(0));
            let more = entries(&partition.log(), from, high_watermark);
            if let Some(last) = committed.last() {
                assert_eq!(more.first(), Some(last), "committed twice, differently");
            }
            committed.extend(more.into_iter().filter(|entry| entry.offset >= known));
        }
    }

    /// Who leads by the newest metadata has all that was ever committed.
    fn check_elected(&self, at: usize, index: i32) {
        let partition = self.brokers[at].partition(index).expect("it leads");
        let newest = self.controller.partition(index);
        let epoch = partition.leadership().leader_epoch;
        if newest.leader != id(at) || newest.leader_epoch != epoch {
            return;
        }
        let committed = &self.committed[index as usize];
        let end = Offset(committed.len() as i64);
        assert!(
            partition.log().log_end_offset() >= end,
            "committed records are lost"
        );
        assert_eq!(
            entries(&partition.log(), Offset(0), end),
            *committed,
            "another past"
        );
    }

    fn heal(&mut self) {
        self.faulty = false;
        for at in 0..BROKERS {
            self.start(at);
        }
        for round in 0..HEALING_ROUNDS {
            self.clock.add_ms(50);
            for at in 0..BROKERS {
                if round % 8 == 1 && round + 15 < HEALING_ROUNDS {
                    self.produce(at);
                }
                while self.brokers[at].applied + 1 < self.controller.history.len() {
                    self.learn(at);
                }
                for fetching in self.brokers[at].fetching.values_mut() {
                    if round == 0 && fetching.in_flight.take().is_some() {
                        fetching.fetcher.on_lost(Duration::ZERO);
                    }
                }
                for _ in 0..4 {
                    self.fetch(at);
                }
                self.tick(at);
            }
            while !self.network.is_empty() {
                self.deliver();
            }
            self.check();
        }
        for at in 0..BROKERS {
            while self.move_on(at).is_some() {
                self.clock.add_ms(50);
            }
        }
        self.check_healed();
    }

    /// For whoever looks for what went wrong.
    fn state(&self, index: i32) -> String {
        let of_broker = |broker: &SimBroker| {
            let partition = broker.partition(index)?;
            let fetching = broker.fetching.iter();
            let fetching = fetching
                .map(|(leader, f)| (leader.0, f.in_flight, f.fetcher.retry_at(Duration::ZERO)));
            let fetching: Vec<_> = fetching.collect();
            Some(format!(
                "broker {} epoch {} applied {}: {:?}, ends at {}, {} committed, fetching {:?}\n",
                broker.id,
                broker.epoch.0,
                broker.applied,
                partition.leadership(),
                partition.log().log_end_offset(),
                partition.high_watermark(),
                fetching
            ))
        };
        let brokers: Vec<_> = self.brokers.iter().filter_map(of_broker).collect();
        let (partition, now) = (self.controller.partition(index), self.clock.monotonic());
        format!("at {now:?} {partition:?}\n{}", brokers.concat())
    }

    fn check_healed(&mut self) {
        for index in 0..PARTITIONS {
            let isr = self.controller.partition(index).isr.clone();
            assert_eq!(
                isr.len(),
                BROKERS,
                "all in sync again: {}",
                self.state(index)
            );
            let committed = &self.committed[index as usize];
            for broker in &self.brokers {
                let partition = broker.partition(index).expect("it is up");
                let dirs = broker.partitions.as_ref().expect("it is up").log_dirs();
                let name = &partition.topic_partition;
                let places = dirs.iter().filter(|dir| dir.log(name).is_some());
                assert_eq!(places.count(), 1, "one log of a name");
                assert!(dirs.iter().all(|dir| dir.future_logs().is_empty()));
                let end = partition.log().log_end_offset();
                assert_eq!(
                    entries(&partition.log(), Offset(0), end),
                    *committed,
                    "replicas differ"
                );
                assert_eq!(
                    partition.high_watermark(),
                    end,
                    "{}",
                    partition.topic_partition
                );
            }
        }
        assert!(self.waiting.is_empty(), "everybody has an answer");
    }
}
