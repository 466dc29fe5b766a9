//! How many bytes a second may be copied: a token bucket.
//!
//! 1. What is taken is known only when it was taken, so the bucket may be overdrawn; then nothing
//!    more is to be taken until it is paid back. Over time the rate holds.
//! 2. A second's worth is saved up at most, and ten seconds' worth owed (Kafka's window): however
//!    large a batch is, something is copied every ten seconds.

use std::time::Duration;

const SAVED_MAX_S: f64 = 1.0;
const OWED_MAX_S: f64 = 10.0;

/// The time is that of a monotonic clock, and never goes back.
#[derive(Debug, Clone, Default)]
pub struct ByteRate {
    /// `None`: as much as there is.
    bytes_per_second: Option<f64>,
    left_bytes: f64,
    at: Duration,
}

impl ByteRate {
    /// `None`: no limit from now on.
    pub fn set(&mut self, bytes_per_second: Option<u64>, now: Duration) {
        self.refill(now);
        let rate = bytes_per_second.map(|rate| rate.max(1) as f64);
        if self.bytes_per_second == rate {
            return;
        }
        self.left_bytes = match (self.bytes_per_second, rate) {
            // What is owed was owed at the old rate.
            (Some(old), Some(new)) => self.left_bytes / old * new,
            (None, Some(new)) => new * SAVED_MAX_S,
            (_, None) => 0.0,
        };
        self.bytes_per_second = rate;
    }

    /// Counts what was copied.
    pub fn take(&mut self, bytes: u64, now: Duration) {
        self.refill(now);
        if let Some(rate) = self.bytes_per_second {
            self.left_bytes = (self.left_bytes - bytes as f64).max(-rate * OWED_MAX_S);
        }
    }

    /// How long nothing more is to be copied; `None`: more may be copied now.
    pub fn wait(&mut self, now: Duration) -> Option<Duration> {
        self.refill(now);
        let rate = self.bytes_per_second?;
        if self.left_bytes > 0.0 {
            return None;
        }
        // A millisecond more, so that something is left then.
        let owed = Duration::from_secs_f64(-self.left_bytes / rate);
        Some(owed + Duration::from_millis(1))
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        if let Some(rate) = self.bytes_per_second {
            let refilled = self.left_bytes + passed.as_secs_f64() * rate;
            self.left_bytes = refilled.min(rate * SAVED_MAX_S);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut rate = ByteRate::default();
        rate.take(u64::MAX, MS);
        assert_eq!(rate.wait(MS), None);
    }

    #[test]
    fn the_rate_holds_over_time_whatever_is_taken_at_once() {
        for chunk in [1, 700, 10_000] {
            let mut rate = ByteRate::default();
            rate.set(Some(1000), Duration::ZERO);
            let mut taken = 0;
            let mut now = Duration::ZERO;
            while now < Duration::from_secs(100) {
                match rate.wait(now) {
                    None => {
                        rate.take(chunk, now);
                        taken += chunk;
                    }
                    Some(wait) => now += wait,
                }
            }
            let expected = 95_000..=112_000;
            assert!(expected.contains(&taken), "{chunk}: {taken}");
        }
    }

    #[test]
    fn a_huge_batch_is_followed_by_another_one_after_ten_seconds() {
        let mut rate = ByteRate::default();
        rate.set(Some(10), Duration::ZERO);
        rate.take(1 << 30, Duration::ZERO);
        let wait = rate.wait(Duration::ZERO).unwrap();
        assert_eq!(wait, Duration::from_secs(10) + MS);
        assert_eq!(rate.wait(wait), None);
    }

    #[test]
    fn a_new_rate_counts_at_once() {
        let mut rate = ByteRate::default();
        rate.set(Some(1000), Duration::ZERO);
        rate.take(6000, Duration::ZERO);
        rate.set(Some(1_000_000), Duration::ZERO);
        assert_eq!(rate.wait(5001 * MS), None, "5 s are owed, as before");
        rate.take(9_000_000, 5001 * MS);
        rate.set(None, 5001 * MS);
        assert_eq!(rate.wait(5001 * MS), None);
    }
}
