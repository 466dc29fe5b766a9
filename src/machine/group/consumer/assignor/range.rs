//! The range assignor: of each topic a member gets partitions that lie together, and members with
//! the same subscriptions get the same numbers of each topic, so that topics can be joined.
//! Members are in the order of their instance ids, those without one after them by member id.

use super::*;

pub(super) fn assign(
    members: &[AssignorMember<'_>],
    topics: &BTreeMap<TopicId, i32>,
) -> Assignment {
    let mut sorted: Vec<usize> = (0..members.len()).collect();
    sorted.sort_by_key(|i| {
        let member = &members[*i];
        (
            member.instance_id.is_none(),
            member.instance_id,
            member.member_id,
        )
    });
    let mut owners = Owners::new(topics);
    for (topic, of_topic) in &mut owners.0 {
        let subscribes = |i: &&usize| members[**i].topics.contains(topic);
        let count = sorted.iter().filter(subscribes).count();
        if count == 0 {
            continue;
        }
        let (share, extra) = (of_topic.len() / count, of_topic.len() % count);
        let mut rest = of_topic.as_mut_slice();
        for (n, member) in sorted.iter().filter(subscribes).enumerate() {
            let (own, others) = rest.split_at_mut(share + usize::from(n < extra));
            own.fill(Some(*member));
            rest = others;
        }
    }
    owners.changed(members)
}
