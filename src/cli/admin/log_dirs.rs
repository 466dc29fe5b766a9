//! The log directories of a broker.

use kafka_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use kafka_protocol::messages::{AlterReplicaLogDirsRequest, DescribeLogDirsRequest, TopicName};

use crate::cli::exceptions;
use crate::types::ErrorCode;

use super::{Admin, Answer, check, text};

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
    /// Moves a replica, of which topic, partition and broker are given, to another directory.
    pub async fn alter_log_dir(
        &self,
        (topic, partition, broker): &(String, i32, i32),
        dir: &str,
    ) -> Answer<()> {
        let topic = AlterReplicaLogDirTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(vec![*partition]);
        let dir = AlterReplicaLogDir::default()
            .with_path(text(dir))
            .with_topics(vec![topic]);
        let request = AlterReplicaLogDirsRequest::default().with_dirs(vec![dir]);
        let answer = self
            .broker("alterReplicaLogDirs", *broker, &request)
            .await?;
        for row in answer.results.iter().flat_map(|topic| &topic.partitions) {
            check(row.error_code, None)?;
        }
        Ok(())
    }

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
