//! The group coordinator of one partition of `__consumer_offsets`, as a state machine.
//!
//! ```text
//!             command, time, topics           records -> the log
//!   driver --------------------------> Groups ------------------> apply (again, at load)
//!          <--------------------------        replies -> clients, once the records are committed
//!                    Output
//! ```
//!
//! 1. Hard state (what is in records) changes by `apply` only, live and at load. The one exception
//!    is the membership of classic groups, which changes while a rebalance runs and is written as a
//!    whole when it ends (classic/mod.rs).
//! 2. Soft state (sessions, parked requests, ids that were handed out) changes at once and is lost
//!    with the machine.
//! 3. An `Output`'s records are already applied. If they cannot be written the machine is dropped
//!    and loaded again: there is no undo.
//! 4. Every command is answered exactly once, now or later.
//! 5. No clock, no randomness, no hash order: the same inputs give the same outputs.

mod admin;
pub mod classic;
pub mod command;
mod config;
pub mod consumer;
mod consumer_commands;
mod dispatch;
mod offset_commands;
mod offsets;
mod protocol;
pub mod records;
#[cfg(test)]
mod tests;
mod timers;
mod topics;

pub use admin::GroupStates;
pub use config::{GroupConfig, GroupOverrides, MigrationPolicy};
pub use topics::{Topic, TopicMap, Topics};

use std::collections::BTreeMap;
use std::sync::Arc;

use classic::ClassicGroup;
use command::{EndTransaction, Now, Reply, Tick, Token};
use consumer::ConsumerGroup;
use dispatch::Step;
use offsets::Offsets;
use records::Record;
use timers::{TimerKey, TimerKind, Timers};

use crate::types::{ProducerEpoch, ProducerId};

pub type GroupId = Arc<str>;
pub type MemberId = Arc<str>;

/// What a step of the machine wants done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// To be appended as one batch.
    pub records: Vec<Record>,
    /// Set if the batch is part of a transaction.
    pub producer: Option<(ProducerId, ProducerEpoch)>,
    /// The records may be split into several batches: they do not depend on one another.
    pub is_divisible: bool,
    /// The marker to be appended, after the records.
    pub end_transaction: Option<EndTransaction>,
    /// To be sent once everything that was appended so far is committed.
    pub replies: Vec<(Token, Reply)>,
}

/// What a group sees of the world while it handles one event.
pub struct Context<'a> {
    pub now: Now,
    pub config: &'a GroupConfig,
    pub topics: &'a dyn Topics,
    timers: &'a mut Timers,
    output: &'a mut Output,
}

impl Context<'_> {
    fn set_timer(&mut self, group: &GroupId, kind: TimerKind, ms: i64) {
        self.timers.set(group, kind, self.now.tick.plus_ms(ms));
    }

    fn cancel_timer(&mut self, group: &GroupId, kind: TimerKind) {
        self.timers.cancel(group, kind);
    }

    fn is_timer_set(&self, group: &GroupId, kind: TimerKind) -> bool {
        self.timers.is_set(group, &kind)
    }

    fn append(&mut self, record: Record) {
        self.output.records.push(record);
    }

    fn reply(&mut self, token: Token, reply: Reply) {
        self.output.replies.push((token, reply));
    }
}

#[derive(Debug)]
enum Group {
    Classic(Box<ClassicGroup>),
    Consumer(Box<ConsumerGroup>),
}

/// The groups of one coordinator partition.
#[derive(Debug)]
pub struct Groups {
    config: GroupConfig,
    groups: BTreeMap<GroupId, Group>,
    offsets: Offsets,
    timers: Timers,
}

impl Groups {
    pub fn new(config: GroupConfig) -> Self {
        Groups {
            config,
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            timers: Timers::default(),
        }
    }

    /// Dynamic configurations have changed.
    pub fn set_config(&mut self, config: GroupConfig) {
        self.config = config;
    }

