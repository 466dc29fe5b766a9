//! Fetch (key 1): consumers and followers read batches. Incremental sessions are KIP-227, topic
//! ids KIP-516, divergence KIP-595.
//!
//! The first stage reads what there is. If that is less than `min_bytes` and the client is willing
//! to wait, the second stage sleeps until one of the partitions has news, and reads again.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::FetchRequest;
use kafka_protocol::messages::fetch_response::FetchResponse;

use super::codec::{AnswerHeader, Handled, Outcome};
use super::context::Context;
use super::fetch_answer::{self, AbortedTransaction, FetchAnswer, FetchedPartition, FetchedTopic};
use super::fetch_request::{find, not_here, refuse, refuse_all, session_request};
use super::leader_hint::LeaderHints;
use super::read_replica::ReadReplicas;
use super::{Node, error};
use crate::host::random;
use crate::log::{Log, LogError, LogSlice, ReadError};
use crate::machine::fetch_session::{
    self, FetchPosition, FetchTarget, NO_SESSION, PartitionKey, Told,
};
use crate::machine::replica_set::NO_BROKER_EPOCH;
use crate::partition::{
    Partition, ReplicaFetch, ReplicaFetchError, ReplicaRead, Waiter, Watermarks,
};
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset};

pub(super) const KEY: i16 = 1;

/// From this version on a fetch says from which epoch its last record was.
const VERSION_LAST_FETCHED_EPOCH: i16 = 12;
const VERSION_TOPIC_IDS: i16 = 13;
/// From this version on a consumer says where it is, and may read from a follower (KIP-392).
const VERSION_RACK: i16 = 11;

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
            return Handled::Done(Outcome::Frame(encode(&context.node, header, refused)));
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

fn encode(node: &Node, header: AnswerHeader, answer: FetchAnswer) -> super::Frame {
    if let Some(counts) = node.requests.of_key(KEY) {
        counts.error(answer.error.code());
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.for_each(|partition| counts.error(partition.error.code()));
    }
    fetch_answer::encode(header, answer)
}

