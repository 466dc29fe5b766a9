//! Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only what
//! changes, and is told only about partitions that have news.
//!
//! 1. A session's epoch is the one its next request must carry. It goes from 1 up and wraps to 1.
//! 2. Partitions are answered in the session's order; one that had data goes to the back, so that
//!    no partition starves when `max_bytes` cuts the answer.
//! 3. A partition is left out of an incremental answer unless it has records, an error, a leader
//!    hint, or a watermark other than the one the client was last told.
//! 4. A refused request changes nothing; the session lives on.

use std::collections::{BTreeMap, HashMap};

use crate::types::{ErrorCode, Offset, TimestampMs, TopicId, TopicName};

/// The id of "no session".
pub const NO_SESSION: i32 = 0;
const EPOCH_INITIAL: i32 = 0;
const EPOCH_FINAL: i32 = -1;

/// A session may be pushed out by a new one when it was not used for so long
/// (`FetchSession.scala`: min.incremental.fetch.session.eviction.ms).
const EVICTION_AGE_MS: i64 = 120_000;

/// A partition in a fetch request. Up to v12 the topic goes by name, from v13 by id; the other one
/// is empty or nil.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partition: i32,
}

/// Where the fetcher is in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPosition {
    pub current_leader_epoch: i32,
    pub fetch_offset: Offset,
    pub last_fetched_epoch: i32,
    pub log_start_offset: Offset,
    pub max_bytes: i32,
}

/// One partition to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTarget {
    pub key: PartitionKey,
    pub position: FetchPosition,
}

/// What the answer says about a partition, as far as the session cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub has_records: bool,
    /// An error, a diverging epoch or a preferred replica: must always be said.
    pub must_say: bool,
}

struct SessionPartition {
    key: PartitionKey,
    position: FetchPosition,
    told_high_watermark: Offset,
    told_log_start_offset: Offset,
}

struct Session {
    epoch: i32,
    uses_topic_ids: bool,
    used_at: TimestampMs,
    /// Rank to partition: a partition goes to the back by getting a higher rank.
    order: BTreeMap<u64, SessionPartition>,
    ranks: HashMap<PartitionKey, u64>,
    next_rank: u64,
}

/// How a fetch request is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Everything is answered, and no session is kept.
    Sessionless,
    /// Everything is answered, and a session is made of it if there is room.
    Full,
    /// Only news are answered.
    Incremental { id: i32 },
}

/// All sessions of a broker.
pub struct FetchSessionCache {
    slots_max: usize,
    sessions: BTreeMap<i32, Session>,
}

/// A fetch request, as far as sessions go.
pub struct SessionRequest {
    pub id: i32,
    pub epoch: i32,
    pub uses_topic_ids: bool,
    pub targets: Vec<FetchTarget>,
    pub forgotten: Vec<PartitionKey>,
}

