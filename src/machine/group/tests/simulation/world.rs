//! The simulated coordinator with its log, its clients, and everything that can happen to them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::client::Client;
use crate::machine::group::command::*;
use crate::machine::group::records::Record;
use crate::machine::group::*;
use crate::types::seeded::Random;
use crate::types::{ProducerId, TimestampMs, TopicId};

pub(super) const GROUPS: [&str; 2] = ["g0", "g1"];

pub(super) fn topic_id(n: u128) -> TopicId {
    TopicId(Uuid::from_u128(n + 1))
}

/// A request that has not been answered.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) client: usize,
    pub(super) sent: Tick,
    /// How many groups of this id had ended when it was answered.
    pub(super) life: usize,
    pub(super) command: Command,
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) now: Now,
    pub(super) config: GroupConfig,
    pub(super) groups: Groups,
    pub(super) topics: TopicMap,
    /// What was appended, as bytes; the first `committed` are.
    pub(super) log: Vec<records::Encoded>,
    pub(super) committed: usize,
    /// The ends of batches: a batch is committed, or lost, as a whole.
    ends: Vec<usize>,
    /// Replies by the length of the log that they wait for.
    held: Vec<(usize, Token, Reply)>,
    pub(super) asked: BTreeMap<Token, Asked>,
    pub(super) clients: Vec<Client>,
    next_token: u64,
    /// Replies that came to clients since the invariants were last asked.
    pub(super) delivered: Vec<(Asked, Reply)>,
    /// Where in the log groups ended: what has the same id after that is another group.
    ended: Vec<(usize, GroupId)>,
    /// Requests whose outcome nobody will hear of since then.
    pub(super) lost: Vec<Asked>,
    /// The coordinator was loaded again since then.
    pub(super) reloaded: bool,
    pub(super) memory: super::invariants::Memory,
    calm: bool,
    kinds: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let config = GroupConfig {
            group_initial_rebalance_delay_ms: random.below(2) as i32 * 3_000,
            consumer_assignment_interval_ms: random.below(2) as i32 * 1_000,
            // No offset expires while the oracle watches.
            offsets_retention_ms: i64::MAX,
            ..GroupConfig::default()
        };
        let topic = Topic {
            id: topic_id(0),
            name: "t".into(),
            partitions: 1 + random.below(6) as i32,
        };
        let mut world = World {
            kinds: random.below(3),
            random,
            now: Now {
                wall: TimestampMs(1_000_000_000),
                tick: Tick(0),
            },
            groups: Groups::new(config.clone()),
            config,
            topics: TopicMap {
                topics: [("t".into(), topic)].into(),
                version: 0,
            },
            log: Vec::new(),
            committed: 0,
            ends: Vec::new(),
            held: Vec::new(),
            asked: BTreeMap::new(),
            clients: Vec::new(),
            next_token: 0,
            delivered: Vec::new(),
            ended: Vec::new(),
            lost: Vec::new(),
            reloaded: false,
            memory: super::invariants::Memory::default(),
            calm: false,
        };
        for _ in 0..3 + world.random.below(6) {
            world.add_client();
        }
        world
    }

    fn add_client(&mut self) {
        let n = self.clients.len() as u64;
        let group = GROUPS[self.random.below(2) as usize].into();
        // All classic, all of the new protocol, or mixed.
        let is_classic = match self.kinds {
            0 => true,
            1 => false,
            _ => self.random.percent(50),
        };
        let instance = self.random.percent(30).then(|| format!("i{}", n % 3));
        self.clients
            .push(Client::new(group, is_classic, instance, n));
    }

    pub(super) fn random_event(&mut self) {
        match self.random.below(100) {
            0..35 => {
                let ms = self.random.below(1_500);
                self.advance(ms);
            }
            35..60 => self.commit(),
            60..95 => self.let_act(),
            95 => self.reload(self.log.len()),
            96 => {
                let committed = self.committed;
                self.reload(committed);
            }
            97 => self.change_topics(),
            98 => {
                let client = self.random.below(self.clients.len() as u64) as usize;
                self.clients[client].alive = false;
            }
            _ => self.add_client(),
        }
    }

    /// No more losses, crashes, deaths; who is fenced stays away.
    pub(super) fn heal(&mut self) {
        self.calm = true;
    }

    /// Everybody gets a turn.
    pub(super) fn calm_event(&mut self) {
        let ms = self.random.below(400);
        self.advance(ms);
        self.commit();
        for client in 0..self.clients.len() {
            self.let_one_act(client);
        }
        self.commit();
    }

    fn advance(&mut self, ms: u64) {
        let end = Tick(self.now.tick.0 + ms);
        while let Some(at) = self.groups.deadline().filter(|at| *at <= end) {
            self.set_time(at.max(self.now.tick));
            let output = self.groups.expire(self.now, &self.topics);
            self.take(output);
        }
        self.set_time(end);
    }

    fn set_time(&mut self, tick: Tick) {
        self.now.wall.0 += (tick.0 - self.now.tick.0) as i64;
        self.now.tick = tick;
    }

    fn take(&mut self, output: Output) {
        for record in &output.records {
            if is_end(record) {
                self.ended.push((self.log.len(), record.group().clone()));
            }
            self.log.push(record.encode());
        }
        self.ends.push(self.log.len());
        for (token, reply) in output.replies {
            self.held.push((self.log.len(), token, reply));
        }
    }

    fn commit(&mut self) {
        let committed = self.committed;
        self.ends.retain(|end| *end > committed);
        let batches = self.ends.len() as u64;
        let more = match self.calm {
            true => batches,
            false => self.random.below(batches + 1),
        };
        if more > 0 {
            self.committed = self.ends[more as usize - 1];
        }
        let ready = |(end, _, _): &(usize, Token, Reply)| *end <= self.committed;
        let (now, later) = std::mem::take(&mut self.held).into_iter().partition(ready);
        self.held = later;
        let replies: Vec<(usize, Token, Reply)> = now;
        for (end, token, reply) in replies {
            let asked = self.asked.remove(&token);
            let mut asked = asked.expect("a request is answered once");
            if !self.calm && self.random.percent(4) {
                self.lost.push(asked);
                continue;
            }
            asked.life = self.lives(&self.clients[asked.client].group, end);
            let client = &mut self.clients[asked.client];
            if client.waiting.is_some_and(|(waiting, _)| waiting == token) {
                client.waiting = None;
                client.on_reply(&reply);
            }
            self.delivered.push((asked, reply));
        }
    }

    fn lives(&self, group: &str, end: usize) -> usize {
        let ended = self.ended.iter();
        ended.filter(|(at, id)| *at < end && **id == *group).count()
    }

    fn let_act(&mut self) {
        let index = self.random.below(self.clients.len() as u64) as usize;
        self.let_one_act(index);
    }

    fn let_one_act(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if !client.alive || client.fenced {
            return;
        }
        let now = self.now.tick;
        let Some(command) = client.act(now, &mut self.random, self.calm) else {
            return;
        };
        self.next_token += 1;
        let token = Token(self.next_token);
        client.waiting = Some((token, now));
        if !self.calm && self.random.percent(4) {
            return;
        }
        let asked = Asked {
            client: index,
            sent: now,
            life: 0,
            command: command.clone(),
        };
        self.asked.insert(token, asked);
        let output = self.groups.handle(self.now, token, command, &self.topics);
        self.take(output);
    }

    /// The coordinator is dropped; what is left is the first `len` records.
    fn reload(&mut self, len: usize) {
        self.reloaded = true;
        self.log.truncate(len);
        self.ends.retain(|end| *end <= len);
        self.ended.retain(|(at, _)| *at < len);
        self.held.clear();
        self.lost
            .extend(std::mem::take(&mut self.asked).into_values());
        self.groups = self.replayed();
        let output = self.groups.on_loaded(self.now, &self.topics);
        self.take(output);
        for client in &mut self.clients {
            // The connection breaks: the client sends again soon.
            if let Some((_, since)) = &mut client.waiting {
                *since = Tick(0);
            }
        }
    }

    /// A machine of what is in the log.
    pub(super) fn replayed(&self) -> Groups {
        let mut groups = Groups::new(self.config.clone());
        for record in self.records() {
            groups.apply(&record, ProducerId::NONE);
        }
        groups
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.log.iter().map(|encoded| {
            let decoded = Record::decode(&encoded.key, encoded.value.as_deref());
            decoded.unwrap().unwrap()
        })
    }

    fn change_topics(&mut self) {
        let more = self.random.below(2) as i32;
        if let Some(topic) = self.topics.topics.get_mut("t") {
            topic.partitions += more;
        }
        self.topics.version += 1;
        self.next_token += 1;
        let command = Command::TopicsChanged(vec!["t".into()]);
        self.groups
            .handle(self.now, Token(self.next_token), command, &self.topics);
    }

    /// Asks a machine without changing anything.
    pub(super) fn ask(groups: &mut Groups, now: Now, topics: &TopicMap, what: Command) -> Reply {
        let mut output = groups.handle(now, Token(0), what, topics);
        assert!(output.records.is_empty());
        output.replies.remove(0).1
    }
}

fn is_end(record: &Record) -> bool {
    matches!(
        record,
        Record::GroupMetadata { value: None, .. }
            | Record::ConsumerGroupMetadata { value: None, .. }
    )
}
