//! Lines of the log that are the same for every request that meets the same fault: a consumer that
//! has come to a damaged place asks for it twice a second, for hours.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A line is not written again within this time.
const AGAIN: Duration = Duration::from_secs(60);

/// The lines that were written lately.
pub struct Repeated(Mutex<BTreeMap<String, Instant>>);

impl Repeated {
    pub const fn new() -> Repeated {
        Repeated(Mutex::new(BTreeMap::new()))
    }

    /// Whether `line` is to be written at `now`.
    pub fn is_due(&self, line: String, now: Instant) -> bool {
        let mut written = self.0.lock();
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < AGAIN;
        if written.get(&line).is_some_and(is_recent) {
            return false;
        }
        written.retain(|_, at| is_recent(at));
        written.insert(line, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_line_comes_once_a_minute_and_another_at_once() {
        let (repeated, start) = (Repeated::new(), Instant::now());
        let is_due = |line: &str, seconds| {
            let now = start + Duration::from_secs(seconds);
            repeated.is_due(line.to_owned(), now)
        };
        assert!(is_due("a", 0));
        assert!(!is_due("a", 30));
        assert!(is_due("b", 30));
        // It counts from what was written.
        assert!(is_due("a", 60));
        assert!(!is_due("b", 89));
        assert!(!is_due("a", 119));
    }
}