    /// Takes a record into the state: one that was just decided, or one that is being loaded.
    /// `producer_id`: of the transaction it belongs to.
    pub fn apply(&mut self, record: &Record, producer_id: ProducerId) {
        match record {
            Record::OffsetCommit {
                group,
                topic,
                partition,
                value,
            } => {
                if value.is_some() && !self.groups.contains_key(group) {
                    self.insert_simple(group);
                }
                let value = value.as_ref();
                self.offsets
                    .apply(group, topic, *partition, value, producer_id);
            }
            Record::GroupMetadata { group, value: None } => {
                if let Some(Group::Classic(_)) = self.groups.get(group) {
                    self.groups.remove(group);
                    self.timers.cancel_group(group);
                }
            }
            Record::GroupMetadata {
                group,
                value: Some(value),
            } => self.insert_classic(ClassicGroup::from_value(group.clone(), value)),
            _ => self.apply_consumer(record),
        }
    }

    fn insert_classic(&mut self, group: ClassicGroup) {
        let id = group.group_id.clone();
        self.groups.insert(id, Group::Classic(Box::new(group)));
    }

    /// Takes the end of a transaction into the state.
    pub fn apply_end_transaction(&mut self, producer_id: ProducerId, commit: bool) {
        self.offsets.apply_end(producer_id, commit);
    }

    /// Applies records that were decided, and puts them into the output.
    fn emit(&mut self, records: Vec<Record>, producer_id: ProducerId, output: &mut Output) {
        for record in records {
            self.apply(&record, producer_id);
            output.records.push(record);
        }
    }

    /// Every record has been applied: time starts to count.
    pub fn on_loaded(&mut self, now: Now, topics: &dyn Topics) -> Output {
        let mut output = Output::default();
        let mut context = Context {
            now,
            config: &self.config,
            topics,
            timers: &mut self.timers,
            output: &mut output,
        };
        for group in self.groups.values_mut() {
            match group {
                Group::Classic(group) => group.on_loaded(&mut context),
                Group::Consumer(group) => group.on_loaded(&mut context),
            }
        }
        self.arm_offset_expiry(now);
        output
    }

    /// When `expire` wants to be called next.
    pub fn deadline(&self) -> Option<Tick> {
        self.timers.next()
    }

    /// Does everything that is due.
    pub fn expire(&mut self, now: Now, topics: &dyn Topics) -> Output {
        let mut step = Step {
            now,
            topics,
            output: Output::default(),
        };
        let mut expires_offsets = false;
        while let Some(key) = self.timers.pop_due(now.tick) {
            match key.kind {
                TimerKind::OffsetExpiry => expires_offsets = true,
                _ => self.on_timer(key, &mut step),
            }
        }
        if expires_offsets && step.output.records.is_empty() {
            self.expire_offsets(now, &mut step.output);
        } else if expires_offsets {
            // It may be much, in several batches: not together with what has to be one.
            self.timers
                .set(&"".into(), TimerKind::OffsetExpiry, now.tick);
        }
        step.output
    }

    fn on_timer(&mut self, key: TimerKey, step: &mut Step<'_>) {
        let due = self.with_group(&key.group, step, |group, context| match (group, key.kind) {
            (Group::Classic(group), kind) => {
                match kind {
                    TimerKind::Join => group.on_join_timer(context),
                    TimerKind::Sync => group.on_sync_timer(context),
                    TimerKind::Session(member) => group.on_session_timer(&member, context),
                    _ => {}
                }
                None
            }
            (Group::Consumer(group), TimerKind::Assignment) => {
                group.on_assignment_timer(context);
                None
            }
            (
                Group::Consumer(_),
                TimerKind::ConsumerSession(member)
                | TimerKind::ConsumerRebalance(member)
                | TimerKind::ConsumerJoin(member)
                | TimerKind::ConsumerSync(member),
            ) => Some(member),
            (Group::Consumer(_), _) => None,
        });
        if let Some(member) = due.flatten() {
            self.fence(&key.group, &member, step);
        }
    }

    /// Offsets are looked through from time to time, if there is anything to look through.
    fn arm_offset_expiry(&mut self, now: Now) {
        let armed = self.timers.is_set("", &TimerKind::OffsetExpiry);
        let is_empty = self.groups.is_empty() && self.offsets.is_empty();
        if !armed && !is_empty {
            let nobody: GroupId = "".into();
            let at = now
                .tick
                .plus_ms(self.config.offsets_retention_check_interval_ms);
            self.timers.set(&nobody, TimerKind::OffsetExpiry, at);
        }
    }
}
