//! Transactions that nobody ends: `find-hanging` and `abort` of `kafka-transactions`.
//!
//! A transaction hangs when a partition holds it open and no coordinator knows of it: readers of
//! committed records stop at its first offset for good. It is ended by a marker that this tool has
//! written into the partition, in place of a coordinator.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic,
};
use kafka_protocol::messages::{ListTransactionsRequest, TopicName, WriteTxnMarkersRequest};

use super::admin::{Admin, AdminError, Answer, check, text};
use super::argparse::Given;
use super::connect::table;
use super::exit::{Done, Exit};
use super::io::Io;
use super::transactions::{describe_transaction, leader, producers};
use crate::types::TopicPartition;

const DEBUG: &str = "Enable debug logging for additional detail.";
const MAX_TIMEOUT_MINUTES: i64 = 15;
const MINUTE_MS: i64 = 60_000;
/// As Kafka's client asks.
const PARTITIONS_PER_ANSWER: i32 = 2000;

/// The marker that ends a transaction, as Kafka's client prints it.
struct AbortSpec {
    partition: TopicPartition,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
}

impl std::fmt::Display for AbortSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "AbortTransactionSpec(topicPartition={}, producerId={}, producerEpoch={}, \
             coordinatorEpoch={})",
            self.partition, self.producer_id, self.producer_epoch, self.coordinator_epoch
        )
    }
}

fn number<T: std::str::FromStr>(given: &Given, name: &str) -> Option<T> {
    given.one(name).and_then(|text| text.parse().ok())
}

fn failed(what: String, error: &AdminError) -> Exit {
    Exit::error(format!("{what}: {}. {DEBUG}", error.message()))
}

pub async fn abort(admin: &Admin, given: &Given) -> Done {
    let partition = TopicPartition {
        topic: given.one("--topic").unwrap_or_default().into(),
        partition: number(given, "--partition").unwrap_or(0),
    };
    let spec = match number(given, "--start-offset") {
        Some(offset) => spec_at(admin, partition, offset).await?,
        None => spec_given(given, partition)?,
    };
    write_marker(admin, &spec)
        .await
        .map_err(|error| failed(format!("Failed to abort transaction {spec}"), &error))
}

fn spec_given(given: &Given, partition: TopicPartition) -> Result<AbortSpec, Exit> {
    let missing = |name: &str| Exit::error(format!("Missing required argument {name}"));
    let Some(producer_id) = number(given, "--producer-id") else {
        return Err(Exit::error(
            "The transaction to abort must be identified either with --start-offset (for brokers \
             on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch \
             (for older brokers)",
        ));
    };
    let producer_epoch = number(given, "--producer-epoch");
    let producer_epoch = producer_epoch.ok_or_else(|| missing("--producer-epoch"))?;
    let coordinator_epoch: Option<i32> = number(given, "--coordinator-epoch");
    let coordinator_epoch = coordinator_epoch.ok_or_else(|| missing("--coordinator-epoch"))?;
    Ok(AbortSpec {
        partition,
        producer_id,
        producer_epoch,
        // -1: no coordinator has written there. Any has at least 0.
        coordinator_epoch: coordinator_epoch.max(0),
    })
}

/// The transaction that begins at this offset.
async fn spec_at(admin: &Admin, partition: TopicPartition, offset: i64) -> Result<AbortSpec, Exit> {
    let states = producers(admin, &partition.topic, partition.partition, None).await;
    let states = states.map_err(|error| {
        let what = format!("Failed to validate producer state for partition {partition}");
        failed(what, &error)
    })?;
    let open = states
        .into_iter()
        .find(|state| offset >= 0 && state.current_txn_start_offset == offset);
    let Some(open) = open else {
        return Err(Exit::error(format!(
            "Could not find any open transactions starting at offset {offset} on partition \
             {partition}"
        )));
    };
    Ok(AbortSpec {
        partition,
        producer_id: open.producer_id.0,
        producer_epoch: epoch(&open),
        coordinator_epoch: open.coordinator_epoch.max(0),
    })
}

fn epoch(state: &ProducerState) -> i16 {
    i16::try_from(state.producer_epoch).unwrap_or(i16::MAX)
}

