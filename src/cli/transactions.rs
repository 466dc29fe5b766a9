//! `kafka-transactions`: the transactions of a cluster and the producers of partitions.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, ListTransactionsRequest, TopicName,
    TransactionalId,
};

use super::admin::{Admin, AdminError, Answer, check, text};
use super::argparse::{Argument, Command, Given, option, switch};
use super::connect::{admin, table};
use super::exit::{Done, Exit};
use super::hanging;
use super::io::Io;
use crate::peer::CoordinatorKind;
use crate::types::ErrorCode;

const TOPIC: Argument = option(&["--topic"], "TOPIC", "The topic.");
const PARTITION: Argument = option(&["--partition"], "PARTITION", "The partition.");
const BROKER: Argument = option(&["--broker-id"], "BROKER-ID", "The broker.");

const fn command(
    name: &'static str,
    help: &'static str,
    arguments: &'static [Argument],
) -> Command {
    Command {
        name,
        help,
        arguments,
        exclusive: &[],
        commands: &[],
    }
}

const TOOL: Command = Command {
    name: "kafka-transactions.sh",
    help: "Shows the transactions of a cluster and finds those that hang.",
    arguments: &[
        switch(&["--version", "-v"], "Show the version."),
        option(
            &["--command-config"],
            "FILE",
            "Properties of the admin client.",
        ),
        option(&["--bootstrap-server"], "host:port", "Brokers, host:port.").required(),
    ],
    exclusive: &[],
    commands: &[
        command(
            "list",
            "List transactions.",
            &[
                option(
                    &["--duration-filter"],
                    "DURATION",
                    "Only those running for longer, in ms.",
                ),
                option(
                    &["--transactional-id-pattern"],
                    "PATTERN",
                    "Only those of these ids.",
                ),
            ],
        ),
        command(
            "describe",
            "Describe a transaction.",
            &[option(&["--transactional-id"], "TRANSACTIONAL-ID", "Its id.").required()],
        ),
        command(
            "describe-producers",
            "Describe the producers of a partition.",
            &[BROKER, TOPIC.required(), PARTITION.required()],
        ),
        command(
            "abort",
            "Abort a hanging transaction.",
            &[
                TOPIC.required(),
                PARTITION.required(),
                option(&["--start-offset"], "START-OFFSET", "Where it begins."),
                option(&["--producer-id"], "PRODUCER-ID", "Its producer."),
                option(&["--producer-epoch"], "PRODUCER-EPOCH", "The epoch of it."),
                option(
                    &["--coordinator-epoch"],
                    "COORDINATOR-EPOCH",
                    "That of its coordinator.",
                ),
            ],
        ),
        command(
            "find-hanging",
            "Find hanging transactions.",
            &[
                BROKER,
                option(
                    &["--max-transaction-timeout"],
                    "MINUTES",
                    "The longest time-out; 15.",
                ),
                TOPIC,
                PARTITION,
            ],
        ),
        command(
            "forceTerminateTransaction",
            "End the transaction of an id.",
            &[option(&["--transactionalId"], "TRANSACTIONAL-ID", "Its id.").required()],
        ),
    ],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.iter().any(|word| word == "--version" || word == "-v") {
        io.line(super::common::KAFKA_VERSION);
        return Ok(());
    }
    let given = TOOL.parse_or_exit(args)?;
    let admin = admin(&given)?;
    match given.command {
        Some("list") => list(io, &admin, &given).await,
        Some("describe") => describe(io, &admin, &given).await,
        Some("describe-producers") => describe_producers(io, &admin, &given).await,
        Some("find-hanging") if !given.has("--topic") && !given.has("--broker-id") => {
            Err(Exit::error(
                "The `find-hanging` command requires either --topic or --broker-id to limit the \
                 scope of the search",
            ))
        }
        Some("find-hanging") => hanging::find(io, &admin, &given).await,
        Some("abort") => hanging::abort(&admin, &given).await,
        Some(command) => Err(Exit::error(format!(
            "klamm: {command} is not supported yet"
        ))),
        None => Ok(()),
    }
}

fn failed(error: AdminError) -> Exit {
    Exit::error(error.exception())
}

async fn list(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let duration = given
        .one("--duration-filter")
        .and_then(|d| d.parse().ok())
        .unwrap_or(-1);
    let mut request = ListTransactionsRequest::default();
    if duration >= 0 {
        request = request.with_duration_filter(duration);
    }
    if let Some(pattern) = given.one("--transactional-id-pattern") {
        request = request.with_transactional_id_pattern(Some(text(pattern)));
    }
    let cluster = admin.client.metadata(Some(&[])).await;
    let cluster = cluster.map_err(|e| failed(AdminError::peer("listTransactions", e)))?;
    let mut rows = Vec::new();
    for id in cluster.brokers.keys() {
        let answer = admin
            .broker("listTransactions", *id, &request)
            .await
            .map_err(failed)?;
        check(answer.error_code, None).map_err(failed)?;
        rows.extend(answer.transaction_states.iter().map(|state| {
            vec![
                state.transactional_id.0.to_string(),
                id.to_string(),
                state.producer_id.0.to_string(),
                state.transaction_state.to_string(),
            ]
        }));
    }
    let header = [
        "TransactionalId",
        "Coordinator",
        "ProducerId",
        "TransactionState",
    ];
    io.line(table(&header, &rows, "\t"));
    Ok(())
}

