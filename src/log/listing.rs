//! What a log directory holds at the start, by the names of its entries.
//!
//! 1. Nothing is removed here, and so no start waits for a removal: what is to go has or gets a
//!    name that says so, and goes once its time has come.
//! 2. No name of a partition is in the list twice, once as a future log's.
//! 3. One bad entry is of no use by itself; the others are as they were.

use std::collections::BTreeMap;

use crate::host::random;
use crate::types::{TimestampMs, TopicPartition};

use super::aside::SetAside;
use super::dir_core::DirCore;
use super::error::LogError;
use super::log::Deletion;
use super::names::{self, DirName};

/// A partition's directory; of a future log with its name.
pub(super) type Place = (TopicPartition, Option<String>);

#[derive(Default)]
pub(super) struct Listing {
    pub partitions: Vec<Place>,
    /// What has the name of a partition and is no directory.
    pub blocked: Vec<TopicPartition>,
    /// What was deleted.
    pub deletions: Vec<Deletion>,
    /// What is not in the logs any more and has records.
    pub set_aside: Vec<SetAside>,
    /// What else is there.
    pub ignored: Vec<String>,
}

impl Listing {
    /// Deleted directories are to be removed at `due`.
    pub fn read(core: &DirCore, due: TimestampMs) -> Result<Listing, LogError> {
        let entries = core.disk.list(&core.path);
        let entries = entries.map_err(|e| core.read_failed(&core.path, e))?;
        let mut listing = Listing::default();
        let mut futures = BTreeMap::new();
        for entry in entries {
            match DirName::parse(&entry.name) {
                DirName::Partition(partition) if !entry.is_dir => listing.blocked.push(partition),
                _ if !entry.is_dir => {}
                DirName::Partition(partition) => listing.partitions.push((partition, None)),
                DirName::Delete => {
                    listing.set_aside.extend(SetAside::read(core, &entry.name));
                    listing.remove_later(core, &entry.name, due);
                }
                DirName::Future(partition) => {
                    if let Some(second) = futures.insert(partition.clone(), entry.name) {
                        listing.give_up(core, &partition, &second, due)?;
                    }
                }
                DirName::Stray => {
                    listing.set_aside.extend(SetAside::read(core, &entry.name));
                    listing.ignored.push(entry.name);
                }
                DirName::Foreign => listing.ignored.push(entry.name),
            }
        }
        let current: Vec<_> = listing.partitions.iter().map(|(p, _)| p.clone()).collect();
        for partition in current {
            if let Some(name) = futures.remove(&partition) {
                // There is nothing to move.
                listing.give_up(core, &partition, &name, due)?;
            }
        }
        let futures = futures.into_iter().map(|(place, name)| (place, Some(name)));
        listing.partitions.extend(futures);
        Ok(listing)
    }

    fn remove_later(&mut self, core: &DirCore, name: &str, due: TimestampMs) {
        let paths = vec![core.path.join(name)];
        self.deletions.push(Deletion { due, paths });
    }

    /// A later start must not take a future log that is not wanted for one that is.
    fn give_up(
        &mut self,
        core: &DirCore,
        partition: &TopicPartition,
        future_name: &str,
        due: TimestampMs,
    ) -> Result<(), LogError> {
        let name = names::delete_dir(partition, random::uuid());
        let (from, to) = (core.path.join(future_name), core.path.join(&name));
        core.change("rename", &from, || core.disk.rename(&from, &to))?;
        self.remove_later(core, &name, due);
        Ok(())
    }
}
