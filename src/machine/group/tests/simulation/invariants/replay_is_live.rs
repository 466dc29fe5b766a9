//! A machine of the log's records shows what the live one shows: whole consumer groups, offsets,
//! and classic groups while no rebalance is under way.

use crate::machine::group::command::{Command, OffsetFetch, Reply};
use crate::machine::group::tests::simulation::world::{GROUPS, World};

pub fn check(world: &mut World) {
    let mut replayed = world.replayed();
    for group in GROUPS {
        let group: crate::machine::group::GroupId = group.into();
        let questions = [
            Command::ConsumerGroupDescribe(vec![group.clone()]),
            Command::OffsetFetch(OffsetFetch {
                group: group.clone(),
                member_id: None,
                member_epoch: -1,
                partitions: None,
                require_stable: false,
            }),
            Command::DescribeGroups(vec![group]),
        ];
        for question in questions {
            let (now, topics) = (world.now, &world.topics);
            let live = World::ask(&mut world.groups, now, topics, question.clone());
            let again = World::ask(&mut replayed, now, topics, question);
            if is_between_images(&live) {
                continue;
            }
            assert_eq!(live, again);
        }
    }
}

fn is_between_images(reply: &Reply) -> bool {
    match reply {
        Reply::DescribeGroups(groups) => {
            let rebalances = ["PreparingRebalance", "CompletingRebalance"];
            // An empty group's protocol type is written with its next rebalance, if it never had
            // a member that stayed.
            rebalances.contains(&groups[0].state) || groups[0].state == "Empty"
        }
        _ => false,
    }
}
