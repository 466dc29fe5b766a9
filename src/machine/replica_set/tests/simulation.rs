//! Three replicas of one partition and a controller in a small world, from seeds.
//!
//! Fault model. Fetches, their answers, proposals and the metadata are late, lost and overtake one
//! another. A broker is killed and comes back with its log; or it loses a part of the end of its
//! log, but only while another member of the controller's ISR lives and has all of its own; then
//! nobody else crashes until the controller knows of the loss. It comes back as a new incarnation,
//! and the controller takes one that crashed out of the ISR unless it is the last.
//!
//! At the end all is healed, and the replicas have to become equal and in sync.
//!
//! `KLAMM_SEED=n cargo test replica_set::tests::simulation` runs one seed, `KLAMM_SEEDS=n` that
//! many.

use std::collections::BTreeMap;

use super::super::*;
use crate::types::seeded::Random;

const SEEDS: u64 = 300;
const STEPS: usize = 3_500;
const BROKERS: usize = 3;
const LAG_MAX: Duration = Duration::from_millis(300);
const MIN_ISR: usize = 2;

/// A record: the epoch of its leader, and a number of its own.
type Record = (i32, u64);

#[derive(Clone)]
struct Metadata {
    decided: Decided,
    leader: Option<usize>,
    registered: [Option<i64>; BROKERS],
}

struct Broker {
    log: Vec<Record>,
    /// Where epochs start, also those without records.
    epochs: Vec<(i32, usize)>,
    high_watermark: Offset,
    checkpoint: Offset,
    set: Option<ReplicaSet>,
    proposal: Option<IsrProposal>,
    known: Metadata,
    epoch: i64,
    alive: bool,
}

#[derive(Clone)]
struct Fetch {
    from: usize,
    to: usize,
    broker_epoch: i64,
    leader_epoch: LeaderEpoch,
    offset: usize,
    last_epoch: i32,
}

#[derive(Clone)]
enum Answer {
    Records {
        records: Vec<Record>,
        high_watermark: Offset,
    },
    Diverging(LeaderEpoch, Offset),
}

#[derive(Clone)]
enum Message {
    Fetch(Fetch),
    Fetched(Fetch, Answer),
    Propose(usize, i64, IsrProposal),
    Proposed(usize, IsrProposal, Result<Decided, ErrorCode>),
    Metadata(usize, Metadata),
}

impl EpochEnds for Broker {
    fn log_end_offset(&self) -> Offset {
        Offset(self.log.len() as i64)
    }

    fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        if self.epochs.last()?.0 < epoch.0 {
            return None;
        }
        let at = self.epochs.iter().rposition(|(known, _)| *known <= epoch.0);
        let next = at.map_or(0, |at| at + 1);
        let end = self
            .epochs
            .get(next)
            .map_or(self.log.len(), |(_, start)| *start);
        let found = at.map_or(epoch.0, |at| self.epochs[at].0);
        Some((LeaderEpoch(found), Offset(end as i64)))
    }
}

impl Broker {
    fn truncate(&mut self, end: usize) {
        self.log.truncate(end);
        self.epochs.retain(|(_, start)| *start < end);
        self.high_watermark = self.high_watermark.min(self.log_end_offset());
    }

    fn append(&mut self, record: Record) {
        if self
            .epochs
            .last()
            .is_none_or(|(epoch, _)| *epoch < record.0)
        {
            self.epochs.push((record.0, self.log.len()));
        }
        self.log.push(record);
    }
}

struct World {
    random: Random,
    now: Duration,
    controller: Metadata,
    brokers: Vec<Broker>,
    network: Vec<Message>,
    next_record: u64,
    next_broker_epoch: i64,
    /// What any leader has committed.
    committed: Vec<Record>,
    leader_of_epoch: BTreeMap<i32, usize>,
    /// How much was committed when the controller began an epoch.
    committed_before: BTreeMap<i32, usize>,
    /// Members of the ISR that have lost nothing since they joined.
    intact: [bool; BROKERS],
    faulty: bool,
    elections: usize,
    losses: usize,
    grown: usize,
}

fn id(broker: usize) -> BrokerId {
    BrokerId(broker as i32)
}

