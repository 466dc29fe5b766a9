//! Sends records: into batches per partition, batches to leaders, several in flight.
//!
//! 1. With idempotence, a batch has its sequence number from the moment it is closed, and keeps it
//!    through every retry: the broker drops what it has already.
//! 2. After a batch of a partition failed, nothing new of that partition is sent until all in
//!    flight are back; then the failed ones go again, one at a time and in order.
//! 3. Every record ends in exactly one [`Delivered`].

mod batches;
mod config;
mod partitioner;
mod send;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::{InitProducerIdRequest, ProducerId as WireProducerId};
use tokio::sync::mpsc;

use crate::cli::admin::AdminError;
use crate::peer::Client;
use crate::types::ErrorCode;

use batches::{Lane, OpenBatch};
use partitioner::Partitioner;
use send::Completed;

pub use config::ProducerConfig;

/// A record to send.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    pub topic: String,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// `None`: now.
    pub timestamp_ms: Option<i64>,
    /// Comes back in [`Delivered`].
    pub tag: u64,
}

/// What became of a record.
#[derive(Debug)]
pub struct Delivered {
    pub tag: u64,
    /// Partition and offset.
    pub result: Result<(i32, i64), AdminError>,
}

pub struct Producer {
    client: Arc<Client>,
    config: ProducerConfig,
    /// Producer id and epoch, with idempotence.
    identity: Option<(i64, i16)>,
    partitioner: Partitioner,
    lanes: BTreeMap<(String, i32), Lane>,
    done: mpsc::UnboundedSender<Completed>,
    completions: mpsc::UnboundedReceiver<Completed>,
    in_flight: usize,
    buffered_bytes: usize,
    pub delivered: VecDeque<Delivered>,
}

impl Producer {
    pub fn new(client: Client, config: ProducerConfig) -> Producer {
        let (done, completions) = mpsc::unbounded_channel();
        Producer {
            client: Arc::new(client),
            config,
            identity: None,
            partitioner: Partitioner::default(),
            lanes: BTreeMap::new(),
            done,
            completions,
            in_flight: 0,
            buffered_bytes: 0,
            delivered: VecDeque::new(),
        }
    }

    /// Where a record goes; the producer has its identity from then on.
    async fn prepare(&mut self, record: &Outgoing) -> Result<i32, AdminError> {
        let partition = self.partition_of(record).await?;
        if self.config.is_idempotent && self.identity.is_none() {
            self.identity = Some(self.init_producer_id().await?);
        }
        Ok(partition)
    }

