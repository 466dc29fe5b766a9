//! Offsets of partitions by time, asked of their leaders.

use std::collections::BTreeMap;

use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, DeleteRecordsRequest, ListOffsetsRequest, TopicName};

use crate::peer::PeerError;
use crate::types::ErrorCode;

use super::{Admin, AdminError, Answer, text};

/// Which offset: a timestamp in milliseconds, or one of Kafka's special values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetSpec(pub i64);

impl OffsetSpec {
    pub const LATEST: OffsetSpec = OffsetSpec(-1);
    pub const EARLIEST: OffsetSpec = OffsetSpec(-2);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundOffset {
    /// -1: none.
    pub offset: i64,
    pub timestamp_ms: i64,
    pub leader_epoch: i32,
}

pub type Partition = (String, i32);

/// How often a partition whose leader has moved is asked for again.
const LEADER_TRIES: usize = 20;

impl Admin {
    /// The offset of each partition; an error of one partition is its own.
    pub async fn list_offsets(
        &self,
        wanted: &[(Partition, OffsetSpec)],
        read_committed: bool,
    ) -> Answer<Vec<(Partition, Answer<FoundOffset>)>> {
        let mut found: BTreeMap<Partition, Answer<FoundOffset>> = BTreeMap::new();
        let mut left: Vec<(Partition, OffsetSpec)> = wanted.to_vec();
        let mut backoff = self.client.config().backoff;
        for tries in 1.. {
            self.ask_for_topics(&left).await?;
            let mut by_leader: BTreeMap<i32, Vec<_>> = BTreeMap::new();
            for row in std::mem::take(&mut left) {
                match self.leader_of(&row.0).await {
                    Ok(leader) => by_leader.entry(leader).or_default().push(row),
                    // Nobody may lead it for long: that is no reason to leave the others out.
                    Err(error) if error.code() == Some(ErrorCode::LeaderNotAvailable) => {
                        match tries < LEADER_TRIES {
                            true => left.push(row),
                            false => drop(found.insert(row.0, Err(error))),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            for (leader, rows) in by_leader {
                let request = list_offsets_request(&rows, read_committed);
                let answer = self.broker("listOffsets", leader, &request).await?;
                let specs: BTreeMap<Partition, OffsetSpec> = rows.into_iter().collect();
                for topic in &answer.topics {
                    for row in &topic.partitions {
                        let partition = (topic.name.0.to_string(), row.partition_index);
                        let error = ErrorCode::from_code(row.error_code);
                        let moved = matches!(
                            error,
                            Some(ErrorCode::NotLeaderOrFollower | ErrorCode::LeaderNotAvailable)
                        );
                        let spec = specs.get(&partition);
                        if let (true, true, Some(spec)) = (moved, tries < LEADER_TRIES, spec) {
                            left.push((partition, *spec));
                            continue;
                        }
                        let offset = FoundOffset {
                            offset: row.offset,
                            timestamp_ms: row.timestamp,
                            leader_epoch: row.leader_epoch,
                        };
                        let result = super::check(row.error_code, None).map(|()| offset);
                        found.insert(partition, result);
                    }
                }
            }
            if left.is_empty() {
                break;
            }
            self.client.forget_topics();
            tokio::time::sleep(backoff.next_wait()).await;
        }
        let order = wanted.iter().map(|(partition, _)| partition);
        let taken = order.filter_map(|p| found.remove_entry(p));
        Ok(taken.collect())
    }

    /// Groups partitions by the broker that leads them.
    pub async fn by_leader<T: Clone>(
        &self,
        rows: &[(Partition, T)],
    ) -> Answer<BTreeMap<i32, Vec<(Partition, T)>>> {
        self.ask_for_topics(rows).await?;
        let mut grouped: BTreeMap<i32, Vec<(Partition, T)>> = BTreeMap::new();
        for row in rows {
            let leader = self.leader_of(&row.0).await?;
            grouped.entry(leader).or_default().push(row.clone());
        }
        Ok(grouped)
    }

    /// The topics that are not known yet, all in one request.
    async fn ask_for_topics<T>(&self, rows: &[(Partition, T)]) -> Answer<()> {
        let mut topics: Vec<&str> = rows.iter().map(|((topic, _), _)| topic.as_str()).collect();
        topics.sort_unstable();
        topics.dedup();
        let known = self.client.cluster();
        if topics
            .iter()
            .any(|topic| !known.topics.contains_key(*topic))
        {
            let asked = self.client.metadata(Some(&topics)).await;
            asked.map_err(|source| AdminError::peer("metadata", source))?;
        }
        Ok(())
    }

    async fn leader_of(&self, (topic, partition): &Partition) -> Answer<i32> {
        match self.client.leader(topic, *partition).await {
            Ok(leader) => Ok(leader),
            Err(PeerError::NoLeader { .. }) => {
                let cluster = self.client.cluster();
                let topic = cluster.topics.get(topic);
                let error = match topic.and_then(|topic| topic.partition(*partition)) {
                    Some(_) => ErrorCode::LeaderNotAvailable,
                    None => ErrorCode::UnknownTopicOrPartition,
                };
                Err(AdminError::answer(error, None))
            }
            Err(source) => Err(AdminError::peer("metadata", source)),
        }
    }

    /// Moves the log start offsets; gives the new low watermark of each partition.
    pub async fn delete_records(
        &self,
        before: &[(Partition, i64)],
    ) -> Answer<Vec<(Partition, Answer<i64>)>> {
        let mut results: BTreeMap<Partition, Answer<i64>> = BTreeMap::new();
        let mut known = Vec::new();
        for row in before {
            match self.by_leader(std::slice::from_ref(row)).await {
                Ok(_) => known.push(row.clone()),
                Err(error) => {
                    results.insert(row.0.clone(), Err(error));
                }
            }
        }
        for (leader, rows) in self.by_leader(&known).await? {
            let request = DeleteRecordsRequest::default()
                .with_topics(delete_records_topics(&rows))
                .with_timeout_ms(self.timeout_ms());
            let answer = self.broker("deleteRecords", leader, &request).await?;
            for topic in &answer.topics {
                for row in &topic.partitions {
                    let partition = (topic.name.0.to_string(), row.partition_index);
                    let result = super::check(row.error_code, None).map(|()| row.low_watermark);
                    results.insert(partition, result);
                }
            }
        }
        let order = before.iter().map(|(partition, _)| partition);
        Ok(order.filter_map(|p| results.remove_entry(p)).collect())
    }
}

fn list_offsets_request(
    rows: &[(Partition, OffsetSpec)],
    read_committed: bool,
) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for ((topic, partition), spec) in rows {
        let row = ListOffsetsPartition::default()
            .with_partition_index(*partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(spec.0);
        topics.entry(topic).or_default().push(row);
    }
    let row = |(topic, partitions): (&str, Vec<ListOffsetsPartition>)| {
        ListOffsetsTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(partitions)
    };
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(i8::from(read_committed))
        .with_topics(topics.into_iter().map(row).collect())
}

fn delete_records_topics(rows: &[(Partition, i64)]) -> Vec<DeleteRecordsTopic> {
    let mut topics: BTreeMap<&str, Vec<DeleteRecordsPartition>> = BTreeMap::new();
    for ((topic, partition), offset) in rows {
        let row = DeleteRecordsPartition::default()
            .with_partition_index(*partition)
            .with_offset(*offset);
        topics.entry(topic).or_default().push(row);
    }
    let row = |(topic, partitions): (&str, Vec<DeleteRecordsPartition>)| {
        DeleteRecordsTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(partitions)
    };
    topics.into_iter().map(row).collect()
}
