//! The memory that request frames of all connections may take.
//!
//! 1. A frame takes memory as its bytes arrive, in steps: what is announced and not sent takes none
//!    from others.
//! 2. Frames up to [`MEDIUM_FRAME_BYTES`] have a share of their own: larger ones never keep them
//!    waiting.
//! 3. Of each share enough is kept for the eldest frame under way to be finished, so that frames
//!    which wait for one another's memory do not wait for ever. A frame that is larger than its
//!    share comes alone.
//! 4. While one waits, a frame whose client sends so slowly that it would not be here soon loses
//!    its memory, and with it its connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Frames up to this size (a mebibyte and the length before it) have a share of their own, and take
/// their memory in one step.
pub const MEDIUM_FRAME_BYTES: usize = 4 + (1 << 20);

/// Their share of the budget: one part in so many.
const MEDIUM_PART: usize = 4;

/// How long a frame waits for memory before others have to prove their pace, and how long that is
/// measured.
const PATIENCE: Duration = Duration::from_secs(5);

/// At the pace of that time the rest of a frame must be here within this.
const REST_MAX: Duration = Duration::from_secs(20);

/// What all connections share.
#[derive(Clone)]
pub struct FrameBudget {
    medium: Arc<Share>,
    large: Arc<Share>,
}

impl FrameBudget {
    /// `frame_bytes_max` is `socket.request.max.bytes`.
    pub fn new(bytes: usize, frame_bytes_max: usize) -> Self {
        let medium = bytes / MEDIUM_PART;
        FrameBudget {
            medium: Share::new(medium, MEDIUM_FRAME_BYTES),
            large: Share::new(bytes - medium, frame_bytes_max),
        }
    }

    /// What frames may hold together.
    pub fn bytes(&self) -> usize {
        self.medium.bytes + self.large.bytes
    }

    /// What they hold.
    pub fn held_bytes(&self) -> usize {
        let held = |share: &Share| share.state.lock().held_bytes;
        held(&self.medium) + held(&self.large)
    }

    /// A place for a frame of `len` bytes, without memory yet.
    pub fn enter(&self, len: usize) -> Place {
        let share = if len <= MEDIUM_FRAME_BYTES {
            &self.medium
        } else {
            &self.large
        };
        share.enter(len)
    }
}

struct Share {
    bytes: usize,
    /// What the eldest frame may need.
    frame_bytes_max: usize,
    state: Mutex<State>,
    /// Some memory was given back.
    changed: Notify,
}

#[derive(Default)]
struct State {
    held_bytes: usize,
    next_id: u64,
    /// By age.
    frames: BTreeMap<u64, Frame>,
}

impl State {
    fn frame(&mut self, id: u64) -> &mut Frame {
        self.frames.get_mut(&id).expect("a place has its frame")
    }
}

struct Frame {
    len: usize,
    held_bytes: usize,
    arrived_bytes: usize,
    /// It waits for memory: that it does not arrive is not its client's fault.
    waits: bool,
    /// What had arrived when its pace was last looked at.
    measured: (Instant, usize),
    evicted: Arc<Notify>,
}

/// A frame's place in its share; its memory is given back when it is dropped.
pub struct Place {
    share: Arc<Share>,
    id: u64,
    evicted: Arc<Notify>,
}

