//! Records of this broker's partitions in directories that are not logs (`-stray`, `-delete`), or
//! are none yet (`-future`), found at the start: metadata that was older has set them aside, or
//! somebody has.
//!
//! 1. They are a sign of a lost log (`lost`) where the metadata counts on this replica and there is
//!    no log of it, if the directory that it names is here, or none is named. Else the log is in
//!    the one that is away.
//! 2. Nothing is brought back by itself: which one is the newest of several, and why it was set
//!    aside, is the operator's to know.
//! 3. What was to be deleted is not, before the metadata is that of this run, and as long as the
//!    metadata has the replica and there is no log of it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::lost::Lost;
use super::places::id_of;
use super::registry::Partitions;
use crate::log::{Deletion, SetAside};
use crate::metadata::DirectoryId;
use crate::types::{TopicId, TopicPartition};

/// Where the records are of what partition, and the other way round: of ten thousand deletions each
/// asks.
#[derive(Default)]
pub(super) struct Records {
    by_replica: HashMap<(TopicId, i32), Vec<PathBuf>>,
    replicas: HashMap<PathBuf, (TopicId, i32)>,
}

impl Records {
    pub fn add(&mut self, set_aside: Vec<SetAside>) {
        for one in set_aside {
            let replica = (one.topic_id, one.partition);
            self.replicas.insert(one.path.clone(), replica);
            self.by_replica.entry(replica).or_default().push(one.path);
        }
    }

    pub fn forget(&mut self, deletion: &Deletion) {
        for path in &deletion.paths {
            let replica = self.replicas.remove(path);
            if let Some(paths) = replica.and_then(|replica| self.by_replica.get_mut(&replica)) {
                paths.retain(|other| other != path);
            }
        }
    }

    fn of(&self, replica: (TopicId, i32)) -> &[PathBuf] {
        self.by_replica.get(&replica).map_or(&[], Vec::as_slice)
    }
}

impl Partitions {
    /// Whether a log that is not found can only be lost: it is in no directory that is away.
    fn would_be_here(&self, named: DirectoryId) -> bool {
        let is_open = named == DirectoryId::LOST || named.is_undecided();
        is_open || self.working_dirs().any(|dir| id_of(dir) == Some(named))
    }

    /// Whether records may still be wanted that are to be deleted.
    pub(super) fn may_be_wanted(&self, deletion: &Deletion) -> bool {
        let is_known = self.is_registered.load(Ordering::SeqCst);
        let waiting = self.waiting.lock();
        let set_aside = self.set_aside.lock();
        let mut replicas = deletion
            .paths
            .iter()
            .filter_map(|p| set_aside.replicas.get(p));
        replicas.any(|replica| !is_known || waiting.contains_key(replica))
    }

    /// The records that are beside the place of a log that is not there.
    pub(super) fn records_beside(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        named: DirectoryId,
    ) -> Option<Lost> {
        if !self.would_be_here(named) || self.found.count(topic_partition, topic_id) > 0 {
            return None;
        }
        let key = (topic_id, topic_partition.partition);
        let set_aside = self.set_aside.lock().of(key).to_vec();
        let of_moves = self.moves.found.paths(topic_partition, topic_id);
        let (paths, what) = match set_aside.is_empty() {
            false => (set_aside, "records of it were set aside as"),
            true => (
                of_moves,
                "what a move has copied of it, perhaps not all, is",
            ),
        };
        let path = paths.first()?.with_file_name(topic_partition.to_string());
        let all: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        Some(Lost {
            what: format!(
                "it is not there, and {what} {}: without a better copy, stop the broker and rename \
                 that directory to {topic_partition}",
                all.join(" and ")
            ),
            path,
            flushed: None,
        })
    }
}
