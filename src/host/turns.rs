//! Work that takes long without waiting: it must not run on a worker of the runtime as it is, for
//! that worker is the one that would look for the others' input. (A worker that finds one task
//! ready wakes no other worker, and while it runs that task nobody polls the sockets.)
//!
//! 1. Such work runs where it is, but the thread gives its place as a worker to another one first.
//! 2. So many at a time have a turn, the others wait for theirs without a thread: the threads that
//!    may stand in for workers are limited too, and the cores are there for short work as well.
//! 3. Who has a turn needs no other: all turns could be held by those who wait for one.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// At least so many turns, however few cores there are: one long work is not all.
const TURNS_MIN: usize = 4;

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// The turns of a node.
#[derive(Clone)]
pub struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Turns(Arc::new(Semaphore::new(cores.max(TURNS_MIN))))
    }
}

impl Turns {
    /// Runs `work` when it is its turn.
    pub async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        if HAS_TURN.get() {
            return work();
        }
        let turn = self.next().await;
        with(turn, work)
    }

    /// Runs a future each of whose steps may take long; it has no turn while it waits.
    pub async fn run_steps<F: Future + ?Sized>(&self, mut steps: Pin<Box<F>>) -> F::Output {
        let mut next = Box::pin(self.next());
        std::future::poll_fn(move |context| {
            if HAS_TURN.get() {
                return steps.as_mut().poll(context);
            }
            let turn = std::task::ready!(next.as_mut().poll(context));
            let polled = with(turn, || steps.as_mut().poll(context));
            if polled.is_pending() {
                next.set(self.next());
            }
            polled
        })
        .await
    }

    async fn next(&self) -> OwnedSemaphorePermit {
        let turn = self.0.clone().acquire_owned().await;
        turn.expect("never closed")
    }
}

fn with<T>(turn: OwnedSemaphorePermit, work: impl FnOnce() -> T) -> T {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            HAS_TURN.set(false);
        }
    }
    HAS_TURN.set(true);
    let (_turn, _ends) = (turn, Ends);
    in_place(work)
}

/// Runs `work` here, while another thread takes over what else this one had to do.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // No other thread could take over.
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::host::tasks;

    /// One worker, so that nothing goes on unless its place is taken.
    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    }

    /// Input comes in, and is answered, on another task.
    async fn echo_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    }

    #[test]
    fn others_go_on_while_a_turn_lasts() {
        runtime().block_on(async {
            let turns = Turns::default();
            let (served, wait_served) = mpsc::channel::<()>();
            let long = tasks::spawn(async move {
                turns.run(move || wait_served.recv().unwrap()).await;
            });
            let others = tasks::spawn(async move {
                echo_once().await;
                served.send(()).unwrap();
            });
            others.await.unwrap();
            long.await.unwrap();
        });
    }

    #[test]
    fn who_waits_has_no_turn_and_no_thread() {
        runtime().block_on(async {
            let turns = Turns(Arc::new(Semaphore::new(1)));
            let (open, door) = tokio::sync::oneshot::channel::<()>();
            let (first, turns_of_first) = (turns.clone(), turns.clone());
            let waits = tasks::spawn(async move {
                first.run_steps(Box::pin(door)).await.unwrap();
            });
            // More than there may be threads.
            let others: Vec<_> = (0..1000)
                .map(|number| {
                    let turns = turns_of_first.clone();
                    tasks::spawn(async move { turns.run(|| number).await })
                })
                .collect();
            for (number, other) in others.into_iter().enumerate() {
                assert_eq!(other.await.unwrap(), number);
            }
            open.send(()).unwrap();
            waits.await.unwrap();
            assert_eq!(turns.0.available_permits(), 1);
        });
    }

    #[test]
    fn a_turn_within_a_turn_waits_for_nobody() {
        runtime().block_on(async {
            let turns = Turns(Arc::new(Semaphore::new(1)));
            let inner = turns.clone();
            let nested = async move { inner.run(|| 7).await };
            assert_eq!(turns.run_steps(Box::pin(nested)).await, 7);
            assert_eq!(turns.run(|| 8).await, 8);
            let inner = turns.clone();
            let nested = async move { inner.run_steps(Box::pin(async { 9 })).await };
            assert_eq!(turns.run_steps(Box::pin(nested)).await, 9);
        });
    }
}
