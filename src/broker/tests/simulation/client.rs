//! Clients: idempotent producers with acks=all that keep several batches under way, and readers.
//!
//! A producer has a partition of its own choice, and its n-th record is its number and n. What was
//! not acknowledged is sent again, to whoever leads, for as long as it takes.
//!
//! A broker knows the last five batches of a producer, but after a restart only the last one (as
//! Kafka, whose snapshots have no more). The repeat of an older one is out of order to it; then a
//! producer does what Kafka's does: it goes on in a new epoch, and what was not acknowledged may
//! stand there twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    FetchRequest, InitProducerIdRequest, ProduceRequest, ProduceResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::cluster::{NODES, address_of};
use super::ledger::Ledger;
use crate::peer::{Address, ClusterView, Connection, Pending};
use crate::record::{BatchBuilder, Batches};
use crate::types::seeded::Random;
use crate::types::{ErrorCode, Offset, ProducerEpoch, ProducerId, TimestampMs};

pub const TOPIC: &str = "topic";

/// The last versions that name topics.
const PRODUCE_VERSION_MAX: i16 = 12;
const FETCH_VERSION_MAX: i16 = 12;

const DIAL_MAX: Duration = Duration::from_secs(2);
const REQUEST_MAX: Duration = Duration::from_secs(6);

/// What a client was told or could not do; it tries again.
pub type Failure = String;

pub fn topic_name() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

fn failure(code: i16) -> Failure {
    format!("{:?}", ErrorCode::from_code(code))
}

/// The connections of a client.
pub struct Connections {
    client_id: String,
    open: BTreeMap<Address, Arc<Connection>>,
    random: Random,
}

impl Connections {
    pub fn new(client_id: String, random: Random) -> Connections {
        Connections {
            client_id,
            open: BTreeMap::new(),
            random,
        }
    }

    async fn to(&mut self, address: &Address) -> Result<Arc<Connection>, Failure> {
        if let Some(open) = self.open.get(address).filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let dialled = Connection::dial(address, &self.client_id, DIAL_MAX).await;
        let dialled = Arc::new(dialled.map_err(|error| error.to_string())?);
        self.open.insert(address.clone(), dialled.clone());
        Ok(dialled)
    }

    async fn any(&mut self) -> Result<Arc<Connection>, Failure> {
        let id = 1 + self.random.below(NODES as u64) as i32;
        self.to(&address_of(id)).await
    }

    /// The connection to the leader of a partition, as one of the brokers knows it, and its epoch.
    pub async fn leader(&mut self, partition: i32) -> Result<(Arc<Connection>, i32), Failure> {
        let request = kafka_protocol::messages::MetadataRequest::default()
            .with_topics(Some(vec![
                kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
                    .with_name(Some(topic_name())),
            ]))
            .with_allow_auto_topic_creation(false);
        let connection = self.any().await?;
        let answer = connection.call(&request, REQUEST_MAX).await;
        let view = ClusterView::read(&answer.map_err(|error| error.to_string())?);
        let topic = view.topics.get(TOPIC).ok_or("no topic")?;
        let of_partition = topic.partition(partition).ok_or("no partition")?;
        let (leader, epoch) = (of_partition.leader, of_partition.leader_epoch);
        if leader < 0 {
            return Err("no leader".to_owned());
        }
        Ok((self.to(&address_of(leader)).await?, epoch))
    }
}

struct Batch {
    first: u64,
    count: u64,
}

/// How producers behave in this run.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub in_flight_max: usize,
    pub batch_records_max: u64,
    pub think_ms: u64,
}

pub struct Producer {
    pub number: usize,
    pub partition: i32,
    pub pace: Pace,
    pub connections: Connections,
    pub random: Random,
    pub ledger: Arc<Ledger>,
    identity: Option<(i64, i16)>,
    /// The record that had sequence 0 in this epoch.
    epoch_begins: u64,
    next: u64,
    unacknowledged: VecDeque<Batch>,
}

