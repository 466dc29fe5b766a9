//! Logs on disk of partitions that the metadata does not have on this broker: their topic was
//! deleted, or the replica went elsewhere, while their directory was away.
//!
//! 1. They are set aside (`-stray`) and kept, as Kafka does; an empty one is deleted.
//! 2. Not before the metadata is that of this run; what was known before may be older.
//! 3. A metadata that knows none of the logs here may be another cluster's or have begun anew: then
//!    all are left alone.
//! 4. So is a log whose topic is here by another name: somebody has renamed its directory, and may
//!    want to have it back (`lost`).

use std::sync::atomic::Ordering;

use super::found::Found;
use super::registry::Partitions;
use crate::log::LogError;
use crate::metadata::MetadataImage;
use crate::types::{TopicPartition, with_causes};

impl Partitions {
    /// Logs that were found and that no replica has taken; what was set aside is not among them.
    pub fn strays(&self) -> Vec<TopicPartition> {
        let mut strays = self.found.names();
        strays.extend(self.moves.found.names());
        strays
    }

    pub(super) fn set_aside_strays(&self, image: &MetadataImage) {
        let strays = |names: Vec<TopicPartition>| {
            let is_stray = |name: &TopicPartition| !self.is_to_be_here(image, name);
            names.into_iter().filter(is_stray)
        };
        if !self.has_claimed.load(Ordering::Relaxed) {
            strays(self.strays()).for_each(|name| say_that_it_stays(&name));
            return;
        }
        for topic_partition in strays(self.found.names()) {
            for found in self.found.take_rest(&topic_partition) {
                let of_topic = image.topic_by_id(found.log.topic_id());
                if of_topic.is_some_and(|topic| topic.name != topic_partition.topic) {
                    say_that_it_stays(&topic_partition);
                    self.found.add(found);
                } else if let Err(error) = self.set_aside_stray(&found) {
                    let error = with_causes(&error);
                    tracing::error!(%topic_partition, "cannot be set aside: {error}");
                }
            }
        }
        for topic_partition in strays(self.moves.found.names()) {
            for Found { log_dir, .. } in self.moves.found.take_rest(&topic_partition) {
                match log_dir.set_aside_future_log(&topic_partition) {
                    Ok(path) => tracing::warn!(%topic_partition, ?path, "a move is set aside"),
                    Err(error) => tracing::error!(%topic_partition, "not set aside: {error}"),
                }
            }
        }
    }

    fn set_aside_stray(&self, found: &Found) -> Result<(), LogError> {
        let topic_partition = found.log.topic_partition();
        let (id, was) = (found.log.topic_id(), found.described());
        if found.has_nothing_beside(None) {
            self.delete(&found.log_dir, topic_partition);
            tracing::info!(%topic_partition, %id, "not in the metadata: {was}; deleted");
        } else if let Some(path) = found.log_dir.set_aside_log(topic_partition)? {
            tracing::warn!(
                %topic_partition, %id,
                "the metadata does not have it on this broker: {was}; its records are kept, set \
                 aside as {}",
                path.display()
            );
        }
        Ok(())
    }
}

fn say_that_it_stays(topic_partition: &TopicPartition) {
    tracing::warn!(%topic_partition, "on disk and not in the metadata; left alone");
}
