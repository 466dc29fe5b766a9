//! Batches to leaders, and what the leaders answer.

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse, TopicName};

use crate::cli::admin::{AdminError, text};
use crate::host::tasks;
use crate::peer::PeerError;
use crate::types::{ErrorCode, TopicId};

use super::batches::ClosedBatch;
use super::{Delivered, Producer};

/// A batch that has come back.
pub struct Completed {
    key: (String, i32),
    batch: ClosedBatch,
    answer: Result<Option<ProduceResponse>, PeerError>,
}

impl Producer {
    /// Sends what may be sent of a partition.
    pub(super) async fn pump(&mut self, key: &(String, i32)) {
        let in_flight_max = match self.config.is_idempotent {
            true => self.config.in_flight_max,
            // Without sequence numbers a retry could overtake.
            false if self.config.retries > 0 && self.config.acks != 0 => 1,
            false => self.config.in_flight_max,
        };
        loop {
            let Some(lane) = self.lanes.get_mut(key) else {
                return;
            };
            let Some(batch) = lane.next(in_flight_max) else {
                return;
            };
            lane.in_flight += 1;
            self.in_flight += 1;
            self.send(key.clone(), batch).await;
        }
    }

    async fn send(&mut self, key: (String, i32), batch: ClosedBatch) {
        let done = self.done.clone();
        let request_timeout = self.config.request_timeout;
        let started = async {
            let leader = self.client.leader(&key.0, key.1).await?;
            let connection = self.client.broker(leader).await?;
            let topic_id = self.client.topic_id(&key.0).unwrap_or(TopicId::NONE);
            let request = self.request(&key, topic_id, &batch);
            match self.config.acks {
                0 => connection.send_unanswered(&request).map(|()| None),
                _ => connection.send(&request, request_timeout).map(Some),
            }
        };
        let pending = match started.await {
            Ok(Some(pending)) => pending,
            Ok(None) => {
                let answer = Ok(None);
                let _ = done.send(Completed { key, batch, answer });
                return;
            }
            Err(error) => {
                let answer = Err(error);
                let _ = done.send(Completed { key, batch, answer });
                return;
            }
        };
        tasks::spawn(async move {
            let answer = pending.answer().await.map(Some);
            let _ = done.send(Completed { key, batch, answer });
        });
    }

    fn request(
        &self,
        (topic, partition): &(String, i32),
        topic_id: TopicId,
        batch: &ClosedBatch,
    ) -> ProduceRequest {
        let partition = PartitionProduceData::default()
            .with_index(*partition)
            .with_records(Some(batch.bytes.clone()));
        let topic = TopicProduceData::default()
            .with_name(TopicName(text(topic)))
            .with_topic_id(topic_id.0)
            .with_partition_data(vec![partition]);
        let timeout_ms = self.config.request_timeout.as_millis();
        ProduceRequest::default()
            .with_acks(self.config.acks)
            .with_timeout_ms(i32::try_from(timeout_ms).unwrap_or(i32::MAX))
            .with_topic_data(vec![topic])
    }

    pub(super) async fn complete(&mut self, completed: Completed) {
        let Completed { key, batch, answer } = completed;
        self.in_flight -= 1;
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.in_flight -= 1;
        }
        let result = match answer {
            Ok(None) => Ok(-1),
            Ok(Some(answer)) => base_offset(&answer),
            Err(error) => Err((error.is_retriable(), AdminError::peer("produce", error))),
        };
        match result {
            Ok(base_offset) => self.end(batch, &key, Ok(base_offset)),
            Err((is_retriable, error)) => {
                let age = self.client.elapsed().saturating_sub(batch.opened);
                let is_late = age >= self.config.delivery_timeout;
                if is_retriable && !is_late && batch.tries < self.config.retries {
                    self.again(&key, batch, &error).await;
                } else {
                    self.end(batch, &key, Err(error));
                }
            }
        }
        self.pump(&key).await;
    }

    async fn again(&mut self, key: &(String, i32), mut batch: ClosedBatch, error: &AdminError) {
        batch.tries += 1;
        if batch.tries > 1 || !error.is(ErrorCode::OutOfOrderSequenceNumber) {
            tokio::time::sleep(self.client.config().backoff.first).await;
        }
        // The leader may be another one by now.
        let _ = self.client.metadata(Some(&[&key.0])).await;
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.fail(batch);
        }
    }

    fn end(
        &mut self,
        batch: ClosedBatch,
        (_, partition): &(String, i32),
        result: Result<i64, AdminError>,
    ) {
        self.buffered_bytes = self.buffered_bytes.saturating_sub(batch.uncompressed_bytes);
        let result = result.map_err(|e| (e.code(), e.message()));
        for (index, tag) in batch.tags.into_iter().enumerate() {
            let result = match &result {
                Ok(-1) => Ok((*partition, -1)),
                Ok(base_offset) => Ok((*partition, base_offset + index as i64)),
                Err((code, message)) => Err(AdminError::Answer {
                    error: code.unwrap_or(ErrorCode::RequestTimedOut),
                    message: message.clone(),
                }),
            };
            self.delivered.push_back(Delivered { tag, result });
        }
    }
}

/// The base offset of the one batch of a request; an error with whether to try again.
fn base_offset(answer: &ProduceResponse) -> Result<i64, (bool, AdminError)> {
    let topic = answer.responses.first();
    let Some(partition) = topic.and_then(|topic| topic.partition_responses.first()) else {
        let error = AdminError::answer(ErrorCode::UnknownServerError, None);
        return Err((false, error));
    };
    let code = ErrorCode::from_code(partition.error_code);
    match code.unwrap_or(ErrorCode::UnknownServerError) {
        ErrorCode::None | ErrorCode::DuplicateSequenceNumber => Ok(partition.base_offset),
        // One before it has failed; after that one has gone again, this one fits.
        error @ ErrorCode::OutOfOrderSequenceNumber => Err((true, AdminError::answer(error, None))),
        error => {
            let message = partition.error_message.as_ref().map(|m| m.as_str());
            Err((error.is_retriable(), AdminError::answer(error, message)))
        }
    }
}
