//! Produce (key 0): appends batches.
//!
//! The first stage judges every partition's records and appends them: their place in the log is
//! taken in the order of the requests. With acks=all the second stage waits until the high
//! watermark has passed them, which means that every in-sync replica has them.
//!
//! A first stage that turns out to be long (many records, much to decompress) goes on where it is
//! under a turn of its own: see `allowance`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::produce_request::ProduceRequest;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    ProduceResponse, TopicProduceResponse,
};
use uuid::Uuid;

use super::allowance::Allowance;
use super::answer::CloseReason;
use super::by_topic::{Asked, by_topic};
use super::codec::{Handled, Outcome};
use super::context::Context;
use super::leader_hint::LeaderHints;
use super::verification::{self, NotVerified, Verdicts};
use super::{error, view};
use crate::config::{self, CompressionType, TopicConfig};
use crate::host::tasks;
use crate::log::Origin;
use crate::partition::{Partition, Waiter};
use crate::record::{Batch, Compression, PreparedBatch, ProduceRules, Rejected, TimestampType};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicId};

const ACKS_ALL: i16 = -1;
const ACKS_NONE: i16 = 0;
/// From this version on topics go by id.
pub(super) const VERSION_TOPIC_IDS: i16 = 13;
/// From this version on batches may be compressed with zstd (KIP-110).
const VERSION_ZSTD: i16 = 7;
/// From this version on an answer names the leader to turn to (KIP-951).
const VERSION_LEADER_HINT: i16 = 10;

pub fn handle(context: Context, request: ProduceRequest) -> Handled<ProduceResponse> {
    if !verification::has_transactional_batches(&request) {
        return produce(context, request, Verdicts::default());
    }
    let verified = async move {
        let verdicts = verification::verify(&context, &request).await;
        (context, request, verdicts)
    };
    match tasks::poll_once(Box::pin(verified)) {
        Ok((context, request, verdicts)) => produce(context, request, verdicts),
        Err(verified) => Handled::Alone(Box::pin(async move {
            let (context, request, verdicts) = verified.await;
            produce(context, request, verdicts).outcome().await
        })),
    }
}

/// Appends what may be appended.
fn produce(
    context: Context,
    request: ProduceRequest,
    verdicts: Verdicts,
) -> Handled<ProduceResponse> {
    let mut append = Append::new(context, request, verdicts);
    if append.run(Allowance::SHORT) {
        return append.finish();
    }
    let turns = append.context.node.turns.clone();
    Handled::Alone(Box::pin(async move {
        turns.run(|| append.run(Allowance::ALL)).await;
        append.finish().outcome().await
    }))
}

/// acks=0: there is no answer, and the only way to tell of an error is to close the connection.
fn without_answer(context: &Context, topics: &[AppendedTopic]) -> Outcome<ProduceResponse> {
    let partitions = topics.iter().flat_map(|topic| &topic.partitions);
    let mut failed = partitions.filter(|p| p.is_failed());
    // Elsewhere they are found in the answer.
    let counts = context.node.requests.of(context.api);
    failed
        .clone()
        .for_each(|p| counts.error(p.response.error_code));
    match failed.next() {
        None => Outcome::Silent,
        Some(partition) => {
            let code = partition.response.error_code;
            let error = ErrorCode::from_code(code).map_or("an error", ErrorCode::name);
            Outcome::Close(CloseReason::FailedSilently {
                reason: error.to_owned(),
            })
        }
    }
}

struct AppendedTopic {
    topic: TopicProduceResponse,
    partitions: Vec<AppendedPartition>,
}

struct AppendedPartition {
    response: PartitionProduceResponse,
    /// Is to be flushed before it is acknowledged.
    unflushed: Option<Arc<Partition>>,
    waits_for: Option<WaitsFor>,
}

/// Records that are to be on all in-sync replicas.
#[derive(Clone)]
struct WaitsFor {
    partition: Arc<Partition>,
    leader_epoch: LeaderEpoch,
    /// What the high watermark must reach.
    end: Offset,
}

impl WaitsFor {
    /// What to answer; `None` while it has to wait.
    fn outcome(&self) -> Option<Result<(), ErrorCode>> {
        self.partition.replicated(self.leader_epoch, self.end)
    }
}

impl AppendedTopic {
    fn waits(&self) -> bool {
        self.partitions
            .iter()
            .any(|partition| partition.waits_for.is_some())
    }
}

impl AppendedPartition {
    fn is_failed(&self) -> bool {
        self.response.error_code != ErrorCode::None.code()
    }
}

/// A batch that was appended.
struct Appended {
    response: PartitionProduceResponse,
    leader_epoch: LeaderEpoch,
    /// Where it ends.
    end: Offset,
    needs_flush: bool,
}

