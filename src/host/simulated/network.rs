//! The network between simulated machines.
//!
//! 1. A connection is two pipes of bytes, each in order. What is written arrives after the delay of
//!    its link; pieces may arrive cut in other places than they were written.
//! 2. What is written into a cut link waits, as TCP sends it again until the link is whole. So a
//!    cut tells nobody anything: no error, no end.
//! 3. When a process dies its machine ends its connections: the other side reads a reset, once that
//!    can reach it. When the machine itself loses power nobody is told; who sends to it after it is
//!    back gets a reset.
//! 4. A dial to a machine that is on and where nobody listens is refused; one that cannot get
//!    there, or whose answer cannot get back, waits.

mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use super::Process;
use crate::types::seeded::Random;

pub use stream::{ReadHalf, Stream, WriteHalf};

/// What a pipe takes before its writer has to wait.
const PIPE_BYTES_MAX: usize = 256 * 1024;

/// TCP sends again after pauses that grow; after a cut this is the longest that is waited.
const RESEND_MAX_MS: u64 = 1500;

/// How links behave.
#[derive(Debug, Clone, Copy)]
pub struct LinkTimes {
    /// The least, in microseconds.
    pub base_us: u64,
    /// Up to so much more.
    pub jitter_us: u64,
    /// One piece in so many is late, by up to [`LinkTimes::late_us`].
    pub late_one_in: u64,
    pub late_us: u64,
}

struct State {
    random: Random,
    times: LinkTimes,
    /// From one machine to another.
    cuts: BTreeSet<(IpAddr, IpAddr)>,
    /// Machines that have no power.
    off: BTreeSet<IpAddr>,
    listeners: BTreeMap<SocketAddr, Arc<Door>>,
    connections: Vec<Weak<Wire>>,
    processes: u64,
    port: u16,
    trace: Trace,
}

/// What has happened, as one number.
#[derive(Debug, Clone, Copy)]
pub struct Trace {
    pub hash: u64,
    pub events: u64,
}

