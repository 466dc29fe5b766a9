//! After each record of the log, a partition of a consumer group is held (assigned, or still to be
//! given back) by one member at most. Read from the bytes, not from the machine.

use std::collections::BTreeMap;

use crate::machine::group::records::Record;
use crate::machine::group::tests::simulation::world::World;

pub fn check(world: &mut World) {
    let mut holders = BTreeMap::new();
    for record in world.records() {
        let (group, member, value) = match record {
            Record::ConsumerGroupCurrentMemberAssignment {
                group,
                member,
                value,
            } => (group, member, value),
            _ => continue,
        };
        holders.retain(|(g, _, _), holder| *g != group || *holder != member);
        let Some(value) = value else { continue };
        for (topic, partitions) in value.assigned.iter().chain(&value.pending_revocation) {
            for partition in partitions.keys() {
                let place = (group.clone(), *topic, *partition);
                let other = holders.insert(place, member.clone());
                assert_eq!(other, None, "{member} in {group} takes {partition}");
            }
        }
    }
}
