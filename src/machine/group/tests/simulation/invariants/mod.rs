//! What must hold after every event. One file each.

mod answered_in_time;
mod at_rest;
mod generations_grow;
mod held_is_known;
mod offsets_are_kept;
mod one_holder;
mod one_leader;
mod replay_is_live;

use super::world::World;

pub(super) use at_rest::check as check_rest;

/// What the invariants remember between two events.
#[derive(Default)]
pub(super) struct Memory {
    generations: generations_grow::Memory,
    offsets: offsets_are_kept::Memory,
    leaders: one_leader::Memory,
    events: u64,
}

pub(super) fn check(world: &mut World) {
    generations_grow::check(world);
    one_leader::check(world);
    offsets_are_kept::check(world);
    answered_in_time::check(world);
    held_is_known::check(world);
    world.memory.events += 1;
    // These read the whole log.
    if world.memory.events.is_multiple_of(10) {
        one_holder::check(world);
        replay_is_live::check(world);
    }
    world.delivered.clear();
    world.lost.clear();
    world.reloaded = false;
}
