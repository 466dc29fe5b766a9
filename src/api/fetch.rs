//! Fetch (key 1): consumers and followers read batches. Incremental sessions are KIP-227, topic
//! ids KIP-516, divergence KIP-595.
//!
//! The first stage reads what there is. If that is less than `min_bytes` and the client is willing
//! to wait, the second stage sleeps until one of the partitions has news, and reads again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::FetchRequest;
use kafka_protocol::messages::fetch_response::FetchResponse;

use super::codec::{AnswerHeader, Handled, Outcome};
use super::context::Context;
use super::fetch_answer::{self, AbortedTransaction, FetchAnswer, FetchedPartition, FetchedTopic};
use super::{Node, error};
use crate::host::random;
use crate::log::LogSlice;
use crate::machine::fetch_session::{
    self, FetchPosition, FetchTarget, NO_SESSION, PartitionKey, SessionRequest, Told,
};
use crate::partition::{Partition, Waiter};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset, TopicId};

/// From this version on a fetch says from which epoch its last record was.
const VERSION_LAST_FETCHED_EPOCH: i16 = 12;
const VERSION_TOPIC_IDS: i16 = 13;

/// A session of more partitions takes too long for a worker, however small the request is.
const SHORT_PARTITIONS_MAX: usize = 1000;

pub fn handle(context: Context, request: FetchRequest) -> Handled<FetchResponse> {
    let node = context.node.clone();
    let session_id = request.session_id;
    let is_short = session_id == NO_SESSION
        || node.fetch_sessions.lock().partitions_of(session_id) <= SHORT_PARTITIONS_MAX;
    if is_short {
        return fetch(context, request);
    }
    Handled::Alone(Box::pin(async move {
        let steps = Box::pin(async move { fetch(context, request).outcome().await });
        node.turns.run_steps(steps).await
    }))
}

fn fetch(context: Context, request: FetchRequest) -> Handled<FetchResponse> {
    let header = AnswerHeader::of(&context);
    let fetch = match Fetch::begin(&context, request) {
        Ok(fetch) => fetch,
        Err(refused) => {
            return Handled::Done(Outcome::Frame(fetch_answer::encode(header, refused)));
        }
    };
    let read = fetch.read();
    if fetch.is_enough(&read) {
        return Handled::Done(Outcome::Frame(fetch.answer(&context.node, header, read)));
    }
    Handled::Later(Box::pin(async move {
        let read = fetch.wait(read).await;
        Outcome::Frame(fetch.answer(&context.node, header, read))
    }))
}

/// An error of the whole request: nothing else is in the answer.
fn refuse(error: ErrorCode) -> FetchAnswer {
    FetchAnswer {
        error,
        session_id: NO_SESSION,
        topics: Vec::new(),
    }
}

/// A request that makes no sense. Where the answer goes by name, each partition that the request
/// names has the error too: versions without an error of the whole answer have no other place.
fn refuse_all(request: &FetchRequest, uses_topic_ids: bool, error: ErrorCode) -> FetchAnswer {
    let mut answer = refuse(error);
    answer.session_id = request.session_id;
    if uses_topic_ids {
        return answer;
    }
    answer.topics = request
        .topics
        .iter()
        .map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| FetchedPartition {
                aborted_transactions: Some(Vec::new()),
                ..FetchedPartition::failed(wanted.partition, error)
            });
            FetchedTopic {
                topic: topic.topic.0.as_str().into(),
                topic_id: TopicId(topic.topic_id),
                partitions: partitions.collect(),
            }
        })
        .collect();
    answer
}

/// A fetch under way.
struct Fetch {
    session: fetch_session::Context,
    uses_topic_ids: bool,
    targets: Vec<FetchTarget>,
    /// The partitions of `targets`, in their order.
    partitions: Vec<Result<Arc<Partition>, ErrorCode>>,
    read_committed: bool,
    replica_id: BrokerId,
    knows_last_epoch: bool,
    knows_leader_hint: bool,
    max_bytes: i64,
    min_bytes: i64,
    max_wait: Duration,
}

/// One round of reading all targets.
struct Read {
    partitions: Vec<FetchedPartition>,
    bytes: i64,
    /// What the rest of the answer may take.
    room_bytes: i64,
    /// What could be read if every partition came up to its own limit: counts for `min_bytes`.
    readable_bytes: i64,
    /// Something that must be said at once: an error, a divergence.
    urgent: bool,
}

