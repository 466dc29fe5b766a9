//! The deadlines of all groups of one coordinator, as one ordered set: the driver needs a single
//! timer for the earliest, and thousands of idle groups cost a set entry each.
//!
//! A deadline that is put off stays where it is in that set until it comes up: heartbeats put
//! sessions off all the time, and hardly any is ever due.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Tick;
use super::{GroupId, MemberId};

/// What is due. A key has at most one deadline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// The join phase of a classic group ends.
    Join,
    /// Members of a classic group have had their time to sync.
    Sync,
    /// A classic member, or a member id that was handed out, was not heard of.
    Session(MemberId),
    /// A consumer group member was not heard of.
    ConsumerSession(MemberId),
    /// A consumer group member has not given partitions back in time.
    ConsumerRebalance(MemberId),
    /// A classic member of a consumer group was told to rejoin.
    ConsumerJoin(MemberId),
    /// A classic member of a consumer group has joined and should sync.
    ConsumerSync(MemberId),
    /// A consumer group may compute its next target assignment.
    Assignment,
    /// The offsets of all groups are looked through for expired ones. Its group is "".
    OffsetExpiry,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    pub group: GroupId,
    pub kind: TimerKind,
}

impl TimerKey {
    fn new(group: &GroupId, kind: TimerKind) -> Self {
        let group = group.clone();
        TimerKey { group, kind }
    }
}

#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Tick,
    /// Where `by_tick` has it: at `at` or before.
    armed: Tick,
}

#[derive(Debug, Default)]
pub struct Timers {
    by_group: BTreeMap<GroupId, BTreeMap<TimerKind, Deadline>>,
    by_tick: BTreeSet<(Tick, TimerKey)>,
}

impl Timers {
    pub fn set(&mut self, group: &GroupId, kind: TimerKind, at: Tick) {
        if !self.by_group.contains_key(group) {
            self.by_group.insert(group.clone(), BTreeMap::new());
        }
        let Some(kinds) = self.by_group.get_mut(group) else {
            return;
        };
        match kinds.get_mut(&kind) {
            // Most are sessions, and most of these are put off by the next heartbeat.
            Some(deadline) if deadline.armed <= at => return deadline.at = at,
            Some(deadline) => {
                let armed = std::mem::replace(&mut deadline.armed, at);
                deadline.at = at;
                let key = TimerKey::new(group, kind.clone());
                self.by_tick.remove(&(armed, key));
            }
            None => {
                kinds.insert(kind.clone(), Deadline { at, armed: at });
            }
        }
        self.by_tick.insert((at, TimerKey::new(group, kind)));
    }

    pub fn cancel(&mut self, group: &GroupId, kind: TimerKind) {
        let Some(kinds) = self.by_group.get_mut(group) else {
            return;
        };
        let Some(deadline) = kinds.remove(&kind) else {
            return;
        };
        if kinds.is_empty() {
            self.by_group.remove(group);
        }
        self.by_tick
            .remove(&(deadline.armed, TimerKey::new(group, kind)));
    }

    /// Forgets every deadline of a group.
    pub fn cancel_group(&mut self, group: &GroupId) {
        for (kind, deadline) in self.by_group.remove(group).into_iter().flatten() {
            self.by_tick
                .remove(&(deadline.armed, TimerKey::new(group, kind)));
        }
    }

    pub fn is_set(&self, group: &str, kind: &TimerKind) -> bool {
        let kinds = self.by_group.get(group);
        kinds.is_some_and(|kinds| kinds.contains_key(kind))
    }

    /// Not later than the earliest deadline; earlier, if that was put off.
    pub fn next(&self) -> Option<Tick> {
        self.by_tick.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline that is due.
    pub fn pop_due(&mut self, now: Tick) -> Option<TimerKey> {
        while self.next()? <= now {
            let (_, key) = self.by_tick.pop_first()?;
            let Some(kinds) = self.by_group.get_mut(&key.group) else {
                continue;
            };
            match kinds.get_mut(&key.kind) {
                Some(deadline) if deadline.at > now => {
                    deadline.armed = deadline.at;
                    self.by_tick.insert((deadline.at, key));
                }
                Some(_) => {
                    kinds.remove(&key.kind);
                    if kinds.is_empty() {
                        self.by_group.remove(&key.group);
                    }
                    return Some(key);
                }
                None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_are_replaced_and_cancelled() {
        let (a, b): (GroupId, GroupId) = ("a".into(), "b".into());
        let mut timers = Timers::default();
        timers.set(&a, TimerKind::Join, Tick(30));
        timers.set(&a, TimerKind::Session("m".into()), Tick(20));
        timers.set(&b, TimerKind::Join, Tick(10));
        timers.set(&a, TimerKind::Join, Tick(5));
        assert_eq!(timers.next(), Some(Tick(5)));
        assert_eq!(timers.pop_due(Tick(4)), None);
        let due = timers.pop_due(Tick(5)).unwrap();
        assert_eq!((due.group, due.kind), (a.clone(), TimerKind::Join));
        timers.cancel_group(&a);
        assert_eq!(timers.next(), Some(Tick(10)));
        timers.cancel(&b, TimerKind::Join);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_deadline_that_is_put_off_is_due_then_and_not_before() {
        let a: GroupId = "a".into();
        let mut timers = Timers::default();
        timers.set(&a, TimerKind::Join, Tick(10));
        timers.set(&a, TimerKind::Join, Tick(30));
        timers.set(&a, TimerKind::Sync, Tick(20));
        assert!(timers.next() <= Some(Tick(20)));
        assert_eq!(timers.pop_due(Tick(19)), None);
        assert_eq!(timers.next(), Some(Tick(20)));
        assert_eq!(timers.pop_due(Tick(25)).unwrap().kind, TimerKind::Sync);
        assert_eq!(timers.pop_due(Tick(29)), None);
        assert_eq!(timers.pop_due(Tick(30)).unwrap().kind, TimerKind::Join);
        timers.set(&a, TimerKind::Join, Tick(40));
        timers.set(&a, TimerKind::Join, Tick(50));
        timers.set(&a, TimerKind::Join, Tick(45));
        timers.cancel(&a, TimerKind::Join);
        assert_eq!((timers.next(), timers.by_group.len()), (None, 0));
    }
}
