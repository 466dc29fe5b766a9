//! One partition of the image, and the list of a topic's partitions.
//!
//! A cluster may have 100,000 partitions and an image is cloned for each entry of the log, so:
//!
//! 1. A partition is 72 bytes. Lists of brokers are shared between partitions where they are equal,
//!    and what only a reassignment or an ELR needs is behind one pointer that is usually empty.
//! 2. The list is cut into chunks that images share. Changing one partition copies its chunk and
//!    the list of chunks, not the other partitions.
//!
//! ```text
//! Partitions -> [chunk 0] -> partitions 0..64
//!               [chunk 1] -> partitions 64..128
//!               ...                               only the last chunk may be shorter
//! ```

use std::sync::Arc;

use crate::metadata::records::{DirectoryId, PartitionChangeRecord, PartitionRecord, Replicas};
use crate::types::{BrokerId, LeaderEpoch};

const CHUNK_PARTITIONS: usize = 64;

/// What the cluster agreed on about one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRegistration {
    /// The first one is the preferred leader.
    pub replicas: Replicas,
    pub isr: Replicas,
    /// The directory of each replica, in the order of `replicas`; empty when never told.
    pub directories: Arc<[DirectoryId]>,
    rare: Option<Arc<Rare>>,
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: i32,
}

/// What most partitions have nothing of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rare {
    removing_replicas: Replicas,
    adding_replicas: Replicas,
    eligible_leader_replicas: Replicas,
    last_known_elr: Replicas,
    leader_recovery_state: i8,
}

impl PartitionRegistration {
    pub fn removing_replicas(&self) -> &[BrokerId] {
        self.rare.as_ref().map_or(&[], |r| &r.removing_replicas)
    }

    pub fn adding_replicas(&self) -> &[BrokerId] {
        self.rare.as_ref().map_or(&[], |r| &r.adding_replicas)
    }

    /// Whether its replicas are on their way to others.
    pub fn is_reassigning(&self) -> bool {
        !self.adding_replicas().is_empty() || !self.removing_replicas().is_empty()
    }

    pub fn eligible_leader_replicas(&self) -> &[BrokerId] {
        let rare = self.rare.as_ref();
        rare.map_or(&[], |r| &r.eligible_leader_replicas)
    }

    pub fn last_known_elr(&self) -> &[BrokerId] {
        self.rare.as_ref().map_or(&[], |r| &r.last_known_elr)
    }

    /// Whether every replica in sync has crashed since it was, so that any of those that have may
    /// be the one with most of the log.
    pub fn is_contested(&self) -> bool {
        let crashed = self.last_known_elr();
        let alike = |broker: &BrokerId| crashed.contains(broker);
        !self.has_leader() && !crashed.is_empty() && self.isr.iter().all(alike)
    }

    pub fn leader_recovery_state(&self) -> i8 {
        self.rare.as_ref().map_or(0, |r| r.leader_recovery_state)
    }

    pub fn has_leader(&self) -> bool {
        self.leader != BrokerId::NONE
    }

    /// Where `broker` keeps its replica, if it has one.
    pub fn directory(&self, broker: BrokerId) -> Option<DirectoryId> {
        let place = self.replicas.iter().position(|r| *r == broker)?;
        let told = self.directories.get(place).copied();
        Some(told.unwrap_or(DirectoryId::UNASSIGNED))
    }

    /// The partition that `record` makes; lists that equal those of `like` are shared with it.
    pub(super) fn new(record: &PartitionRecord, like: Option<&PartitionRegistration>) -> Self {
        let replicas = share(&record.replicas, like.map(|l| &l.replicas));
        let isr = share(&record.isr, Some(&replicas));
        let rare = Rare {
            removing_replicas: record.removing_replicas.clone(),
            adding_replicas: record.adding_replicas.clone(),
            eligible_leader_replicas: record.eligible_leader_replicas.clone(),
            last_known_elr: record.last_known_elr.clone(),
            leader_recovery_state: record.leader_recovery_state,
        };
        PartitionRegistration {
            isr: share(&isr, like.map(|l| &l.isr)),
            directories: share(&record.directories, like.map(|l| &l.directories)),
            replicas,
            rare: rare.boxed(),
            leader: record.leader,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        }
    }