impl Fetch {
    fn begin(context: &Context, request: FetchRequest) -> Result<Fetch, FetchAnswer> {
        let node = &context.node;
        let uses_topic_ids = context.api_version >= VERSION_TOPIC_IDS;
        let replica_id = match context.api_version {
            ..=14 => request.replica_id.0,
            _ => request.replica_state.replica_id.0,
        };
        let session_request = session_request(&request, uses_topic_ids);
        let now = node.clock.now_ms();
        let begun = node.fetch_sessions.lock().begin(session_request, now);
        let (session, targets) = begun.map_err(refuse)?;
        // The session has gone on, as in Kafka, even if the rest of the request is refused.
        let read_committed = match request.isolation_level {
            0 => false,
            1 => true,
            _ => {
                let error = ErrorCode::UnknownServerError;
                return Err(refuse_all(&request, uses_topic_ids, error));
            }
        };
        let find = |target: &FetchTarget| find(node, &target.key, uses_topic_ids);
        let partitions = targets.iter().map(find).collect();
        let max_bytes = request
            .max_bytes
            .min(node.config().broker.fetch.fetch_max_bytes);
        Ok(Fetch {
            session,
            uses_topic_ids,
            targets,
            partitions,
            read_committed,
            replica_id: BrokerId(replica_id),
            knows_last_epoch: context.api_version >= VERSION_LAST_FETCHED_EPOCH,
            knows_leader_hint: context.api_version >= 16,
            max_bytes: i64::from(max_bytes),
            min_bytes: i64::from(request.min_bytes.min(max_bytes)),
            max_wait: Duration::from_millis(request.max_wait_ms.max(0) as u64),
        })
    }

    fn read(&self) -> Read {
        let mut read = Read {
            partitions: Vec::with_capacity(self.targets.len()),
            bytes: 0,
            room_bytes: self.max_bytes,
            readable_bytes: 0,
            urgent: false,
        };
        for (target, partition) in self.targets.iter().zip(&self.partitions) {
            let index = target.key.partition;
            let fetched = match partition {
                Ok(partition) => {
                    let fetched = self.read_partition(partition, &target.position, &read);
                    read.room_bytes = (read.room_bytes - fetched.records_bytes() as i64).max(0);
                    fetched
                }
                Err(error) => not_here(index, *error),
            };
            read.bytes += fetched.records_bytes() as i64;
            read.readable_bytes += fetched.records.as_ref().map_or(0, |slice| {
                let own = slice.available.min(target.position.max_bytes.max(0) as u32);
                i64::from(own.max(slice.len))
            });
            read.urgent |= fetched.error != ErrorCode::None || fetched.diverging_epoch.is_some();
            read.partitions.push(fetched);
        }
        read
    }

    fn read_partition(
        &self,
        partition: &Partition,
        position: &FetchPosition,
        before: &Read,
    ) -> FetchedPartition {
        let index = partition.topic_partition.partition;
        let failed = |error| self.failed(partition, error);
        // -2 and other negative epochs are ignored here, unlike in ListOffsets.
        let known_epoch = position.current_leader_epoch.max(LeaderEpoch::NONE.0);
        if let Err(error) = partition.check_leader(known_epoch) {
            return failed(error);
        }
        if self.replica_id.0 >= 0 {
            // Replication comes with the cluster; until then nobody is a replica of ours.
            return failed(ErrorCode::NotLeaderOrFollower);
        }
        let watermarks = partition.watermarks();
        let fetched = FetchedPartition {
            high_watermark: watermarks.high_watermark,
            last_stable_offset: watermarks.last_stable_offset,
            log_start_offset: watermarks.log_start_offset,
            aborted_transactions: self.read_committed.then(Vec::new),
            ..FetchedPartition::failed(index, ErrorCode::None)
        };
        if self.knows_last_epoch && position.last_fetched_epoch >= 0 {
            match divergence(partition, position) {
                Ok(None) => {}
                Ok(diverging_epoch) => {
                    return FetchedPartition {
                        diverging_epoch,
                        ..fetched
                    };
                }
                Err(error) => return failed(error),
            }
        }
        let up_to = if self.read_committed {
            watermarks.last_stable_offset
        } else {
            watermarks.high_watermark
        };
        let room_bytes = before.room_bytes.min(i64::from(position.max_bytes));
        let is_first = before.bytes == 0;
        match partition.read(
            position.fetch_offset,
            room_bytes.max(0) as u32,
            up_to,
            is_first,
        ) {
            // Kafka looks at the limits when there is something to read.
            Ok(_) if room_bytes < 0 && position.fetch_offset < up_to => {
                failed(ErrorCode::UnknownServerError)
            }
            Ok(slice) => self.with_records(partition, position.fetch_offset, up_to, slice, fetched),
            Err(error) => failed(error::of_read(&partition.topic_partition, &error)),
        }
    }

