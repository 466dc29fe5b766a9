//! The uniform assignor: members get equally many partitions, whatever their topics, and keep what
//! they had as far as that allows.
//!
//! 1. Every partition that somebody subscribes to has exactly one owner, a subscriber.
//! 2. Members that subscribe to the same topics differ by one partition at most. In general, no
//!    single move to another subscriber makes two members' counts more equal.
//! 3. A partition moves only for the sake of 1 or 2.
//! 4. It runs with every member that joins: among equal subscriptions it is linear in members and
//!    partitions, and allocates for what moves only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

pub(super) fn assign(
    members: &[AssignorMember<'_>],
    topics: &BTreeMap<TopicId, i32>,
) -> Assignment {
    let equal = members.windows(2).all(|pair| {
        std::ptr::eq(pair[0].topics, pair[1].topics) || pair[0].topics == pair[1].topics
    });
    let mut owners = Owners::new(topics);
    let mut counts = keep_previous(members, &mut owners, equal);
    if equal {
        fill_equally(&mut owners, &mut counts);
    } else {
        let mut loads = Loads::new(members, counts);
        fill(&mut owners, &mut loads);
        balance(&mut owners, &mut loads);
    }
    owners.changed(members)
}

/// What members had and may keep; how much that is. When all subscribe to the same topics, nobody
/// keeps more than the fair share; if the numbers do not divide, the first members that had one
/// more keep that.
fn keep_previous(members: &[AssignorMember<'_>], owners: &mut Owners, equal: bool) -> Vec<usize> {
    let total = owners.partition_count();
    let share = total / members.len().max(1);
    let mut extra = total % members.len().max(1);
    let mut counts = vec![0; members.len()];
    for (i, member) in members.iter().enumerate() {
        let quota = match equal {
            true => share + usize::from(extra > 0),
            false => usize::MAX,
        };
        for (topic, partitions) in member.previous.into_iter().flatten() {
            let Some(of_topic) = owners.0.get_mut(topic) else {
                continue;
            };
            if !member.topics.contains(topic) {
                continue;
            }
            for partition in partitions {
                let place = usize::try_from(*partition).ok();
                let place = place.and_then(|place| of_topic.get_mut(place));
                match place {
                    Some(owner @ None) if counts[i] < quota => {
                        *owner = Some(i);
                        counts[i] += 1;
                    }
                    _ => {}
                }
            }
        }
        if equal && counts[i] > share {
            extra -= 1;
        }
    }
    counts
}

/// Gives every free partition to the member that has least, the first one of equals.
fn fill_equally(owners: &mut Owners, counts: &mut [usize]) {
    let counted = counts.iter().enumerate();
    let mut least: BinaryHeap<_> = counted.map(|(i, count)| Reverse((*count, i))).collect();
    for owner in owners.0.values_mut().flatten().filter(|o| o.is_none()) {
        let Some(mut first) = least.peek_mut() else {
            return;
        };
        let Reverse((count, member)) = &mut *first;
        *owner = Some(*member);
        *count += 1;
    }
}

fn fill(owners: &mut Owners, loads: &mut Loads<'_>) {
    for (topic, of_topic) in &mut owners.0 {
        for owner in of_topic.iter_mut().filter(|o| o.is_none()) {
            if let Some(member) = loads.least(topic) {
                loads.take(member);
                *owner = Some(member);
            }
        }
    }
}

/// How much each member has, and for each topic its subscribers from the least loaded on.
struct Loads<'a> {
    members: &'a [AssignorMember<'a>],
    counts: Vec<usize>,
    subscribers: BTreeMap<TopicId, BTreeSet<(usize, usize)>>,
}

impl<'a> Loads<'a> {
    fn new(members: &'a [AssignorMember<'a>], counts: Vec<usize>) -> Self {
        let mut subscribers: BTreeMap<TopicId, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for (i, member) in members.iter().enumerate() {
            for topic in member.topics {
                subscribers
                    .entry(*topic)
                    .or_default()
                    .insert((counts[i], i));
            }
        }
        Loads {
            members,
            counts,
            subscribers,
        }
    }

    fn least(&self, topic: &TopicId) -> Option<usize> {
        let first = self.subscribers.get(topic)?.first()?;
        Some(first.1)
    }

    fn set(&mut self, member: usize, count: usize) {
        let old = std::mem::replace(&mut self.counts[member], count);
        for topic in self.members[member].topics {
            if let Some(subscribers) = self.subscribers.get_mut(topic) {
                subscribers.remove(&(old, member));
                subscribers.insert((count, member));
            }
        }
    }

    fn take(&mut self, member: usize) {
        self.set(member, self.counts[member] + 1);
    }

    fn give(&mut self, member: usize) {
        self.set(member, self.counts[member] - 1);
    }
}

/// Moves partitions to less loaded subscribers until no move helps. Each move makes the sum of the
/// squares of the counts smaller, so it ends.
fn balance(owners: &mut Owners, loads: &mut Loads<'_>) {
    loop {
        let mut moved = false;
        for (topic, of_topic) in &mut owners.0 {
            for owner in of_topic.iter_mut().flatten() {
                let Some(least) = loads.least(topic) else {
                    continue;
                };
                if loads.counts[least] + 1 < loads.counts[*owner] {
                    loads.give(*owner);
                    loads.take(least);
                    *owner = least;
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}
