//! Replies that wait until the records before them are committed.
//!
//! 1. Entries are in log order, and so in order of their deadlines.
//! 2. The lock of this queue is taken for moments only and never together with a call into the
//!    log: the log may report a high watermark from within an append.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::{ErrorCode, Offset};

pub(super) type Sender<R> = oneshot::Sender<Result<R, ErrorCode>>;

struct Waiting<R> {
    /// The offset after the last record it depends on.
    end_offset: Offset,
    deadline: Duration,
    sender: Sender<R>,
    reply: R,
}

struct Queue<R> {
    high_watermark: Offset,
    entries: VecDeque<Waiting<R>>,
}

pub(super) struct WaitingReplies<R> {
    queue: Mutex<Queue<R>>,
}

impl<R> WaitingReplies<R> {
    pub(super) fn new() -> Self {
        WaitingReplies {
            queue: Mutex::new(Queue {
                high_watermark: Offset::ZERO,
                entries: VecDeque::new(),
            }),
        }
    }

    /// Sends a reply at once if everything before `end_offset` is committed, else when it is.
    pub(super) fn push(
        &self,
        end_offset: Offset,
        deadline: Duration,
        replies: impl Iterator<Item = (Sender<R>, R)>,
    ) {
        let mut queue = self.queue.lock();
        for (sender, reply) in replies {
            if end_offset <= queue.high_watermark {
                // A receiver that is gone is a client that is gone.
                let _ = sender.send(Ok(reply));
            } else {
                queue.entries.push_back(Waiting {
                    end_offset,
                    deadline,
                    sender,
                    reply,
                });
            }
        }
    }

    pub(super) fn on_high_watermark(&self, high_watermark: Offset) {
        let mut queue = self.queue.lock();
        if high_watermark <= queue.high_watermark {
            return;
        }
        queue.high_watermark = high_watermark;
        while let Some(first) = queue.entries.front() {
            if first.end_offset > high_watermark {
                break;
            }
            if let Some(entry) = queue.entries.pop_front() {
                let _ = entry.sender.send(Ok(entry.reply));
            }
        }
    }

    /// When the first one has waited long enough.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.queue.lock().entries.front().map(|e| e.deadline)
    }

    /// Answers what was not committed in time. The records may still be committed later.
    pub(super) fn expire(&self, now: Duration) {
        let mut queue = self.queue.lock();
        while queue.entries.front().is_some_and(|e| e.deadline <= now) {
            if let Some(entry) = queue.entries.pop_front() {
                let _ = entry.sender.send(Err(ErrorCode::RequestTimedOut));
            }
        }
    }

    /// Answers everything with `error`.
    pub(super) fn fail_all(&self, error: ErrorCode) {
        for entry in self.queue.lock().entries.drain(..) {
            let _ = entry.sender.send(Err(error));
        }
    }
}
