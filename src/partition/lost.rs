//! Logs of which there are signs in this broker's directories, and which cannot be used: what is
//! known of them, and what the operator is told.
//!
//! ```text
//! in the directory that the metadata names         sign of
//! ------------------------------------------------ ----------------------------------------------
//! no directory of the partition, and a line in     lost records (`log::missing`)
//! the recovery-point checkpoint
//! no directory of the partition, nor that          the same, or one that was emptied or put back
//! checkpoint                                       in part
//! no directory of the partition, nor a line, and   a log directory that was replaced by an older
//! the metadata names one of several directories    copy (2)
//! no log, and one that was set aside or was being  records of this partition (`aside`)
//! moved
//! one that cannot be opened, or whose flushed      what is in it
//! records are gone
//! one of another topic that is here too            names that were exchanged
//! one of a topic that nobody knows, where one of   a partition.metadata that was changed (1)
//! this topic was made
//! ```
//!
//! 1. It may also be the log of a topic that was deleted and made again before a crash, or while
//!    this broker was away. Then the directory has never had a log of the new topic
//!    (`log::made`), or nobody had told the controller where that one is.
//! 2. Of several directories the metadata names the one that it has heard of, and it has heard of
//!    one only once the log is in it, durably (`assignments`). A single one it names by itself when
//!    the topic is made, and a crash may come before the log.
//! 3. What is lost and counted on is neither led nor followed; the controller hears of it
//!    (`machine::replica_place`), and as long as the metadata does not change its mind, nothing is
//!    made in its place. The files stay as they are: whoever puts the directory back in order and
//!    starts the broker again has everything.
//! 4. A log that was found elsewhere is taken all the same, if it has all that was flushed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::places::{Waits, id_of, note_made};
use super::registry::Partitions;
use crate::log::{LogDir, LogError};
use crate::machine::replica_place::Assigned;
use crate::metadata::{DirectoryId, MetadataImage};
use crate::types::{Offset, TopicId, TopicPartition, with_causes};

/// Places of logs that could not be opened, and why.
#[derive(Default)]
pub(super) struct Unopened(HashMap<TopicPartition, Vec<(Arc<LogDir>, String)>>);

impl Unopened {
    pub fn add(&mut self, topic_partition: TopicPartition, dir: Arc<LogDir>, why: String) {
        self.0.entry(topic_partition).or_default().push((dir, why));
    }

    fn first(&self, topic_partition: &TopicPartition) -> Option<(Arc<LogDir>, String)> {
        self.0.get(topic_partition)?.first().cloned()
    }
}

/// A log that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub path: PathBuf,
    pub what: String,
    /// A log that goes so far has all that is lost.
    pub flushed: Option<Offset>,
}

