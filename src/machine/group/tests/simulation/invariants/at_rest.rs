//! Once nothing fails any more, groups come to rest: stable, with exactly the living members, and
//! in consumer groups with every partition assigned.

use std::collections::BTreeSet;

use super::held_is_known::described;
use crate::machine::group::MemberId;
use crate::machine::group::command::{Command, Reply};
use crate::machine::group::tests::simulation::client::Client;
use crate::machine::group::tests::simulation::world::{GROUPS, World};

pub fn check(world: &mut World) {
    for group in GROUPS {
        let question = Command::DescribeGroups(vec![group.into()]);
        let reply = World::ask(&mut world.groups, world.now, &world.topics, question);
        let Reply::DescribeGroups(classic) = reply else {
            unreachable!()
        };
        let consumer = described(world, group);
        let is_consumer = !consumer.members.is_empty();
        let members: BTreeSet<MemberId> = match is_consumer {
            true => consumer
                .members
                .iter()
                .map(|m| m.member_id.clone())
                .collect(),
            false => classic[0]
                .members
                .iter()
                .map(|m| m.member_id.clone())
                .collect(),
        };
        let living = living(world, group, &members);
        assert_eq!(members, living, "{group}");
        if living.is_empty() {
            continue;
        }
        let state = if is_consumer {
            consumer.state
        } else {
            classic[0].state
        };
        assert_eq!(state, "Stable", "{classic:?} {consumer:?}");
        if is_consumer {
            let assigned = consumer.members.iter().flat_map(|m| &m.assignment);
            let count: usize = assigned.map(|(_, _, partitions)| partitions.len()).sum();
            let partitions = world.topics.topics["t"].partitions as usize;
            assert_eq!(count, partitions, "{consumer:?}");
        }
    }
}

/// Of several clients with one instance id, only one can be a member.
fn living(world: &World, group: &str, members: &BTreeSet<MemberId>) -> BTreeSet<MemberId> {
    let clients = || {
        let all = world.clients.iter();
        all.filter(|c| c.alive && !c.fenced && *c.group == *group)
    };
    let loses = |client: &Client| {
        let holds = |other: &Client| {
            other.instance == client.instance && members.contains(&other.member_id)
        };
        client.instance.is_some() && !members.contains(&client.member_id) && clients().any(holds)
    };
    let living = clients().filter(|c| !loses(c));
    living.map(|c| c.member_id.clone()).collect()
}