impl Share {
    fn new(bytes: usize, frame_bytes_max: usize) -> Arc<Share> {
        Arc::new(Share {
            bytes,
            frame_bytes_max: frame_bytes_max.min(bytes),
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn enter(self: &Arc<Self>, len: usize) -> Place {
        let evicted = Arc::new(Notify::new());
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let frame = Frame {
            len,
            held_bytes: 0,
            arrived_bytes: 0,
            waits: false,
            measured: (Instant::now(), 0),
            evicted: evicted.clone(),
        };
        state.frames.insert(id, frame);
        Place {
            share: self.clone(),
            id,
            evicted,
        }
    }

    /// Whether a frame may hold `wanted` bytes more.
    fn has_room(&self, state: &State, id: u64, wanted: usize) -> bool {
        let free = self.bytes.saturating_sub(state.held_bytes);
        let own = state.frames[&id].held_bytes;
        if own == state.held_bytes && own.saturating_add(wanted) > self.bytes {
            // It is alone, and larger than the share.
            return true;
        }
        let under_way = |frame: &&Frame| frame.arrived_bytes < frame.len;
        let eldest = state.frames.iter().find(|(_, frame)| under_way(frame));
        let kept = match eldest {
            Some((eldest, frame)) if *eldest != id => {
                self.frame_bytes_max.saturating_sub(frame.held_bytes)
            }
            _ => 0,
        };
        wanted.saturating_add(kept) <= free
    }

    /// Takes the memory of those who do not come on.
    fn evict_slow(&self) {
        let now = Instant::now();
        for frame in self.state.lock().frames.values_mut() {
            let (since, before) = frame.measured;
            let elapsed = now.saturating_duration_since(since);
            if frame.waits || elapsed < PATIENCE {
                continue;
            }
            // Before anybody waited it could take its time.
            let is_recent = elapsed <= PATIENCE * 2;
            let pace = (frame.arrived_bytes - before) as f64 / elapsed.as_secs_f64();
            let rest = frame.len.saturating_sub(frame.arrived_bytes) as f64;
            if is_recent && rest > pace * REST_MAX.as_secs_f64() {
                frame.evicted.notify_one();
            }
            frame.measured = (now, frame.arrived_bytes);
        }
    }
}

impl Place {
    /// Waits until the frame may hold `bytes`.
    pub async fn hold(&self, bytes: usize) {
        if self.try_hold(bytes) {
            return;
        }
        let _waits = Waits::begin(self);
        loop {
            let changed = self.share.changed.notified();
            if self.try_hold(bytes) {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = sleep(PATIENCE) => self.share.evict_slow(),
            }
        }
    }

    fn try_hold(&self, bytes: usize) -> bool {
        let mut state = self.share.state.lock();
        let wanted = bytes.saturating_sub(state.frames[&self.id].held_bytes);
        let has_room = self.share.has_room(&state, self.id, wanted);
        if has_room {
            state.held_bytes += wanted;
            state.frame(self.id).held_bytes += wanted;
        }
        has_room
    }

    /// Says how much of the frame is here.
    pub fn arrived(&self, bytes: usize) {
        let mut state = self.share.state.lock();
        let frame = state.frame(self.id);
        frame.arrived_bytes = bytes.min(frame.len);
        if frame.arrived_bytes == frame.len {
            // Others may be the eldest under way from now on.
            drop(state);
            self.share.changed.notify_waiters();
        }
    }

    /// Told when the frame is in the way of others.
    pub fn evicted(&self) -> Arc<Notify> {
        self.evicted.clone()
    }
}

/// Marks a frame that waits for memory.
struct Waits<'a>(&'a Place);

impl<'a> Waits<'a> {
    fn begin(place: &'a Place) -> Self {
        place.share.state.lock().frame(place.id).waits = true;
        Waits(place)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.0.share.state.lock();
        let frame = state.frame(self.0.id);
        frame.waits = false;
        frame.measured = (Instant::now(), frame.arrived_bytes);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.share.state.lock();
        if let Some(frame) = state.frames.remove(&self.id) {
            state.held_bytes -= frame.held_bytes;
        }
        drop(state);
        self.share.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const MIB: usize = 1 << 20;

    /// Forty mebibytes, ten of them for medium frames; a frame has at most ten.
    fn budget() -> FrameBudget {
        FrameBudget::new(40 * MIB, 10 * MIB)
    }

    async fn holds(place: &Place, bytes: usize) -> bool {
        timeout(Duration::ZERO, place.hold(bytes)).await.is_ok()
    }

    async fn is_evicted(place: &Place) -> bool {
        timeout(Duration::ZERO, place.evicted().notified())
            .await
            .is_ok()
    }

    /// Large frames that hold what they were given and do not go on.
    async fn hold_all(budget: &FrameBudget) -> Vec<Place> {
        let mut places = Vec::new();
        for bytes in [8 * MIB, 8 * MIB, 8 * MIB, 3 * MIB] {
            let place = budget.enter(10 * MIB);
            place.arrived(bytes);
            place.hold(bytes).await;
            places.push(place);
        }
        places
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_announced_takes_nothing_and_medium_frames_have_their_share() {
        let budget = FrameBudget::new(40 * MIB, 30 * MIB);
        let announced: Vec<Place> = (0..100).map(|_| budget.enter(30 * MIB)).collect();
        let small: Vec<Place> = (0..9).map(|_| budget.enter(MIB)).collect();
        assert!(holds(&announced[0], 30 * MIB).await, "the eldest gets all");
        assert!(!holds(&announced[1], MIB).await);
        for place in &small {
            assert!(holds(place, MIB).await);
        }
        assert!(!holds(&budget.enter(MIB), MIB).await);
    }

    #[tokio::test(start_paused = true)]
    async fn some_frame_can_always_be_finished() {
        let budget = budget();
        let mut places = hold_all(&budget).await;
        for place in &places[1..] {
            assert!(!holds(place, 10 * MIB).await, "the rest is the eldest's");
        }
        while !places.is_empty() {
            assert!(holds(&places[0], 10 * MIB).await);
            places.remove(0);
        }
        assert_eq!(budget.large.state.lock().held_bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_is_larger_than_its_share_comes_alone() {
        let budget = FrameBudget::new(4 * MIB, 100 * MIB);
        let (giant, other) = (budget.enter(50 * MIB), budget.enter(2 * MIB));
        assert!(holds(&giant, 50 * MIB).await);
        assert!(!holds(&other, MIB).await);
        drop(giant);
        assert!(holds(&other, 2 * MIB).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_while_others_wait_loses_its_place() {
        let budget = budget();
        let places = hold_all(&budget).await;
        advance(PATIENCE * 100).await;
        assert!(!is_evicted(&places[0]).await, "nobody waits");
        // The last one sends enough to be here soon.
        let waiting = budget.enter(10 * MIB);
        let moment = Duration::from_millis(1);
        for step in 1..=3 {
            let waited = timeout(PATIENCE + moment, waiting.hold(4 * MIB)).await;
            assert!(waited.is_err());
            places[3].arrived(3 * MIB + step * 2 * MIB);
        }
        for place in &places[..3] {
            assert!(is_evicted(place).await);
        }
        assert!(!is_evicted(&places[3]).await);
        assert!(!is_evicted(&waiting).await, "it is not its client's fault");
        drop(places);
        assert!(holds(&waiting, 10 * MIB).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_looks_after_the_pace_of_others() {
        let budget = budget();
        let places = hold_all(&budget).await;
        let waiting = budget.enter(10 * MIB);
        let first_evicted = places[0].evicted();
        tokio::select! {
            () = waiting.hold(5 * MIB) => panic!("all is held"),
            () = first_evicted.notified() => {}
        }
    }
}
