//! Counters and histograms of times that any thread may add to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn increment(&self) {
        self.add(1);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of the buckets, in seconds. Few, as every API has them: what the processor
/// alone takes, a disk, a slow disk, a wait of a fetch (0.5 s by default), a time-out.
pub const BOUNDS_S: [f64; 8] = [0.0005, 0.002, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];

const BOUNDS_NS: [u64; BOUNDS_S.len()] = {
    let mut bounds = [0; BOUNDS_S.len()];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = (BOUNDS_S[at] * 1e9) as u64;
        at += 1;
    }
    bounds
};

/// How long something took, by buckets.
#[derive(Debug, Default)]
pub struct Times {
    /// Each with those that are not in a bucket before; the last one has no bound.
    buckets: [Counter; BOUNDS_S.len() + 1],
    sum_ns: Counter,
}

impl Times {
    pub fn note(&self, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_NS.iter().position(|bound_ns| time_ns <= *bound_ns);
        self.buckets[bucket.unwrap_or(BOUNDS_S.len())].increment();
        self.sum_ns.add(time_ns);
    }

    /// How many were within each bound, and in all.
    pub fn cumulative(&self) -> [u64; BOUNDS_S.len() + 1] {
        let mut below = 0;
        std::array::from_fn(|at| {
            below += self.buckets[at].get();
            below
        })
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    pub fn sum_s(&self) -> f64 {
        self.sum_ns.get() as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_of_the_first_bound_that_it_does_not_pass() {
        let times = Times::default();
        for micros in [1, 500, 501, 2_000, 60_000_000] {
            times.note(Duration::from_micros(micros));
        }
        assert_eq!(times.cumulative(), [2, 4, 4, 4, 4, 4, 4, 4, 5]);
        assert_eq!(times.count(), 5);
        assert!((times.sum_s() - 60.003_002).abs() < 1e-9);
    }

    #[test]
    fn bounds_ascend() {
        assert!(BOUNDS_S.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
