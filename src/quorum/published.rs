//! The image as others see it: the newest one for a look, and every change in order for those that
//! react to changes.
//!
//! 1. `image()` never waits.
//! 2. A subscriber sees deltas that add up: each one covers all that changed since its last image.
//!    A slow subscriber gets several changes as one.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::metadata::{ImageDelta, MetadataImage};

pub(super) struct Published {
    image: ArcSwap<MetadataImage>,
    subscribers: Mutex<Vec<Weak<Slot>>>,
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
            image: ArcSwap::from_pointee(image),
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn image(&self) -> Arc<MetadataImage> {
        self.image.load_full()
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
