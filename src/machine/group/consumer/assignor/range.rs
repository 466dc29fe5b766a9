//! The range assignor: of each topic a member gets partitions that lie together, and members with
//! the same subscriptions get the same numbers of each topic, so that topics can be joined.
//! Members are in the order of their instance ids, those without one after them by member id.

use super::*;

pub(super) fn assign(members: &[AssignorMember], topics: &BTreeMap<TopicId, i32>) -> Assignment {
    let mut sorted: Vec<&AssignorMember> = members.iter().collect();
    sorted.sort_by_key(|m| (m.instance_id.is_none(), &m.instance_id, &m.member_id));
    let empty = |m: &&AssignorMember| (m.member_id.clone(), TopicPartitions::new());
    let mut assignment: Assignment = sorted.iter().map(empty).collect();
    for (topic, count) in topics {
        let subscribers: Vec<&&AssignorMember> =
            sorted.iter().filter(|m| m.topics.contains(topic)).collect();
        let Ok(members) = i32::try_from(subscribers.len()) else {
            continue;
        };
        let mut next = 0;
        for (i, member) in (0..).zip(subscribers) {
            let quota = count / members + i32::from(i < count % members);
            if quota > 0 {
                let partitions = (next..next + quota).collect();
                if let Some(assigned) = assignment.get_mut(&member.member_id) {
                    assigned.insert(*topic, partitions);
                }
            }
            next += quota;
        }
    }
    assignment
}
