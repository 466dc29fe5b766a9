//! How long to wait between tries: doubling from `retry.backoff.ms` to `retry.backoff.max.ms`, with
//! a fifth of jitter so that many clients do not come back at once.

use std::time::Duration;

use crate::host::random;

#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
    tries: u32,
}

impl Backoff {
    pub const fn new(first: Duration, max: Duration) -> Backoff {
        let tries = 0;
        Backoff { first, max, tries }
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.tries.min(16));
        self.tries += 1;
        let percent = 80 + (random::seed() % 41) as u32;
        doubled.min(self.max) * percent / 100
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(1000));
        for expected in [100, 200, 400, 800, 1000, 1000] {
            let wait = backoff.next_wait();
            assert!(wait >= ms(expected * 4 / 5) && wait <= ms(expected * 6 / 5));
        }
    }
}