impl FetchSessionCache {
    /// `slots_max` is `max.incremental.fetch.session.cache.slots`.
    pub fn new(slots_max: usize) -> Self {
        FetchSessionCache {
            slots_max,
            sessions: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many partitions a session has.
    pub fn partitions_of(&self, id: i32) -> usize {
        self.sessions
            .get(&id)
            .map_or(0, |session| session.order.len())
    }

    /// Takes a request's changes into its session, and gives what is to be read, in order.
    pub fn begin(
        &mut self,
        request: SessionRequest,
        now: TimestampMs,
    ) -> Result<(Context, Vec<FetchTarget>), ErrorCode> {
        if request.epoch == EPOCH_FINAL || request.epoch == EPOCH_INITIAL {
            self.sessions.remove(&request.id);
            let context = if request.epoch == EPOCH_FINAL {
                Context::Sessionless
            } else {
                Context::Full
            };
            return Ok((context, request.targets));
        }
        let Some(session) = self.sessions.get_mut(&request.id) else {
            return Err(ErrorCode::FetchSessionIdNotFound);
        };
        if session.epoch != request.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.used_at = now;
        for target in request.targets {
            session.put(target);
        }
        for key in &request.forgotten {
            session.forget(key);
        }
        if session.order.is_empty() {
            self.sessions.remove(&request.id);
            return Ok((Context::Sessionless, Vec::new()));
        }
        session.epoch = next_epoch(session.epoch);
        let targets = session.targets();
        Ok((Context::Incremental { id: request.id }, targets))
    }

    /// Makes a session of a full fetch; [`NO_SESSION`] when there is no room. `random` picks the
    /// id.
    pub fn create(
        &mut self,
        uses_topic_ids: bool,
        targets: Vec<(FetchTarget, Told)>,
        now: TimestampMs,
        mut random: impl FnMut() -> u32,
    ) -> i32 {
        if self.sessions.len() >= self.slots_max && !self.evict(now) {
            return NO_SESSION;
        }
        let id = loop {
            let id = (random() & i32::MAX as u32) as i32;
            if id != NO_SESSION && !self.sessions.contains_key(&id) {
                break id;
            }
        };
        let mut session = Session {
            epoch: next_epoch(EPOCH_INITIAL),
            uses_topic_ids,
            used_at: now,
            order: BTreeMap::new(),
            ranks: HashMap::with_capacity(targets.len()),
            next_rank: 0,
        };
        for (target, told) in targets {
            let key = target.key.clone();
            session.put(target);
            session.tell(&key, told);
        }
        self.sessions.insert(id, session);
        id
    }

    /// Whether `told` is news in session `id`; remembers that it was told if so. A session that
    /// was closed meanwhile hides nothing.
    pub fn is_news(&mut self, id: i32, key: &PartitionKey, told: Told) -> bool {
        match self.sessions.get_mut(&id) {
            Some(session) => session.tell(key, told),
            None => true,
        }
    }

    /// Pushes out the session that was unused the longest, if that is long enough.
    fn evict(&mut self, now: TimestampMs) -> bool {
        let oldest = self
            .sessions
            .iter()
            .min_by_key(|(id, session)| (session.used_at, **id));
        match oldest {
            Some((&id, session)) if now.0 - session.used_at.0 > EVICTION_AGE_MS => {
                self.sessions.remove(&id);
                true
            }
            _ => false,
        }
    }
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl Session {
    fn put(&mut self, target: FetchTarget) {
        if let Some(rank) = self.ranks.get(&target.key) {
            let partition = self.order.get_mut(rank).expect("ranks and order agree");
            partition.position = target.position;
            return;
        }
        let partition = SessionPartition {
            key: target.key.clone(),
            position: target.position,
            told_high_watermark: Offset::NONE,
            told_log_start_offset: Offset::NONE,
        };
        self.push_back(target.key, partition);
    }

    fn push_back(&mut self, key: PartitionKey, partition: SessionPartition) {
        self.ranks.insert(key, self.next_rank);
        self.order.insert(self.next_rank, partition);
        self.next_rank += 1;
    }

    fn forget(&mut self, key: &PartitionKey) {
        if let Some(rank) = self.ranks.remove(key) {
            self.order.remove(&rank);
        }
    }

    fn targets(&self) -> Vec<FetchTarget> {
        let target = |p: &SessionPartition| FetchTarget {
            key: p.key.clone(),
            position: p.position.clone(),
        };
        self.order.values().map(target).collect()
    }

    fn tell(&mut self, key: &PartitionKey, told: Told) -> bool {
        let Some(&rank) = self.ranks.get(key) else {
            return true;
        };
        let partition = self.order.get_mut(&rank).expect("ranks and order agree");
        let mut news = told.has_records || told.must_say;
        news |= partition.told_high_watermark != told.high_watermark;
        news |= partition.told_log_start_offset != told.log_start_offset;
        partition.told_high_watermark = told.high_watermark;
        partition.told_log_start_offset = told.log_start_offset;
        if told.must_say {
            // Said again next time, even when the error is gone by then.
            partition.told_high_watermark = Offset::NONE;
        }
        if told.has_records {
            let partition = self.order.remove(&rank).expect("it was just there");
            self.push_back(key.clone(), partition);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const NOW: TimestampMs = TimestampMs(1_000_000);

    fn target(partition: i32, offset: i64) -> FetchTarget {
        FetchTarget {
            key: key(partition),
            position: FetchPosition {
                current_leader_epoch: -1,
                fetch_offset: Offset(offset),
                last_fetched_epoch: -1,
                log_start_offset: Offset::NONE,
                max_bytes: 1000,
            },
        }
    }

    fn key(partition: i32) -> PartitionKey {
        PartitionKey {
            topic: "".into(),
            topic_id: TopicId(Uuid::from_u128(7)),
            partition,
        }
    }

    fn told(high_watermark: i64, has_records: bool) -> Told {
        Told {
            high_watermark: Offset(high_watermark),
            log_start_offset: Offset(0),
            has_records,
            must_say: false,
        }
    }

    fn request(id: i32, epoch: i32, targets: Vec<FetchTarget>) -> SessionRequest {
        SessionRequest {
            id,
            epoch,
            uses_topic_ids: true,
            targets,
            forgotten: Vec::new(),
        }
    }

    fn with_session() -> (FetchSessionCache, i32) {
        let mut cache = FetchSessionCache::new(2);
        let targets = vec![
            (target(0, 0), told(0, false)),
            (target(1, 0), told(0, false)),
        ];
        let id = cache.create(true, targets, NOW, || 5);
        (cache, id)
    }

    #[test]
    fn an_incremental_fetch_reads_all_partitions_with_what_changed() {
        let (mut cache, id) = with_session();
        let (context, targets) = cache
            .begin(request(id, 1, vec![target(1, 9)]), NOW)
            .unwrap();
        assert_eq!(context, Context::Incremental { id });
        assert_eq!(targets, [target(0, 0), target(1, 9)]);
        let mut forget = request(id, 2, Vec::new());
        forget.forgotten = vec![key(0)];
        assert_eq!(cache.begin(forget, NOW).unwrap().1, [target(1, 9)]);
    }

    #[test]
    fn wrong_requests_are_refused_and_change_nothing() {
        let (mut cache, id) = with_session();
        let refused = |cache: &mut FetchSessionCache, r| cache.begin(r, NOW).unwrap_err();
        assert_eq!(
            refused(&mut cache, request(id + 1, 1, Vec::new())),
            ErrorCode::FetchSessionIdNotFound
        );
        assert_eq!(
            refused(&mut cache, request(0, 1, Vec::new())),
            ErrorCode::FetchSessionIdNotFound
        );
        assert_eq!(
            refused(&mut cache, request(id, 2, vec![target(3, 3)])),
            ErrorCode::InvalidFetchSessionEpoch
        );
        let by_name = SessionRequest {
            uses_topic_ids: false,
            ..request(id, 1, Vec::new())
        };
        assert_eq!(
            refused(&mut cache, by_name),
            ErrorCode::FetchSessionTopicIdError
        );
        assert_eq!(
            cache
                .begin(request(id, 1, Vec::new()), NOW)
                .unwrap()
                .1
                .len(),
            2
        );
    }

    #[test]
    fn only_news_are_told_and_data_goes_to_the_back() {
        let (mut cache, id) = with_session();
        assert!(!cache.is_news(id, &key(0), told(0, false)));
        assert!(cache.is_news(id, &key(0), told(1, true)));
        assert!(!cache.is_news(id, &key(0), told(1, false)));
        let order = cache.begin(request(id, 1, Vec::new()), NOW).unwrap().1;
        assert_eq!(order, [target(1, 0), target(0, 0)]);
        let error = Told {
            must_say: true,
            ..told(-1, false)
        };
        assert!(cache.is_news(id, &key(1), error));
        assert!(cache.is_news(id, &key(1), error));
    }

    #[test]
    fn a_full_cache_keeps_fresh_sessions_and_gives_up_old_ones() {
        let (mut cache, first) = with_session();
        let second = cache.create(true, Vec::new(), NOW, || 6);
        assert_ne!(second, NO_SESSION);
        assert_eq!(cache.create(true, Vec::new(), NOW, || 7), NO_SESSION);
        let later = TimestampMs(NOW.0 + EVICTION_AGE_MS + 1);
        assert_eq!(cache.create(true, Vec::new(), later, || 7), 7);
        assert!(!cache.sessions.contains_key(&first));
    }

    #[test]
    fn epoch_zero_closes_the_old_session_and_minus_one_makes_none() {
        let (mut cache, id) = with_session();
        let (context, _) = cache
            .begin(request(id, 0, vec![target(0, 0)]), NOW)
            .unwrap();
        assert_eq!(context, Context::Full);
        assert!(cache.is_empty());
        let (context, targets) = cache
            .begin(request(0, -1, vec![target(0, 0)]), NOW)
            .unwrap();
        assert_eq!((context, targets.len()), (Context::Sessionless, 1));
    }
}
