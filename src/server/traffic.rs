//! What comes and goes at one listening socket.

use std::sync::Arc;

use crate::metrics::Counter;

/// Counts of one socket since it was bound.
pub struct Traffic {
    /// The name of the listener; several sockets may share it.
    pub listener: Arc<str>,
    pub accepted: Counter,
    pub ended: Counter,
    pub turned_away: Counter,
    pub received_bytes: Counter,
    pub sent_bytes: Counter,
}

impl Traffic {
    pub fn of(listener: Arc<str>) -> Arc<Traffic> {
        Arc::new(Traffic {
            listener,
            accepted: Counter::default(),
            ended: Counter::default(),
            turned_away: Counter::default(),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
        })
    }

    /// Counts a connection for as long as the result lives.
    pub fn enter(self: &Arc<Self>) -> Open {
        self.accepted.increment();
        Open(self.clone())
    }

    /// Connections that are open.
    pub fn open(&self) -> u64 {
        // The later one first, so that it is never below zero.
        let ended = self.ended.get();
        self.accepted.get().saturating_sub(ended)
    }
}

/// A counted connection.
pub struct Open(Arc<Traffic>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.ended.increment();
    }
}