/// A topic goes by its name, or by its id; the other is empty or nil.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TopicKey {
    name: WireName,
    id: Uuid,
}

/// The first stage.
struct Append {
    context: Context,
    acks: i16,
    timeout: Duration,
    verdicts: Verdicts,
    topics: Vec<AppendedTopic>,
    /// What is still to be appended, each with the place of its topic in `topics`.
    left: VecDeque<(usize, Asked<Bytes>)>,
}

impl Append {
    fn new(context: Context, request: ProduceRequest, verdicts: Verdicts) -> Append {
        let asked = by_topic(request.topic_data.into_iter().map(|topic| {
            let partitions = topic.partition_data.into_iter();
            let partitions = partitions.map(|data| (data.index, data.records.unwrap_or_default()));
            (
                TopicKey {
                    name: topic.name,
                    id: topic.topic_id,
                },
                partitions,
            )
        }));
        let mut append = Append {
            context,
            acks: request.acks,
            timeout: Duration::from_millis(request.timeout_ms.max(0) as u64),
            verdicts,
            topics: Vec::with_capacity(asked.len()),
            left: VecDeque::new(),
        };
        for (at, (topic, asked)) in asked.into_iter().enumerate() {
            let response = TopicProduceResponse::default();
            append.topics.push(AppendedTopic {
                topic: response.with_name(topic.name).with_topic_id(topic.id),
                partitions: Vec::with_capacity(asked.len()),
            });
            append
                .left
                .extend(asked.into_iter().map(|asked| (at, asked)));
        }
        append
    }

    /// Appends what is left; false when it would take more than is allowed.
    fn run(&mut self, mut allowance: Allowance) -> bool {
        while let Some((at, asked)) = self.left.front() {
            let Some(appended) = self.partition(&self.topics[*at].topic, asked, &mut allowance)
            else {
                return false;
            };
            let at = *at;
            self.topics[at].partitions.push(appended);
            self.left.pop_front();
        }
        true
    }

    /// The answer, or what is still to be waited for.
    fn finish(self) -> Handled<ProduceResponse> {
        let Append {
            context,
            acks,
            timeout,
            mut topics,
            ..
        } = self;
        let mut all = topics.iter().flat_map(|topic| &topic.partitions);
        if all.any(|partition| partition.unflushed.is_some()) {
            return Handled::Later(Box::pin(async move {
                flush(&mut topics).await;
                if acks == ACKS_NONE {
                    return without_answer(&context, &topics);
                }
                if acks == ACKS_ALL {
                    wait_for_replicas(&mut topics, timeout).await;
                }
                Outcome::Answer(answer(&context, topics))
            }));
        }
        if acks == ACKS_NONE {
            return Handled::Done(without_answer(&context, &topics));
        }
        let waiting = acks == ACKS_ALL && topics.iter().any(AppendedTopic::waits);
        if !waiting {
            return Handled::Ready(answer(&context, topics));
        }
        Handled::later(async move {
            wait_for_replicas(&mut topics, timeout).await;
            answer(&context, topics)
        })
    }

    /// `None` when it would take more than is allowed.
    fn partition(
        &self,
        topic: &TopicProduceResponse,
        asked: &Asked<Bytes>,
        allowance: &mut Allowance,
    ) -> Option<AppendedPartition> {
        let index = asked.partition;
        let response = PartitionProduceResponse::default().with_index(index);
        if let Some(refused) = self.verdicts.all {
            return Some(not_verified(response, refused));
        }
        let partition = match self.find(topic, index) {
            Ok(partition) => partition,
            Err(error) => return Some(failed(response, error)),
        };
        if let Err(error) = partition.check_leader(LeaderEpoch::NONE.0) {
            return Some(self.failed_at(&partition, response, error));
        }
        let now = self.context.node.clock.now_ms();
        Some(
            match self.append(&partition, &asked.what, now, allowance)? {
                Ok(appended) => {
                    let waits_for = WaitsFor {
                        partition: partition.clone(),
                        leader_epoch: appended.leader_epoch,
                        end: appended.end,
                    };
                    let is_done = waits_for.outcome() == Some(Ok(()));
                    AppendedPartition {
                        response: appended.response.with_index(index),
                        unflushed: appended.needs_flush.then_some(partition),
                        waits_for: (!is_done).then_some(waits_for),
                    }
                }
                Err(Refused::Records(rejected)) => self.rejected(&partition, response, rejected),
                Err(Refused::Append(error)) => self.failed_at(&partition, response, error),
                Err(Refused::NotVerified(refused)) => not_verified(response, refused),
            },
        )
    }

