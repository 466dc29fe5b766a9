//! Says why something does not go on that is tried over and over.
//!
//! 1. A reason is said when it has stood for a moment, and again after waits that double: a start
//!    has many that pass by themselves, and the same line twice a second hides every other.
//! 2. Several may take turns; each has waits of its own, and only a few are kept.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_AFTER: Duration = Duration::from_secs(3);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// One that was not met for so long is a new one.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);
const KEPT_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Reasons(Vec<Reason>);

#[derive(Debug)]
struct Reason {
    text: String,
    met: Instant,
    again_at: Instant,
    wait: Duration,
}

impl Reasons {
    /// Whether this reason is to be said now.
    pub(super) fn is_due(&mut self, text: &str, now: Instant) -> bool {
        self.0
            .retain(|reason| now.duration_since(reason.met) < FORGOTTEN_AFTER);
        let Some(reason) = self.0.iter_mut().find(|reason| reason.text == text) else {
            if self.0.len() == KEPT_MAX {
                self.0.remove(0);
            }
            self.0.push(Reason {
                text: text.to_owned(),
                met: now,
                again_at: now + FIRST_AFTER,
                wait: FIRST_AFTER,
            });
            return false;
        };
        reason.met = now;
        if now < reason.again_at {
            return false;
        }
        reason.wait = (reason.wait * 2).min(WAIT_MAX);
        reason.again_at = now + reason.wait;
        true
    }

    /// It goes on.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_again_after_waits_that_double() {
        let start = Instant::now();
        let mut reasons = Reasons::default();
        let mut said = Vec::new();
        for half_second in 0..400 {
            let now = start + Duration::from_millis(500) * half_second;
            // Two that take turns.
            if reasons.is_due("a", now) {
                said.push(half_second / 2);
            }
            reasons.is_due("b", now);
        }
        assert_eq!(said, [3, 9, 21, 45, 93, 153]);
        reasons.forget();
        let later = start + Duration::from_secs(300);
        assert!(!reasons.is_due("a", later));
        assert!(reasons.is_due("a", later + FIRST_AFTER));
    }

    #[test]
    fn one_that_passes_is_not_said_and_few_are_kept() {
        let start = Instant::now();
        let mut reasons = Reasons::default();
        assert!(!reasons.is_due("a", start));
        assert!(!reasons.is_due("a", start + FORGOTTEN_AFTER * 2));
        for number in 0..100 {
            reasons.is_due(&number.to_string(), start + FORGOTTEN_AFTER * 2);
        }
        assert_eq!(reasons.0.len(), KEPT_MAX);
    }
}
