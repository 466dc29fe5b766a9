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
    /// Instances by the ids that static clients have had.
    instances: BTreeMap<String, String>,
}

pub fn check(world: &mut World) {
    let memory = &mut world.memory.leaders;
    for client in &world.clients {
        if let Some(instance) = &client.instance {
            let id = client.member_id.to_string();
            memory.instances.insert(id, instance.clone());
        }
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
        let leader = memory.leaders.entry(generation);
        let leader = leader.or_insert_with(|| r.leader.clone());
        assert!(
            *leader == r.leader || is_replaced(leader, r, &memory.instances),
            "{leader} and {r:?}"
        );
        *leader = r.leader.clone();
    }
}

/// A static leader that comes back leads the same generation under a new id, and is told its old
/// one if it cannot skip the assignment.
fn is_replaced(leader: &str, reply: &JoinGroupReply, instances: &BTreeMap<String, String>) -> bool {
    // The coordinator makes ids that begin with the instance; a client has made others.
    let instance = |id: &str| {
        let known = instances.get(id).cloned();
        known.unwrap_or_else(|| id.split('-').next().unwrap_or_default().to_owned())
    };
    instance(leader) == instance(&reply.leader)
}
