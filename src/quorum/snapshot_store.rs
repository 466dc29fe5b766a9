//! Snapshots: the image as records, one after the other and packed, in the key-value store.
//!
//! Writing one, by steps, and what a crash after each leaves behind:
//!
//! 1. the parts of the new generation, a few hundred a commit: the old snapshot counts, the parts
//!    are garbage that the next snapshot deletes;
//! 2. the header, in one commit with the deletion of every other generation: the new one counts.

use std::io::Cursor;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::host::KeyValue;
use crate::host::key_value::Change;
use crate::metadata::{ImageDelta, MetadataImage, MetadataRecord};
use crate::types::Offset;

use super::QuorumError;
use super::keys::{self, Parts};
use super::packing::{pack, unpack};
use super::raft_types::{LogId, SnapshotMeta};

/// About 1 MiB.
const PARTS_PER_COMMIT: usize = 256;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SnapshotHeader {
    generation: u64,
    bytes: u64,
    meta: SnapshotMeta,
}

#[derive(Clone)]
pub(super) struct SnapshotStore {
    store: Arc<dyn KeyValue>,
    /// One snapshot is written at a time.
    state: Arc<Mutex<State>>,
}

struct State {
    /// The one that counts.
    generation: u64,
    closed: bool,
}

impl SnapshotStore {
    pub(super) fn open(store: Arc<dyn KeyValue>) -> Result<Self, QuorumError> {
        let header = header(&*store)?;
        let state = State {
            generation: header.map_or(0, |header| header.generation),
            closed: false,
        };
        Ok(SnapshotStore {
            store,
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// Lets a snapshot that is being written end and allows no other: openraft may still have one
    /// in mind when it has stopped, and the store belongs to the next one then.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
    }

    /// The snapshot that counts.
    pub(super) fn load(&self) -> Result<Option<(SnapshotMeta, Vec<u8>)>, QuorumError> {
        let _one_at_a_time = self.state.lock();
        let Some(header) = header(&*self.store)? else {
            return Ok(None);
        };
        let end = Parts::Snapshot.end(header.generation);
        let mut snapshot = Vec::new();
        Parts::Snapshot.read(&*self.store, header.generation, &end, |_, bytes| {
            snapshot = bytes.to_vec();
            Ok(())
        })?;
        if snapshot.len() as u64 != header.bytes {
            let reason = format!("{} of {} bytes are there", snapshot.len(), header.bytes);
            return Err(keys::damaged("the snapshot", reason));
        }
        Ok(Some((header.meta, snapshot)))
    }

    /// Makes `bytes` the snapshot that counts. Blocks.
    pub(super) fn save(&self, meta: &SnapshotMeta, bytes: &[u8]) -> Result<(), QuorumError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(QuorumError::Stopped);
        }
        let generation = state.generation + 1;
        self.delete(Parts::Snapshot.keys(&*self.store, generation, &snapshots_end())?)?;
        let mut part = 0;
        for piece in bytes.chunks(keys::PART_BYTES * PARTS_PER_COMMIT) {
            let changes = Parts::Snapshot.put(generation, part, piece);
            part += changes.len() as u32;
            self.store.commit(changes).map_err(QuorumError::Store)?;
        }
        let header = SnapshotHeader {
            generation,
            bytes: bytes.len() as u64,
            meta: meta.clone(),
        };
        let old = Parts::Snapshot.keys(&*self.store, 0, &Parts::Snapshot.key(generation, 0))?;
        let mut changes = vec![keys::put(keys::SNAPSHOT, &header)];
        changes.extend(old.into_iter().map(|key| Change::Delete { key }));
        self.store.commit(changes).map_err(QuorumError::Store)?;
        state.generation = generation;
        Ok(())
    }

    fn delete(&self, keys: Vec<Vec<u8>>) -> Result<(), QuorumError> {
        if keys.is_empty() {
            return Ok(());
        }
        let changes = keys.into_iter().map(|key| Change::Delete { key }).collect();
        self.store.commit(changes).map_err(QuorumError::Store)
    }
}

fn header(store: &dyn KeyValue) -> Result<Option<SnapshotHeader>, QuorumError> {
    keys::get(store, keys::SNAPSHOT, "the snapshot header")
}

fn snapshots_end() -> Vec<u8> {
    Parts::Snapshot.end(u64::MAX)
}

/// The bytes of a snapshot of `image`.
pub(super) fn encode_image(image: &MetadataImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in image.records() {
        rmp_serde::encode::write_named(&mut bytes, &record)
            .expect("a record has no value MessagePack cannot hold");
    }
    pack(&bytes)
}

/// The image of a snapshot that ends with `last`.
pub(super) fn decode_image(
    last: Option<LogId>,
    bytes: &[u8],
) -> Result<MetadataImage, QuorumError> {
    image_at(
        last.map(|last| (offset_of(last), last.leader_id.term)),
        bytes,
    )
}

/// The image of a snapshot that ends with the entry at an offset, of an epoch.
pub(super) fn image_at(
    last: Option<(Offset, u64)>,
    bytes: &[u8],
) -> Result<MetadataImage, QuorumError> {
    let place = "the snapshot";
    let mut image = MetadataImage::empty();
    if let Some((offset, epoch)) = last {
        image.begin_entry(offset, epoch);
    }
    let mut delta = ImageDelta::default();
    let bytes = unpack(place, bytes)?;
    let mut reader = Cursor::new(&*bytes);
    while (reader.position() as usize) < bytes.len() {
        let record: MetadataRecord = rmp_serde::from_read(&mut reader)
            .map_err(|error| keys::damaged(place, error.to_string()))?;
        image
            .apply(&record, &mut delta)
            .map_err(|error| keys::damaged(place, error.to_string()))?;
    }
    Ok(image)
}

/// The offset of an entry in the metadata log is its index.
pub(super) fn offset_of(log_id: LogId) -> Offset {
    Offset(log_id.index as i64)
}
