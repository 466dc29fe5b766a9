//! Lines that any client can cause as often as it likes, written a few at a time: what is left out
//! is counted and told with the next line.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Within this time ...
const WINDOW: Duration = Duration::from_secs(10);
/// ... so many lines are written.
const LINES_MAX: u32 = 20;

/// Decides for one kind of line.
#[derive(Default)]
pub struct LogPace {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    window_start: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogPace {
    /// Whether a line may be written at `now`, and how many were left out since the last one.
    pub fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        let is_over = |start| now.saturating_duration_since(start) >= WINDOW;
        if state.window_start.is_none_or(is_over) {
            state.window_start = Some(now);
            state.lines = 0;
        }
        if state.lines >= LINES_MAX {
            state.left_out += 1;
            return None;
        }
        state.lines += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_so_many_lines_and_the_next_one_tells_what_was_left_out() {
        let (pace, start) = (LogPace::default(), Instant::now());
        for _ in 0..LINES_MAX {
            assert_eq!(pace.admit(start), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(pace.admit(start + WINDOW / 2), None);
        }
        assert_eq!(pace.admit(start + WINDOW), Some(7));
        assert_eq!(pace.admit(start + WINDOW), Some(0));
    }
}