    fn with_records(
        &self,
        partition: &Partition,
        from: Offset,
        up_to: Offset,
        slice: LogSlice,
        fetched: FetchedPartition,
    ) -> FetchedPartition {
        let mut fetched = fetched;
        if self.read_committed {
            match partition.log.aborted_transactions(from, &slice, up_to) {
                Ok(aborted) => {
                    let entries = aborted.iter().map(|txn| AbortedTransaction {
                        producer_id: txn.producer_id.0,
                        first_offset: txn.first_offset,
                    });
                    fetched.aborted_transactions = Some(entries.collect());
                }
                Err(error) => {
                    let error = error::of_log(&partition.topic_partition, &error);
                    return FetchedPartition::failed(fetched.partition, error);
                }
            }
        }
        fetched.records = Some(slice);
        fetched
    }

    /// An error of one partition, with the leader to turn to where the client can read it.
    fn failed(&self, partition: &Partition, error: ErrorCode) -> FetchedPartition {
        let mut failed = FetchedPartition::failed(partition.topic_partition.partition, error);
        let names_leader = matches!(
            error,
            ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch
        );
        if self.knows_leader_hint && names_leader {
            let leadership = partition.leadership();
            failed.current_leader = Some((leadership.leader, leadership.leader_epoch));
        }
        failed
    }

    fn is_enough(&self, read: &Read) -> bool {
        self.max_wait.is_zero()
            || self.targets.is_empty()
            || read.urgent
            || read.readable_bytes >= self.min_bytes
    }

    /// Reads again whenever there is news since `read`, until it is enough or the time is up.
    async fn wait(&self, mut read: Read) -> Read {
        let waiter = Waiter::new();
        let known: Vec<&Arc<Partition>> = self
            .partitions
            .iter()
            .filter_map(|found| found.as_ref().ok())
            .collect();
        let _registered = Registered::new(&known, &waiter);
        let deadline = tokio::time::sleep(self.max_wait);
        tokio::pin!(deadline);
        loop {
            if self.is_outdated(&read) {
                read = self.read();
                if self.is_enough(&read) {
                    return read;
                }
            }
            tokio::select! {
                biased;
                () = waiter.news() => {}
                () = &mut deadline => return self.read(),
            }
        }
    }

    /// Whether a new read would find something else. Most fetches of a consumer at the end of the
    /// log begin to wait right after a read; looking at offsets costs less than another one.
    fn is_outdated(&self, read: &Read) -> bool {
        let mut all = self
            .targets
            .iter()
            .zip(&self.partitions)
            .zip(&read.partitions);
        all.any(|((target, partition), fetched)| {
            let Ok(partition) = partition else {
                return false;
            };
            let known_epoch = target
                .position
                .current_leader_epoch
                .max(LeaderEpoch::NONE.0);
            let watermarks = partition.watermarks();
            watermarks.high_watermark != fetched.high_watermark
                || watermarks.last_stable_offset != fetched.last_stable_offset
                || watermarks.log_start_offset != fetched.log_start_offset
                || partition.check_leader(known_epoch).is_err()
        })
    }

    fn answer(&self, node: &Node, header: AnswerHeader, read: Read) -> super::Frame {
        let session_id = match self.session {
            fetch_session::Context::Incremental { id } => id,
            fetch_session::Context::Full => self.create_session(node, &read),
            fetch_session::Context::Sessionless => NO_SESSION,
        };
        let mut sessions = node.fetch_sessions.lock();
        let mut topics: Vec<FetchedTopic> = Vec::new();
        for (target, partition) in self.targets.iter().zip(read.partitions) {
            if let fetch_session::Context::Incremental { id } = self.session
                && !sessions.is_news(id, &target.key, told(&partition))
            {
                continue;
            }
            push(&mut topics, &target.key, partition);
        }
        drop(sessions);
        let answer = FetchAnswer {
            error: ErrorCode::None,
            session_id,
            topics,
        };
        fetch_answer::encode(header, answer)
    }