    async fn init_producer_id(&self) -> Result<(i64, i16), AdminError> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(WireProducerId(-1))
            .with_producer_epoch(-1);
        let mut backoff = self.client.config().backoff;
        let deadline = self.client.elapsed() + self.client.config().api_timeout;
        loop {
            let answer = self.client.call_any(&request).await;
            let answer = answer.map_err(|e| AdminError::peer("initProducerId", e))?;
            let error = ErrorCode::from_code(answer.error_code);
            match error.unwrap_or(ErrorCode::UnknownServerError) {
                ErrorCode::None => return Ok((answer.producer_id.0, answer.producer_epoch)),
                error if error.is_retriable() && self.client.elapsed() < deadline => {
                    tokio::time::sleep(backoff.next_wait()).await;
                }
                error => return Err(AdminError::answer(error, None)),
            }
        }
    }

    /// Takes a record; waits only while too much is buffered.
    pub async fn append(&mut self, record: Outgoing) {
        while self.buffered_bytes > self.config.buffer_bytes && self.in_flight > 0 {
            self.wait_one().await;
        }
        let partition = match self.prepare(&record).await {
            Ok(partition) => partition,
            Err(error) => {
                let (tag, result) = (record.tag, Err(error));
                self.delivered.push_back(Delivered { tag, result });
                return;
            }
        };
        let now_ms = self.client.now_ms();
        let key = (record.topic.clone(), partition);
        let lane = self.lanes.entry(key.clone()).or_default();
        let opened = self.client.elapsed();
        let open = lane
            .open
            .get_or_insert_with(|| OpenBatch::new(self.config.compression, opened));
        let before = open.builder.uncompressed_bytes();
        open.append(&record, now_ms);
        self.buffered_bytes += open.builder.uncompressed_bytes() - before;
        if open.builder.uncompressed_bytes() >= self.config.batch_bytes {
            self.partitioner.batch_is_full(&record.topic);
            self.close(&key);
            self.pump(&key).await;
            tokio::task::yield_now().await;
        }
    }

    async fn partition_of(&mut self, record: &Outgoing) -> Result<i32, AdminError> {
        if let Some(count) = self.partitioner.known(&record.topic) {
            return Ok(self
                .partitioner
                .choose(&record.topic, record.key.as_deref(), count));
        }
        let deadline = self.client.elapsed() + self.config.max_block;
        let mut backoff = self.client.config().backoff;
        loop {
            let view = self.client.metadata_creating(&record.topic).await;
            // The client has tried for as long as a record may wait.
            let view = view.map_err(|error| match error.is_retriable() {
                true => self.not_present(&record.topic),
                false => AdminError::peer("metadata", error),
            })?;
            let topic = view.topics.get(&record.topic);
            let error = topic.map_or(ErrorCode::UnknownTopicOrPartition, |t| t.error);
            let count = topic.map_or(0, |t| t.partitions.len());
            if error == ErrorCode::None && count > 0 {
                self.partitioner.learn(&record.topic, count);
                return Ok(self
                    .partitioner
                    .choose(&record.topic, record.key.as_deref(), count));
            }
            if !error.is_retriable() {
                return Err(AdminError::answer(error, None));
            }
            if self.client.elapsed() >= deadline {
                return Err(self.not_present(&record.topic));
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    fn not_present(&self, topic: &str) -> AdminError {
        AdminError::Answer {
            error: ErrorCode::RequestTimedOut,
            message: format!(
                "Topic {topic} not present in metadata after {} ms.",
                self.config.max_block.as_millis()
            ),
        }
    }

    fn close(&mut self, key: &(String, i32)) {
        let identity = self.identity;
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.close(identity, &mut self.delivered);
        }
    }

    /// Closes the batches that have waited for `linger`, and sends what can be sent.
    pub async fn poll(&mut self) {
        while let Ok(completed) = self.completions.try_recv() {
            self.complete(completed).await;
        }
        let now = self.client.elapsed();
        let linger = self.config.linger;
        let due = |lane: &Lane| lane.open.as_ref().is_some_and(|o| o.opened + linger <= now);
        let keys: Vec<_> = self
            .lanes
            .iter()
            .filter(|(_, l)| due(l))
            .map(|(k, _)| k.clone())
            .collect();
        for key in keys {
            self.close(&key);
            self.pump(&key).await;
        }
    }

    /// Sends everything and waits until all of it has ended one way or the other.
    pub async fn flush(&mut self) {
        let keys: Vec<_> = self.lanes.keys().cloned().collect();
        for key in &keys {
            self.close(key);
            self.pump(key).await;
        }
        while self.in_flight > 0 {
            self.wait_one().await;
        }
    }

    /// Waits for the next completion, or until a lingering batch is due.
    pub async fn wait(&mut self) {
        let linger = self.config.linger.max(Duration::from_millis(1));
        tokio::select! {
            completed = self.completions.recv() => {
                if let Some(completed) = completed {
                    self.complete(completed).await;
                }
            }
            () = tokio::time::sleep(linger) => {}
        }
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.lanes.values().all(Lane::is_empty)
    }

    async fn wait_one(&mut self) {
        if let Some(completed) = self.completions.recv().await {
            self.complete(completed).await;
        }
    }
}
