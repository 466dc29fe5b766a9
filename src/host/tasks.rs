//! Tasks. One place to spawn them, so that a simulation can count and stop them.

use std::future::Future;

use tokio::task::JoinHandle;

/// Starts `future` beside the caller.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Runs `work`, which may block, on a thread kept for such work.
pub fn spawn_blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work)
}