async fn write_marker(admin: &Admin, spec: &AbortSpec) -> Answer<()> {
    let topic = WritableTxnMarkerTopic::default()
        .with_name(TopicName(text(&spec.partition.topic)))
        .with_partition_indexes(vec![spec.partition.partition]);
    let marker = WritableTxnMarker::default()
        .with_producer_id(spec.producer_id.into())
        .with_producer_epoch(spec.producer_epoch)
        .with_transaction_result(false)
        .with_coordinator_epoch(spec.coordinator_epoch)
        .with_topics(vec![topic]);
    let request = WriteTxnMarkersRequest::default().with_markers(vec![marker]);
    let leader = leader(admin, &spec.partition.topic, spec.partition.partition).await?;
    let answer = admin.broker("abortTransaction", leader, &request).await?;
    for topic in answer.markers.iter().flat_map(|marker| &marker.topics) {
        for partition in &topic.partitions {
            check(partition.error_code, None)?;
        }
    }
    Ok(())
}

pub async fn find(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let thrown = |error: AdminError| Exit::error(error.exception());
    let broker: Option<i32> = number(given, "--broker-id");
    let minutes = number(given, "--max-transaction-timeout").unwrap_or(MAX_TIMEOUT_MINUTES);
    let mut candidates = Vec::new();
    let now_ms = admin.client.now_ms();
    for at in partitions(admin, given, broker).await.map_err(thrown)? {
        let states = producers(admin, &at.topic, at.partition, broker).await;
        for state in states.map_err(thrown)? {
            let is_open = state.current_txn_start_offset >= 0;
            if is_open && now_ms - state.last_timestamp > minutes * MINUTE_MS {
                candidates.push((at.clone(), state));
            }
        }
    }
    let ids = candidates.iter().map(|(_, state)| state.producer_id.0);
    let known = known_partitions(admin, ids.collect())
        .await
        .map_err(thrown)?;
    let header = [
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    ];
    let hanging = candidates.iter().filter(|(at, state)| {
        let partitions = known.get(&state.producer_id.0);
        !partitions.is_some_and(|partitions| partitions.contains(&at.to_string()))
    });
    let rows = hanging.map(|(at, state)| {
        let minutes = (now_ms - state.last_timestamp) / MINUTE_MS;
        vec![
            at.topic.to_string(),
            at.partition.to_string(),
            state.producer_id.0.to_string(),
            state.producer_epoch.to_string(),
            state.coordinator_epoch.to_string(),
            state.current_txn_start_offset.to_string(),
            state.last_timestamp.to_string(),
            minutes.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    io.line(table(&header, &rows, "\t"));
    Ok(())
}

/// Where to look: one partition, one topic, or all that a broker has.
async fn partitions(
    admin: &Admin,
    given: &Given,
    broker: Option<i32>,
) -> Answer<Vec<TopicPartition>> {
    let topic = given.one("--topic");
    if let (Some(topic), Some(partition)) = (topic, number(given, "--partition")) {
        let topic = topic.into();
        return Ok(vec![TopicPartition { topic, partition }]);
    }
    let topics = match topic {
        Some(topic) => vec![topic.to_owned()],
        None => {
            let listed = admin.list_topics().await?;
            listed.into_iter().map(|topic| topic.name).collect()
        }
    };
    let mut found = Vec::new();
    for detail in admin
        .describe_topics(&topics, PARTITIONS_PER_ANSWER)
        .await?
    {
        for partition in &detail.partitions {
            if broker.is_none_or(|id| partition.replicas.contains(&id)) {
                found.push(TopicPartition {
                    topic: detail.name.as_str().into(),
                    partition: partition.index,
                });
            }
        }
    }
    Ok(found)
}

/// The partitions of the transactions that coordinators know of, by producer.
async fn known_partitions(
    admin: &Admin,
    ids: BTreeSet<i64>,
) -> Answer<BTreeMap<i64, BTreeSet<String>>> {
    let mut known = BTreeMap::new();
    if ids.is_empty() {
        return Ok(known);
    }
    let filter = ids.into_iter().map(Into::into).collect();
    let request = ListTransactionsRequest::default().with_producer_id_filters(filter);
    let cluster = admin.client.metadata(Some(&[])).await;
    let cluster = cluster.map_err(|e| AdminError::peer("listTransactions", e))?;
    for broker in cluster.brokers.keys() {
        let answer = admin.broker("listTransactions", *broker, &request).await?;
        check(answer.error_code, None)?;
        for listed in &answer.transaction_states {
            let described = describe_transaction(admin, listed.transactional_id.0.as_str()).await?;
            let partitions = described.partitions.into_iter().collect();
            known.insert(listed.producer_id.0, partitions);
        }
    }
    Ok(known)
}
