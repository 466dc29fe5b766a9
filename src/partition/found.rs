//! Logs that were found on disk at the start and belong to no partition yet.
//!
//! Two directories may hold a log of one name: one was out of order when the topic was deleted and
//! made anew, or when the partition was made again in its stead; the move of a replica from one
//! directory to the other was interrupted where both have the name; or somebody has copied one.
//!
//! 1. A partition gets a log of its own topic only. Of several the one in the directory that the
//!    metadata names, unless another goes on where it ends: the move of a replica leaves that, when
//!    a power cut takes the end of the log in its new place, which the metadata names by then.
//! 2. Where the metadata names none of them, the one whose last records are of the newest leader
//!    epoch, and of those the longest: the order by which leaders are told.
//! 3. What is left of a name whose partition has its log must make way.
//! 4. Future logs (`moves`) are kept apart: they are nobody's log yet.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::places::id_of;
use crate::log::{Log, LogDir};
use crate::metadata::DirectoryId;
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

    /// As the lines of the log name it.
    pub fn described(&self) -> String {
        let (path, end) = (self.log.path(), self.log.log_end_offset());
        match self.log.latest_epoch() {
            Some(epoch) => format!("{} (ends at {end}, epoch {epoch})", path.display()),
            None => format!("{} (ends at {end})", path.display()),
        }
    }

    /// Whether nothing is lost with it while there is `log`: it is empty, or a part of that one, as
    /// the old log of a moved replica is.
    pub fn has_nothing_beside(&self, log: Option<&Arc<Log>>) -> bool {
        let is_part_of =
            |log: &Arc<Log>| self.log.topic_id() == log.topic_id() && self.log.is_part_of(log);
        self.log.log_end_offset() == Offset::ZERO || log.is_some_and(is_part_of)
    }
}

/// Why one of several logs is the partition's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Named,
    GoesOn,
    Newest,
}

impl Why {
    pub fn text(self) -> &'static str {
        match self {
            Why::Named => "the metadata names its directory",
            Why::GoesOn => "it goes on where the one ends whose directory the metadata names",
            Why::Newest => "its records are the newest",
        }
    }
}

/// Which of `of_name` is the log of the partition.
fn choose(of_name: &[Found], topic_id: TopicId, named: DirectoryId) -> Option<(usize, Why)> {
    let newness = |n: &usize| of_name[*n].newness();
    let newest = |logs: &mut dyn Iterator<Item = usize>| logs.max_by_key(newness);
    let is_of_topic = |n: &usize| of_name[*n].log.topic_id() == topic_id;
    let of_topic = || (0..of_name.len()).filter(is_of_topic);
    let in_named = of_topic().find(|n| id_of(&of_name[*n].log_dir) == Some(named));
    let Some(in_named) = in_named else {
        return newest(&mut of_topic()).map(|chosen| (chosen, Why::Newest));
    };
    let goes_on = |n: &usize| of_name[in_named].log.goes_on_in(&of_name[*n].log);
    match newest(&mut of_topic().filter(goes_on)) {
        Some(chosen) => Some((chosen, Why::GoesOn)),
        None => Some((in_named, Why::Named)),
    }
}

#[derive(Default)]
pub(super) struct FoundLogs(Mutex<HashMap<TopicPartition, Vec<Found>>>);

impl FoundLogs {
    /// Its line in the checkpoint stays as it is: it may be that of the log that belongs here.
    pub fn add(&self, found: Found) {
        found.log.hold_recovery_point();
        let topic_partition = found.log.topic_partition().clone();
        let mut by_name = self.0.lock();
        by_name.entry(topic_partition).or_default().push(found);
    }

    /// The log of this topic's partition, if there is one, and why that one; `named` is where the
    /// metadata has it.
    pub fn claim(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        named: DirectoryId,
    ) -> Option<(Found, Why)> {
        let mut by_name = self.0.lock();
        let of_name = by_name.get_mut(topic_partition)?;
        let (chosen, why) = choose(of_name, topic_id, named)?;
        let claimed = of_name.swap_remove(chosen);
        if of_name.is_empty() {
            by_name.remove(topic_partition);
        }
        claimed.log.release_recovery_point();
        Some((claimed, why))
    }

    /// Whether there is a log of this topic's partition that goes as far as `end`; without one
    /// there is none.
    pub fn has(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        end: Option<Offset>,
    ) -> bool {
        let goes_on = |found: &Found| end.is_some_and(|end| found.log.log_end_offset() >= end);
        self.of_topic(topic_partition, topic_id, |mut logs| {
            Iterator::any(&mut logs, goes_on)
        })
    }

