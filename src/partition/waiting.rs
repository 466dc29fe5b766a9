//! What is said of replicas whose log is in a directory that is not here.

use std::collections::{BTreeMap, BTreeSet};

use super::places::{Waits, id_of};
use super::registry::Partitions;
use crate::metadata::{DirectoryId, MetadataImage};
use crate::types::{BrokerId, TopicId, TopicPartition, base64_uuid, some_of};

/// So many directories get a line each, and so many partitions are named in one.
const LINES: usize = 10;
const NAMES: usize = 10;

/// The replicas that wait, by the directory that the metadata names.
type ByDirectory = BTreeMap<DirectoryId, BTreeSet<TopicPartition>>;

fn by_directory(
    image: &MetadataImage,
    broker: BrokerId,
    waiting: impl Iterator<Item = (TopicId, i32)>,
) -> ByDirectory {
    let mut found = ByDirectory::new();
    for (topic_id, partition) in waiting {
        let Some(topic) = image.topic_by_id(topic_id) else {
            continue;
        };
        let registration = topic.partitions.get(partition);
        let named = registration.and_then(|registration| registration.directory(broker));
        let topic = topic.name.clone();
        let names = found.entry(named.unwrap_or(DirectoryId::LOST)).or_default();
        names.insert(TopicPartition { topic, partition });
    }
    found
}

fn shown(names: &BTreeSet<TopicPartition>) -> String {
    some_of(names, names.len(), NAMES)
}

impl Partitions {
    /// Says what waits, and for what, when there is more than `before`.
    pub(super) fn say_what_waits(&self, before: usize, image: &MetadataImage) {
        if self.count_waiting() > before {
            for line in self.what_waits(image) {
                tracing::error!("{line}");
            }
        }
    }

    /// A line for each directory. Of what is lost `lost` speaks.
    pub(super) fn what_waits(&self, image: &MetadataImage) -> Vec<String> {
        let found = {
            let waiting = self.waiting.lock();
            let waiting = waiting
                .iter()
                .filter(|(_, why)| **why == Waits::ForDirectory);
            by_directory(
                image,
                self.surroundings().this_broker,
                waiting.map(|(key, _)| *key),
            )
        };
        let left_out = found.len().saturating_sub(LINES);
        let line = |(directory, names): (&DirectoryId, &BTreeSet<_>)| {
            let wait = match names.len() {
                1 => "1 replica waits".to_owned(),
                count => format!("{count} replicas wait"),
            };
            let (directory, names) = (self.shown(*directory), shown(names));
            format!("{wait} for {directory}, to serve when that is back at a start: {names}")
        };
        let mut lines: Vec<String> = found.iter().take(LINES).map(line).collect();
        if left_out > 0 {
            lines.push(format!("replicas wait for {left_out} more log directories"));
        }
        lines
    }

    fn shown(&self, directory: DirectoryId) -> String {
        let offline = self.log_dirs().iter();
        let offline = offline.filter(|dir| dir.offline_reason().is_some());
        let paths = |is_it: &dyn Fn(Option<DirectoryId>) -> bool| {
            let paths = offline.clone().filter(|dir| is_it(id_of(dir)));
            let paths: Vec<String> = paths.map(|dir| dir.path().display().to_string()).collect();
            paths.join(", ")
        };
        if directory == DirectoryId::LOST || directory.is_undecided() {
            return "a log directory that is not here, whose id is not known".to_owned();
        }
        let id = base64_uuid(directory.0);
        let by_id = paths(&|known| known == Some(directory));
        if !by_id.is_empty() {
            return format!("log directory {by_id} (directory.id={id}), which is offline");
        }
        let unread = paths(&|known| known.is_none());
        match unread.is_empty() {
            true => format!("the log directory with directory.id={id}, which is none of log.dirs"),
            false => format!("the log directory with directory.id={id}, perhaps {unread}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_names_are_shown_and_the_rest_is_counted() {
        let name = |partition| TopicPartition {
            topic: "t".into(),
            partition,
        };
        let names = |count| (0..count).map(name).collect();
        assert_eq!(shown(&names(2)), "t-0, t-1");
        assert!(shown(&names(10)).ends_with(", t-9"));
        assert!(shown(&names(13)).ends_with(", t-9 and 3 more"));
    }
}