impl Trace {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // FNV-1a.
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// All machines and what joins them.
pub struct Network {
    start: Instant,
    state: Mutex<State>,
    /// A link or a machine has changed.
    changed: Notify,
}

/// Where a process listens.
struct Door {
    process: u64,
    state: Mutex<DoorState>,
}

#[derive(Default)]
struct DoorState {
    waiting: VecDeque<(Stream, SocketAddr)>,
    waker: Option<Waker>,
}

/// Both directions of a connection.
struct Wire {
    /// The processes at its ends.
    processes: [u64; 2],
    pipes: [Arc<Pipe>; 2],
}

enum Piece {
    Bytes(Bytes),
    End,
    Reset,
}

struct Pipe {
    network: Arc<Network>,
    from: SocketAddr,
    to: SocketAddr,
    state: Mutex<PipeState>,
}

#[derive(Default)]
struct PipeState {
    /// With the time when it arrives; `None`: its link is cut.
    pieces: VecDeque<(Option<Instant>, Piece)>,
    bytes: usize,
    last: Option<Instant>,
    /// Its writer has ended it.
    is_closed: bool,
    /// What arrives is read by nobody.
    no_reader: bool,
    /// The reader's machine is back since, and knows nothing of it.
    is_unknown: bool,
    /// Its reader has heard that the connection is gone.
    is_reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Network {
    pub fn new(seed: u64, times: LinkTimes) -> Arc<Network> {
        Arc::new(Network {
            start: Instant::now(),
            state: Mutex::new(State {
                random: Random::new(seed),
                times,
                cuts: BTreeSet::new(),
                off: BTreeSet::new(),
                listeners: BTreeMap::new(),
                connections: Vec::new(),
                processes: 0,
                port: 40_000,
                trace: Trace {
                    hash: 0xcbf2_9ce4_8422_2325,
                    events: 0,
                },
            }),
            changed: Notify::new(),
        })
    }

    /// Notes something that happens, for the comparison of two runs.
    pub fn note(&self, what: &str, bytes: &[u8]) {
        let at_ns = self.start.elapsed().as_nanos() as u64;
        let trace = &mut self.state.lock().trace;
        trace.events += 1;
        trace.add(&at_ns.to_be_bytes());
        trace.add(what.as_bytes());
        trace.add(bytes);
    }

    pub fn since_start(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn trace(&self) -> Trace {
        self.state.lock().trace
    }

    /// A process starts on a machine, which is on from now on. Returns its number.
    pub(super) fn boot(&self, machine: IpAddr) -> u64 {
        let mut state = self.state.lock();
        state.processes += 1;
        let number = state.processes;
        let was_off = state.off.remove(&machine);
        let wires = state.wires();
        drop(state);
        if was_off {
            self.changed.notify_waiters();
            for wire in wires {
                for end in 0..2 {
                    let mut back = wire.pipes[end].state.lock();
                    if wire.pipes[end].to.ip() == machine && back.no_reader {
                        back.is_unknown = true;
                        // It was not taken, so it is sent again.
                        let sends_again = !back.pieces.is_empty();
                        drop(back);
                        if sends_again {
                            wire.pipes[1 - end].push(Piece::Reset);
                        }
                    }
                }
            }
        }
        number
    }

    pub(super) fn process_died(&self, process: u64, machine: IpAddr, power_cut: bool) {
        let mut state = self.state.lock();
        state.listeners.retain(|_, door| door.process != process);
        if power_cut {
            state.off.insert(machine);
        }
        let wires = state.wires();
        drop(state);
        for wire in wires {
            for end in 0..2 {
                if wire.processes[end] == process {
                    wire.pipes[end].writer_died(power_cut);
                    wire.pipes[1 - end].lose_reader();
                }
            }
        }
        self.changed.notify_waiters();
    }

    /// What `from` sends to `to` does not arrive from now on.
    pub fn cut(&self, from: IpAddr, to: IpAddr) {
        self.state.lock().cuts.insert((from, to));
    }

    pub fn heal(&self, from: IpAddr, to: IpAddr) {
        let mut state = self.state.lock();
        state.cuts.remove(&(from, to));
        let wires = state.wires();
        drop(state);
        for pipe in wires.iter().flat_map(|wire| &wire.pipes) {
            if (pipe.from.ip(), pipe.to.ip()) == (from, to) {
                pipe.send_again();
            }
        }
        self.changed.notify_waiters();
    }

    pub fn heal_all(&self) {
        let cuts = self.state.lock().cuts.clone();
        for (from, to) in cuts {
            self.heal(from, to);
        }
    }

    /// Something between two machines resets their connections, as firewalls do.
    pub fn reset(&self, one: IpAddr, other: IpAddr) {
        let wires = self.state.lock().wires();
        for pipe in wires.iter().flat_map(|wire| &wire.pipes) {
            let ends = (pipe.from.ip(), pipe.to.ip());
            if ends == (one, other) || ends == (other, one) {
                pipe.push(Piece::Reset);
            }
        }
    }

    fn is_cut(&self, from: IpAddr, to: IpAddr) -> bool {
        self.state.lock().cuts.contains(&(from, to))
    }

    fn delay(&self, from: IpAddr, to: IpAddr) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        let state = &mut *self.state.lock();
        let (times, random) = (state.times, &mut state.random);
        let mut us = times.base_us + random.below(times.jitter_us + 1);
        if times.late_one_in > 0 && random.one_in(times.late_one_in) {
            us += random.below(times.late_us + 1);
        }
        Duration::from_micros(us)
    }

    fn below(&self, limit: u64) -> u64 {
        self.state.lock().random.below(limit)
    }

    /// A packet gets from one machine to another, however long that takes.
    async fn travel(&self, from: IpAddr, to: IpAddr) {
        loop {
            let changed = self.changed.notified();
            let is_off = self.state.lock().off.contains(&to);
            if !is_off && !self.is_cut(from, to) {
                break;
            }
            changed.await;
            sleep(Duration::from_millis(self.below(RESEND_MAX_MS))).await;
        }
        sleep(self.delay(from, to)).await;
    }
}

impl State {
    fn wires(&mut self) -> Vec<Arc<Wire>> {
        self.connections.retain(|wire| wire.strong_count() > 0);
        self.connections.iter().filter_map(Weak::upgrade).collect()
    }

    fn next_port(&mut self) -> u16 {
        self.port = self.port.checked_add(1).unwrap_or(40_000);
        self.port
    }
}

impl Process {
    pub fn listen(self: &Arc<Self>, address: SocketAddr) -> io::Result<Listener> {
        let mut state = self.network.state.lock();
        if state.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let door = Arc::new(Door {
            process: self.number,
            state: Mutex::default(),
        });
        state.listeners.insert(address, door.clone());
        Ok(Listener {
            address,
            door,
            network: self.network.clone(),
        })
    }

