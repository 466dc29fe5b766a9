//! What a follower's fetcher asks one leader for, and what it makes of the answers. Nothing here
//! waits; `fetchers` runs it against a connection, the simulation against a loopback.
//!
//! ```text
//!   put --> Fetching --(error)--> Waiting until retry_at --> Fetching
//!              |  '--(divergence)--> cut --> Fetching
//!              '--(OFFSET_OUT_OF_RANGE)--> the leader's bounds are asked for --> Fetching
//! ```
//!
//! 1. One request is under way at a time, so that an answer fits the log as the request saw it.
//! 2. A partition is fetched in the leader epoch it was put with. Fenced, it waits for the metadata
//!    to put it again.
//! 3. What fails of one partition is tried again after `replica.fetch.backoff.ms` and does not hold
//!    up the others. A leader that does not know yet that it leads is asked again sooner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::follower::{CopyError, FromLeader};
use super::leader::Partition;
use crate::machine::fetch_session_client::FetchSessionClient;
use crate::peer::{FetchedFromLeader, ReplicaFetchAnswer, ReplicaFetchCall, WantedPartition};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicId};

/// A new leader may hear of its lead a moment after its followers do. The wait doubles up to
/// `replica.fetch.backoff.ms`.
const BACKOFF_OF_NEW_LEADER: Duration = Duration::from_millis(10);

/// By topic id and index.
pub type Key = (TopicId, i32);

/// The configurations of replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetcherConfig {
    /// `replica.fetch.max.bytes`
    pub partition_max_bytes: i32,
    /// `replica.fetch.response.max.bytes`
    pub response_max_bytes: i32,
    /// `replica.fetch.min.bytes`
    pub min_bytes: i32,
    /// `replica.fetch.wait.max.ms`
    pub max_wait: Duration,
    /// `replica.fetch.backoff.ms`
    pub backoff: Duration,
    /// `replica.socket.timeout.ms`
    pub timeout: Duration,
}

struct Followed {
    partition: Arc<Partition>,
    leader_epoch: LeaderEpoch,
    /// Not to be fetched before.
    retry_at: Duration,
    is_fenced: bool,
    /// The next wait for a leader that does not know of its lead.
    new_leader_backoff: Duration,
}

impl Followed {
    /// How long to wait for the leader to hear of its lead.
    fn next_new_leader_backoff(&mut self, backoff: Duration) -> Duration {
        let wait = self.new_leader_backoff.min(backoff);
        self.new_leader_backoff = wait * 2;
        wait
    }
}

/// A partition whose leader has to be asked where its log starts and ends.
#[derive(Clone)]
pub struct OutOfRange {
    pub key: Key,
    pub partition: Arc<Partition>,
    pub leader_epoch: LeaderEpoch,
}

/// The partitions that are copied from one leader over one connection.
pub struct Fetcher {
    this_broker: BrokerId,
    config: FetcherConfig,
    followed: BTreeMap<Key, Followed>,
    session: FetchSessionClient<Key, WantedPartition>,
    /// The offsets that the request under way asked for.
    asked: BTreeMap<Key, (LeaderEpoch, Offset)>,
}

impl Fetcher {
    pub fn new(this_broker: BrokerId, config: FetcherConfig) -> Fetcher {
        Fetcher {
            this_broker,
            config,
            followed: BTreeMap::new(),
            session: FetchSessionClient::default(),
            asked: BTreeMap::new(),
        }
    }

    pub fn config(&self) -> FetcherConfig {
        self.config
    }

    /// Copies `partition` from now on, in this leader epoch.
    pub fn put(&mut self, partition: Arc<Partition>, leader_epoch: LeaderEpoch, now: TimestampMs) {
        if let Err(error) = partition.cut_without_epochs(leader_epoch, now) {
            tracing::debug!(topic_partition = %partition.topic_partition, "not cut: {error}");
        }
        let key = (partition.topic_id, partition.topic_partition.partition);
        let followed = Followed {
            partition,
            leader_epoch,
            retry_at: Duration::ZERO,
            is_fenced: false,
            new_leader_backoff: BACKOFF_OF_NEW_LEADER,
        };
        self.followed.insert(key, followed);
    }

