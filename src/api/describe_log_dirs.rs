//! DescribeLogDirs (key 35): the log directories, their space, the partitions in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use kafka_protocol::messages::TopicName as WireName;
use kafka_protocol::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult,
    DescribeLogDirsTopic,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::log::LogDir;
use crate::types::{ErrorCode, TopicName};

pub fn handle(
    context: Context,
    request: DescribeLogDirsRequest,
) -> Handled<DescribeLogDirsResponse> {
    // Sizes of many partitions are a walk over files' sizes in memory, space is a system call.
    let asked = request.topics.map(|topics| {
        let mut asked: HashMap<String, HashSet<i32>> = HashMap::new();
        for topic in topics {
            asked.entry(topic.topic.0.to_string()).or_default().extend(topic.partitions);
        }
        asked
    });
    let dirs = context.node.partitions.log_dirs().iter();
    let results = dirs.map(|dir| describe(dir, asked.as_ref())).collect();
    Handled::Ready(DescribeLogDirsResponse::default().with_results(results))
}

fn describe(
    dir: &LogDir,
    asked: Option<&HashMap<String, HashSet<i32>>>,
) -> DescribeLogDirsResult {
    let result = DescribeLogDirsResult::default()
        .with_log_dir(view::text(&dir.path().to_string_lossy()));
    let space = match (dir.offline_reason(), dir.space()) {
        (None, Ok(space)) => space,
        _ => return result.with_error_code(ErrorCode::KafkaStorageError.code()),
    };
    let is_asked = |topic: &str, partition: i32| match asked {
        None => true,
        Some(asked) => asked.get(topic).is_some_and(|partitions| partitions.contains(&partition)),
    };
    let mut topics: BTreeMap<TopicName, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for log in dir.logs() {
        let topic_partition = log.topic_partition();
        if !is_asked(&topic_partition.topic, topic_partition.partition) {
            continue;
        }
        // The leader is at the end of its own log.
        let partition = DescribeLogDirsPartition::default()
            .with_partition_index(topic_partition.partition)
            .with_partition_size(log.size_bytes() as i64)
            .with_offset_lag(0);
        topics.entry(topic_partition.topic.clone()).or_default().push(partition);
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