    /// Whether there is a log of this topic's partition in the directory `named`.
    pub fn is_in(
        &self,
        named: DirectoryId,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
    ) -> bool {
        let is_there = |found: &Found| id_of(&found.log_dir) == Some(named);
        self.of_topic(topic_partition, topic_id, |mut logs| {
            Iterator::any(&mut logs, is_there)
        })
    }

    /// How many logs of this topic's partition there are.
    pub fn count(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> usize {
        self.of_topic(topic_partition, topic_id, |logs| logs.count())
    }

    /// Where the logs of this topic's partition are.
    pub fn paths(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> Vec<PathBuf> {
        self.of_topic(topic_partition, topic_id, |logs| {
            logs.map(|found| found.log.path()).collect()
        })
    }

    fn of_topic<T>(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        look: impl FnOnce(&mut dyn Iterator<Item = &Found>) -> T,
    ) -> T {
        let by_name = self.0.lock();
        let of_name = by_name.get(topic_partition).into_iter().flatten();
        look(&mut of_name.filter(|found| found.log.topic_id() == topic_id))
    }

    /// All that is left of a name.
    pub fn take_rest(&self, topic_partition: &TopicPartition) -> Vec<Found> {
        let rest = self.0.lock().remove(topic_partition).unwrap_or_default();
        for found in &rest {
            found.log.release_recovery_point();
        }
        rest
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
    use crate::log::{FileCache, LogConfig, MetaProperties};
    use crate::record::BatchBuilder;
    use crate::types::{BrokerId, TimestampMs};

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
        let meta = MetaProperties {
            cluster_id: "c".to_owned(),
            node_id: BrokerId(1),
            directory_id: Some(dir_id(dir).0),
        };
        log_dir.format(&meta).unwrap();
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

    fn dir_id(dir: &str) -> DirectoryId {
        DirectoryId(uuid::Uuid::from_u128(1000 + u128::from(dir.as_bytes()[0])))
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
        let nowhere = DirectoryId::UNASSIGNED;
        assert!(logs.claim(&name(), id(3), nowhere).is_none());
        let (claimed, why) = logs.claim(&name(), id(1), nowhere).unwrap();
        assert_eq!((dir_of(&claimed), why), ("newest".to_owned(), Why::Newest));
        let mut rest: Vec<_> = logs.take_rest(&name()).iter().map(dir_of).collect();
        rest.sort();
        assert_eq!(rest, ["long", "other-topic", "short"]);
        assert!(logs.names().is_empty());
    }

    #[test]
    fn the_log_that_the_metadata_names_is_served_unless_another_goes_on_where_it_ends() {
        type Log = (&'static str, (i32, i64));
        let cases: [(&[Log], &str, Why); 7] = [
            // A copy.
            (&[("a", (3, 5)), ("b", (3, 5))], "a", Why::Named),
            // One that was made of it before.
            (&[("a", (3, 5)), ("b", (3, 2))], "a", Why::Named),
            // Somebody else's records.
            (&[("a", (3, 5)), ("b", (4, 9))], "a", Why::Named),
            (&[("a", (3, 5)), ("b", (2, 9))], "a", Why::Named),
            // A move: the metadata names the new place, where a power cut has taken the last
            // records, or all.
            (&[("a", (3, 2)), ("b", (3, 5))], "b", Why::GoesOn),
            (&[("a", (3, 0)), ("b", (3, 5))], "b", Why::GoesOn),
            (
                &[("a", (3, 2)), ("b", (3, 5)), ("c", (3, 7))],
                "c",
                Why::GoesOn,
            ),
        ];
        for (logs, expected, expected_why) in cases {
            for reversed in [false, true] {
                let temporary = tempfile::tempdir().unwrap();
                let found_logs = FoundLogs::default();
                let mut logs = logs.to_vec();
                if reversed {
                    logs.reverse();
                }
                for (dir, records) in &logs {
                    found_logs.add(found(temporary.path(), dir, id(1), *records));
                }
                let claimed = found_logs.claim(&name(), id(1), dir_id("a"));
                let (claimed, why) = claimed.unwrap();
                let got = (dir_of(&claimed), why);
                assert_eq!(got, (expected.to_owned(), expected_why), "{logs:?}");
            }
        }
    }

    #[test]
    fn a_log_that_was_begun_anew_is_not_gone_on_with_by_the_one_that_was_given_up() {
        let temporary = tempfile::tempdir().unwrap();
        let logs = FoundLogs::default();
        let anew = found(temporary.path(), "a", id(1), (5, 0));
        anew.log.assign_epoch_at_end(LeaderEpoch(5));
        logs.add(anew);
        logs.add(found(temporary.path(), "b", id(1), (3, 5)));
        let (claimed, why) = logs.claim(&name(), id(1), dir_id("a")).unwrap();
        assert_eq!((dir_of(&claimed), why), ("a".to_owned(), Why::Named));
    }
}
