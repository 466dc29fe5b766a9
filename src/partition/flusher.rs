//! Flushes that acknowledgements wait for (`flush.messages`), in groups.
//!
//! 1. One group is flushed at a time. All that ask meanwhile are the next group, so the more ask,
//!    the more one flush serves: of one partition once for all, of several at the same time, which
//!    the journal of the file system makes one commit of.
//! 2. Who asks while his partition is being flushed waits for the next group: his records may have
//!    come too late for this one.
//! 3. A flush that fails fails for all who wait for that partition.
//! 4. A flush that panics fails for its whole group (the log's directory is offline then). The next
//!    group has its turn.
//! 5. The records count as appended (`Partition::flushed`) even if nobody waits any more.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::leader::Partition;
use crate::host::{in_parallel, tasks};
use crate::log::{Log, LogError};

/// How many partitions are flushed at the same time.
const AT_ONCE: usize = 16;

pub(super) type Flushed = Result<(), Arc<LogError>>;

struct Asked {
    partition: Arc<Partition>,
    answer: oneshot::Sender<Flushed>,
}

#[derive(Default)]
struct Gathering {
    asked: Vec<Asked>,
    is_flushing: bool,
}

#[derive(Default)]
pub struct Flusher {
    gathering: Mutex<Gathering>,
}

impl Flusher {
    /// Ready once everything appended to `partition` before the call would survive a power cut.
    pub fn flush(
        self: &Arc<Self>,
        partition: Arc<Partition>,
    ) -> impl Future<Output = Flushed> + Send + use<> {
        let closed = LogError::Closed {
            topic_partition: partition.topic_partition.clone(),
        };
        let (flushed, is_flushing) = self.ask(partition);
        if !is_flushing {
            let this = self.clone();
            tasks::spawn_blocking(move || this.flush_groups());
        }
        // Unanswered only if the flush has panicked, or the process stops.
        async move { flushed.await.unwrap_or_else(|_| Err(Arc::new(closed))) }
    }

    /// Where the answer will come, and whether somebody is flushing already, who takes on the next
    /// group as well.
    pub(super) fn ask(&self, partition: Arc<Partition>) -> (oneshot::Receiver<Flushed>, bool) {
        let (answer, flushed) = oneshot::channel();
        let mut gathering = self.gathering.lock();
        gathering.asked.push(Asked { partition, answer });
        let was_flushing = std::mem::replace(&mut gathering.is_flushing, true);
        (flushed, was_flushing)
    }

    /// Until nobody has asked. The panic hook has said where it was; those who wait have their
    /// answer, since the group is dropped.
    fn flush_groups(&self) {
        let next = || catch_unwind(AssertUnwindSafe(|| self.flush_group())).unwrap_or(true);
        while next() {}
    }

    /// False when nobody has asked.
    pub(super) fn flush_group(&self) -> bool {
        let asked = {
            let mut gathering = self.gathering.lock();
            gathering.is_flushing = !gathering.asked.is_empty();
            std::mem::take(&mut gathering.asked)
        };
        let groups = by_partition(asked);
        let results = in_parallel(AT_ONCE, &groups, |(partition, _)| {
            partition.on_log(Log::flush).map_err(Arc::new)
        });
        let is_any = !groups.is_empty();
        for ((partition, waiting), result) in groups.into_iter().zip(results) {
            if result.is_ok() {
                partition.flushed();
            }
            for answer in waiting {
                // Who has gone does not listen.
                let _ = answer.send(result.clone());
            }
        }
        is_any
    }
}

/// Each partition once, with all who wait for it.
fn by_partition(asked: Vec<Asked>) -> Vec<(Arc<Partition>, Vec<oneshot::Sender<Flushed>>)> {
    let mut groups: Vec<(Arc<Partition>, Vec<_>)> = Vec::new();
    let mut places = HashMap::new();
    for Asked { partition, answer } in asked {
        let place = *places
            .entry(Arc::as_ptr(&partition))
            .or_insert_with(|| groups.len());
        if place == groups.len() {
            groups.push((partition, vec![answer]));
        } else {
            groups[place].1.push(answer);
        }
    }
    groups
}