/// A fetch under way.
struct Fetch {
    listener: Arc<str>,
    session: fetch_session::Context,
    uses_topic_ids: bool,
    targets: Vec<FetchTarget>,
    /// The partitions of `targets`, in their order.
    partitions: Vec<Result<Arc<Partition>, ErrorCode>>,
    read_committed: bool,
    replica_id: BrokerId,
    replica_epoch: i64,
    /// `None`: the client reads from leaders only.
    rack_id: Option<String>,
    /// The replicas that a consumer may be sent to, where that is configured.
    read_replicas: Option<ReadReplicas>,
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
        let (replica_id, replica_epoch) = match context.api_version {
            ..=14 => (request.replica_id.0, NO_BROKER_EPOCH),
            _ => (
                request.replica_state.replica_id.0,
                request.replica_state.replica_epoch,
            ),
        };
        let knows_rack = context.api_version >= VERSION_RACK && replica_id < 0;
        let rack_id = knows_rack.then(|| request.rack_id.to_string());
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
            listener: context.connection.listener.clone(),
            session,
            uses_topic_ids,
            targets,
            partitions,
            read_committed,
            replica_id: BrokerId(replica_id),
            replica_epoch,
            rack_id,
            read_replicas: ReadReplicas::of(node),
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
                    let fetched = match self.is_replica() {
                        true => self.read_for_replica(partition, &target.position, &mut read),
                        false => self.read_partition(partition, &target.position, &read),
                    };
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
            read.urgent |= fetched.must_say();
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
        if let Err(error) = self.check(partition, known_epoch) {
            return failed(error);
        }
        let watermarks = partition.watermarks();
        let mut fetched = FetchedPartition {
            aborted_transactions: self.read_committed.then(Vec::new),
            ..fetched(index, &watermarks)
        };
        if let Some(replica) = self.preferred_replica(partition, position.fetch_offset) {
            fetched.preferred_read_replica = replica;
            return fetched;
        }
        if self.knows_last_epoch {
            let last = LeaderEpoch(position.last_fetched_epoch);
            match partition.divergence(last, position.fetch_offset) {
                Ok(None) => {}
                Ok(diverging_epoch) => {
                    fetched.diverging_epoch = diverging_epoch;
                    return fetched;
                }
                Err(error) => return failed(code_of(partition, &error)),
            }
        }
        let up_to = if self.read_committed {
            watermarks.last_stable_offset
        } else {
            watermarks.high_watermark
        };
        let room_bytes = before.room_bytes.min(i64::from(position.max_bytes));
        let is_first = before.bytes == 0;
        let from = position.fetch_offset;
        // Both from one log: another may take its place.
        let read = partition.on_log(|log| {
            let slice = log.read(from, room_bytes.max(0) as u32, up_to, is_first)?;
            let aborted = self.aborted(log, from, &slice, up_to)?;
            Ok::<_, ReadError>((slice, aborted))
        });
        match read {
            // Kafka looks at the limits when there is something to read.
            Ok(_) if room_bytes < 0 && from < up_to => failed(ErrorCode::UnknownServerError),
            Ok((slice, aborted)) => FetchedPartition {
                aborted_transactions: aborted.or(fetched.aborted_transactions),
                records: Some(slice),
                ..fetched
            },
            Err(error) => failed(error::of_read(&partition.topic_partition, &error)),
        }
    }

    fn is_replica(&self) -> bool {
        self.replica_id.0 >= 0
    }

    /// Whether this broker may answer at all.
    fn check(&self, partition: &Partition, known_epoch: i32) -> Result<(), ErrorCode> {
        match self.rack_id {
            Some(_) => partition.check_replica(known_epoch),
            None => partition.check_leader(known_epoch),
        }
    }

    /// A replica nearer to the consumer.
    fn preferred_replica(&self, partition: &Partition, from: Offset) -> Option<BrokerId> {
        let rack_id = self.rack_id.as_deref()?;
        let replicas = self.read_replicas.as_ref()?;
        replicas.preferred(partition, rack_id, from)
    }

    /// What a follower gets: everything up to the log's end.
    fn read_for_replica(
        &self,
        partition: &Partition,
        position: &FetchPosition,
        read: &mut Read,
    ) -> FetchedPartition {
        let room_bytes = read.room_bytes.min(i64::from(position.max_bytes)).max(0);
        let fetch = ReplicaFetch {
            replica: self.replica_id,
            replica_epoch: self.replica_epoch,
            current_leader_epoch: position.current_leader_epoch.max(LeaderEpoch::NONE.0),
            fetch_offset: position.fetch_offset,
            last_fetched_epoch: match self.knows_last_epoch {
                true => LeaderEpoch(position.last_fetched_epoch),
                false => LeaderEpoch::NONE,
            },
            log_start_offset: position.log_start_offset,
            max_bytes: room_bytes as u32,
        };
        match partition.read_for_replica(&fetch, read.bytes == 0) {
            Ok(ReplicaRead {
                watermarks,
                diverging_epoch,
                records,
            }) => {
                // So that followers know soon what is committed: one of them leads next.
                read.urgent |= partition.owes_high_watermark(self.replica_id);
                // What is held back is not waited for either: it comes with a later fetch.
                let is_held_back = partition.holds_back(self.replica_id);
                FetchedPartition {
                    diverging_epoch,
                    records: records.filter(|_| !is_held_back),
                    ..fetched(partition.topic_partition.partition, &watermarks)
                }
            }
            Err(error) => self.failed(partition, code_of(partition, &error)),
        }
    }

    /// What a consumer that reads committed records only has to leave out of `slice`.
    fn aborted(
        &self,
        log: &Log,
        from: Offset,
        slice: &LogSlice,
        up_to: Offset,
    ) -> Result<Option<Vec<AbortedTransaction>>, LogError> {
        if !self.read_committed {
            return Ok(None);
        }
        let aborted = log.aborted_transactions(from, slice, up_to)?;
        let entries = aborted.iter().map(|txn| AbortedTransaction {
            producer_id: txn.producer_id.0,
            first_offset: txn.first_offset,
        });
        Ok(Some(entries.collect()))
    }

    fn failed(&self, partition: &Partition, error: ErrorCode) -> FetchedPartition {
        FetchedPartition::failed(partition.topic_partition.partition, error)
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
        let _registered = Registered::new(&known, &waiter, self.is_replica());
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
            let seen_end = fetched.records.as_ref().map(|slice| slice.log_end_offset);
            let is_longer = seen_end.is_some_and(|seen| watermarks.log_end_offset > seen);
            (self.is_replica() && is_longer)
                || watermarks.high_watermark != fetched.high_watermark
                || watermarks.last_stable_offset != fetched.last_stable_offset
                || watermarks.log_start_offset != fetched.log_start_offset
                || self.check(partition, known_epoch).is_err()
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
        self.tell_replica(&read);
        self.count(node, &read);
        let mut hints = LeaderHints::new(node, &self.listener);
        for (target, mut partition) in self.targets.iter().zip(read.partitions) {
            if self.knows_leader_hint {
                let key = &target.key;
                partition.current_leader =
                    hints.of(&key.topic, key.topic_id, key.partition, partition.error);
            }
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
            // Brokers know one another; Kafka tells them the leader's id only.
            node_endpoints: match self.is_replica() {
                true => Vec::new(),
                false => hints.endpoints(),
            },
        };
        encode(node, header, answer)
    }

    fn count(&self, node: &Node, read: &Read) {
        let traffic = &node.partitions.surroundings().traffic;
        if self.is_replica() {
            traffic.replicated_out_bytes.add(read.bytes as u64);
            return;
        }
        traffic.fetched_bytes.add(read.bytes as u64);
        for (partition, fetched) in self.partitions.iter().zip(&read.partitions) {
            let bytes = fetched.records_bytes() as u64;
            if bytes > 0
                && let Ok(partition) = partition
            {
                partition.topic_traffic.fetched_bytes.add(bytes);
            }
        }
    }

    /// The follower is being told the high watermarks of this answer.
    fn tell_replica(&self, read: &Read) {
        if !self.is_replica() {
            return;
        }
        for (partition, fetched) in self.partitions.iter().zip(&read.partitions) {
            if let Ok(partition) = partition
                && fetched.error == ErrorCode::None
            {
                partition.tell_replica(self.replica_id, fetched.high_watermark);
                partition.sent_to_replica(fetched.records_bytes() as u64);
            }
        }
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
    is_replica: bool,
}