    fn find(&self, topic: &TopicProduceResponse, index: i32) -> Result<Arc<Partition>, ErrorCode> {
        if !matches!(self.acks, ACKS_ALL | ACKS_NONE | 1) {
            return Err(ErrorCode::InvalidRequiredAcks);
        }
        let node = &self.context.node;
        let partition = if self.context.api_version >= VERSION_TOPIC_IDS {
            node.partition_by_id(TopicId(topic.topic_id), index)?
        } else {
            node.partition_by_name(&topic.name.0, index)?
        };
        if node.is_internal(&partition.topic_partition.topic) {
            return Err(ErrorCode::InvalidTopicException);
        }
        Ok(partition)
    }

    fn append(
        &self,
        partition: &Partition,
        records: &Bytes,
        now: TimestampMs,
        allowance: &mut Allowance,
    ) -> Option<Result<Appended, Refused>> {
        let config = partition.topic_config();
        let rules = rules(partition, &config, self.context.api_version);
        if self.acks == ACKS_ALL && !partition.has_enough_replicas() {
            return Some(Err(Refused::Append(ErrorCode::NotEnoughReplicas)));
        }
        let prepared = allowance.prepare(records, &rules, now)?;
        Some(self.append_prepared(partition, prepared, now))
    }

    fn append_prepared(
        &self,
        partition: &Partition,
        prepared: Result<PreparedBatch, Rejected>,
        now: TimestampMs,
    ) -> Result<Appended, Refused> {
        let batch = prepared.map_err(Refused::Records)?.batch;
        let origin = self.origin(partition, &batch)?;
        let (appended, needs_flush) =
            partition
                .append_unflushed(batch, origin, now)
                .map_err(|error| {
                    Refused::Append(error::of_append(&partition.topic_partition, &error))
                })?;
        let response = PartitionProduceResponse::default()
            .with_base_offset(appended.base_offset.0)
            .with_log_append_time_ms(appended.log_append_time.0)
            .with_log_start_offset(appended.log_start_offset.0);
        Ok(Appended {
            response,
            leader_epoch: appended.leader_epoch,
            end: appended.last_offset.next(),
            needs_flush,
        })
    }

    /// Transactions are verified, unless that is turned off.
    fn origin(&self, partition: &Partition, batch: &Batch) -> Result<Origin, Refused> {
        if !batch.header.attributes.is_transactional() {
            return Ok(Origin::Client);
        }
        match self.verdicts.of(&partition.topic_partition) {
            None => Ok(Origin::Client),
            Some(Ok(verified)) => Ok(Origin::Transaction(verified)),
            Some(Err(refused)) => Err(Refused::NotVerified(refused)),
        }
    }

    fn rejected(
        &self,
        partition: &Partition,
        response: PartitionProduceResponse,
        rejected: Rejected,
    ) -> AppendedPartition {
        let record_errors = rejected.record_errors.iter().map(|(index, message)| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(*index)
                .with_batch_index_error_message(message.as_deref().map(view::text))
        });
        let response = response
            .with_record_errors(record_errors.collect())
            .with_error_message(rejected.message.as_deref().map(view::text));
        let mut failed = failed(response, rejected.error);
        if rejected.has_log_start_offset {
            failed.response.log_start_offset = partition.log().log_start_offset().0;
        }
        failed
    }

    fn failed_at(
        &self,
        partition: &Partition,
        response: PartitionProduceResponse,
        error: ErrorCode,
    ) -> AppendedPartition {
        let mut failed = failed(response, error);
        if tells_log_start(error) {
            failed.response.log_start_offset = partition.log().log_start_offset().0;
        }
        failed
    }
}

/// Whether the answer to a batch that the log refused tells where the log starts.
fn tells_log_start(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidTxnState
            | ErrorCode::TransactionCoordinatorFenced
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::UnknownServerError
    )
}

/// What the topic's configuration and the request's version ask of a batch.
fn rules<'a>(partition: &'a Partition, config: &TopicConfig, api_version: i16) -> ProduceRules<'a> {
    let compression = match config.compression_type {
        CompressionType::Producer => None,
        CompressionType::Uncompressed => Some((Compression::None, 0)),
        CompressionType::Gzip => Some((Compression::Gzip, config.compression_gzip_level)),
        CompressionType::Snappy => Some((Compression::Snappy, 0)),
        CompressionType::Lz4 => Some((Compression::Lz4, config.compression_lz4_level)),
        CompressionType::Zstd => Some((Compression::Zstd, config.compression_zstd_level)),
    };
    ProduceRules {
        topic_partition: &partition.topic_partition,
        leader_epoch: partition.leadership().leader_epoch,
        max_message_bytes: config.max_message_bytes.max(0) as usize,
        max_decompressed_message_bytes: config.max_decompressed_message_bytes.max(0) as usize,
        timestamp_type: match config.message_timestamp_type {
            config::TimestampType::CreateTime => TimestampType::CreateTime,
            config::TimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        before_max_ms: config.message_timestamp_before_max_ms,
        after_max_ms: config.message_timestamp_after_max_ms,
        is_compacted: config.cleanup_policy.compact,
        compression,
        is_zstd_allowed: api_version >= VERSION_ZSTD,
    }
}

