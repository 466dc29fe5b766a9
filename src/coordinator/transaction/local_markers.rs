//! Writes markers into the partitions of this broker: directly, or through the group coordinator
//! where the partition is its own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::markers::{MarkerTargets, Written};
use crate::coordinator::TopicLog;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::topic_log::of_append;
use crate::host::Clock;
use crate::log::Origin;
use crate::machine::group::command::EndTransaction;
use crate::machine::transaction::{
    ProducerIdAndEpoch, TransactionResult, TransactionVersion, TxnMarkers,
};
use crate::partition::{Partition, Partitions, Waiter};
use crate::quorum::Quorum;
use crate::record::{self, BatchBuilder, MarkerType};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicPartition};

/// How long in-sync replicas may take to have a marker (Kafka's `request.timeout.ms` of the
/// broker).
const REPLICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// One marker, for any number of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    pub producer: ProducerIdAndEpoch,
    pub result: TransactionResult,
    pub coordinator_epoch: LeaderEpoch,
    pub transaction_version: TransactionVersion,
}

impl Marker {
    fn of(markers: &TxnMarkers) -> Marker {
        Marker {
            producer: markers.producer,
            result: markers.result,
            coordinator_epoch: markers.coordinator_epoch,
            transaction_version: markers.transaction_version,
        }
    }
}

/// The partitions of this broker as targets of markers.
pub struct LocalMarkers {
    quorum: Arc<Quorum>,
    partitions: Arc<Partitions>,
    groups: Arc<GroupCoordinator<TopicLog>>,
    clock: Arc<dyn Clock>,
}

impl LocalMarkers {
    pub fn new(
        quorum: Arc<Quorum>,
        partitions: Arc<Partitions>,
        groups: Arc<GroupCoordinator<TopicLog>>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        Arc::new(LocalMarkers {
            quorum,
            partitions,
            groups,
            clock,
        })
    }

    /// Writes the marker into one partition, and waits until it is committed.
    pub async fn write_one(&self, marker: Marker, at: &TopicPartition) -> ErrorCode {
        let result = match self.find(at) {
            Ok(_) if &*at.topic == "__consumer_offsets" => self.end_in_group(marker, at).await,
            Ok(partition) => self.append(marker, &partition).await,
            Err(error) => Err(error),
        };
        result.err().unwrap_or(ErrorCode::None)
    }

    fn find(&self, at: &TopicPartition) -> Result<Arc<Partition>, ErrorCode> {
        let image = self.quorum.image();
        let topic = image
            .topic(&at.topic)
            .ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if topic.partitions.get(at.partition).is_none() {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        let partition = self.partitions.get(topic.id, at.partition);
        let partition = partition.ok_or(ErrorCode::NotLeaderOrFollower)?;
        partition.check_leader(LeaderEpoch::NONE.0)?;
        Ok(partition)
    }

    /// Whether a coordinator that was loaded again asks for a marker that stands there. Only in
    /// version 2 that can be told for sure: an epoch has one transaction and one marker.
    fn is_written(&self, marker: Marker, at: &TopicPartition) -> bool {
        let Ok(partition) = self.find(at) else {
            return false;
        };
        let known = partition.log().producer_txn(marker.producer.producer_id);
        marker.transaction_version.bumps_epoch()
            && known.ends_with_marker
            && !known.is_open
            && known.producer_epoch == marker.producer.producer_epoch
            && partition.high_watermark() == partition.log().log_end_offset()
    }

    async fn end_in_group(&self, marker: Marker, at: &TopicPartition) -> Result<(), ErrorCode> {
        let end = EndTransaction {
            producer_id: marker.producer.producer_id,
            producer_epoch: marker.producer.producer_epoch,
            coordinator_epoch: marker.coordinator_epoch.0,
            commit: marker.result == TransactionResult::Commit,
            bumps_epoch: marker.transaction_version.bumps_epoch(),
        };
        let ended = self.groups.end_transaction(at.partition, end).await;
        ended.map_err(|error| match error {
            // Who sends markers knows partitions and their leaders, not groups.
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::NotCoordinator => ErrorCode::NotLeaderOrFollower,
            other => other,
        })
    }

    async fn append(&self, marker: Marker, partition: &Arc<Partition>) -> Result<(), ErrorCode> {
        if !partition.has_enough_replicas() {
            return Err(ErrorCode::NotEnoughReplicas);
        }
        let (leader_epoch, end) = append(marker, partition, &*self.clock)?;
        wait_for_replicas(partition, leader_epoch, end).await
    }
}

impl MarkerTargets for LocalMarkers {
    fn write<'a>(
        &'a self,
        markers: &'a TxnMarkers,
        partitions: &'a BTreeSet<TopicPartition>,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        Box::pin(async move {
            let marker = Marker::of(markers);
            let mut written = BTreeMap::new();
            for partition in partitions {
                if self.is_written(marker, partition) {
                    written.insert(partition.clone(), ErrorCode::None);
                    continue;
                }
                let error = match self.write_one(marker, partition).await {
                    // Deleted: nobody waits for the end of the transaction there.
                    ErrorCode::UnknownTopicOrPartition => ErrorCode::None,
                    error => error,
                };
                written.insert(partition.clone(), error);
            }
            written
        })
    }
}

/// Returns the leader epoch of the marker, and the offset after it.
fn append(
    marker: Marker,
    partition: &Partition,
    clock: &dyn Clock,
) -> Result<(LeaderEpoch, Offset), ErrorCode> {
    let marker_type = match marker.result {
        TransactionResult::Commit => MarkerType::Commit,
        TransactionResult::Abort => MarkerType::Abort,
    };
    let content = record::Marker {
        marker_type,
        coordinator_epoch: marker.coordinator_epoch.0,
    };
    let origin = if marker.transaction_version.bumps_epoch() {
        Origin::MarkerV2
    } else {
        Origin::Coordinator
    };
    let ProducerIdAndEpoch {
        producer_id,
        producer_epoch,
    } = marker.producer;
    let now = clock.now_ms();
    let batch = BatchBuilder::marker(producer_id, producer_epoch, content, now).build();
    let batch = batch.map_err(|error| {
        tracing::error!("a marker cannot be built: {error}");
        ErrorCode::UnknownServerError
    })?;
    match partition.append(batch, origin, now) {
        Ok(appended) => Ok((appended.leader_epoch, appended.last_offset.next())),
        Err(error) => {
            let topic_partition = &partition.topic_partition;
            tracing::warn!(%topic_partition, "a marker was not written: {error}");
            Err(of_append(&error))
        }
    }
}

/// Waits until everything before `end` is on all in-sync replicas.
async fn wait_for_replicas(
    partition: &Arc<Partition>,
    leader_epoch: LeaderEpoch,
    end: Offset,
) -> Result<(), ErrorCode> {
    if let Some(outcome) = partition.replicated(leader_epoch, end) {
        return outcome;
    }
    let waiter = Waiter::new();
    partition.register(&waiter);
    let replicated = async {
        loop {
            if let Some(outcome) = partition.replicated(leader_epoch, end) {
                return outcome;
            }
            waiter.news().await;
        }
    };
    let outcome = tokio::time::timeout(REPLICATION_TIMEOUT, replicated).await;
    partition.deregister(&waiter);
    outcome.unwrap_or(Err(ErrorCode::RequestTimedOut))
}
