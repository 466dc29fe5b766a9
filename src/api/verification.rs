//! Before records of a transaction are appended: is their partition part of it (KIP-890)? The
//! coordinator knows. From version 12 of Produce on the partition becomes part by being written to.
//!
//! Once a partition has records of the transaction, nobody is asked any more: the log itself knows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::produce_request::ProduceRequest;

use super::context::Context;
use super::internal_topics::TRANSACTION_STATE;
use super::{Node, txn_request};
use crate::log::Verified;
use crate::machine::transaction::{
    AddPartitions, ProducerIdAndEpoch, TransactionVersion, TransactionalId, VerifyPartitions,
};
use crate::partition::Partition;
use crate::peer::AddPartitionsCall;
use crate::record::BatchHeader;
use crate::types::{BrokerId, ErrorCode, TopicId, TopicPartition};

/// From this version of Produce on partitions become part of a transaction by being written to.
const VERSION_ADDS: i16 = 12;
/// From this version of Produce on clients know TRANSACTION_ABORTABLE.
const VERSION_ABORTABLE: i16 = 11;
/// How long another broker may take to answer (its `request.timeout.ms`).
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// What the client of a request understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// INVALID_TXN_STATE for a partition that was not added.
    Old,
    /// TRANSACTION_ABORTABLE.
    Abortable,
    /// The partitions are added if they are not.
    Adds,
}

pub struct Question {
    pub transactional_id: TransactionalId,
    pub producer: ProducerIdAndEpoch,
    pub partitions: BTreeSet<TopicPartition>,
    pub answers: Answers,
}

/// Asks the coordinator, wherever it is; one code for each partition.
pub async fn ask(node: &Node, question: Question) -> BTreeMap<TopicPartition, ErrorCode> {
    let answers = question.answers;
    let errors = match coordinator_of(node, &question.transactional_id) {
        None => txn_request::all(question.partitions, ErrorCode::CoordinatorNotAvailable),
        Some(broker) if broker != node.broker_id => match answers {
            Answers::Adds => retried(node, &question, || elsewhere(node, broker, &question)).await,
            Answers::Old | Answers::Abortable => elsewhere(node, broker, &question).await,
        },
        Some(_) => match answers {
            Answers::Adds => retried(node, &question, || here(node, &question)).await,
            Answers::Old | Answers::Abortable => {
                let verify = VerifyPartitions {
                    transactional_id: question.transactional_id,
                    producer: question.producer,
                    partitions: question.partitions,
                };
                node.transactions.verify(verify).await
            }
        },
    };
    let told = |error| match error {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::TransactionAbortable if answers == Answers::Old => ErrorCode::InvalidTxnState,
        error => error,
    };
    let errors = errors.into_iter();
    errors
        .map(|(partition, error)| (partition, told(error)))
        .collect()
}

fn coordinator_of(node: &Node, transactional_id: &str) -> Option<BrokerId> {
    let partition = node.transactions.partition_for(transactional_id);
    let image = node.image();
    let known = image.partition(TRANSACTION_STATE, partition)?;
    known.has_leader().then_some(known.leader)
}

/// The transaction before may not be complete yet: that is waited for, for a moment.
async fn retried<F>(
    node: &Node,
    question: &Question,
    add: impl Fn() -> F,
) -> BTreeMap<TopicPartition, ErrorCode>
where
    F: Future<Output = BTreeMap<TopicPartition, ErrorCode>>,
{
    let transaction = node.config().broker.transaction.clone();
    let pause_ms = transaction.add_partitions_to_txn_retry_backoff_ms.max(1) as u64;
    let mut left_ms = transaction
        .add_partitions_to_txn_retry_backoff_max_ms
        .max(0) as u64;
    loop {
        let errors = add().await;
        let is_early = errors
            .values()
            .any(|e| *e == ErrorCode::ConcurrentTransactions);
        if !is_early || left_ms < pause_ms || question.partitions.is_empty() {
            return errors;
        }
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        left_ms -= pause_ms;
    }
}

/// Adds the partitions, as the coordinator.
async fn here(node: &Node, question: &Question) -> BTreeMap<TopicPartition, ErrorCode> {
    let added = node.transactions.add_partitions(AddPartitions {
        transactional_id: question.transactional_id.clone(),
        producer: question.producer,
        partitions: question.partitions.clone(),
        client_transaction_version: TransactionVersion::V2,
    });
    let error = added.await.err().unwrap_or(ErrorCode::None);
    txn_request::all(question.partitions.clone(), error)
}

/// Asks the coordinator on another broker.
async fn elsewhere(
    node: &Node,
    coordinator: BrokerId,
    question: &Question,
) -> BTreeMap<TopicPartition, ErrorCode> {
    let call = AddPartitionsCall {
        transactional_id: question.transactional_id.to_string(),
        producer_id: question.producer.producer_id,
        producer_epoch: question.producer.producer_epoch,
        verify_only: question.answers != Answers::Adds,
        partitions: question.partitions.clone(),
    };
    let answered = async {
        let connection = node.brokers.connection(coordinator).await?;
        connection.add_partitions_to_txn(&call, REQUEST_MAX).await
    };
    match answered.await {
        Ok(mut errors) => {
            for at in &question.partitions {
                let missing = ErrorCode::UnknownServerError;
                errors.entry(at.clone()).or_insert(missing);
            }
            errors
        }
        Err(error) => {
            tracing::info!(
                coordinator = coordinator.0,
                "transactions not verified: {error}"
            );
            txn_request::all(question.partitions.clone(), ErrorCode::NetworkException)
        }
    }
}

