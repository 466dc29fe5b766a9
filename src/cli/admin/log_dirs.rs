//! The log directories of a broker.

use kafka_protocol::messages::DescribeLogDirsRequest;

use crate::cli::exceptions;
use crate::types::ErrorCode;

use super::{Admin, Answer, check};

#[derive(Debug, Clone)]
pub struct LogDir {
    pub path: String,
    /// The exception of a directory that failed.
    pub error: Option<String>,
    pub replicas: Vec<LogDirReplica>,
}

#[derive(Debug, Clone)]
pub struct LogDirReplica {
    pub topic: String,
    pub partition: i32,
    pub size_bytes: i64,
    pub offset_lag: i64,
    pub is_future: bool,
}

impl Admin {
    pub async fn describe_log_dirs(&self, broker: i32) -> Answer<Vec<LogDir>> {
        let request = DescribeLogDirsRequest::default().with_topics(None);
        let answer = self.broker("describeLogDirs", broker, &request).await?;
        check(answer.error_code, None)?;
        let mut dirs = Vec::new();
        for result in answer.results {
            let error = ErrorCode::from_code(result.error_code);
            let error = error.filter(|error| *error != ErrorCode::None);
            let mut replicas = Vec::new();
            for topic in &result.topics {
                replicas.extend(topic.partitions.iter().map(|partition| LogDirReplica {
                    topic: topic.name.0.to_string(),
                    partition: partition.partition_index,
                    size_bytes: partition.partition_size,
                    offset_lag: partition.offset_lag,
                    is_future: partition.is_future_key,
                }));
            }
            dirs.push(LogDir {
                path: result.log_dir.to_string(),
                error: error.map(exceptions::full_class),
                replicas,
            });
        }
        Ok(dirs)
    }
}