    pub async fn connect(self: &Arc<Self>, to: SocketAddr) -> io::Result<Stream> {
        let network = &self.network;
        network.travel(self.machine, to.ip()).await;
        let opened = {
            let mut state = network.state.lock();
            let from = SocketAddr::new(self.machine, state.next_port());
            let door = state.listeners.get(&to).cloned();
            door.map(|door| {
                let (own, theirs) = Stream::pair(network, [from, to], [self.number, door.process]);
                state.connections.push(Arc::downgrade(&own.wire));
                (door, own, theirs, from)
            })
        };
        let opened = opened.map(|(door, own, theirs, from)| {
            let mut state = door.state.lock();
            state.waiting.push_back((theirs, from));
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
            own
        });
        network.travel(to.ip(), self.machine).await;
        opened.ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
    }
}

/// A place where connections come in.
pub struct Listener {
    address: SocketAddr,
    door: Arc<Door>,
    network: Arc<Network>,
}

impl Listener {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn accept(&self) -> (Stream, SocketAddr) {
        std::future::poll_fn(|context| {
            let mut state = self.door.state.lock();
            match state.waiting.pop_front() {
                Some(accepted) => Poll::Ready(accepted),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.network.state.lock();
        let is_this = |door: &Arc<Door>| Arc::ptr_eq(door, &self.door);
        if state.listeners.get(&self.address).is_some_and(is_this) {
            state.listeners.remove(&self.address);
        }
        drop(state);
        // Whoever waits in front of it goes away.
        let waiting = std::mem::take(&mut self.door.state.lock().waiting);
        drop(waiting);
    }
}

impl Pipe {
    fn new(network: &Arc<Network>, from: SocketAddr, to: SocketAddr) -> Arc<Pipe> {
        Arc::new(Pipe {
            network: network.clone(),
            from,
            to,
            state: Mutex::default(),
        })
    }

    fn push(&self, piece: Piece) {
        let is_cut = self.network.is_cut(self.from.ip(), self.to.ip());
        let at = Instant::now() + self.network.delay(self.from.ip(), self.to.ip());
        let mut state = self.state.lock();
        let held = is_cut || state.pieces.back().is_some_and(|(at, _)| at.is_none());
        let at = (!held).then(|| state.last.map_or(at, |last| last.max(at)));
        state.last = at.or(state.last);
        if let Piece::Bytes(bytes) = &piece {
            state.bytes += bytes.len();
        }
        state.pieces.push_back((at, piece));
        state.wake_reader();
    }

    /// The link is whole again.
    fn send_again(&self) {
        let pause = Duration::from_millis(self.network.below(RESEND_MAX_MS));
        let mut state = self.state.lock();
        let at = Instant::now() + pause;
        let at = state.last.map_or(at, |last| last.max(at));
        for piece in state.pieces.iter_mut().filter(|piece| piece.0.is_none()) {
            piece.0 = Some(at);
        }
        state.last = Some(at);
        state.wake_reader();
    }

    fn lose_reader(&self) {
        let mut state = self.state.lock();
        state.no_reader = true;
        if let Some(waker) = state.writer.take() {
            waker.wake();
        }
    }

    fn writer_died(&self, power_cut: bool) {
        let lost = self.network.below(4) == 0;
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.is_closed = true;
        // The end of what was on its way may be lost with its sender.
        if lost {
            let half = state.pieces.len() / 2;
            state.pieces.truncate(half);
            state.bytes = state.bytes_waiting();
        }
        drop(state);
        if !power_cut {
            self.push(Piece::Reset);
        }
    }

    fn close(&self) {
        let was_closed = std::mem::replace(&mut self.state.lock().is_closed, true);
        if !was_closed {
            self.push(Piece::End);
        }
    }

    /// Ready once there is something to read.
    fn poll_ready(
        &self,
        context: &mut Context<'_>,
        timer: &mut Option<Pin<Box<Sleep>>>,
    ) -> Poll<()> {
        let mut state = self.state.lock();
        if state.is_reset {
            return Poll::Ready(());
        }
        state.reader = Some(context.waker().clone());
        let Some((Some(at), _)) = state.pieces.front() else {
            return Poll::Pending;
        };
        let at = *at;
        drop(state);
        if at <= Instant::now() {
            return Poll::Ready(());
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        timer.as_mut().reset(at);
        timer.as_mut().poll(context)
    }

    /// What has arrived, at most `room` bytes of it; empty is the end.
    fn take(&self, room: usize) -> io::Result<Bytes> {
        let mut state = self.state.lock();
        if state.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let now = Instant::now();
        let taken = match state.pieces.front_mut() {
            Some((Some(at), piece)) if *at <= now => match piece {
                Piece::Bytes(bytes) => bytes.split_to(room.min(bytes.len())),
                Piece::End => Bytes::new(),
                Piece::Reset => {
                    state.is_reset = true;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            },
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        };
        state.bytes -= taken.len();
        if matches!(state.pieces.front(), Some((_, Piece::Bytes(bytes))) if bytes.is_empty()) {
            state.pieces.pop_front();
        }
        if let Some(waker) = state.writer.take() {
            waker.wake();
        }
        drop(state);
        let ports = [self.from.port(), self.to.port()].map(u16::to_be_bytes);
        self.network.note("read", ports.as_flattened());
        self.network.note("bytes", &taken);
        Ok(taken)
    }

    /// Whether its reader's machine has heard that the other side has gone.
    fn has_ended(&self) -> bool {
        let state = self.state.lock();
        let now = Instant::now();
        let arrived = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        let mut ends = state.pieces.iter();
        state.is_reset || ends.any(|(at, piece)| arrived(at) && !matches!(piece, Piece::Bytes(_)))
    }

    /// How much may be written; 0 asks to wait.
    fn room(&self, context: Option<&mut Context<'_>>) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = PIPE_BYTES_MAX.saturating_sub(state.bytes);
        if let Some(context) = context.filter(|_| room == 0) {
            state.writer = Some(context.waker().clone());
        }
        Ok(room)
    }
}

impl PipeState {
    fn bytes_waiting(&self) -> usize {
        let len = |(_, piece): &(_, Piece)| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::End | Piece::Reset => 0,
        };
        self.pieces.iter().map(len).sum()
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }
}