impl<'a> Registered<'a> {
    fn new(
        partitions: &'a [&'a Arc<Partition>],
        waiter: &'a Arc<Waiter>,
        is_replica: bool,
    ) -> Self {
        for partition in partitions {
            match is_replica {
                true => partition.register_follower(waiter),
                false => partition.register(waiter),
            }
        }
        Registered {
            partitions,
            waiter,
            is_replica,
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        for partition in self.partitions {
            match self.is_replica {
                true => partition.deregister_follower(self.waiter),
                false => partition.deregister(self.waiter),
            }
        }
    }
}

/// An answer with what is known of the log's bounds, and nothing else yet.
fn fetched(index: i32, watermarks: &Watermarks) -> FetchedPartition {
    FetchedPartition {
        high_watermark: watermarks.high_watermark,
        last_stable_offset: watermarks.last_stable_offset,
        log_start_offset: watermarks.log_start_offset,
        ..FetchedPartition::failed(index, ErrorCode::None)
    }
}

fn code_of(partition: &Partition, error: &ReplicaFetchError) -> ErrorCode {
    match error {
        ReplicaFetchError::Refused(code) => *code,
        ReplicaFetchError::Read(error) => error::of_read(&partition.topic_partition, error),
    }
}

fn told(partition: &FetchedPartition) -> Told {
    Told {
        high_watermark: partition.high_watermark,
        log_start_offset: partition.log_start_offset,
        has_records: partition.records_bytes() > 0,
        must_say: partition.must_say(),
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
