//! Fetch requests to the leaders of the assigned partitions, and their answers.
//!
//! Every broker is asked at once and the first answer that holds something ends the wait; the
//! others are let go of. Full fetches without a session: a command reads few partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, TopicName};
use tokio::sync::mpsc;

use crate::cli::admin::{AdminError, Answer, text};
use crate::host::tasks;
use crate::peer::PeerError;
use crate::types::{ErrorCode, TopicId};

use super::records::unpack;
use super::{Consumer, no_offset};

/// A fetch answers once the broker has waited for data; the rest is the way there and back.
const ANSWER_MARGIN: Duration = Duration::from_secs(30);

type Partition = (String, i32);

impl Consumer {
    /// Asks all leaders for what comes next, for at most `wait`.
    pub(super) async fn fetch(&mut self, wait: Duration) -> Answer<()> {
        let rows: Vec<(Partition, ())> = self
            .positions
            .keys()
            .map(|partition| (partition.clone(), ()))
            .collect();
        let wait = wait.min(self.config.fetch_max_wait);
        if rows.is_empty() {
            tokio::time::sleep(wait).await;
            return Ok(());
        }
        let by_leader = match self.admin.by_leader(&rows).await {
            Ok(by_leader) => by_leader,
            Err(error) if error.code().is_some_and(ErrorCode::is_retriable) => {
                tokio::time::sleep(wait).await;
                self.admin.client.forget_topics();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (done, mut answers) = mpsc::unbounded_channel();
        let mut asked = 0;
        for (leader, rows) in by_leader {
            let request = self.fetch_request(&rows, wait);
            let connection = self.admin.client.broker(leader).await;
            let sent = connection.and_then(|c| c.send(&request, wait + ANSWER_MARGIN));
            let pending = match sent {
                Ok(pending) => pending,
                Err(error) => {
                    self.failed_on_the_way(error).await?;
                    continue;
                }
            };
            asked += 1;
            let done = done.clone();
            tasks::spawn(async move {
                let _ = done.send(pending.answer().await);
            });
        }
        for _ in 0..asked {
            let Some(answer) = answers.recv().await else {
                break;
            };
            match answer {
                Ok(answer) => self.take(answer).await?,
                Err(error) => self.failed_on_the_way(error).await?,
            }
            if self.has_ready() {
                break;
            }
        }
        self.turn += 1;
        Ok(())
    }

    async fn failed_on_the_way(&mut self, error: PeerError) -> Answer<()> {
        if !error.is_retriable() {
            return Err(AdminError::peer("fetch", error));
        }
        self.admin.client.forget_topics();
        let mut backoff = self.admin.client.config().backoff;
        tokio::time::sleep(backoff.next_wait()).await;
        Ok(())
    }

    fn fetch_request(&self, rows: &[(Partition, ())], wait: Duration) -> FetchRequest {
        let mut topics: BTreeMap<&str, Vec<FetchPartition>> = BTreeMap::new();
        for ((topic, index), ()) in rows {
            let Some(position) = self.positions.get(&(topic.clone(), *index)) else {
                continue;
            };
            let row = FetchPartition::default()
                .with_partition(*index)
                .with_current_leader_epoch(-1)
                .with_fetch_offset(position.offset)
                .with_last_fetched_epoch(-1)
                .with_log_start_offset(-1)
                .with_partition_max_bytes(self.config.partition_max_bytes);
            topics.entry(topic).or_default().push(row);
        }
        let row = |(topic, mut partitions): (&str, Vec<FetchPartition>)| {
            // The first partitions fill the answer first.
            let turn = self.turn % partitions.len().max(1);
            partitions.rotate_left(turn);
            let id = self.admin.client.topic_id(topic).unwrap_or(TopicId::NONE);
            FetchTopic::default()
                .with_topic(TopicName(text(topic)))
                .with_topic_id(id.0)
                .with_partitions(partitions)
        };
        FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(wait.as_millis() as i32)
            .with_min_bytes(self.config.fetch_min_bytes)
            .with_max_bytes(self.config.fetch_max_bytes)
            .with_isolation_level(i8::from(self.config.read_committed))
            .with_session_id(0)
            .with_session_epoch(-1)
            .with_topics(topics.into_iter().map(row).collect())
    }

    async fn take(&mut self, answer: FetchResponse) -> Answer<()> {
        crate::cli::admin::check(answer.error_code, None)?;
        for topic in answer.responses {
            let name = match topic.topic_id.is_nil() {
                true => Some(topic.topic.0.to_string()),
                false => self.admin.client.topic_of_id(TopicId(topic.topic_id)),
            };
            let Some(name) = name else {
                continue;
            };
            for data in topic.partitions {
                self.take_partition((name.clone(), data.partition_index), data)
                    .await?;
            }
        }
        Ok(())
    }

    async fn take_partition(&mut self, partition: Partition, data: PartitionData) -> Answer<()> {
        let Some(position) = self.positions.get(&partition).copied() else {
            return Ok(());
        };
        let error = ErrorCode::from_code(data.error_code);
        match error.unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => {}
            ErrorCode::OffsetOutOfRange => {
                let spec = self.reset_spec().ok_or_else(|| no_offset(&partition))?;
                return self.seek_by_time(&[(partition, spec)]).await;
            }
            error if error.is_retriable() => {
                self.admin.client.forget_topics();
                return Ok(());
            }
            error => return Err(AdminError::answer(error, None)),
        }
        let unpacked = unpack(
            &partition,
            &data,
            position.offset,
            self.config.read_committed,
        )?;
        let next = unpacked.next_offset;
        let is_empty = unpacked.records.is_empty();
        self.ready.extend(unpacked.records);
        // Past what is never shown: markers, aborted records, offsets that compaction took.
        if is_empty && let Some(position) = self.positions.get_mut(&partition) {
            position.offset = next;
        }
        Ok(())
    }
}