fn not_verified(response: PartitionProduceResponse, refused: NotVerified) -> AppendedPartition {
    failed(
        response.with_error_message(refused.message.map(view::text)),
        refused.error,
    )
}

/// Why one partition's records were not appended.
enum Refused {
    Records(Rejected),
    Append(ErrorCode),
    NotVerified(NotVerified),
}

fn failed(response: PartitionProduceResponse, error: ErrorCode) -> AppendedPartition {
    let response = response
        .with_error_code(error.code())
        .with_base_offset(Offset::NONE.0)
        .with_log_append_time_ms(TimestampMs::NONE.0)
        .with_log_start_offset(Offset::NONE.0);
    AppendedPartition {
        response,
        unflushed: None,
        waits_for: None,
    }
}

/// Flushes what is to be on disk before it is acknowledged, all at once. Those that cannot be get
/// an error.
async fn flush(topics: &mut [AppendedTopic]) {
    let all = || topics.iter().flat_map(|topic| &topic.partitions);
    let unflushed = all().filter_map(|appended| appended.unflushed.clone());
    let flushes: Vec<_> = unflushed.map(Partition::flush).collect();
    let mut flushes = flushes.into_iter();
    for appended in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let Some(partition) = appended.unflushed.take() else {
            continue;
        };
        let Some(flushed) = flushes.next() else { break };
        if let Err(error) = flushed.await {
            let response = std::mem::take(&mut appended.response);
            *appended = failed(response, error::of_log(&partition.topic_partition, &error));
        }
    }
}

/// Waits until every partition's records are on all in-sync replicas; those that are not in time
/// get an error. Their records stay in the log, as in Kafka.
async fn wait_for_replicas(topics: &mut [AppendedTopic], timeout: Duration) {
    let waiter = Waiter::new();
    let deadline = tokio::time::sleep(timeout);
    tokio::pin!(deadline);
    let all = || topics.iter().flat_map(|topic| &topic.partitions);
    let waited_for: Vec<_> = all().filter_map(|p| p.waits_for.clone()).collect();
    for waits in &waited_for {
        waits.partition.register(&waiter);
    }
    loop {
        if waited_for.iter().all(|waits| waits.outcome().is_some()) {
            break;
        }
        tokio::select! {
            biased;
            () = waiter.news() => {}
            () = &mut deadline => break,
        }
    }
    for waits in &waited_for {
        waits.partition.deregister(&waiter);
    }
    for appended in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let Some(waits) = appended.waits_for.take() else {
            continue;
        };
        let outcome = waits.outcome().unwrap_or(Err(ErrorCode::RequestTimedOut));
        if let Err(error) = outcome {
            let response = std::mem::take(&mut appended.response);
            *appended = failed(response, error);
        }
    }
}

fn answer(context: &Context, topics: Vec<AppendedTopic>) -> ProduceResponse {
    let mut hints = LeaderHints::new(&context.node, &context.connection.listener);
    let topics = topics.into_iter().map(|appended| {
        let AppendedTopic { topic, partitions } = appended;
        let partitions = partitions.into_iter().map(|partition| {
            let mut response = partition.response;
            if context.api_version >= VERSION_LEADER_HINT {
                add_hint(&topic, &mut response, &mut hints);
            }
            response
        });
        let partitions = partitions.collect();
        topic.with_partition_responses(partitions)
    });
    let topics = topics.collect();
    let endpoints = hints.endpoints().into_iter().map(|endpoint| {
        NodeEndpoint::default()
            .with_node_id(endpoint.id.0.into())
            .with_host(endpoint.host)
            .with_port(endpoint.port)
            .with_rack(endpoint.rack)
    });
    ProduceResponse::default()
        .with_responses(topics)
        .with_node_endpoints(endpoints.collect())
}

/// The leader to turn to instead.
fn add_hint(
    topic: &TopicProduceResponse,
    response: &mut PartitionProduceResponse,
    hints: &mut LeaderHints<'_>,
) {
    let error = ErrorCode::from_code(response.error_code);
    if error != Some(ErrorCode::NotLeaderOrFollower) {
        return;
    }
    let topic_id = TopicId(topic.topic_id);
    let error = ErrorCode::NotLeaderOrFollower;
    if let Some((leader, epoch)) = hints.of(&topic.name.0, topic_id, response.index, error) {
        response.current_leader = LeaderIdAndEpoch::default()
            .with_leader_id(leader.0.into())
            .with_leader_epoch(epoch.0);
    }
}
