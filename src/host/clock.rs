//! Time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::types::TimestampMs;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Wall-clock time, for what is shown or stored.
    fn now_ms(&self) -> TimestampMs;

    /// Time since an arbitrary start that never goes back, for time-outs and ages.
    fn monotonic(&self) -> Duration;
}

/// The machine's own clocks.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        SystemClock {
            start: Instant::now(),
        }
    }
}

/// Measures how long something takes, where nothing depends on it.
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> TimestampMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        TimestampMs(since.as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}
