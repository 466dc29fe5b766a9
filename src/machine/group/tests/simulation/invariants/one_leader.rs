//! All members of one generation of a classic group are told the same leader, and only the leader
//! gets the list of members. A group that ended and began anew counts its generations anew.

use std::collections::BTreeMap;

use crate::machine::group::command::{JoinGroupReply, Reply};
use crate::machine::group::tests::simulation::world::{GROUPS, World};
use crate::machine::group::{GroupId, MemberId};
use crate::types::ErrorCode;

/// Leaders by group, life of the group, and generation.
#[derive(Default)]
pub struct Memory {
    leaders: BTreeMap<(String, usize, i32), String>,
    /// Instances by the ids that their members have had. A client may never have heard of its id.
    instances: BTreeMap<String, String>,
}

pub fn check(world: &mut World) {
    let memory = &mut world.memory.leaders;
    let ids = GROUPS.map(GroupId::from);
    for group in world.groups.describe(&ids) {
        let members = group.members.into_iter();
        memory.note(members.map(|member| (member.member_id, member.group_instance_id)));
    }
    for group in world.groups.describe_consumer(&ids, &world.topics) {
        let members = group.members.into_iter();
        memory.note(members.map(|member| (member.member_id, member.instance_id)));
    }
    if world.reloaded {
        // A generation that was not stored comes again, perhaps with another leader.
        memory.leaders.clear();
    }
    for (asked, reply) in &world.delivered {
        let Reply::JoinGroup(r) = reply else { continue };
        // A consumer group answers classic members without a leader.
        if r.error != ErrorCode::None || r.leader.is_empty() {
            continue;
        }
        assert!(r.members.is_empty() || *r.leader == *r.member_id);
        let group = world.clients[asked.client].group.to_string();
        let generation = (group, asked.life, r.generation_id);
        if let Some(leader) = memory.leaders.insert(generation, r.leader.clone()) {
            assert!(
                leader == r.leader || memory.is_replaced(&leader, r),
                "{leader} and {r:?}"
            );
        }
    }
}

impl Memory {
    fn note(&mut self, members: impl Iterator<Item = (MemberId, Option<String>)>) {
        let fixed = members.filter_map(|(id, instance)| Some((id.to_string(), instance?)));
        self.instances.extend(fixed);
    }

    /// A static leader that comes back leads the same generation under a new id, and is told its
    /// old one if it cannot skip the assignment.
    fn is_replaced(&self, leader: &str, reply: &JoinGroupReply) -> bool {
        let before = self.instances.get(leader);
        before.is_some() && before == self.instances.get(&reply.leader)
    }
}
