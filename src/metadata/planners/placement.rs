//! Which brokers get the replicas of new partitions.
//!
//! Brokers stand in one line, racks alternating (r1 r2 r3 r1 r2 r1 ...). The leaders of consecutive
//! partitions are consecutive brokers of that line that are not fenced, from a random start. The
//! followers are taken from the line behind the leader: first one from each rack that has none yet,
//! unfenced before fenced, then again until there are enough. With each full turn of the line the
//! followers move one place further, so that one broker's leaders do not all share their followers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::metadata::{Draw, MetadataImage};
use crate::types::BrokerId;

/// A broker that may get replicas.
pub struct Place {
    pub broker: BrokerId,
    pub rack: Option<Arc<str>>,
    pub fenced: bool,
}

/// Chooses the replicas of `count` new partitions, the leader first. `Err` is Kafka's reason why it
/// cannot be done.
pub(super) fn place(
    image: &MetadataImage,
    count: usize,
    replication_factor: usize,
    draw: &mut dyn Draw,
) -> Result<Vec<Vec<BrokerId>>, String> {
    let usable = image.brokers().filter(|broker| !broker.is_cordoned());
    let places = usable.map(|broker| Place {
        broker: broker.broker_id,
        rack: broker.rack.clone(),
        fenced: !broker.is_active(),
    });
    place_among(places, count, replication_factor, &mut |end| {
        draw.below(end)
    })
}

/// [`place`] among these brokers; `below` draws a number.
pub fn place_among(
    places: impl Iterator<Item = Place>,
    count: usize,
    replication_factor: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> Result<Vec<Vec<BrokerId>>, String> {
    let line = line_of(places);
    let leaders: Vec<usize> = (0..line.len()).filter(|i| !line[*i].fenced).collect();
    if leaders.is_empty() {
        let reason =
            "All brokers are currently fenced, or have all their log directories cordoned.";
        return Err(reason.into());
    }
    if replication_factor > line.len() {
        return Err(format!(
            "The target replication factor of {replication_factor} cannot be reached because only \
             {} broker(s) are registered or some brokers have all their log directories cordoned.",
            line.len()
        ));
    }
    let start = below(leaders.len());
    let shift = below(line.len());
    let replicas_of = |partition: usize| {
        let leader = leaders[(start + partition) % leaders.len()];
        let turn = shift + partition / leaders.len();
        replicas(&line, leader, turn, replication_factor)
    };
    Ok((0..count).map(replicas_of).collect())
}

/// The brokers, racks alternating.
fn line_of(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut racks: BTreeMap<Option<Arc<str>>, VecDeque<Place>> = BTreeMap::new();
    for place in places {
        let rack = place.rack.clone();
        racks.entry(rack).or_default().push_back(place);
    }
    let mut line = Vec::new();
    while !racks.is_empty() {
        for rack in racks.values_mut() {
            line.extend(rack.pop_front());
        }
        racks.retain(|_, rack| !rack.is_empty());
    }
    line
}

fn replicas(line: &[Place], leader: usize, turn: usize, count: usize) -> Vec<BrokerId> {
    let others = line.len() - 1;
    let behind = |i: usize| &line[(leader + 1 + (turn + i) % others) % line.len()];
    let mut chosen = vec![line[leader].broker];
    let mut racks = BTreeSet::from([&line[leader].rack]);
    while chosen.len() < count {
        // One round: at most one replica for each rack.
        for fenced in [false, true] {
            for place in (0..others).map(behind).filter(|p| p.fenced == fenced) {
                let wanted = chosen.len() < count && !chosen.contains(&place.broker);
                if wanted && racks.insert(&place.rack) {
                    chosen.push(place.broker);
                }
            }
        }
        racks.clear();
    }
    chosen
}
