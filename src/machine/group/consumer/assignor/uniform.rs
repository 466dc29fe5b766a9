//! The uniform assignor: members get equally many partitions, whatever their topics, and keep what
//! they had as far as that allows.
//!
//! 1. Every partition that somebody subscribes to has exactly one owner, a subscriber.
//! 2. Members that subscribe to the same topics differ by one partition at most. In general, no
//!    single move to another subscriber makes two members' counts more equal.
//! 3. A partition moves only for the sake of 1 or 2.

use super::*;

pub(super) fn assign(members: &[AssignorMember], topics: &BTreeMap<TopicId, i32>) -> Assignment {
    let homogeneous = members.windows(2).all(|m| m[0].topics == m[1].topics);
    let mut owners = keep_previous(members, topics, homogeneous);
    let mut loads = Loads::new(members, &owners);
    for (topic, count) in topics {
        for partition in 0..*count {
            if owners.contains_key(&(*topic, partition)) {
                continue;
            }
            if let Some(member) = loads.least(topic) {
                loads.take(member);
                owners.insert((*topic, partition), member);
            }
        }
    }
    if !homogeneous {
        balance(&mut owners, &mut loads);
    }
    let empty = |m: &AssignorMember| (m.member_id.clone(), TopicPartitions::new());
    let mut assignment: Assignment = members.iter().map(empty).collect();
    for ((topic, partition), member) in owners {
        if let Some(assigned) = assignment.get_mut(&members[member].member_id) {
            assigned.entry(topic).or_default().push(partition);
        }
    }
    assignment
}

/// Owners by partition; members by their index.
type Owners = BTreeMap<(TopicId, i32), usize>;

/// What members had and may keep. When all subscribe to the same topics, nobody keeps more than
/// the fair share; the first members have one more, if the numbers do not divide.
fn keep_previous(
    members: &[AssignorMember],
    topics: &BTreeMap<TopicId, i32>,
    homogeneous: bool,
) -> Owners {
    let total: usize = members.first().map_or(0, |m| {
        let subscribed = m.topics.iter().filter_map(|t| topics.get(t));
        subscribed.map(|count| *count as usize).sum()
    });
    let (share, extra) = (total / members.len().max(1), total % members.len().max(1));
    let mut owners = Owners::new();
    for (i, member) in members.iter().enumerate() {
        let mut quota = match homogeneous {
            true => share + usize::from(i < extra),
            false => usize::MAX,
        };
        for (topic, partitions) in &member.previous {
            let count = topics.get(topic).copied().unwrap_or(0);
            let kept = partitions.iter().filter(|p| (0..count).contains(*p));
            for partition in kept {
                let place = (*topic, *partition);
                let may_keep = member.topics.contains(topic) && !owners.contains_key(&place);
                if quota > 0 && may_keep {
                    quota -= 1;
                    owners.insert(place, i);
                }
            }
        }
    }
    owners
}

/// How much each member has, and for each topic its subscribers from the least loaded on.
struct Loads<'a> {
    members: &'a [AssignorMember],
    counts: Vec<usize>,
    subscribers: BTreeMap<TopicId, BTreeSet<(usize, usize)>>,
}

impl<'a> Loads<'a> {
    fn new(members: &'a [AssignorMember], owners: &Owners) -> Self {
        let mut counts = vec![0; members.len()];
        for member in owners.values() {
            counts[*member] += 1;
        }
        let mut subscribers: BTreeMap<TopicId, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for (i, member) in members.iter().enumerate() {
            for topic in &member.topics {
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
        for topic in &self.members[member].topics {
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
        for ((topic, _), owner) in owners.iter_mut() {
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
        if !moved {
            return;
        }
    }
}
