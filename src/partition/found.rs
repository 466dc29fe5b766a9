//! Logs that were found on disk at the start and belong to no partition yet.
//!
//! Two directories may hold a log of one name: one was out of order when the topic was deleted and
//! made anew, or when the partition was made again in its stead; or the move of a replica from one
//! directory to the other was interrupted where both have the name.
//!
//! 1. A partition gets a log of its own topic only. Of several the one whose last records are of
//!    the newest leader epoch, and of those the longest: the order by which leaders are told.
//! 2. What is left of a name whose partition has its log must make way.
//! 3. Future logs (`moves`) are kept apart: they are nobody's log yet.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::log::{Log, LogDir};
use crate::types::{LeaderEpoch, Offset, TopicId, TopicPartition};

pub(super) struct Found {
    pub log: Arc<Log>,
    pub log_dir: Arc<LogDir>,
    pub high_watermark: Option<Offset>,
}

impl Found {
    fn newness(&self) -> (LeaderEpoch, Offset) {
        let epoch = self.log.latest_epoch().unwrap_or(LeaderEpoch::NONE);
        (epoch, self.log.log_end_offset())
    }

    /// Whether nothing is lost with it while there is `log`: it is empty, or a part of that one, as
    /// the old log of a moved replica is.
    pub fn has_nothing_beside(&self, log: Option<&Arc<Log>>) -> bool {
        let is_part_of =
            |log: &Arc<Log>| self.log.topic_id() == log.topic_id() && self.log.is_part_of(log);
        self.log.log_end_offset() == Offset::ZERO || log.is_some_and(is_part_of)
    }
}

#[derive(Default)]
pub(super) struct FoundLogs(Mutex<HashMap<TopicPartition, Vec<Found>>>);

impl FoundLogs {
    pub fn add(&self, found: Found) {
        let topic_partition = found.log.topic_partition().clone();
        let mut by_name = self.0.lock();
        by_name.entry(topic_partition).or_default().push(found);
    }

    /// The log of this topic's partition, if there is one.
    pub fn claim(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> Option<Found> {
        let mut by_name = self.0.lock();
        let of_name = by_name.get_mut(topic_partition)?;
        let of_topic = of_name.iter().enumerate();
        let of_topic = of_topic.filter(|(_, found)| found.log.topic_id() == topic_id);
        let (newest, _) = of_topic.max_by_key(|(_, found)| found.newness())?;
        let claimed = of_name.swap_remove(newest);
        if of_name.is_empty() {
            by_name.remove(topic_partition);
        }
        Some(claimed)
    }

    /// Whether there is a log of this topic's partition.
    pub fn has(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> bool {
        let by_name = self.0.lock();
        let mut of_name = by_name.get(topic_partition).into_iter().flatten();
        of_name.any(|found| found.log.topic_id() == topic_id)
    }

    /// All that is left of a name.
    pub fn take_rest(&self, topic_partition: &TopicPartition) -> Vec<Found> {
        self.0.lock().remove(topic_partition).unwrap_or_default()
    }

    pub fn names(&self) -> Vec<TopicPartition> {
        self.0.lock().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::RealDisk;
    use crate::log::{FileCache, LogConfig};
    use crate::record::BatchBuilder;
    use crate::types::TimestampMs;

    const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

    fn name() -> TopicPartition {
        TopicPartition {
            topic: "t".into(),
            partition: 0,
        }
    }

    fn id(number: u128) -> TopicId {
        TopicId(uuid::Uuid::from_u128(number))
    }

    /// A log in a directory of its own, with so many records of a leader epoch.
    fn found(root: &Path, dir: &str, topic_id: TopicId, (epoch, records): (i32, i64)) -> Found {
        let files = Arc::new(FileCache::new(10));
        let log_dir = LogDir::open(Arc::new(RealDisk), &root.join(dir), files).unwrap();
        let config = Arc::new(LogConfig::default());
        let log = log_dir.create_log(name(), topic_id, config, NOW).unwrap();
        for offset in 0..records {
            let mut builder = BatchBuilder::new();
            builder.append(NOW, None, Some(b"value"));
            let mut batch = builder.build().unwrap();
            batch.header.base_offset = Offset(offset);
            batch.header.leader_epoch = LeaderEpoch(epoch);
            log.append_as_follower(&[batch], NOW).unwrap();
        }
        Found {
            log,
            log_dir: Arc::new(log_dir),
            high_watermark: None,
        }
    }

    fn dir_of(found: &Found) -> String {
        let name = found.log_dir.path().file_name().unwrap();
        name.to_string_lossy().into_owned()
    }

    #[test]
    fn of_several_logs_of_a_name_the_newest_of_the_topic_is_claimed() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        let logs = FoundLogs::default();
        logs.add(found(root, "short", id(1), (4, 2)));
        logs.add(found(root, "newest", id(1), (4, 3)));
        logs.add(found(root, "long", id(1), (3, 9)));
        logs.add(found(root, "other-topic", id(2), (7, 9)));
        assert!(logs.claim(&name(), id(3)).is_none());
        let claimed = logs.claim(&name(), id(1)).unwrap();
        assert_eq!(dir_of(&claimed), "newest");
        let mut rest: Vec<_> = logs.take_rest(&name()).iter().map(dir_of).collect();
        rest.sort();
        assert_eq!(rest, ["long", "other-topic", "short"]);
        assert!(logs.names().is_empty());
    }
}
