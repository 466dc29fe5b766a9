//! Keeps a stream of events at a given rate.

use std::time::Duration;

pub struct Pace {
    /// Events a second; below 0: no limit.
    rate: f64,
    start: Duration,
    count: u64,
    is_counted: bool,
}

impl Pace {
    pub fn new(rate: f64, start: Duration) -> Pace {
        Pace {
            rate,
            start,
            count: 0,
            is_counted: false,
        }
    }

    /// Counts one event, then says how long to wait before the next; to be asked until `None`.
    pub fn wait(&mut self, now: Duration) -> Option<Duration> {
        if self.rate <= 0.0 {
            return None;
        }
        if !self.is_counted {
            self.count += 1;
            self.is_counted = true;
        }
        let due = self.start + Duration::from_secs_f64(self.count as f64 / self.rate);
        let left = due.saturating_sub(now);
        if left < Duration::from_millis(1) {
            self.is_counted = false;
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_spread_over_time() {
        let ms = Duration::from_millis;
        let mut pace = Pace::new(100.0, ms(0));
        assert_eq!(pace.wait(ms(0)), Some(ms(10)));
        assert_eq!(pace.wait(ms(10)), None);
        assert_eq!(pace.wait(ms(10)), Some(ms(10)));
        assert_eq!(Pace::new(-1.0, ms(0)).wait(ms(0)), None);
    }
}