/// Why a partition's records are not appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotVerified {
    pub error: ErrorCode,
    pub message: Option<&'static str>,
}

impl NotVerified {
    fn of(error: ErrorCode, answers: Answers) -> Self {
        // Old clients give up, or ask for metadata, when they see what coordinators say.
        let not_known = Some("Unable to verify the partition has been added to the transaction.");
        match error {
            ErrorCode::InvalidTxnState => NotVerified {
                error,
                message: Some("Partition was not added to the transaction"),
            },
            ErrorCode::ConcurrentTransactions if answers != Answers::Adds => NotVerified {
                error: ErrorCode::NotEnoughReplicas,
                message: not_known,
            },
            ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::NetworkException
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator => NotVerified {
                error: ErrorCode::NotEnoughReplicas,
                message: not_known,
            },
            error => NotVerified {
                error,
                message: None,
            },
        }
    }
}

/// What was found out about the transactional batches of a request.
#[derive(Default)]
pub struct Verdicts {
    by_partition: HashMap<TopicPartition, Result<Verified, NotVerified>>,
    /// Of the whole request.
    pub all: Option<NotVerified>,
}

impl Verdicts {
    /// `None`: verification is turned off.
    pub fn of(&self, partition: &TopicPartition) -> Option<Result<Verified, NotVerified>> {
        self.by_partition.get(partition).copied()
    }

    fn refuse_all(error: ErrorCode, message: Option<&'static str>) -> Self {
        Verdicts {
            by_partition: HashMap::new(),
            all: Some(NotVerified { error, message }),
        }
    }
}

/// The producer of a batch that belongs to a transaction.
fn transactional_producer(records: Option<&Bytes>) -> Option<ProducerIdAndEpoch> {
    let header = BatchHeader::read(records?).ok()?;
    let is_transactional = header.attributes.is_transactional() && header.has_producer_id();
    is_transactional.then_some(ProducerIdAndEpoch {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
    })
}

/// Whether a request has anything to verify. The usual request does not, and pays nothing.
pub fn has_transactional_batches(request: &ProduceRequest) -> bool {
    let partitions = request
        .topic_data
        .iter()
        .flat_map(|topic| &topic.partition_data);
    let mut records = partitions.map(|partition| partition.records.as_ref());
    records.any(|records| transactional_producer(records).is_some())
}

/// Looks up, and asks for, everything that has to be known of the transactional batches of a
/// request. Partitions that are not here are left out: their append fails by itself.
pub async fn verify(context: &Context, request: &ProduceRequest) -> Verdicts {
    let Some(transactional_id) = &request.transactional_id else {
        return Verdicts::refuse_all(ErrorCode::TransactionalIdAuthorizationFailed, None);
    };
    let node = &context.node;
    let answers = match context.api_version {
        VERSION_ADDS.. => Answers::Adds,
        VERSION_ABORTABLE => Answers::Abortable,
        _ => Answers::Old,
    };
    let found = transactional_partitions(context, request);
    let producers: BTreeSet<ProducerIdAndEpoch> = found.iter().map(|(_, p)| *p).collect();
    if producers.len() > 1 {
        let message = "Transactional records contained more than one producer ID";
        return Verdicts::refuse_all(ErrorCode::InvalidProducerIdMapping, Some(message));
    }
    let mut verdicts = Verdicts::default();
    if !node
        .config()
        .broker
        .transaction
        .transaction_partition_verification_enable
    {
        return verdicts;
    }
    let mut unknown = BTreeSet::new();
    for (partition, producer) in &found {
        let known = partition.log().producer_txn(producer.producer_id);
        let at = partition.topic_partition.clone();
        if !(known.is_open && known.producer_epoch == producer.producer_epoch) {
            unknown.insert(at.clone());
        }
        let verified = Verified {
            guard: known.guard,
            starts_at_zero: answers == Answers::Adds,
        };
        verdicts.by_partition.insert(at, Ok(verified));
    }
    let Some(producer) = producers.first().filter(|_| !unknown.is_empty()) else {
        return verdicts;
    };
    let question = Question {
        transactional_id: txn_request::transactional_id(transactional_id),
        producer: *producer,
        partitions: unknown,
        answers,
    };
    for (partition, error) in ask(node, question).await {
        if error != ErrorCode::None {
            let refused = Err(NotVerified::of(error, answers));
            verdicts.by_partition.insert(partition, refused);
        }
    }
    verdicts
}

fn transactional_partitions(
    context: &Context,
    request: &ProduceRequest,
) -> Vec<(Arc<Partition>, ProducerIdAndEpoch)> {
    let mut found = Vec::new();
    for topic in &request.topic_data {
        for data in &topic.partition_data {
            let Some(producer) = transactional_producer(data.records.as_ref()) else {
                continue;
            };
            let partition = if context.api_version >= super::produce::VERSION_TOPIC_IDS {
                context
                    .node
                    .partition_by_id(TopicId(topic.topic_id), data.index)
            } else {
                context.node.partition_by_name(&topic.name.0, data.index)
            };
            if let Ok(partition) = partition {
                found.push((partition, producer));
            }
        }
    }
    found
}