impl World {
    fn new(seed: u64) -> World {
        let all: Arc<[BrokerId]> = (0..BROKERS).map(id).collect();
        let controller = Metadata {
            decided: Decided {
                leader_epoch: LeaderEpoch(0),
                partition_epoch: 0,
                replicas: all.clone(),
                isr: all,
            },
            leader: Some(0),
            registered: [Some(0); BROKERS],
        };
        let nothing_known = Metadata {
            decided: Decided {
                leader_epoch: LeaderEpoch(-1),
                partition_epoch: -1,
                ..controller.decided.clone()
            },
            leader: None,
            registered: [None; BROKERS],
        };
        let broker = |_| Broker {
            log: Vec::new(),
            epochs: Vec::new(),
            high_watermark: Offset(0),
            checkpoint: Offset(0),
            set: None,
            proposal: None,
            known: nothing_known.clone(),
            epoch: 0,
            alive: true,
        };
        let mut world = World {
            random: Random::new(seed),
            now: Duration::from_secs(1),
            controller,
            brokers: (0..BROKERS).map(broker).collect(),
            network: Vec::new(),
            next_record: 0,
            next_broker_epoch: 1,
            committed: Vec::new(),
            leader_of_epoch: BTreeMap::new(),
            committed_before: BTreeMap::from([(0, 0)]),
            intact: [true; BROKERS],
            faulty: true,
            elections: 0,
            losses: 0,
            grown: 0,
        };
        world.publish();
        world
    }

    fn run(mut self) -> World {
        for _ in 0..STEPS {
            self.step();
        }
        self.heal();
        self
    }

    fn step(&mut self) {
        let broker = self.random.index(BROKERS);
        match self.random.index(100) {
            0..15 => self.produce(broker),
            15..40 => self.send_fetch(broker),
            40..85 => self.deliver(),
            85..90 => self.tick(broker),
            90..93 => self.checkpoint(broker),
            93..94 => self.crash(broker),
            94..97 => self.restart(broker),
            97..99 => self.send_metadata(broker),
            _ => self.move_leader(broker),
        }
    }

    fn is_eligible(known: &Metadata) -> impl Fn(BrokerId) -> Option<i64> + use<> {
        let registered = known.registered;
        move |broker| registered[broker.0 as usize]
    }

    // The leader's side.

    fn produce(&mut self, broker: usize) {
        let at = &mut self.brokers[broker];
        let Some(set) = at.set.as_ref().filter(|_| at.alive) else {
            return;
        };
        let epoch = set.leader_epoch().0;
        let owner = *self.leader_of_epoch.entry(epoch).or_insert(broker);
        assert_eq!(owner, broker, "two leaders of epoch {epoch}");
        at.append((epoch, self.next_record));
        self.next_record += 1;
        self.advance(broker);
    }

    fn advance(&mut self, broker: usize) {
        let at = &mut self.brokers[broker];
        let end = at.log_end_offset();
        let eligible = World::is_eligible(&at.known);
        let set = at.set.as_mut().expect("a leader");
        let before = set.high_watermark();
        let Some(high_watermark) = set.advance(end, MIN_ISR, LAG_MAX, self.now, &eligible) else {
            return;
        };
        assert!(high_watermark > before, "the high watermark went back");
        at.high_watermark = high_watermark;
        let below = &at.log[..high_watermark.0 as usize];
        let both = below.len().min(self.committed.len());
        assert_eq!(
            below[..both],
            self.committed[..both],
            "committed twice, differently"
        );
        if below.len() > both {
            self.committed = below.to_vec();
        }
    }

    fn serve(&mut self, fetch: Fetch) {
        let at = &mut self.brokers[fetch.to];
        let end = at.log_end_offset();
        if !at.alive
            || at
                .set
                .as_ref()
                .is_none_or(|s| s.leader_epoch() != fetch.leader_epoch)
        {
            return;
        }
        let offset = Offset(fetch.offset as i64);
        let last = LeaderEpoch(fetch.last_epoch);
        if last.0 >= 0 {
            match at.end_of_epoch(last) {
                None => return,
                Some((epoch, end)) if epoch < last || end < offset => {
                    self.network
                        .push(Message::Fetched(fetch, Answer::Diverging(epoch, end)));
                    return;
                }
                Some(_) => {}
            }
        }
        if offset > end {
            return;
        }
        let fetched = Fetched {
            broker: id(fetch.from),
            broker_epoch: fetch.broker_epoch,
            fetch_offset: offset,
            log_start_offset: Offset(0),
            leader_log_end_offset: end,
            now: self.now,
        };
        let registered = at.known.registered[fetch.from];
        let set = at.set.as_mut().expect("a leader");
        if set.on_fetch(&fetched, registered).is_err() {
            return;
        }
        let eligible = World::is_eligible(&at.known);
        let grown = set.propose_growth(id(fetch.from), &eligible);
        self.propose(fetch.to, grown);
        self.advance(fetch.to);
        let some = 1 + self.random.index(4);
        let at = &self.brokers[fetch.to];
        let answer = Answer::Records {
            records: at.log[fetch.offset..].iter().take(some).copied().collect(),
            high_watermark: at.high_watermark,
        };
        self.network.push(Message::Fetched(fetch, answer));
    }