impl Producer {
    pub fn new(
        number: usize,
        partition: i32,
        pace: Pace,
        mut random: Random,
        ledger: &Arc<Ledger>,
    ) -> Producer {
        Producer {
            number,
            partition,
            pace,
            connections: Connections::new(format!("producer-{number}"), Random::new(random.draw())),
            random,
            ledger: ledger.clone(),
            identity: None,
            epoch_begins: 0,
            next: 0,
            unacknowledged: VecDeque::new(),
        }
    }

    /// Sends until it is told to stop and all is acknowledged.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        while !*stop.borrow() || !self.unacknowledged.is_empty() {
            if let Err(why) = self.session(&stop).await {
                tracing::debug!(self.number, why);
                self.ledger.failed(self.number, why);
                let pause_ms = 50 + self.random.below(100);
                sleep(Duration::from_millis(pause_ms)).await;
            }
        }
    }

    /// Sends what is not acknowledged, and more, until something goes wrong.
    async fn session(&mut self, stop: &watch::Receiver<bool>) -> Result<(), Failure> {
        let identity = self.identify().await?;
        let (connection, _) = self.connections.leader(self.partition).await?;
        let mut sent: VecDeque<(Instant, Pending<ProduceResponse>)> = VecDeque::new();
        loop {
            while sent.len() < self.in_flight_max() {
                if sent.len() == self.unacknowledged.len() {
                    if *stop.borrow() {
                        break;
                    }
                    self.make_batch();
                }
                let request = self.request(identity, &self.unacknowledged[sent.len()]);
                let pending = connection.send_at_most(&request, PRODUCE_VERSION_MAX, REQUEST_MAX);
                sent.push_back((Instant::now(), pending.map_err(|error| error.to_string())?));
            }
            let Some((since, oldest)) = sent.pop_front() else {
                return Ok(());
            };
            let answer = oldest.answer().await.map_err(|error| error.to_string())?;
            let of_partition = answer.responses.first();
            let of_partition = of_partition.and_then(|topic| topic.partition_responses.first());
            let of_partition = of_partition.ok_or("an answer without its partition")?;
            let code = of_partition.error_code;
            let is_known = code == ErrorCode::DuplicateSequenceNumber.code();
            if code != ErrorCode::None.code() && !is_known {
                if code == ErrorCode::OutOfOrderSequenceNumber.code() {
                    self.begin_epoch(identity);
                }
                let batch = &self.unacknowledged[0];
                return Err(format!(
                    "{} for records {} to {} of producer id {}, one of {} batches, from {}: {:?}",
                    failure(code),
                    batch.first,
                    batch.first + batch.count - 1,
                    identity.0,
                    self.unacknowledged.len(),
                    connection.address(),
                    of_partition.error_message
                ));
            }
            let batch = self.unacknowledged.pop_front().expect("it was sent");
            let base = (!is_known && of_partition.base_offset >= 0)
                .then_some(Offset(of_partition.base_offset));
            let (number, partition) = (self.number, self.partition);
            self.ledger
                .acknowledged(number, partition, batch.first, batch.count, base, since);
            let think_ms = self.random.below(self.pace.think_ms + 1);
            sleep(Duration::from_millis(think_ms)).await;
        }
    }

    /// A broker that knows nothing of a producer takes any first sequence, as Kafka does: if it
    /// refuses the first batch and then takes the second, the order is lost. So the first one goes
    /// alone.
    fn in_flight_max(&self) -> usize {
        match self.ledger.has_acknowledged(self.number) {
            true => self.pace.in_flight_max,
            false => 1,
        }
    }

    async fn identify(&mut self) -> Result<(i64, i16), Failure> {
        if let Some(identity) = self.identity {
            return Ok(identity);
        }
        let connection = self.connections.any().await?;
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(60_000);
        let answer = connection.call(&request, REQUEST_MAX).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.error_code != ErrorCode::None.code() {
            return Err(failure(answer.error_code));
        }
        let identity = (answer.producer_id.0, answer.producer_epoch);
        self.ledger.producer_id(identity.0);
        self.identity = Some(identity);
        Ok(identity)
    }

    fn begin_epoch(&mut self, (id, epoch): (i64, i16)) {
        self.identity = Some((id, epoch + 1));
        self.epoch_begins = self.unacknowledged[0].first;
        self.ledger.begins_again(self.number, self.epoch_begins);
    }

    fn make_batch(&mut self) {
        let count = 1 + self.random.below(self.pace.batch_records_max);
        self.unacknowledged.push_back(Batch {
            first: self.next,
            count,
        });
        self.next += count;
    }

    fn request(&self, (id, epoch): (i64, i16), batch: &Batch) -> ProduceRequest {
        let mut builder = BatchBuilder::new();
        builder.producer_id = ProducerId(id);
        builder.producer_epoch = ProducerEpoch(epoch);
        builder.base_sequence = (batch.first - self.epoch_begins) as i32;
        for n in batch.first..batch.first + batch.count {
            let value = super::ledger::value(self.number, n);
            builder.append(TimestampMs(1_800_000_000_000), None, Some(value.as_bytes()));
        }
        let partition = PartitionProduceData::default()
            .with_index(self.partition)
            .with_records(Some(builder.build().expect("not compressed").to_bytes()));
        let topic = TopicProduceData::default()
            .with_name(topic_name())
            .with_partition_data(vec![partition]);
        ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(5000)
            .with_topic_data(vec![topic])
    }
}

