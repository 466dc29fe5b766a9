//! All members of one generation of a classic group are told the same leader, and only the leader
//! gets the list of members. A group that ended and began anew counts its generations anew.

use std::collections::BTreeMap;

use crate::machine::group::command::{JoinGroupReply, Reply};
use crate::machine::group::tests::simulation::world::World;
use crate::types::ErrorCode;

/// Leaders by group, life of the group, and generation.
#[derive(Default)]
pub struct Memory {
    leaders: BTreeMap<(String, usize, i32), String>,
}

pub fn check(world: &mut World) {
    let memory = &mut world.memory.leaders;
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
        let leader = memory.leaders.entry(generation);
        let leader = leader.or_insert_with(|| r.leader.clone());
        assert!(
            *leader == r.leader || is_replaced(leader, r),
            "{leader} and {r:?}"
        );
        *leader = r.leader.clone();
    }
}

/// A static leader that comes back leads the same generation under a new id, and is told its old
/// one if it cannot skip the assignment.
fn is_replaced(leader: &str, reply: &JoinGroupReply) -> bool {
    let instance = |id: &str| id.split('-').next().unwrap_or_default().to_owned();
    if instance(leader) == instance(&reply.leader) {
        return true;
    }
    // An id from its time in a consumer group does not name the instance; that it is gone, and that
    // a static member leads, says as much.
    let mut members = reply.members.iter();
    let is_gone = members.all(|member| *member.member_id != *leader);
    let new = reply.members.iter().find(|m| *m.member_id == *reply.leader);
    is_gone && new.is_some_and(|member| member.group_instance_id.is_some())
}