async fn describe(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let id = given.one("--transactional-id").unwrap_or_default();
    let not_described = |error: AdminError| {
        let reason = match error.code() {
            Some(ErrorCode::TransactionalIdNotFound) => format!(
                "DescribeTransactions request for transactionalId `{id}` failed because the ID \
                 could not be found"
            ),
            _ => error.message(),
        };
        Exit::error(format!(
            "Failed to describe transaction state of transactional-id `{id}`: {reason}. Enable \
             debug logging for additional detail."
        ))
    };
    let described = describe_transaction(admin, id)
        .await
        .map_err(not_described)?;
    let header = [
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    ];
    let mut row = described.cells;
    row.push(described.partitions.join(","));
    io.line(table(&header, &[row], "\t"));
    Ok(())
}

/// A transaction as its coordinator describes it.
pub struct Described {
    /// All columns but the last.
    cells: Vec<String>,
    pub partitions: Vec<String>,
}

pub async fn describe_transaction(admin: &Admin, id: &str) -> Answer<Described> {
    let request = DescribeTransactionsRequest::default()
        .with_transactional_ids(vec![TransactionalId(text(id))]);
    let find = async || {
        admin
            .client
            .find_coordinator(CoordinatorKind::Transaction, id)
            .await
    };
    let coordinator = admin.client.retry(find).await;
    let coordinator = coordinator.map_err(|e| AdminError::peer("describeTransactions", e))?;
    let answer = admin
        .broker("describeTransactions", coordinator.id, &request)
        .await?;
    let missing = || AdminError::answer(ErrorCode::TransactionalIdNotFound, None);
    let state = answer.transaction_states.first().ok_or_else(missing)?;
    check(state.error_code, None)?;
    let start_ms = state.transaction_start_time_ms;
    let (start, duration) = match start_ms {
        ms if ms < 0 => ("None".to_owned(), "None".to_owned()),
        ms => (ms.to_string(), (admin.client.now_ms() - ms).to_string()),
    };
    let partitions = state.topics.iter().flat_map(|topic| {
        let name = topic.topic.0.to_string();
        topic
            .partitions
            .iter()
            .map(move |partition| format!("{name}-{partition}"))
    });
    Ok(Described {
        cells: vec![
            coordinator.id.to_string(),
            id.to_owned(),
            state.producer_id.0.to_string(),
            state.producer_epoch.to_string(),
            state.transaction_state.to_string(),
            state.transaction_timeout_ms.to_string(),
            start,
            duration,
        ],
        partitions: partitions.collect(),
    })
}

async fn describe_producers(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let topic = given.one("--topic").unwrap_or_default();
    let partition = given
        .one("--partition")
        .and_then(|p| p.parse().ok())
        .unwrap_or(0);
    let broker = given.one("--broker-id").and_then(|id| id.parse().ok());
    let states = producers(admin, topic, partition, broker)
        .await
        .map_err(|error| {
            let place = match broker {
                Some(id) => format!("broker {id}"),
                None => "the leader".to_owned(),
            };
            Exit::error(format!(
                "Failed to describe producers for partition {topic}-{partition} on {place}: {}",
                error.message()
            ))
        })?;
    let header = [
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    ];
    let mut rows: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for state in &states {
        let open = match state.current_txn_start_offset {
            offset if offset < 0 => "None".to_owned(),
            offset => offset.to_string(),
        };
        let row = vec![
            state.producer_id.0.to_string(),
            state.producer_epoch.to_string(),
            state.coordinator_epoch.to_string(),
            state.last_sequence.to_string(),
            state.last_timestamp.to_string(),
            open,
        ];
        rows.insert(state.producer_id.0, row);
    }
    let rows: Vec<Vec<String>> = rows.into_values().collect();
    io.line(table(&header, &rows, "\t"));
    Ok(())
}

pub async fn leader(admin: &Admin, topic: &str, partition: i32) -> Answer<i32> {
    let leader = async || admin.client.leader(topic, partition).await;
    let leader = admin.client.retry(leader).await;
    leader.map_err(|e| AdminError::peer("describeProducers", e))
}

/// The producers that a partition knows of; on its leader, or on this broker.
pub async fn producers(
    admin: &Admin,
    topic: &str,
    partition: i32,
    broker: Option<i32>,
) -> Answer<Vec<ProducerState>> {
    let row = TopicRequest::default()
        .with_name(TopicName(text(topic)))
        .with_partition_indexes(vec![partition]);
    let request = DescribeProducersRequest::default().with_topics(vec![row]);
    let broker = match broker {
        Some(broker) => broker,
        None => leader(admin, topic, partition).await?,
    };
    let answer = admin.broker("describeProducers", broker, &request).await?;
    let mut states = Vec::new();
    for row in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        check(row.error_code, row.error_message.as_ref())?;
        states.extend(row.active_producers.iter().cloned());
    }
    Ok(states)
}
