//! An assignment as the owner of each partition, and what of it is new to the members.

use super::*;

/// Of each topic the owners by partition; members by their index.
pub(super) struct Owners(pub BTreeMap<TopicId, Vec<Option<usize>>>);

impl Owners {
    /// Nobody owns anything yet.
    pub fn new(topics: &BTreeMap<TopicId, i32>) -> Self {
        let free = |(topic, count): (&TopicId, &i32)| {
            let count = usize::try_from(*count).unwrap_or(0);
            (*topic, vec![None; count])
        };
        Owners(topics.iter().map(free).collect())
    }

    pub fn partition_count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn owns(&self, member: usize, topic: &TopicId, partition: i32) -> bool {
        let owner = usize::try_from(partition).ok().and_then(|partition| {
            let of_topic = self.0.get(topic)?;
            *of_topic.get(partition)?
        });
        owner == Some(member)
    }

    /// The partitions of every member that did not have exactly these before.
    pub fn changed(&self, members: &[AssignorMember<'_>]) -> Assignment {
        let mut counts = vec![0; members.len()];
        for owner in self.0.values().flatten().flatten() {
            counts[*owner] += 1;
        }
        let unchanged: Vec<bool> = (0..)
            .zip(members)
            .map(|(i, member)| {
                let Some(previous) = member.previous else {
                    return false;
                };
                let mut had = 0;
                let keeps = previous.iter().all(|(topic, partitions)| {
                    had += partitions.len();
                    // Ascending, or a number that is there twice would hide one that is new.
                    !partitions.is_empty()
                        && partitions.windows(2).all(|pair| pair[0] < pair[1])
                        && partitions.iter().all(|p| self.owns(i, topic, *p))
                });
                keeps && had == counts[i]
            })
            .collect();
        let mut next: Vec<TopicPartitions> = vec![TopicPartitions::new(); members.len()];
        for (topic, of_topic) in &self.0 {
            for (partition, owner) in (0..).zip(of_topic) {
                if let Some(owner) = owner.filter(|owner| !unchanged[*owner]) {
                    next[owner].entry(*topic).or_default().push(partition);
                }
            }
        }
        let all = members.iter().zip(next).zip(unchanged);
        all.filter(|(_, unchanged)| !unchanged)
            .map(|((member, partitions), _)| (member.member_id.clone(), partitions))
            .collect()
    }
}
