//! DescribeLogDirs (key 35): the log directories, their space, the partitions in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::log::{Log, LogDir};
use crate::types::{ErrorCode, TopicName};
use crate::wire::Value;

/// The lag of a log whose partition is not here.
const UNKNOWN_LAG: i64 = -1;

pub fn handle(
    context: Context,
    request: DescribeLogDirsRequest,
) -> Handled<DescribeLogDirsResponse> {
    let asked = request.topics.map(|topics| {
        let mut asked = Asked::new();
        for topic in topics {
            asked
                .entry(topic.topic.0.to_string())
                .or_default()
                .extend(topic.partitions);
        }
        asked
    });
    Handled::Ready(DescribeLogDirsResponse::default().with_results(results(&context, asked)))
}

/// From v5 on each directory says whether it is cordoned, which none is.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    let topics = request
        .get("topics")
        .filter(|topics| **topics != Value::Null);
    let asked = topics.map(|topics| {
        let mut asked = Asked::new();
        for topic in topics.elements() {
            let name = topic
                .get("topic")
                .and_then(Value::as_text)
                .unwrap_or_default();
            let partitions = topic.get("partitions").map_or(&[][..], Value::elements);
            let partitions = partitions.iter().filter_map(Value::as_integer);
            asked
                .entry(name.to_owned())
                .or_default()
                .extend(partitions.map(|index| index as i32));
        }
        asked
    });
    let results = results(&context, asked).iter().map(result_value).collect();
    Handled::Ready(Value::fields([("results", Value::Array(results))]))
}

fn result_value(result: &DescribeLogDirsResult) -> Value {
    let partition = |partition: &DescribeLogDirsPartition| {
        Value::fields([
            (
                "partition_index",
                Value::Integer(partition.partition_index.into()),
            ),
            ("partition_size", Value::Integer(partition.partition_size)),
            ("offset_lag", Value::Integer(partition.offset_lag)),
            ("is_future_key", Value::Boolean(partition.is_future_key)),
        ])
    };
    let topic = |topic: &DescribeLogDirsTopic| {
        let partitions = topic.partitions.iter().map(partition).collect();
        Value::fields([
            ("name", Value::Text(topic.name.0.to_string())),
            ("partitions", Value::Array(partitions)),
        ])
    };
    Value::fields([
        ("error_code", Value::Integer(result.error_code.into())),
        ("log_dir", Value::Text(result.log_dir.to_string())),
        (
            "topics",
            Value::Array(result.topics.iter().map(topic).collect()),
        ),
        ("total_bytes", Value::Integer(result.total_bytes)),
        ("usable_bytes", Value::Integer(result.usable_bytes)),
        ("is_cordoned", Value::Boolean(false)),
    ])
}

/// The partitions that are asked for, by topic.
type Asked = HashMap<String, HashSet<i32>>;

fn results(context: &Context, asked: Option<Asked>) -> Vec<DescribeLogDirsResult> {
    // Sizes of many partitions are a walk over files' sizes in memory, space is a system call.
    let dirs = context.node.partitions.log_dirs().iter();
    dirs.map(|dir| describe(context, dir, asked.as_ref()))
        .collect()
}

/// How many offsets a log that is to take the place of another has still to copy.
fn lag_of_future(context: &Context, future: &Log) -> i64 {
    let index = future.topic_partition().partition;
    let partition = context.node.partitions.get(future.topic_id(), index);
    partition.map_or(UNKNOWN_LAG, |partition| {
        partition.log().log_end_offset().0 - future.log_end_offset().0
    })
}

fn describe(context: &Context, dir: &LogDir, asked: Option<&Asked>) -> DescribeLogDirsResult {
    let result =
        DescribeLogDirsResult::default().with_log_dir(view::text(&dir.path().to_string_lossy()));
    let space = match (dir.offline_reason(), dir.space()) {
        (None, Ok(space)) => space,
        _ => return result.with_error_code(ErrorCode::KafkaStorageError.code()),
    };
    let is_asked = |topic: &str, partition: i32| match asked {
        None => true,
        Some(asked) => asked
            .get(topic)
            .is_some_and(|partitions| partitions.contains(&partition)),
    };
    let mut topics: BTreeMap<TopicName, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    let current = dir.logs().into_iter().map(|log| (log, false));
    let future = dir.future_logs().into_iter().map(|log| (log, true));
    for (log, is_future) in current.chain(future) {
        let topic_partition = log.topic_partition();
        if !is_asked(&topic_partition.topic, topic_partition.partition) {
            continue;
        }
        // The leader is at the end of its own log.
        let lag = match is_future {
            true => lag_of_future(context, &log),
            false => 0,
        };
        let partition = DescribeLogDirsPartition::default()
            .with_partition_index(topic_partition.partition)
            .with_partition_size(log.size_bytes() as i64)
            .with_offset_lag(lag)
            .with_is_future_key(is_future);
        topics
            .entry(topic_partition.topic.clone())
            .or_default()
            .push(partition);
    }
    let topics = topics.into_iter().map(|(name, partitions)| {
        let topic = DescribeLogDirsTopic::default().with_name(WireName(view::text(&name)));
        topic.with_partitions(partitions)
    });
    result
        .with_topics(topics.collect())
        .with_total_bytes(space.total_bytes as i64)
        .with_usable_bytes(space.available_bytes as i64)
}
