//! What a member of a consumer group holds, the coordinator knows that it holds: nothing else would
//! keep it from giving the same partition to another. True for members at their epoch; others are
//! fenced with their next heartbeat.

use crate::machine::group::command::{Command, ConsumerDescribedGroup, Reply};
use crate::machine::group::tests::simulation::world::{GROUPS, World};

pub fn described(world: &mut World, group: &str) -> ConsumerDescribedGroup {
    let command = Command::ConsumerGroupDescribe(vec![group.into()]);
    let reply = World::ask(&mut world.groups, world.now, &world.topics, command);
    let Reply::ConsumerGroupDescribe(mut groups) = reply else {
        unreachable!()
    };
    groups.remove(0)
}

pub fn check(world: &mut World) {
    for group in GROUPS {
        let described = described(world, group);
        for client in world
            .clients
            .iter()
            .filter(|c| !c.is_classic && c.is_stable())
        {
            let mut members = described.members.iter();
            let at_epoch = |id, epoch| id == &client.member_id && epoch == client.epoch;
            let member = members.find(|m| at_epoch(&m.member_id, m.member_epoch));
            let Some(member) = member.filter(|_| *client.group == *group) else {
                continue;
            };
            for (topic, partition) in client.holds() {
                let known = member
                    .assignment
                    .iter()
                    .any(|(_, id, partitions)| *id == topic && partitions.contains(&partition));
                assert!(known, "{client:?} holds {partition}, but {member:?}");
            }
        }
    }
}