    fn propose(&mut self, broker: usize, proposal: Option<IsrProposal>) {
        let at = &mut self.brokers[broker];
        if proposal.is_some() {
            at.proposal = proposal;
        }
        if let Some(proposal) = at.proposal.clone() {
            let message = Message::Propose(broker, at.epoch, proposal);
            self.network.push(message);
        }
    }

    fn tick(&mut self, broker: usize) {
        self.now += Duration::from_millis(20);
        let at = &mut self.brokers[broker];
        let end = at.log_end_offset();
        let Some(set) = at.set.as_mut().filter(|_| at.alive) else {
            return;
        };
        let shrunk = set.propose_shrink(end, LAG_MAX, self.now);
        self.propose(broker, shrunk);
        self.advance(broker);
    }

    // The follower's side.

    fn send_fetch(&mut self, broker: usize) {
        let at = &self.brokers[broker];
        let Some(leader) = at.known.leader.filter(|leader| *leader != broker) else {
            return;
        };
        if !at.alive {
            return;
        }
        let fetch = Fetch {
            from: broker,
            to: leader,
            broker_epoch: at.epoch,
            leader_epoch: at.known.decided.leader_epoch,
            offset: at.log.len(),
            last_epoch: at.epochs.last().map_or(-1, |(epoch, _)| *epoch),
        };
        self.network.push(Message::Fetch(fetch));
    }

    fn take(&mut self, fetch: &Fetch, answer: Answer) {
        let at = &mut self.brokers[fetch.from];
        let is_current = at.alive
            && at.set.is_none()
            && at.epoch == fetch.broker_epoch
            && at.known.decided.leader_epoch == fetch.leader_epoch
            && at.log.len() == fetch.offset;
        // As in the fetcher: it has one fetch under way, and this one's answer fits its log.
        if !is_current || at.epochs.last().map_or(-1, |(epoch, _)| *epoch) != fetch.last_epoch {
            return;
        }
        match answer {
            Answer::Diverging(epoch, end) => {
                let cut = truncation_offset(at, (epoch, end));
                at.truncate(cut.0 as usize);
            }
            Answer::Records {
                records,
                high_watermark,
            } => {
                for record in records {
                    at.append(record);
                }
                let end = at.log_end_offset();
                at.high_watermark = at.high_watermark.max(high_watermark.min(end));
            }
        }
    }

    fn learn(&mut self, broker: usize, metadata: Metadata) {
        let now = self.now;
        let at = &mut self.brokers[broker];
        if !at.alive || metadata.decided.partition_epoch < at.known.decided.partition_epoch {
            return;
        }
        // From before it started: it would go on in an epoch in which it has lost records.
        if metadata.registered[broker] != Some(at.epoch) {
            return;
        }
        let is_new = metadata.decided.leader_epoch > at.known.decided.leader_epoch;
        at.known = metadata;
        let decided = at.known.decided.clone();
        if at.known.leader != Some(broker) {
            at.set = None;
            at.proposal = None;
            return;
        }
        match &mut at.set {
            Some(set) if !is_new => {
                set.settle(decided, now);
            }
            _ => {
                let end = at.log_end_offset();
                let epoch = decided.leader_epoch.0;
                at.epochs.retain(|(_, start)| *start < at.log.len());
                at.epochs.push((epoch, at.log.len()));
                let set = ReplicaSet::lead(id(broker), decided, end, at.high_watermark, now);
                at.set = Some(set);
                at.proposal = None;
                self.elections += 1;
                // Who leads has all that was committed before. It may know of it late, when others
                // lead and have committed more.
                let at = &self.brokers[broker];
                let both = self.committed_before[&epoch];
                assert!(at.log.len() >= both, "committed records are lost");
                assert_eq!(
                    at.log[..both],
                    self.committed[..both],
                    "a leader with another past"
                );
            }
        }
        self.advance(broker);
    }

    // The controller.