/// Reads a partition from its beginning on, and tells the ledger what stands where.
pub struct Reader {
    pub partition: i32,
    /// The newest of its leader that was heard of.
    pub epoch: i32,
    pub connections: Connections,
    pub ledger: Arc<Ledger>,
}

impl Reader {
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        let mut at = Offset::ZERO;
        while !*stop.borrow() {
            if self.session(&mut at, &stop).await.is_err() {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn session(
        &mut self,
        at: &mut Offset,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let (connection, epoch) = self.connections.leader(self.partition).await?;
        // A broker that is behind would not know of what was read already.
        if epoch < self.epoch {
            return Err("old metadata".to_owned());
        }
        self.epoch = epoch;
        while !*stop.borrow() {
            let partition = FetchPartition::default()
                .with_partition(self.partition)
                .with_fetch_offset(at.0)
                .with_current_leader_epoch(epoch)
                .with_partition_max_bytes(1 << 16);
            let topic = FetchTopic::default()
                .with_topic(topic_name())
                .with_partitions(vec![partition]);
            let request = FetchRequest::default()
                .with_max_wait_ms(500)
                .with_min_bytes(1)
                .with_session_epoch(-1)
                .with_topics(vec![topic]);
            let pending = connection.send_at_most(&request, FETCH_VERSION_MAX, REQUEST_MAX);
            let answer = match pending {
                Ok(pending) => pending.answer().await,
                Err(error) => Err(error),
            };
            let answer = answer.map_err(|error| error.to_string())?;
            let data = answer
                .responses
                .first()
                .and_then(|topic| topic.partitions.first());
            let data = data.ok_or("an answer without its partition")?;
            if data.error_code == ErrorCode::OffsetOutOfRange.code() {
                panic!(
                    "partition {}: nothing at {at}, which was read",
                    self.partition
                );
            }
            if data.error_code != ErrorCode::None.code() {
                return Err(failure(data.error_code));
            }
            let records = data.records.clone().unwrap_or_default();
            for batch in Batches::new(records).map_while(Result::ok) {
                self.ledger.read(self.partition, &batch, *at);
                *at = batch.header.next_offset().max(*at);
            }
        }
        Ok(())
    }
}
