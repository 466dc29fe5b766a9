//! A member is never told a generation, or member epoch, that is lower than one it was told before,
//! unless it was told to start over, or the group ended and another of its name began. A generation
//! that no leader has synced is not stored, so a reload may forget it; a member epoch is stored
//! before anybody hears of it.

use std::collections::BTreeMap;

use crate::machine::group::command::{Command, Reply};
use crate::machine::group::tests::simulation::world::World;
use crate::types::ErrorCode;

/// The last generation that each client was told, and in which life of its group.
#[derive(Default)]
pub struct Memory {
    last: BTreeMap<usize, (usize, i32)>,
}

pub fn check(world: &mut World) {
    let clients = &world.clients;
    let last = &mut world.memory.generations.last;
    if world.reloaded {
        last.retain(|client, _| !clients[*client].is_classic);
    }
    for (asked, reply) in &world.delivered {
        let (error, generation) = match reply {
            Reply::JoinGroup(r) => (r.error, r.generation_id),
            Reply::ConsumerGroupHeartbeat(r) => (r.error, r.member_epoch),
            Reply::Heartbeat(error) => (*error, i32::MAX),
            Reply::SyncGroup(r) => (r.error, i32::MAX),
            Reply::LeaveGroup(_) => (ErrorCode::UnknownMemberId, 0),
            _ => continue,
        };
        let starts_over = match &asked.command {
            Command::ConsumerGroupHeartbeat(r) => r.member_epoch <= 0,
            _ => false,
        };
        if starts_over || ![ErrorCode::None, ErrorCode::RebalanceInProgress].contains(&error) {
            last.remove(&asked.client);
        }
        if error == ErrorCode::None && generation != i32::MAX && generation >= 0 {
            let before = last.insert(asked.client, (asked.life, generation));
            let grows = before.is_none_or(|before| before <= (asked.life, generation));
            assert!(grows, "{before:?} -> {generation}: {asked:?}");
        }
    }
}