    fn publish(&mut self) {
        for broker in 0..BROKERS {
            self.send_metadata(broker);
        }
    }

    fn send_metadata(&mut self, broker: usize) {
        self.network
            .push(Message::Metadata(broker, self.controller.clone()));
    }

    fn decide(
        &mut self,
        from: usize,
        epoch: i64,
        proposal: &IsrProposal,
    ) -> Result<Decided, ErrorCode> {
        let decided = &self.controller.decided;
        if self.controller.registered[from] != Some(epoch) {
            return Err(ErrorCode::StaleBrokerEpoch);
        }
        if proposal.leader_epoch != decided.leader_epoch || self.controller.leader != Some(from) {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if proposal.partition_epoch != decided.partition_epoch {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let fits = |(broker, epoch): &(BrokerId, i64)| {
            let registered = self.controller.registered[broker.0 as usize];
            registered.is_some_and(|known| *epoch == NO_BROKER_EPOCH || known == *epoch)
        };
        if !proposal.new_isr.iter().all(fits) {
            return Err(ErrorCode::IneligibleReplica);
        }
        let isr: Arc<[BrokerId]> = proposal.new_isr.iter().map(|(broker, _)| *broker).collect();
        for broker in isr.iter().filter(|broker| !decided.isr.contains(broker)) {
            // One that has crashed meanwhile, and has not registered anew, is taken too.
            self.intact[broker.0 as usize] = self.brokers[broker.0 as usize].alive;
            self.grown += 1;
        }
        self.change(self.controller.leader, isr, false);
        Ok(self.controller.decided.clone())
    }

    fn change(&mut self, leader: Option<usize>, isr: Arc<[BrokerId]>, new_epoch: bool) {
        let decided = &mut self.controller.decided;
        decided.isr = isr;
        decided.partition_epoch += 1;
        decided.leader_epoch.0 += i32::from(new_epoch);
        let epoch = decided.leader_epoch.0;
        self.committed_before
            .entry(epoch)
            .or_insert(self.committed.len());
        self.controller.leader = leader;
        self.publish();
    }

    /// Somebody active in the ISR, by preference of `wanted`.
    fn elect(&self, isr: &[BrokerId], wanted: usize) -> Option<usize> {
        let places = (0..BROKERS).map(|place| (wanted + place) % BROKERS);
        let mut active = places.filter(|broker| self.controller.registered[*broker].is_some());
        active.find(|broker| isr.contains(&id(*broker)))
    }

    fn move_leader(&mut self, wanted: usize) {
        let isr = self.controller.decided.isr.clone();
        let leader = self.elect(&isr, wanted);
        if leader != self.controller.leader {
            self.change(leader, isr, true);
        }
    }

    /// Fenced: out of the ISR where others are in it that are active.
    fn fence(&mut self, broker: usize, crashed: bool) {
        self.controller.registered[broker] = None;
        let isr = self.controller.decided.isr.clone();
        let rest: Arc<[BrokerId]> = isr.iter().copied().filter(|b| *b != id(broker)).collect();
        let next = self.elect(&rest, broker);
        // One that crashed must not lead before those that did not.
        let leaves = isr.contains(&id(broker)) && (next.is_some() || crashed && !rest.is_empty());
        let isr = if leaves { rest } else { isr };
        let led = self.controller.leader == Some(broker);
        let leader = if led { next } else { self.controller.leader };
        self.change(leader, isr, led);
    }

    // Faults.

    fn checkpoint(&mut self, broker: usize) {
        let at = &mut self.brokers[broker];
        if at.alive {
            at.checkpoint = at.high_watermark;
        }
    }

    fn crash(&mut self, broker: usize) {
        if !self.brokers[broker].alive {
            return;
        }
        let isr = self.controller.decided.isr.clone();
        let is_intact = |member: &BrokerId| self.intact[member.0 as usize];
        let others_intact = isr.iter().any(|member| {
            *member != id(broker) && is_intact(member) && self.brokers[member.0 as usize].alive
        });
        // Two do not fail at once where one of them loses records.
        if !isr.iter().all(is_intact) {
            return;
        }
        let loses = others_intact && self.random.index(2) == 0;
        let lost = self.random.index(6);
        let at = &mut self.brokers[broker];
        at.alive = false;
        at.set = None;
        at.proposal = None;
        if loses {
            at.truncate(at.log.len().saturating_sub(lost));
            self.intact[broker] = false;
            self.losses += lost;
        }
        let at = &mut self.brokers[broker];
        at.high_watermark = at.checkpoint.min(at.log_end_offset());
        // The controller finds out now, or when it registers again.
        if self.random.index(2) == 0 {
            self.fence(broker, false);
        }
    }

    fn restart(&mut self, broker: usize) {
        if self.brokers[broker].alive {
            return;
        }
        self.fence(broker, true);
        let epoch = self.next_broker_epoch;
        self.next_broker_epoch += 1;
        let at = &mut self.brokers[broker];
        at.alive = true;
        at.epoch = epoch;
        at.known.decided.leader_epoch = LeaderEpoch(-1);
        at.known.decided.partition_epoch = -1;
        at.known.leader = None;
        self.controller.registered[broker] = Some(epoch);
        let isr = self.controller.decided.isr.clone();
        let leaderless = self.controller.leader.is_none();
        let leader = self.controller.leader.or_else(|| self.elect(&isr, broker));
        self.change(leader, isr, leaderless && leader.is_some());
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.random.index(self.network.len());
        let message = self.network.swap_remove(at);
        if self.faulty {
            match self.random.index(20) {
                0 => return,
                1 => self.network.push(message.clone()),
                _ => {}
            }
            if self.network.len() > 60 {
                self.network.swap_remove(0);
            }
        }
        match message {
            Message::Fetch(fetch) => self.serve(fetch),
            Message::Fetched(fetch, answer) => self.take(&fetch, answer),
            // Else a leader that has lost records may be the last one in the ISR.
            Message::Propose(from, ..) if !self.brokers[from].alive => {}
            Message::Propose(from, epoch, proposal) => {
                let answer = self.decide(from, epoch, &proposal);
                self.network.push(Message::Proposed(from, proposal, answer));
            }
            Message::Proposed(to, proposal, answer) => self.answered(to, &proposal, answer),
            Message::Metadata(to, metadata) => self.learn(to, metadata),
        }
    }

    fn answered(&mut self, to: usize, proposal: &IsrProposal, answer: Result<Decided, ErrorCode>) {
        let now = self.now;
        let at = &mut self.brokers[to];
        if !at.alive {
            return;
        }
        let Some(set) = at.set.as_mut() else { return };
        let is_over = match answer {
            Ok(decided) if decided.leader_epoch == set.leader_epoch() => set.settle(decided, now),
            Ok(_) => false,
            Err(error) => set.refuse(proposal, error) != Refusal::Retry,
        };
        // An answer that comes twice, or late, says nothing of what was proposed since.
        if is_over && at.proposal.as_ref() == Some(proposal) {
            at.proposal = None;
        }
        self.advance(to);
    }

    /// Nothing fails any more; everything has to be in sync and equal in the end.
    fn heal(&mut self) {
        self.faulty = false;
        for broker in 0..BROKERS {
            self.restart(broker);
        }
        self.produce_at_leader();
        for _ in 0..400 {
            self.publish();
            for broker in 0..BROKERS {
                self.tick(broker);
                self.send_fetch(broker);
            }
            while !self.network.is_empty() {
                self.deliver();
            }
        }
        self.produce_at_leader();
        for _ in 0..20 {
            (0..BROKERS).for_each(|broker| self.send_fetch(broker));
            while !self.network.is_empty() {
                self.deliver();
            }
        }
        assert_eq!(
            self.controller.decided.isr.len(),
            BROKERS,
            "all in sync again"
        );
        for at in &self.brokers {
            assert_eq!(at.log, self.committed, "replicas differ");
        }
    }

    fn produce_at_leader(&mut self) {
        if let Some(leader) = self.controller.leader {
            self.produce(leader);
        }
    }
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().expect("a number"))
}

#[test]
fn committed_records_are_never_lost() {
    let seeds = match environment("KLAMM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..environment("KLAMM_SEEDS").unwrap_or(SEEDS),
    };
    let mut counts = [0; 4];
    for seed in seeds.clone() {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        let Ok(world) = run else {
            panic!("broken with KLAMM_SEED={seed}")
        };
        let of_run = [
            world.committed.len(),
            world.elections,
            world.losses,
            world.grown,
        ];
        counts
            .iter_mut()
            .zip(of_run)
            .for_each(|(sum, count)| *sum += count);
    }
    println!("{seeds:?}: committed, elections, records lost by crashes, joins: {counts:?}");
    // A world in which nothing happens proves nothing.
    if seeds.end - seeds.start >= SEEDS {
        assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
    }
}
