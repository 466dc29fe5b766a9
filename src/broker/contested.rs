//! Contested partitions of this broker: it tells the active controller where their logs end until
//! they have a leader.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::api::Node;
use crate::host::tasks;
use crate::quorum::Change;
use crate::types::{BrokerId, TopicId};

use super::background::until;

/// Between the first times of telling; a controller may have changed, or wait for others.
const TELL_AGAIN: Duration = Duration::from_millis(100);
const TELL_AGAIN_MAX: Duration = Duration::from_secs(3);

/// Tells from now on; the broker must be registered.
pub fn start(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    let node = node.clone();
    let work = async move {
        let mut changes = node.quorum.subscribe();
        let mut contested = Contested::default();
        let (mut pause, mut due) = (TELL_AGAIN, Instant::now());
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) if contested.note(&change, node.broker_id) => {
                        (pause, due) = (TELL_AGAIN, Instant::now());
                        node.partitions.wait_applied(change.image.offset()).await;
                    }
                    Some(_) => {}
                    None => return,
                },
                () = sleep_until(due), if !contested.places.is_empty() => {
                    node.tell_log_ends(&contested.to_vec()).await;
                    due = Instant::now() + pause;
                    pause = (pause * 2).min(TELL_AGAIN_MAX);
                }
            }
        }
    };
    drop(tasks::spawn(until(stopping.clone(), work)));
}

/// Those of which this broker has a log to compare.
#[derive(Debug, Default)]
struct Contested {
    places: BTreeSet<(TopicId, i32)>,
}

impl Contested {
    /// Whether there are more of them after `change`.
    fn note(&mut self, change: &Change, broker: BrokerId) -> bool {
        let Change { image, delta } = change;
        let is_own = |(topic_id, index): &(TopicId, i32)| {
            let topic = image.topic_by_id(*topic_id);
            let partition = topic.and_then(|topic| topic.partitions.get(*index));
            partition.is_some_and(|p| p.is_contested() && p.last_known_elr().contains(&broker))
        };
        let before = self.places.len();
        self.places.retain(|place| is_own(place));
        let gone = before - self.places.len();
        if delta.everything {
            let all = image.topics().flat_map(|topic| {
                let indexes = topic.partitions.iter().map(|(index, _)| index);
                indexes.map(|index| (topic.id, index))
            });
            self.places.extend(all.filter(is_own));
        }
        for (topic_id, indexes) in &delta.topics {
            let places = indexes.iter().map(|index| (*topic_id, *index));
            self.places.extend(places.filter(is_own));
        }
        self.places.len() > before - gone
    }

    fn to_vec(&self) -> Vec<(TopicId, i32)> {
        self.places.iter().copied().collect()
    }
}