    fn create_session(&self, node: &Node, read: &Read) -> i32 {
        let targets = self.targets.iter().cloned();
        let targets = targets.zip(read.partitions.iter().map(told)).collect();
        let now = node.clock.now_ms();
        let random = || random::seed() as u32;
        node.fetch_sessions
            .lock()
            .create(self.uses_topic_ids, targets, now, random)
    }
}

/// A waiter's places with its partitions; given up when the fetch ends, however it ends.
struct Registered<'a> {
    partitions: &'a [&'a Arc<Partition>],
    waiter: &'a Arc<Waiter>,
}

impl<'a> Registered<'a> {
    fn new(partitions: &'a [&'a Arc<Partition>], waiter: &'a Arc<Waiter>) -> Self {
        for partition in partitions {
            partition.register(waiter);
        }
        Registered { partitions, waiter }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        for partition in self.partitions {
            partition.deregister(self.waiter);
        }
    }
}

fn session_request(request: &FetchRequest, uses_topic_ids: bool) -> SessionRequest {
    let mut targets: Vec<FetchTarget> = Vec::new();
    // A partition that is named twice: the last word counts, in the first one's place.
    let mut places: HashMap<PartitionKey, usize> = HashMap::new();
    for topic in &request.topics {
        let name: Arc<str> = topic.topic.0.as_str().into();
        for partition in &topic.partitions {
            let key = PartitionKey {
                topic: name.clone(),
                topic_id: TopicId(topic.topic_id),
                partition: partition.partition,
            };
            let position = FetchPosition {
                current_leader_epoch: partition.current_leader_epoch,
                fetch_offset: Offset(partition.fetch_offset),
                last_fetched_epoch: partition.last_fetched_epoch,
                log_start_offset: Offset(partition.log_start_offset),
                max_bytes: partition.partition_max_bytes,
            };
            match places.get(&key) {
                Some(&at) => targets[at].position = position,
                None => {
                    places.insert(key.clone(), targets.len());
                    targets.push(FetchTarget { key, position });
                }
            }
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let name: Arc<str> = topic.topic.0.as_str().into();
        forgotten.extend(topic.partitions.iter().map(|&partition| PartitionKey {
            topic: name.clone(),
            topic_id: TopicId(topic.topic_id),
            partition,
        }));
    }
    SessionRequest {
        id: request.session_id,
        epoch: request.session_epoch,
        uses_topic_ids,
        targets,
        forgotten,
    }
}

fn find(node: &Node, key: &PartitionKey, by_id: bool) -> Result<Arc<Partition>, ErrorCode> {
    if by_id {
        node.partition_by_id(key.topic_id, key.partition)
    } else {
        node.partition_by_name(&key.topic, key.partition)
    }
}

/// The answer for a partition that is not looked for further. Kafka has an empty list for what
/// its metadata does not know, and none for all that its replicas refuse.
fn not_here(index: i32, error: ErrorCode) -> FetchedPartition {
    let unknown = matches!(
        error,
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
    );
    FetchedPartition {
        aborted_transactions: unknown.then(Vec::new),
        ..FetchedPartition::failed(index, error)
    }
}

/// Where the fetcher's log parts from ours (KIP-595), if it does.
fn divergence(
    partition: &Partition,
    position: &FetchPosition,
) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
    let last = LeaderEpoch(position.last_fetched_epoch);
    match partition.log.end_offset_for_epoch(last) {
        None => Err(ErrorCode::OffsetOutOfRange),
        Some((epoch, end)) if epoch < last || end < position.fetch_offset => Ok(Some((epoch, end))),
        Some(_) => Ok(None),
    }
}

fn told(partition: &FetchedPartition) -> Told {
    Told {
        high_watermark: partition.high_watermark,
        log_start_offset: partition.log_start_offset,
        has_records: partition.records_bytes() > 0,
        must_say: partition.error != ErrorCode::None || partition.diverging_epoch.is_some(),
    }
}

fn push(topics: &mut Vec<FetchedTopic>, key: &PartitionKey, partition: FetchedPartition) {
    match topics.last_mut() {
        Some(last) if last.topic == key.topic && last.topic_id == key.topic_id => {
            last.partitions.push(partition);
        }
        _ => topics.push(FetchedTopic {
            topic: key.topic.clone(),
            topic_id: key.topic_id,
            partitions: vec![partition],
        }),
    }
}
