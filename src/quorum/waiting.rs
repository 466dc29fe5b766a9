//! What a start waits for, and the line in the log that says so.
//!
//! 1. Who starts a node and sees nothing does not know whether to wait or to act. So a start that
//!    has not come to its end is spoken of every [`SAY_EVERY`], whatever it waits for.
//! 2. While it goes on nobody else repeats the reason; afterwards each speaks for itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// The first line comes sooner: most starts are over by then.
const SAY_FIRST: Duration = Duration::from_secs(5);
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Shared by all that take part in a start.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// `None`: nobody speaks of it.
    told_since: Option<Instant>,
    what: &'static str,
    reason: Option<String>,
}

/// Ends the talk.
struct Over<'a>(&'a Waiting);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.0.lock().told_since = None;
    }
}

impl Waiting {
    /// From now on the start waits for this.
    pub fn waits_for(&self, what: &'static str) {
        let mut state = self.0.lock();
        state.what = what;
        state.reason = None;
    }

    /// Why that is not there yet. Whether a start is under way that will say so.
    pub fn because(&self, reason: &str) -> bool {
        let mut state = self.0.lock();
        let told = state.told_since.is_some();
        if told && state.reason.as_deref() != Some(reason) {
            state.reason = Some(reason.to_owned());
        }
        told
    }

    /// Says what is waited for, for as long as the start takes.
    pub async fn say(&self) -> Infallible {
        self.0.lock().told_since = Some(Instant::now());
        let _over = Over(self);
        sleep(SAY_FIRST).await;
        loop {
            if let Some(line) = self.line() {
                tracing::warn!("{line}");
            }
            sleep(SAY_EVERY).await;
        }
    }

    fn line(&self) -> Option<String> {
        let state = self.0.lock();
        let after_s = state.told_since?.elapsed().as_secs();
        let reason = state.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        Some(format!(
            "not serving yet, after {after_s} s: waits for {}{reason}",
            state.what
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_start_is_spoken_of_until_it_is_over() {
        let waiting = Waiting::default();
        assert!(!waiting.because("nobody starts"));
        assert_eq!(waiting.line(), None);
        let other = waiting.clone();
        let start = async {
            other.waits_for("the controllers");
            sleep(SAY_FIRST * 2).await;
            let line = other.line().unwrap();
            assert_eq!(
                line,
                "not serving yet, after 10 s: waits for the controllers"
            );
            assert!(other.because("a:1 does not answer"));
            assert!(other.line().unwrap().ends_with(": a:1 does not answer"));
            other.waits_for("the logs");
            assert!(other.line().unwrap().ends_with(" the logs"));
        };
        tokio::select! {
            () = start => {}
            never = waiting.say() => match never {},
        }
        assert!(!waiting.because("it runs"), "each speaks for itself again");
    }
}
