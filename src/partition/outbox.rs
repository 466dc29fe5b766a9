//! What this broker's replicas have to tell the active controller, until a request takes it along.
//!
//! 1. There is one message for a replica at most: a newer one takes the place of an older one.
//! 2. One that came to nothing goes back, unless there is a newer one by then.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::types::TopicId;

/// A message is of one replica: topic and partition.
pub trait Message {
    /// In one request.
    const COUNT_MAX: usize;

    fn replica(&self) -> (TopicId, i32);
}

pub struct Outbox<M> {
    waiting: Mutex<BTreeMap<(TopicId, i32), M>>,
    news: Notify,
}

impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            waiting: Mutex::default(),
            news: Notify::new(),
        }
    }
}

impl<M: Message> Outbox<M> {
    pub fn want(&self, message: M) {
        self.waiting.lock().insert(message.replica(), message);
        self.news.notify_one();
    }

    /// There is nothing to tell of the replica any more.
    pub fn forget(&self, topic_id: TopicId, partition: i32) {
        self.waiting.lock().remove(&(topic_id, partition));
    }

    /// What goes with the next request.
    pub(super) fn take(&self) -> Vec<M> {
        let mut waiting = self.waiting.lock();
        let mut taken = Vec::new();
        while taken.len() < M::COUNT_MAX
            && let Some((_, message)) = waiting.pop_first()
        {
            taken.push(message);
        }
        taken
    }

    pub(super) fn again(&self, message: M) {
        let mut waiting = self.waiting.lock();
        waiting.entry(message.replica()).or_insert(message);
        self.news.notify_one();
    }

    /// Ready when a message has come since the last time.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}
