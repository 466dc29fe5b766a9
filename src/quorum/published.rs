//! The image as others see it: the newest one for a look, and every change in order for those that
//! react to changes.
//!
//! 1. `image()` never waits.
//! 2. The newest entries are kept for nodes that follow from elsewhere; one that is further behind
//!    gets the whole image.
//! 3. A subscriber sees deltas that add up: each one covers all that changed since its last image.
//!    A slow subscriber gets several changes as one.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::metadata::{ImageDelta, MetadataImage};
use crate::types::Offset;

use super::rpc::{Content, FetchedEntry};
use super::snapshot_store::encode_image;

/// How many of the newest records are kept for those that follow.
const KEPT_RECORDS_MAX: usize = 20_000;
const KEPT_ENTRIES_MAX: usize = 2_000;

pub(super) struct Published {
    image: ArcSwap<MetadataImage>,
    reached: watch::Sender<Offset>,
    kept: Mutex<Kept>,
    subscribers: Mutex<Vec<Weak<Slot>>>,
}

/// The newest entries without a gap, oldest first; the last one is the image's.
#[derive(Default)]
struct Kept {
    entries: VecDeque<FetchedEntry>,
    records: usize,
}

impl Kept {
    fn add(&mut self, entry: FetchedEntry) {
        let follows = self
            .entries
            .back()
            .is_none_or(|last| last.offset + 1 == entry.offset);
        if !follows {
            *self = Kept::default();
        }
        self.records += entry.records.len();
        self.entries.push_back(entry);
        while self.records > KEPT_RECORDS_MAX || self.entries.len() > KEPT_ENTRIES_MAX {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.records -= oldest.records.len();
        }
    }

    /// Every entry behind `offset`; `None` when some are not kept any more.
    fn after(&self, offset: Offset) -> Option<Vec<FetchedEntry>> {
        let first = self.entries.front()?.offset;
        let skip = usize::try_from(offset.0 + 1 - first).ok()?;
        Some(self.entries.iter().skip(skip).cloned().collect())
    }
}

struct Slot {
    /// What the subscriber has not seen yet; the flag says that no more will come.
    waiting: Mutex<(Option<Change>, bool)>,
    changed: Notify,
}

/// An image and what changed since the one before.
#[derive(Debug, Clone)]
pub struct Change {
    pub image: Arc<MetadataImage>,
    pub delta: ImageDelta,
}

impl Published {
    pub(super) fn new(image: MetadataImage) -> Self {
        Published {
            reached: watch::Sender::new(image.offset()),
            kept: Mutex::default(),
            image: ArcSwap::from_pointee(image),
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn image(&self) -> Arc<MetadataImage> {
        self.image.load_full()
    }

    /// Becomes the offset of each image.
    pub(super) fn reached(&self) -> watch::Receiver<Offset> {
        self.reached.subscribe()
    }

    /// What a node whose last entry is `offset` lacks.
    pub(super) fn content_after(&self, offset: Offset) -> Content {
        if let Some(entries) = self.kept.lock().after(offset)
            && !entries.is_empty()
        {
            return Content::Entries(entries);
        }
        let image = self.image();
        Content::Image {
            offset: image.offset().0,
            epoch: image.epoch(),
            bytes: encode_image(&image),
        }
    }

    /// As [`Published::publish`]; the image has `entries` since the last one.
    pub(super) fn publish_entries(
        &self,
        image: MetadataImage,
        delta: &ImageDelta,
        entries: Vec<FetchedEntry>,
    ) {
        {
            let mut kept = self.kept.lock();
            entries.into_iter().for_each(|entry| kept.add(entry));
        }
        self.publish(image, delta);
    }

    pub(super) fn publish(&self, image: MetadataImage, delta: &ImageDelta) {
        let image = Arc::new(image);
        // The lock orders this against a new subscriber: it either begins with this image or is
        // told of it.
        let mut subscribers = self.subscribers.lock();
        self.image.store(image.clone());
        subscribers.retain(|slot| {
            let Some(slot) = slot.upgrade() else {
                return false;
            };
            slot.add(&image, delta);
            true
        });
        self.reached.send_replace(image.offset());
    }

    /// The first change is the present image as a whole.
    pub(super) fn subscribe(&self) -> Subscription {
        let mut subscribers = self.subscribers.lock();
        let first = Change {
            image: self.image(),
            delta: ImageDelta::everything(),
        };
        let slot = Arc::new(Slot {
            waiting: Mutex::new((Some(first), false)),
            changed: Notify::new(),
        });
        subscribers.push(Arc::downgrade(&slot));
        Subscription { slot }
    }

    /// Tells the subscribers that nothing more comes.
    pub(super) fn close(&self) {
        for slot in self.subscribers.lock().drain(..) {
            if let Some(slot) = slot.upgrade() {
                slot.waiting.lock().1 = true;
                slot.changed.notify_one();
            }
        }
    }
}

impl Slot {
    fn add(&self, image: &Arc<MetadataImage>, delta: &ImageDelta) {
        let mut waiting = self.waiting.lock();
        match &mut waiting.0 {
            Some(change) => {
                change.image = image.clone();
                change.delta.merge(delta);
            }
            none => {
                *none = Some(Change {
                    image: image.clone(),
                    delta: delta.clone(),
                });
            }
        }
        self.changed.notify_one();
    }
}

/// A place in the stream of images.
pub struct Subscription {
    slot: Arc<Slot>,
}

impl Subscription {
    /// The next change; the first one is the image as it was at `subscribe`, or a later one, with
    /// [`ImageDelta::everything`]. `None` once the quorum has stopped and all was seen.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            {
                let mut waiting = self.slot.waiting.lock();
                if let Some(change) = waiting.0.take() {
                    return Some(change);
                }
                if waiting.1 {
                    return None;
                }
            }
            self.slot.changed.notified().await;
        }
    }
}
