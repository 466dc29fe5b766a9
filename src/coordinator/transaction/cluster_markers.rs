//! Writes markers wherever their partitions are led: on this broker directly, on others by
//! WriteTxnMarkers.
//!
//! ```text
//! write ──┬── led here ──────────────> LocalMarkers
//!         ├── led by 2 ──> queue of 2 ──> one request at a time, with all that waits
//!         └── led by 3 ──> queue of 3 ──> ...
//! ```
//!
//! 1. What a round could not write is left to the next one, which looks for the leaders anew: a
//!    partition whose leader has moved meanwhile is not waited for at the old one.
//! 2. A marker may be written twice, when an answer was lost. A partition takes that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::local_markers::LocalMarkers;
use super::markers::{MarkerTargets, Written};
use crate::host::tasks;
use crate::machine::transaction::{TransactionResult, TxnMarkers};
use crate::peer::{BrokerChannels, MarkerCall, PartitionErrors};
use crate::quorum::Quorum;
use crate::types::{BrokerId, ErrorCode, TopicPartition};

/// How long a broker may take to answer (its `request.timeout.ms`).
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How often a marker that waits looks whether its leader is still the one that was asked.
const LOOK: Duration = Duration::from_millis(100);
/// Markers in one request at most.
const MARKERS_MAX: usize = 1000;

/// One marker on its way to a broker. Without an answer it was not written, as far as is known.
struct Job {
    call: MarkerCall,
    answer: oneshot::Sender<PartitionErrors>,
}

/// The partitions of the whole cluster as targets of markers.
pub struct ClusterMarkers {
    quorum: Arc<Quorum>,
    local: Arc<LocalMarkers>,
    channels: Arc<BrokerChannels>,
    queues: Mutex<HashMap<BrokerId, mpsc::UnboundedSender<Job>>>,
}

impl ClusterMarkers {
    pub fn new(
        quorum: Arc<Quorum>,
        local: Arc<LocalMarkers>,
        channels: Arc<BrokerChannels>,
    ) -> Arc<Self> {
        Arc::new(ClusterMarkers {
            quorum,
            local,
            channels,
            queues: Mutex::default(),
        })
    }

    fn queue_to(&self, broker: BrokerId, call: MarkerCall) -> oneshot::Receiver<PartitionErrors> {
        let (answer, answered) = oneshot::channel();
        let mut queues = self.queues.lock();
        let queue = queues.entry(broker).or_insert_with(|| {
            let (queue, jobs) = mpsc::unbounded_channel();
            drop(tasks::spawn(send_to(broker, self.channels.clone(), jobs)));
            queue
        });
        // Its task ends with the queue only.
        let _ = queue.send(Job { call, answer });
        answered
    }

    /// Waits for the answer of `broker` for as long as it leads all of `partitions`.
    async fn answer_of(
        &self,
        broker: BrokerId,
        partitions: &BTreeSet<TopicPartition>,
        mut answered: oneshot::Receiver<PartitionErrors>,
    ) -> PartitionErrors {
        loop {
            match tokio::time::timeout(LOOK, &mut answered).await {
                Ok(answer) => return answer.unwrap_or_default(),
                Err(_) => {
                    let image = self.quorum.image();
                    let leads = |at: &TopicPartition| {
                        let known = image.partition(&at.topic, at.partition);
                        known.is_some_and(|partition| partition.leader == broker)
                    };
                    if !partitions.iter().all(leads) {
                        return PartitionErrors::new();
                    }
                }
            }
        }
    }

    /// The partitions by their leaders. Those that are gone are written already.
    fn sort_out(&self, partitions: &BTreeSet<TopicPartition>, written: &mut Written) -> ByLeader {
        let image = self.quorum.image();
        let mut by_leader = ByLeader::new();
        for at in partitions {
            match image.partition(&at.topic, at.partition) {
                Some(partition) if partition.has_leader() => {
                    let of_leader = by_leader.entry(partition.leader).or_default();
                    of_leader.insert(at.clone());
                }
                Some(_) => drop(written.insert(at.clone(), ErrorCode::LeaderNotAvailable)),
                None => drop(written.insert(at.clone(), ErrorCode::None)),
            }
        }
        by_leader
    }
}

type ByLeader = BTreeMap<BrokerId, BTreeSet<TopicPartition>>;

impl MarkerTargets for ClusterMarkers {
    fn write<'a>(
        &'a self,
        markers: &'a TxnMarkers,
        partitions: &'a BTreeSet<TopicPartition>,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        Box::pin(async move {
            let mut written = Written::new();
            let mut by_leader = self.sort_out(partitions, &mut written);
            let here = by_leader.remove(&self.quorum.node_id());
            let mut elsewhere = Vec::with_capacity(by_leader.len());
            for (broker, partitions) in by_leader {
                let answered = self.queue_to(broker, call(markers, partitions.clone()));
                elsewhere.push((broker, partitions, answered));
            }
            if let Some(here) = here {
                written.extend(self.local.write(markers, &here).await);
            }
            for (broker, partitions, answered) in elsewhere {
                let mut answer = self.answer_of(broker, &partitions, answered).await;
                for at in partitions {
                    let error = answer.remove(&at).unwrap_or(ErrorCode::NetworkException);
                    written.insert(at, error);
                }
            }
            written
        })
    }
}

fn call(markers: &TxnMarkers, partitions: BTreeSet<TopicPartition>) -> MarkerCall {
    MarkerCall {
        producer_id: markers.producer.producer_id,
        producer_epoch: markers.producer.producer_epoch,
        commit: markers.result == TransactionResult::Commit,
        coordinator_epoch: markers.coordinator_epoch,
        transaction_version: markers.transaction_version.level(),
        partitions,
    }
}

/// Sends what is queued for a broker, one request at a time.
async fn send_to(
    broker: BrokerId,
    channels: Arc<BrokerChannels>,
    mut queue: mpsc::UnboundedReceiver<Job>,
) {
    let mut jobs = Vec::new();
    while queue.recv_many(&mut jobs, MARKERS_MAX).await > 0 {
        // Nobody waits any more: the leader has moved.
        jobs.retain(|job: &Job| !job.answer.is_closed());
        if jobs.is_empty() {
            continue;
        }
        let (calls, answers): (Vec<_>, Vec<_>) =
            jobs.drain(..).map(|job| (job.call, job.answer)).unzip();
        let sent = async {
            let connection = channels.connection(broker).await?;
            connection.write_txn_markers(&calls, REQUEST_MAX).await
        };
        match sent.await {
            Ok(answered) => {
                for (answer, errors) in answers.into_iter().zip(answered) {
                    let _ = answer.send(errors);
                }
            }
            // Dropping `answers` tells those who wait.
            Err(error) => tracing::info!(broker = broker.0, "markers not written: {error}"),
        }
    }
}
