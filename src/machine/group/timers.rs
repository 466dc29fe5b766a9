//! The deadlines of all groups of one coordinator, as one ordered set: the driver needs a single
//! timer for the earliest, and thousands of idle groups cost a set entry each.

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

#[derive(Debug, Default)]
pub struct Timers {
    by_key: BTreeMap<TimerKey, Tick>,
    by_tick: BTreeSet<(Tick, TimerKey)>,
}

impl Timers {
    pub fn set(&mut self, group: &GroupId, kind: TimerKind, at: Tick) {
        let key = TimerKey {
            group: group.clone(),
            kind,
        };
        if let Some(old) = self.by_key.insert(key.clone(), at) {
            self.by_tick.remove(&(old, key.clone()));
        }
        self.by_tick.insert((at, key));
    }

    pub fn cancel(&mut self, group: &GroupId, kind: TimerKind) {
        let key = TimerKey {
            group: group.clone(),
            kind,
        };
        if let Some(old) = self.by_key.remove(&key) {
            self.by_tick.remove(&(old, key));
        }
    }

    /// Forgets every deadline of a group.
    pub fn cancel_group(&mut self, group: &GroupId) {
        let first = TimerKey {
            group: group.clone(),
            kind: TimerKind::Join,
        };
        let keys: Vec<TimerKey> = self
            .by_key
            .range(first..)
            .map(|(key, _)| key)
            .take_while(|key| key.group == *group)
            .cloned()
            .collect();
        for key in keys {
            self.cancel(group, key.kind);
        }
    }

    pub fn is_set(&self, group: &GroupId, kind: TimerKind) -> bool {
        self.by_key.contains_key(&TimerKey {
            group: group.clone(),
            kind,
        })
    }

    pub fn next(&self) -> Option<Tick> {
        self.by_tick.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline that is due.
    pub fn pop_due(&mut self, now: Tick) -> Option<TimerKey> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.by_tick.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
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
}
