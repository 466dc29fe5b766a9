//! The deadlines of all partitions of one runtime: one task sleeps until the earliest.
//!
//! A deadline that moves back is left where it is: it wakes the task once for nothing, which is
//! cheaper than moving it with every heartbeat.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
struct Deadlines {
    by_partition: BTreeMap<i32, Duration>,
    ordered: BTreeSet<(Duration, i32)>,
}

#[derive(Default)]
pub(super) struct Timer {
    deadlines: Mutex<Deadlines>,
    earlier: Notify,
}

impl Timer {
    /// Makes sure that the partition is woken at `deadline` or before.
    pub(super) fn wake_by(&self, partition: i32, deadline: Option<Duration>) {
        let Some(deadline) = deadline else { return };
        let mut deadlines = self.deadlines.lock();
        match deadlines.by_partition.get(&partition).copied() {
            Some(old) if old <= deadline => return,
            Some(old) => {
                deadlines.ordered.remove(&(old, partition));
            }
            None => {}
        }
        deadlines.by_partition.insert(partition, deadline);
        deadlines.ordered.insert((deadline, partition));
        let is_first = deadlines.ordered.first() == Some(&(deadline, partition));
        drop(deadlines);
        if is_first {
            self.earlier.notify_one();
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.deadlines.lock().ordered.first().map(|(at, _)| *at)
    }

    /// Takes every partition that is due.
    pub(super) fn take_due(&self, now: Duration) -> Vec<i32> {
        let mut deadlines = self.deadlines.lock();
        let mut due = Vec::new();
        while let Some((at, partition)) = deadlines.ordered.first().copied() {
            if at > now {
                break;
            }
            deadlines.ordered.remove(&(at, partition));
            deadlines.by_partition.remove(&partition);
            due.push(partition);
        }
        due
    }

    /// Waits until an earlier deadline than `next` said comes in, or `wake` is called.
    pub(super) async fn woken(&self) {
        self.earlier.notified().await;
    }

    pub(super) fn wake(&self) {
        self.earlier.notify_one();
    }
}