    /// Whether it was there.
    pub fn remove(&mut self, key: Key) -> bool {
        self.followed.remove(&key).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// The next request; `None` while nothing can be fetched.
    pub fn request(&mut self, now: Duration, broker_epoch: i64) -> Option<ReplicaFetchCall> {
        let mut wanted = BTreeMap::new();
        self.asked.clear();
        for (key, followed) in &mut self.followed {
            if followed.is_fenced || followed.retry_at > now {
                continue;
            }
            let partition = &followed.partition;
            if let Some(wait) = partition.is_held_back() {
                followed.retry_at = now + wait;
                continue;
            }
            let Some(position) = partition.follower_position(followed.leader_epoch) else {
                continue;
            };
            let asked = (followed.leader_epoch, position.fetch_offset);
            self.asked.insert(*key, asked);
            wanted.insert(
                *key,
                WantedPartition {
                    topic: partition.topic_partition.topic.clone(),
                    topic_id: key.0,
                    partition: key.1,
                    current_leader_epoch: followed.leader_epoch,
                    fetch_offset: position.fetch_offset,
                    last_fetched_epoch: position.last_fetched_epoch,
                    log_start_offset: position.log_start_offset,
                    max_bytes: self.config.partition_max_bytes,
                },
            );
        }
        if wanted.is_empty() {
            return None;
        }
        // What is waited for longer would hold up those whose time comes meanwhile.
        let waiting = self.followed.values();
        let waiting = waiting.filter(|f| !f.is_fenced && f.retry_at > now);
        let soonest = waiting.map(|followed| followed.retry_at - now).min();
        let max_wait = self.config.max_wait.min(soonest.unwrap_or(Duration::MAX));
        let session = self.session.request(wanted);
        Some(ReplicaFetchCall {
            replica: self.this_broker,
            replica_epoch: broker_epoch,
            max_wait,
            min_bytes: self.config.min_bytes,
            max_bytes: self.config.response_max_bytes,
            session_id: session.id,
            session_epoch: session.epoch,
            partitions: session.send.into_iter().map(|(_, wanted)| wanted).collect(),
            forgotten: session.forget,
        })
    }

    /// When something that waits may be fetched again.
    pub fn retry_at(&self, now: Duration) -> Option<Duration> {
        let waiting = self.followed.values().filter(|f| !f.is_fenced);
        let waiting = waiting.map(|followed| followed.retry_at);
        waiting.filter(|at| *at > now).min()
    }

    /// The request got no answer.
    pub fn on_lost(&mut self, now: Duration) {
        self.session.on_lost();
        for followed in self.followed.values_mut() {
            followed.retry_at = followed.retry_at.max(now + self.config.backoff);
        }
    }

    /// Takes in an answer. Returns those whose leader has to be asked for its bounds.
    pub fn on_answer(
        &mut self,
        answer: ReplicaFetchAnswer,
        now: Duration,
        wall: TimestampMs,
    ) -> Vec<OutOfRange> {
        if !self.session.on_answer(answer.error, answer.session_id) {
            let is_of_session = matches!(
                answer.error,
                ErrorCode::FetchSessionIdNotFound
                    | ErrorCode::InvalidFetchSessionEpoch
                    | ErrorCode::FetchSessionTopicIdError
            );
            if !is_of_session {
                tracing::warn!(
                    error = answer.error.name(),
                    "a fetch from a leader was refused"
                );
                self.on_lost(now);
            }
            return Vec::new();
        }
        let mut out_of_range = Vec::new();
        for fetched in answer.partitions {
            let key = (fetched.topic_id, fetched.partition);
            let asked = self.asked.get(&key).copied();
            let (Some((leader_epoch, offset)), Some(followed)) =
                (asked, self.followed.get_mut(&key))
            else {
                continue;
            };
            // Put again meanwhile, for another leader epoch.
            if followed.leader_epoch != leader_epoch {
                continue;
            }
            match take(followed, fetched, offset, wall) {
                Next::Fetch => {}
                Next::Wait => followed.retry_at = now + self.config.backoff,
                Next::WaitForLeader => {
                    let wait = followed.next_new_leader_backoff(self.config.backoff);
                    followed.retry_at = now + wait;
                }
                Next::Fenced => followed.is_fenced = true,
                Next::AskBounds => out_of_range.push(OutOfRange {
                    key,
                    partition: followed.partition.clone(),
                    leader_epoch,
                }),
            }
        }
        out_of_range
    }

    /// What the leader says of its log's bounds, or that it does not say.
    pub fn on_bounds(
        &mut self,
        asked: &OutOfRange,
        bounds: Option<(Offset, Offset)>,
        now: Duration,
        wall: TimestampMs,
    ) {
        let done = bounds.map(|bounds| {
            asked
                .partition
                .on_out_of_range(asked.leader_epoch, bounds, wall)
        });
        if let Some(Ok(())) = done {
            return;
        }
        if let Some(followed) = self.followed.get_mut(&asked.key)
            && followed.leader_epoch == asked.leader_epoch
        {
            followed.retry_at = now + self.config.backoff;
        }
    }
}

enum Next {
    Fetch,
    Wait,
    WaitForLeader,
    Fenced,
    AskBounds,
}

fn take(
    followed: &Followed,
    fetched: FetchedFromLeader,
    fetch_offset: Offset,
    now: TimestampMs,
) -> Next {
    let partition = &followed.partition;
    let topic_partition = &partition.topic_partition;
    let copied = match (fetched.error, fetched.diverging_epoch) {
        (ErrorCode::None, Some(diverging)) => {
            partition.cut_at_divergence(followed.leader_epoch, diverging, now)
        }
        (ErrorCode::None, None) => {
            partition.copied_from_leader(fetched.records.len() as u64);
            let from_leader = FromLeader {
                fetch_offset,
                high_watermark: fetched.high_watermark,
                log_start_offset: fetched.log_start_offset,
                records: fetched.records,
            };
            let copied = partition.copy(followed.leader_epoch, from_leader, now);
            copied.map(|_| ())
        }
        (ErrorCode::OffsetOutOfRange, _) => return Next::AskBounds,
        (ErrorCode::FencedLeaderEpoch, _) => {
            tracing::info!(%topic_partition, "the leader knows a newer epoch; the metadata will tell");
            return Next::Fenced;
        }
        (
            error @ (ErrorCode::NotLeaderOrFollower
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::UnknownTopicId
            | ErrorCode::UnknownTopicOrPartition),
            _,
        ) => {
            tracing::debug!(%topic_partition, error = error.name(), "it does not lead yet");
            return Next::WaitForLeader;
        }
        (error, _) => {
            tracing::debug!(%topic_partition, error = error.name(), "not fetched");
            return Next::Wait;
        }
    };
    match copied {
        Ok(()) => Next::Fetch,
        Err(CopyError::Outdated { .. }) => Next::Wait,
        Err(error) => {
            tracing::error!(%topic_partition, "not copied from the leader: {error}");
            Next::Wait
        }
    }
}
