//! A world in one thread of a test, from one seed: time is the runtime's (paused, it jumps to the
//! next timer), randomness comes from the seed ([`entropy`]), machines are joined by a [`network`]
//! that can be cut.
//!
//! 1. What a process starts belongs to it: tasks know their process through a thread-local, which
//!    is set while one of them runs. So the code that runs here need not know of this world.
//! 2. A killed process does nothing more, not even what a destructor would send. A paused one does
//!    nothing until it goes on, while its timers and what arrives for it pile up.

pub mod entropy;
pub mod key_value;
pub mod network;

use std::cell::RefCell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::Clock;
use crate::types::TimestampMs;
use network::Network;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Process>>> = const { RefCell::new(None) };
}

/// The process whose task runs, in a simulated world.
pub fn process() -> Option<Arc<Process>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok()?
}

/// The simulated time, and the machine whose task runs.
pub fn here() -> String {
    let Some(process) = process() else {
        return String::new();
    };
    let at = process.network.since_start();
    format!("{:9.3} {}", at.as_secs_f64(), process.machine)
}

/// Makes `process` the current one until it is dropped.
struct Entered(Option<Arc<Process>>);

impl Entered {
    fn new(process: &Arc<Process>) -> Entered {
        Entered(CURRENT.replace(Some(process.clone())))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Runs,
    Paused,
    Dead,
}

struct Tasks {
    run: Run,
    started: Vec<AbortHandle>,
    /// Wanted to run while it was paused.
    parked: Vec<Waker>,
}

/// A process on a machine, from its start to its end.
pub struct Process {
    /// Of all processes of the world.
    number: u64,
    machine: IpAddr,
    network: Arc<Network>,
    tasks: Mutex<Tasks>,
}

impl Process {
    pub fn start(network: &Arc<Network>, machine: IpAddr) -> Arc<Process> {
        Arc::new(Process {
            number: network.boot(machine),
            machine,
            network: network.clone(),
            tasks: Mutex::new(Tasks {
                run: Run::Runs,
                started: Vec::new(),
                parked: Vec::new(),
            }),
        })
    }

    pub fn spawn<F>(self: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = tokio::spawn(Task {
            process: self.clone(),
            future: Some(Box::pin(future)),
        });
        let mut tasks = self.tasks.lock();
        if tasks.run == Run::Dead {
            task.abort();
        } else {
            if tasks.started.len() == tasks.started.capacity() {
                tasks.started.retain(|task| !task.is_finished());
            }
            tasks.started.push(task.abort_handle());
        }
        task
    }

    /// Ends the process at once. `power_cut`: with its machine, which tells nobody.
    pub fn kill(&self, power_cut: bool) {
        let mut tasks = self.tasks.lock();
        tasks.run = Run::Dead;
        tasks.parked.clear();
        let started = std::mem::take(&mut tasks.started);
        drop(tasks);
        self.network
            .process_died(self.number, self.machine, power_cut);
        for task in started {
            task.abort();
        }
    }

    pub fn pause(&self) {
        let mut tasks = self.tasks.lock();
        if tasks.run == Run::Runs {
            tasks.run = Run::Paused;
        }
    }

    pub fn resume(&self) {
        let mut tasks = self.tasks.lock();
        if tasks.run != Run::Paused {
            return;
        }
        tasks.run = Run::Runs;
        let parked = std::mem::take(&mut tasks.parked);
        drop(tasks);
        for waker in parked {
            waker.wake();
        }
    }
}

/// A task of a process.
struct Task<F> {
    process: Arc<Process>,
    /// `None` once it is dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        {
            let mut tasks = this.process.tasks.lock();
            match tasks.run {
                Run::Runs => {}
                Run::Paused => {
                    tasks.parked.push(context.waker().clone());
                    return Poll::Pending;
                }
                Run::Dead => return Poll::Pending,
            }
        }
        let _entered = Entered::new(&this.process);
        match &mut this.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Task<F> {
    fn drop(&mut self) {
        // What destructors start belongs to the process as well.
        let _entered = Entered::new(&self.process);
        self.future = None;
    }
}

/// The runtime's time, with a wall clock of its own on each machine.
pub struct SimulatedClock {
    start: Instant,
    wall_ms: i64,
}

impl SimulatedClock {
    /// To be made once for a world; `ahead_ms` is by how much this wall clock is ahead of others.
    pub fn new(start: Instant, ahead_ms: i64) -> SimulatedClock {
        SimulatedClock {
            start,
            wall_ms: 1_800_000_000_000 + ahead_ms,
        }
    }
}

impl Clock for SimulatedClock {
    fn now_ms(&self) -> TimestampMs {
        TimestampMs(self.wall_ms + self.monotonic().as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}