    pub(super) fn change(&mut self, record: &PartitionChangeRecord) {
        let mut rare = self.rare.as_deref().cloned().unwrap_or_default();
        set(&mut rare.removing_replicas, &record.removing_replicas);
        set(&mut rare.adding_replicas, &record.adding_replicas);
        set(
            &mut rare.eligible_leader_replicas,
            &record.eligible_leader_replicas,
        );
        set(&mut rare.last_known_elr, &record.last_known_elr);
        if let Some(state) = record.leader_recovery_state {
            rare.leader_recovery_state = state;
        }
        self.rare = rare.boxed();
        match (&record.directories, &record.replicas) {
            (Some(directories), _) => self.directories = directories.clone(),
            (None, Some(replicas)) => self.directories = self.directories_of(replicas),
            (None, None) => {}
        }
        set(&mut self.replicas, &record.replicas);
        if let Some(isr) = &record.isr {
            self.isr = share(isr, Some(&self.replicas));
        }
        if let Some(leader) = record.leader {
            self.leader = leader;
            self.leader_epoch = LeaderEpoch(self.leader_epoch.0 + 1);
        }
        self.partition_epoch += 1;
    }

    /// A replica that stays stays in its directory.
    fn directories_of(&self, replicas: &[BrokerId]) -> Arc<[DirectoryId]> {
        let directory = |broker| self.directory(broker).unwrap_or(DirectoryId::UNASSIGNED);
        replicas.iter().map(|broker| directory(*broker)).collect()
    }
}

impl Rare {
    fn boxed(self) -> Option<Arc<Rare>> {
        (self != Rare::default()).then(|| Arc::new(self))
    }
}

fn set<T>(list: &mut Arc<[T]>, changed: &Option<Arc<[T]>>) {
    if let Some(changed) = changed {
        *list = changed.clone();
    }
}

/// `list`, or `known` when it holds the same.
fn share<T: PartialEq>(list: &Arc<[T]>, known: Option<&Arc<[T]>>) -> Arc<[T]> {
    match known {
        Some(known) if known == list => known.clone(),
        _ => list.clone(),
    }
}

/// A topic's partitions by index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partitions {
    chunks: Arc<Vec<Arc<Vec<PartitionRegistration>>>>,
}

impl Partitions {
    pub fn len(&self) -> usize {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() - 1) * CHUNK_PARTITIONS + last.len(),
            None => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn get(&self, partition: i32) -> Option<&PartitionRegistration> {
        let index = usize::try_from(partition).ok()?;
        let chunk = self.chunks.get(index / CHUNK_PARTITIONS)?;
        chunk.get(index % CHUNK_PARTITIONS)
    }

    /// Every partition with its index, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &PartitionRegistration)> {
        (0..).zip(self.chunks.iter().flat_map(|chunk| chunk.iter()))
    }

    pub(super) fn get_mut(&mut self, partition: i32) -> Option<&mut PartitionRegistration> {
        self.get(partition)?;
        let index = partition as usize;
        let chunk = &mut Arc::make_mut(&mut self.chunks)[index / CHUNK_PARTITIONS];
        Arc::make_mut(chunk).get_mut(index % CHUNK_PARTITIONS)
    }

    pub(super) fn push(&mut self, partition: PartitionRegistration) {
        let chunks = Arc::make_mut(&mut self.chunks);
        match chunks.last_mut() {
            Some(last) if last.len() < CHUNK_PARTITIONS => {
                let last = Arc::make_mut(last);
                last.reserve_exact(last.len().min(CHUNK_PARTITIONS - last.len()));
                last.push(partition);
            }
            _ => {
                chunks.reserve_exact(if chunks.is_empty() { 1 } else { chunks.len() });
                // Most topics have few partitions: grow from one, by doubling.
                chunks.push(Arc::new(vec![partition]));
            }
        }
    }
}
