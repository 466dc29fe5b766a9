//! Which other voters this one reaches, and the lines in the log when that changes.
//!
//! 1. Raft calls each voter many times a second, and its library has an error in the log for every
//!    call that fails. What an operator needs is one line when a voter is gone and one when it is
//!    back.
//! 2. A voter that is back within [`PATIENCE`] was started again, or starts with this one: no line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::types::BrokerId;

const PATIENCE: Duration = Duration::from_secs(2);

/// Shared by the ways to all voters.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach(Arc<Mutex<BTreeMap<BrokerId, Silence>>>);

/// Of a voter whose last call failed.
#[derive(Debug)]
struct Silence {
    since: Instant,
    is_told: bool,
}

/// One call; without an end (its caller gave up) it has failed.
pub(super) struct Call<'a> {
    reach: &'a Reach,
    voter: BrokerId,
    address: &'a str,
    is_over: bool,
}

impl Call<'_> {
    pub(super) fn ended<E: Display>(mut self, result: Result<(), E>) {
        self.is_over = true;
        match result {
            Ok(()) => self.reach.succeeded(self.voter, self.address),
            Err(reason) => self.reach.failed(self.voter, self.address, &reason),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let reason = "not within the time of a call";
            self.reach.failed(self.voter, self.address, &reason);
        }
    }
}

impl Reach {
    pub(super) fn call<'a>(&'a self, voter: BrokerId, address: &'a str) -> Call<'a> {
        Call {
            reach: self,
            voter,
            address,
            is_over: false,
        }
    }

    fn succeeded(&self, voter: BrokerId, address: &str) {
        if let Some(silent_s) = self.silent_s(voter) {
            tracing::info!("controller {voter} ({address}) answers again after {silent_s} s");
        }
    }

    fn failed(&self, voter: BrokerId, address: &str, reason: &dyn Display) {
        if self.is_gone(voter) {
            tracing::warn!("controller {voter} ({address}) does not answer: {reason}");
        }
    }

    /// For how many seconds it had not, where that was told.
    fn silent_s(&self, voter: BrokerId) -> Option<u64> {
        let silence = self.0.lock().remove(&voter)?;
        silence.is_told.then(|| silence.since.elapsed().as_secs())
    }

    /// Whether it is time to tell.
    fn is_gone(&self, voter: BrokerId) -> bool {
        let mut silent = self.0.lock();
        let silence = silent.entry(voter).or_insert_with(|| Silence {
            since: Instant::now(),
            is_told: false,
        });
        let tell = !silence.is_told && silence.since.elapsed() >= PATIENCE;
        silence.is_told |= tell;
        tell
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_voter_is_told_of_once_when_it_goes_and_once_when_it_is_back() {
        let reach = Reach::default();
        let (gone, other) = (BrokerId(2), BrokerId(3));
        assert!(!reach.is_gone(gone), "it may have been started again");
        advance(PATIENCE / 2).await;
        assert_eq!(reach.silent_s(gone), None, "nobody had been told");

        assert!(!reach.is_gone(gone));
        advance(PATIENCE).await;
        assert!(!reach.is_gone(other), "each voter has its own silence");
        assert!(reach.is_gone(gone));
        advance(PATIENCE).await;
        assert!(!reach.is_gone(gone), "it was told");
        drop(reach.call(other, "c:9093"));
        assert_eq!(reach.silent_s(other), Some(2), "a call without an end");
        assert_eq!(reach.silent_s(gone), Some(4));
        assert_eq!(reach.silent_s(gone), None);
    }
}
