//! The fetchers of this broker: which partition is copied from which leader over which connection.
//!
//! 1. A partition is with one fetcher at a time, and always with the same of a leader's
//!    `num.replica.fetchers`.
//! 2. A fetcher without partitions ends, and its connection with it.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::fetcher::{Fetcher, FetcherConfig, Key, OutOfRange};
use super::leader::Partition;
use super::surroundings::Surroundings;
use crate::host::{tasks, turns};
use crate::peer::{ReplicaFetchAnswer, ReplicaFetchCall};
use crate::types::{BrokerId, LeaderEpoch, Offset};

/// How long a fetcher that has nothing to do and no deadline sleeps at most.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// More than this is not checked and written within a millisecond.
const SHORT_BYTES_MAX: usize = 2 << 20;

/// An answer, or `None` after a failure that was said already.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// A leader, as a follower asks it.
pub trait ReplicaSource: Send + Sync + 'static {
    fn fetch<'a>(
        &'a self,
        call: &'a ReplicaFetchCall,
        timeout: Duration,
    ) -> Answer<'a, ReplicaFetchAnswer>;

    /// Where the leader's log starts and ends.
    fn bounds<'a>(&'a self, of: &'a OutOfRange, timeout: Duration) -> Answer<'a, (Offset, Offset)>;
}

/// Makes the source for a fetcher of a leader.
pub type MakeSource = Box<dyn Fn(BrokerId, usize) -> Arc<dyn ReplicaSource> + Send + Sync>;

struct Running {
    fetcher: Mutex<Fetcher>,
    news: Notify,
    is_over: AtomicBool,
}

pub struct Fetchers {
    surroundings: Arc<Surroundings>,
    make_source: MakeSource,
    inner: Mutex<Inner>,
}

struct Inner {
    config: FetcherConfig,
    num_replica_fetchers: usize,
    running: HashMap<(BrokerId, usize), Arc<Running>>,
    /// Where each partition is.
    places: HashMap<Key, (BrokerId, usize)>,
}

impl Fetchers {
    pub fn new(
        surroundings: Arc<Surroundings>,
        config: FetcherConfig,
        num_replica_fetchers: usize,
        make_source: MakeSource,
    ) -> Fetchers {
        let inner = Inner {
            config,
            num_replica_fetchers: num_replica_fetchers.max(1),
            running: HashMap::new(),
            places: HashMap::new(),
        };
        Fetchers {
            surroundings,
            make_source,
            inner: Mutex::new(inner),
        }
    }

    /// Copies `partition` from `leader` from now on, and from nobody else.
    pub fn follow(&self, partition: Arc<Partition>, leader: BrokerId, leader_epoch: LeaderEpoch) {
        let key = (partition.topic_id, partition.topic_partition.partition);
        let mut inner = self.inner.lock();
        let place = (leader, inner.fetcher_of(key));
        if inner.places.get(&key).is_some_and(|known| *known != place) {
            inner.take_away(key);
        }
        inner.places.insert(key, place);
        let running = match inner.running.get(&place) {
            Some(running) => running.clone(),
            None => self.start(&mut inner, place),
        };
        let now = self.surroundings.clock.now_ms();
        running.fetcher.lock().put(partition, leader_epoch, now);
        running.news.notify_one();
    }

    /// Copies the partition no longer.
    pub fn leave(&self, key: Key) {
        self.inner.lock().take_away(key);
    }

    /// Ends all fetchers.
    pub fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.places.clear();
        for (_, running) in inner.running.drain() {
            running.end();
        }
    }

    fn start(&self, inner: &mut Inner, place: (BrokerId, usize)) -> Arc<Running> {
        let running = Arc::new(Running {
            fetcher: Mutex::new(Fetcher::new(self.surroundings.this_broker, inner.config)),
            news: Notify::new(),
            is_over: AtomicBool::new(false),
        });
        inner.running.insert(place, running.clone());
        let source = (self.make_source)(place.0, place.1);
        let surroundings = self.surroundings.clone();
        drop(tasks::spawn(run(running.clone(), source, surroundings)));
        running
    }
}

impl Inner {
    fn fetcher_of(&self, key: Key) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        (hasher.finish() % self.num_replica_fetchers as u64) as usize
    }

    fn take_away(&mut self, key: Key) {
        let Some(place) = self.places.remove(&key) else {
            return;
        };
        let Some(running) = self.running.get(&place) else {
            return;
        };
        let is_empty = {
            let mut fetcher = running.fetcher.lock();
            fetcher.remove(key);
            fetcher.is_empty()
        };
        if is_empty && let Some(running) = self.running.remove(&place) {
            running.end();
        }
    }
}

impl Running {
    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }
}

async fn run(running: Arc<Running>, source: Arc<dyn ReplicaSource>, around: Arc<Surroundings>) {
    let timeout = running.fetcher.lock().config().timeout;
    while !running.is_over.load(Ordering::SeqCst) {
        let now = around.clock.monotonic();
        let call = {
            let mut fetcher = running.fetcher.lock();
            fetcher.request(now, around.broker_epoch().0)
        };
        let Some(call) = call else {
            // What cannot be fetched although it need not wait is not followed any more: whoever
            // changed that brings news.
            let retry_at = running.fetcher.lock().retry_at(now);
            let wait = retry_at.map_or(IDLE_MAX, |at| at.saturating_sub(now));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = running.news.notified() => {}
            }
            continue;
        };
        let answer = source.fetch(&call, timeout).await;
        let out_of_range = {
            let mut fetcher = running.fetcher.lock();
            let now = around.clock.monotonic();
            match answer {
                Some(answer) => {
                    let is_long = answer.records_bytes() > SHORT_BYTES_MAX;
                    let take = || fetcher.on_answer(answer, now, around.clock.now_ms());
                    if is_long {
                        turns::in_place(take)
                    } else {
                        take()
                    }
                }
                None => {
                    fetcher.on_lost(now);
                    Vec::new()
                }
            }
        };
        for asked in out_of_range {
            let bounds = source.bounds(&asked, timeout).await;
            let (now, wall) = (around.clock.monotonic(), around.clock.now_ms());
            let mut fetcher = running.fetcher.lock();
            fetcher.on_bounds(&asked, bounds, now, wall);
        }
    }
}
