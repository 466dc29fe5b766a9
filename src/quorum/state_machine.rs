//! The state machine of the quorum: it applies committed entries to the image and publishes it.
//!
//! The image lives in memory only. After a start it is that of the last snapshot, and openraft
//! gives the entries behind it again.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openraft::storage::RaftStateMachine;
use openraft::{
    AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError,
};

use crate::host::{tasks, turns};
use crate::metadata::{ApplyError, ImageDelta, MetadataImage};

use super::QuorumError;
use super::published::Published;
use super::raft_types::{Entry, LogId, Membership, SnapshotMeta, StorageError, Types};
use super::rpc::FetchedEntry;
use super::snapshot_store::{SnapshotStore, decode_image, encode_image, offset_of};

pub(super) struct StateMachine {
    image: MetadataImage,
    last_applied: Option<LogId>,
    membership: Membership,
    snapshots: SnapshotStore,
    published: Arc<Published>,
    /// Set to 0 with each snapshot.
    appended_bytes: Arc<AtomicU64>,
}

impl StateMachine {
    /// The state machine as of the last snapshot, and where it publishes its images.
    pub(super) fn open(
        snapshots: SnapshotStore,
        appended_bytes: Arc<AtomicU64>,
    ) -> Result<(Self, Arc<Published>), QuorumError> {
        let (meta, image) = match snapshots.load()? {
            Some((meta, bytes)) => {
                let image = decode_image(meta.last_log_id, &bytes)?;
                (meta, image)
            }
            None => (SnapshotMeta::default(), MetadataImage::empty()),
        };
        let published = Arc::new(Published::new(image.clone()));
        let machine = StateMachine {
            image,
            last_applied: meta.last_log_id,
            membership: meta.last_membership,
            snapshots,
            published: published.clone(),
            appended_bytes,
        };
        Ok((machine, published))
    }

    /// The entry as those get it who follow from elsewhere.
    fn apply_entry(
        &mut self,
        entry: Entry,
        delta: &mut ImageDelta,
    ) -> Result<FetchedEntry, ApplyError> {
        let log_id = entry.log_id;
        self.last_applied = Some(log_id);
        self.image
            .begin_entry(offset_of(log_id), log_id.leader_id.term);
        let records = match entry.payload {
            EntryPayload::Blank => Arc::default(),
            EntryPayload::Membership(membership) => {
                self.membership = Membership::new(Some(log_id), membership);
                Arc::default()
            }
            EntryPayload::Normal(batch) => {
                for record in batch.0.iter() {
                    self.image.apply(record, delta)?;
                }
                batch.0
            }
        };
        Ok(FetchedEntry {
            offset: offset_of(log_id).0,
            epoch: log_id.leader_id.term,
            records,
        })
    }
}

impl Drop for StateMachine {
    /// Nothing is applied any more.
    fn drop(&mut self) {
        self.published.close();
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.last_applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut delta = ImageDelta::default();
        let mut answers = Vec::new();
        let mut applied_entries = Vec::new();
        for entry in entries {
            let log_id = entry.log_id;
            let applied = turns::in_place(|| self.apply_entry(entry, &mut delta));
            let applied =
                applied.map_err(|error| StorageIOError::apply(log_id, AnyError::new(&error)))?;
            applied_entries.push(applied);
            answers.push(());
        }
        let image = self.image.clone();
        self.published
            .publish_entries(image, &delta, applied_entries);
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        self.appended_bytes.store(0, Ordering::Relaxed);
        SnapshotBuilder {
            image: self.image.clone(),
            last_applied: self.last_applied,
            membership: self.membership.clone(),
            snapshots: self.snapshots.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = snapshot.into_inner();
        let image = decode_image(meta.last_log_id, &bytes).map_err(|e| {
            StorageIOError::read_snapshot(Some(meta.signature()), AnyError::new(&e))
        })?;
        save(&self.snapshots, meta, bytes).await?;
        self.image = image;
        self.last_applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.published
            .publish(self.image.clone(), &ImageDelta::everything());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let loaded = self.snapshots.load();
        let loaded =
            loaded.map_err(|error| StorageIOError::read_snapshot(None, AnyError::new(&error)))?;
        Ok(loaded.map(|(meta, bytes)| Snapshot {
            meta,
            snapshot: Box::new(Cursor::new(bytes)),
        }))
    }
}

/// Writes a snapshot of one image while the state machine goes on.
pub(super) struct SnapshotBuilder {
    image: MetadataImage,
    last_applied: Option<LogId>,
    membership: Membership,
    snapshots: SnapshotStore,
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let meta = SnapshotMeta {
            last_log_id: self.last_applied,
            last_membership: self.membership.clone(),
            snapshot_id: match self.last_applied {
                Some(last) => format!("{}-{}", last.leader_id.term, last.index),
                None => "empty".into(),
            },
        };
        let image = self.image.clone();
        let encoded = tasks::spawn_blocking(move || encode_image(&image)).await;
        let bytes = encoded.map_err(|error| {
            StorageIOError::write_snapshot(Some(meta.signature()), AnyError::new(&error))
        })?;
        let bytes = save(&self.snapshots, &meta, bytes).await?;
        Ok(Snapshot {
            meta,
            snapshot: Box::new(Cursor::new(bytes)),
        })
    }
}

/// Saves on a thread that may block; gives the bytes back.
async fn save(
    snapshots: &SnapshotStore,
    meta: &SnapshotMeta,
    bytes: Vec<u8>,
) -> Result<Vec<u8>, StorageError> {
    let snapshots = snapshots.clone();
    let header = meta.clone();
    let saved =
        tasks::spawn_blocking(move || snapshots.save(&header, &bytes).map(|()| bytes)).await;
    let failed = |error: &(dyn std::error::Error + 'static)| {
        StorageIOError::write_snapshot(Some(meta.signature()), AnyError::error(error)).into()
    };
    match saved {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}
