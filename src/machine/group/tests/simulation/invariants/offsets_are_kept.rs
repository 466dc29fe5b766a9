//! What a client was told is committed is what is read, until somebody commits again. A commit
//! whose answer was lost may have happened or not, and may still happen until the next one.

use std::collections::BTreeMap;

use crate::machine::group::GroupId;
use crate::machine::group::command::{Command, OffsetCommit, OffsetFetch, Reply};
use crate::machine::group::tests::simulation::world::{Asked, GROUPS, World};
use crate::types::ErrorCode;

/// By group and partition: every value that may be read.
#[derive(Default)]
pub struct Memory {
    possible: BTreeMap<(GroupId, i32), Vec<i64>>,
}

fn commit_of(asked: &Asked) -> Option<&OffsetCommit> {
    match &asked.command {
        Command::OffsetCommit(commit) => Some(commit),
        _ => None,
    }
}

pub fn check(world: &mut World) {
    let possible = &mut world.memory.offsets.possible;
    for (asked, reply) in &world.delivered {
        let (Some(commit), Reply::OffsetCommit(reply)) = (commit_of(asked), reply) else {
            continue;
        };
        let partition = &commit.partitions[0];
        let key = (commit.group.clone(), partition.partition);
        if reply.partitions[0] == ErrorCode::None {
            possible.insert(key, vec![partition.offset.0]);
        }
    }
    // Replies come in the order of the log, so what is asked for and not answered is newer.
    let lost = world.lost.iter().chain(world.asked.values());
    for commit in lost.filter_map(commit_of) {
        let partition = &commit.partitions[0];
        let key = (commit.group.clone(), partition.partition);
        let values = possible.entry(key).or_insert_with(|| vec![-1]);
        if !values.contains(&partition.offset.0) {
            values.push(partition.offset.0);
        }
    }
    for group in GROUPS {
        let fetch = Command::OffsetFetch(OffsetFetch {
            group: group.into(),
            member_id: None,
            member_epoch: -1,
            partitions: Some((0..3).map(|p| ("t".into(), p)).collect()),
            require_stable: true,
        });
        let reply = World::ask(&mut world.groups, world.now, &world.topics, fetch);
        let Reply::OffsetFetch(reply) = reply else {
            unreachable!()
        };
        for fetched in reply.partitions {
            let key = (group.into(), fetched.partition);
            let nothing = vec![-1];
            let values = possible.get(&key).unwrap_or(&nothing);
            let offset = fetched.offset.0;
            assert!(values.contains(&offset), "{key:?} {offset} of {values:?}");
        }
    }
}