impl Partitions {
    /// What there are signs of, where the metadata has this replica.
    pub(super) fn lost(
        &self,
        image: &MetadataImage,
        (topic_partition, topic_id): (&TopicPartition, TopicId),
        replica: Assigned,
    ) -> Option<Lost> {
        let is_given_up = replica.is_new && replica.directory.is_undecided();
        let named = replica.directory;
        if !replica.is_counted_on
            || is_given_up
            || self.found.is_in(named, topic_partition, topic_id)
        {
            return None;
        }
        let lost_in = |dir: &LogDir, what: String, flushed| Lost {
            path: dir.path().join(topic_partition.to_string()),
            what,
            flushed,
        };
        if let Some((dir, what)) = self.unopened.lock().first(topic_partition) {
            return Some(lost_in(&dir, what, None));
        }
        if let Some(lost) = self.records_beside(topic_partition, topic_id, named) {
            return Some(lost);
        }
        let may_be_in =
            |dir: &&Arc<LogDir>| named == DirectoryId::LOST || id_of(dir) == Some(named);
        // Not an older topic's, which has just made way for it.
        let may_have_had = |dir: &&Arc<LogDir>| dir.may_have_had(topic_partition, topic_id);
        let missing = self.working_dirs().filter(may_be_in).filter(may_have_had);
        let missing = missing.filter_map(|dir| Some((dir.missing_log(topic_partition)?, dir)));
        if let Some((flushed, dir)) = missing.max_by_key(|(flushed, _)| *flushed) {
            let what = format!("it is not there, and had flushed records up to offset {flushed}");
            return Some(lost_in(dir, what, Some(flushed)));
        }
        let Some(dir) = self.working_dirs().find(|dir| id_of(dir) == Some(named)) else {
            return self.known_to_be_lost((topic_partition, topic_id), named);
        };
        let Some(other) = dir.log(topic_partition) else {
            let what = self.why_it_was_in(dir, image, (topic_partition, topic_id), replica)?;
            return Some(lost_in(dir, what.to_owned(), None));
        };
        let other = other.topic_id();
        let is_its_own = [topic_id, TopicId::NONE].contains(&other);
        let is_older = !self.names_what_it_heard(image)
            && !dir.forgot_its_logs()
            && !dir.may_have_had(topic_partition, topic_id);
        let what = match image.topic_by_id(other) {
            _ if is_its_own => return None,
            Some(topic) => format!("it holds a log of the topic {} ({other})", topic.name),
            None if is_older => return None,
            None => format!("its partition.metadata names a topic that is not there, {other}"),
        };
        Some(lost_in(dir, what, None))
    }

