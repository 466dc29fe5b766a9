//! Who waits for news of a partition: a fetch that wants more bytes, a produce that wants the high
//! watermark to pass its records. News wakes them; nothing polls.
//!
//! A waiter registers with every partition it is interested in, checks whether what it waits for
//! has come true, and only then sleeps: news between the check and the sleep is not lost, because
//! it sets the flag that the sleep looks at first.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// One sleeping request.
#[derive(Default)]
pub struct Waiter {
    woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    pub fn new() -> Arc<Waiter> {
        Arc::new(Waiter::default())
    }

    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(waker) = self.waker.lock().take()
        {
            waker.wake();
        }
    }

    /// Sleeps until there was news since the last call returned.
    pub async fn news(&self) {
        poll_fn(|context| {
            if self.woken.swap(false, Ordering::AcqRel) {
                return Poll::Ready(());
            }
            *self.waker.lock() = Some(context.waker().clone());
            // News may have come before the waker was in place.
            if self.woken.swap(false, Ordering::AcqRel) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

/// The waiters of one partition. Empty, it takes no memory beyond itself.
#[derive(Default)]
pub struct Waiters {
    list: Mutex<Vec<Arc<Waiter>>>,
    /// Length of the list, so that an append without waiters takes no lock.
    len: AtomicUsize,
}

impl Waiters {
    pub fn register(&self, waiter: &Arc<Waiter>) {
        let mut list = self.list.lock();
        list.push(waiter.clone());
        self.len.store(list.len(), Ordering::SeqCst);
    }

    pub fn deregister(&self, waiter: &Arc<Waiter>) {
        let mut list = self.list.lock();
        if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, waiter)) {
            list.swap_remove(at);
        }
        self.len.store(list.len(), Ordering::SeqCst);
        if list.is_empty() {
            *list = Vec::new();
        }
    }

    /// Wakes all of them; they stay registered.
    pub fn wake_all(&self) {
        // SeqCst pairs with the store in `register`: a waiter that registered before it looked at
        // the watermark is seen here, or it sees the new watermark.
        if self.len.load(Ordering::SeqCst) == 0 {
            return;
        }
        for waiter in self.list.lock().iter() {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_before_the_sleep_is_not_lost() {
        let waiters = Waiters::default();
        let waiter = Waiter::new();
        waiters.register(&waiter);
        waiters.wake_all();
        waiter.news().await;
        let sleeper = waiter.clone();
        let task = crate::host::tasks::spawn(async move { sleeper.news().await });
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        waiters.wake_all();
        task.await.unwrap();
        waiters.deregister(&waiter);
        assert_eq!(waiters.len.load(Ordering::SeqCst), 0);
    }
}
