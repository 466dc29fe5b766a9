//! Tasks. One place to spawn them, so that a simulation can count and stop them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

#[cfg(test)]
use super::simulated;

/// Starts `future` beside the caller.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(test)]
    if let Some(process) = simulated::process() {
        return process.spawn(future);
    }
    tokio::spawn(future)
}

/// Runs `work`, which may block, on a thread kept for such work.
pub fn spawn_blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    #[cfg(test)]
    if let Some(process) = simulated::process() {
        return process.spawn(async move { work() });
    }
    tokio::task::spawn_blocking(work)
}

/// How many threads may share a work: so many as are wanted, but none besides the one there is in a
/// simulated world.
pub fn threads(wanted: usize) -> usize {
    #[cfg(test)]
    if simulated::process().is_some() {
        return 1;
    }
    wanted
}

/// The result of a future that need not wait; else the future, to be awaited: that polls it once
/// more, so a wake-up in between is not missed.
pub fn poll_once<F: Future>(mut future: Pin<Box<F>>) -> Result<F::Output, Pin<Box<F>>> {
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(future),
    }
}