    /// A log that is not in `dir`, which the metadata names, and of which no line is there.
    fn why_it_was_in(
        &self,
        dir: &LogDir,
        image: &MetadataImage,
        (topic_partition, topic_id): (&TopicPartition, TopicId),
        replica: Assigned,
    ) -> Option<&'static str> {
        // Elections come before the controller has heard that it is lost.
        let key = (topic_id, topic_partition.partition);
        let was_lost = self.waiting.lock().get(&key) == Some(&Waits::IsLost);
        if replica.is_new && !was_lost {
            None
        } else if dir.forgot_its_logs() {
            Some(
                "it is not there, and the recovery-point-offset-checkpoint that would say what it \
                 had is lost",
            )
        } else if self.names_what_it_heard(image)
            && self.found.count(topic_partition, topic_id) == 0
        {
            Some(
                "it is not there, and it was when the controller heard of it; the log directory \
                 may be an older copy",
            )
        } else {
            None
        }
    }

    /// Whether the metadata names no directory of this broker that it was not told (2).
    fn names_what_it_heard(&self, image: &MetadataImage) -> bool {
        let known = image.broker(self.surroundings().this_broker);
        let has_several = known.is_some_and(|known| known.log_dirs.len() > 1);
        has_several && self.had_several_dirs.load(Ordering::Relaxed)
    }

    /// What the metadata calls lost because this broker has said so, and all its directories are
    /// here.
    fn known_to_be_lost(
        &self,
        (topic_partition, topic_id): (&TopicPartition, TopicId),
        named: DirectoryId,
    ) -> Option<Lost> {
        let is_known = named == DirectoryId::LOST
            && !self.own_dirs().is_some_missing
            && self.found.count(topic_partition, topic_id) == 0;
        is_known.then(|| Lost {
            path: PathBuf::from(topic_partition.to_string()),
            what: "it is in none of the log directories, and this broker has told the controller \
                   before that it is lost"
                .to_owned(),
            flushed: None,
        })
    }

    /// Says it once: what is lost, and how to go on. `is_alone`: there are no other replicas.
    pub(super) fn say_what_is_lost(
        &self,
        topic_partition: &TopicPartition,
        lost: &Lost,
        is_alone: bool,
    ) {
        let without = match is_alone {
            true => "the partition begins anew",
            false => "a replica that lives leads with what it has, and this one follows it",
        };
        let TopicPartition { topic, partition } = topic_partition;
        let path = lost.path.display();
        tracing::error!(
            %topic_partition,
            "its log is lost, and it is not served from here: {path}: {}. Put that directory back \
             in order and start the broker again; or go on without it: klamm leader-election \
             --bootstrap-server HOST:PORT --election-type unclean --topic {topic} --partition \
             {partition}: then {without}",
            lost.what
        );
    }

    /// Takes the places of a partition's logs away that could not be opened.
    pub(super) fn set_aside_unopened(
        &self,
        topic_partition: &TopicPartition,
    ) -> Result<(), LogError> {
        let unopened = self.unopened.lock().0.remove(topic_partition);
        for (dir, why) in unopened.into_iter().flatten() {
            if let Some(path) = dir.set_aside_unopened(topic_partition)? {
                let path = path.display();
                tracing::warn!(%topic_partition, "set aside as {path}: {why}");
            }
        }
        Ok(())
    }

    /// Once the metadata has said what is to be here; `is_all`: of every partition.
    pub(super) fn remember_logs(&self, image: &MetadataImage, is_all: bool) {
        self.remember_missing(image);
        if is_all || self.working_dirs().any(|dir| !dir.has_all_made()) {
            self.note_all_made();
        }
    }

    /// While something is lost, no directory passes for one that knows which logs were made in it,
    /// if it did not before.
    fn note_all_made(&self) {
        let is_some_lost = {
            let waiting = self.waiting.lock();
            waiting.values().any(|why| *why == Waits::IsLost)
        };
        if is_some_lost {
            return;
        }
        for partition in self.all() {
            let dir = partition.log_dir();
            note_made(&dir, &partition.topic_partition, partition.topic_id);
        }
        for dir in self.working_dirs().filter(|dir| !dir.forgot_its_logs()) {
            if let Err(error) = dir.knows_made_logs() {
                tracing::error!("{}", with_causes(&error));
            }
        }
    }

    /// As long as the controller may not have heard that a log is lost, the next start has to find
    /// that out again.
    fn remember_missing(&self, image: &MetadataImage) {
        let has_forgotten = |dir: &&Arc<LogDir>| dir.forgot_its_logs();
        let mut forgetful = self.working_dirs().filter(has_forgotten).peekable();
        if forgetful.peek().is_none() || self.is_some_lost_untold(image) {
            return;
        }
        for dir in forgetful {
            if let Err(error) = dir.remembers_its_logs() {
                tracing::error!("{}", with_causes(&error));
            }
        }
    }

    fn is_some_lost_untold(&self, image: &MetadataImage) -> bool {
        let is_told = |(topic_id, partition): (TopicId, i32)| {
            let topic = image.topic_by_id(topic_id);
            let registration = topic.and_then(|topic| topic.partitions.get(partition))?;
            let named = registration.directory(self.surroundings().this_broker)?;
            Some(named == DirectoryId::LOST)
        };
        let waiting = self.waiting.lock();
        let mut lost = waiting.iter().filter(|(_, why)| **why == Waits::IsLost);
        lost.any(|(key, _)| is_told(*key) == Some(false))
    }

    /// Nothing that is missing of this name is waited for any more.
    pub(super) fn forget_missing(&self, topic_partition: &TopicPartition) {
        for dir in self.working_dirs() {
            dir.forget_missing(topic_partition);
        }
    }

    /// What is missing of partitions that the metadata does not have here was deleted meanwhile.
    pub(super) fn forget_missing_of_others(&self, image: &MetadataImage) {
        for dir in self.working_dirs() {
            for topic_partition in dir.missing_logs() {
                if !self.is_to_be_here(image, &topic_partition) {
                    dir.forget_missing(&topic_partition);
                }
            }
        }
    }

    /// Whether the metadata has a replica of this name here.
    pub(super) fn is_to_be_here(
        &self,
        image: &MetadataImage,
        topic_partition: &TopicPartition,
    ) -> bool {
        let topic = image.topic(&topic_partition.topic);
        let partition = topic.and_then(|topic| topic.partitions.get(topic_partition.partition));
        partition.is_some_and(|p| p.replicas.contains(&self.surroundings().this_broker))
    }
}
