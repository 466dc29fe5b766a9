//! Work that waits for the disk, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::tasks;

/// `work` on every item, on up to `threads` threads; the results in the items' order.
pub fn in_parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = work(item);
            results.lock().push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..tasks::threads(threads).clamp(1, items.len().max(1)) {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
