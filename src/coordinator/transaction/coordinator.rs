//! The calls that the API handlers make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use super::machine::{ListTransactions, ProducerIdSource, Transactions, TxnCommand, TxnReply};
use super::markers::{MarkerTargets, RETRY, judge, run_here_then_aside};
use crate::coordinator::group::client_error;
use crate::coordinator::runtime::{CoordinatorLog, Coordinators, Runtime};
use crate::host::{Clock, tasks};
use crate::machine::transaction::{
    AddPartitions, Command, EndTxn, InitProducerId, MarkersWritten, ProducerIdAndEpoch, Reply,
    TransactionConfig, TransactionListing, TransactionMachine, TransactionMetadata,
    TransactionStates, TransactionalId, TxnMarkers, VerifyPartitions, partition_for,
};
use crate::types::{ErrorCode, LeaderEpoch, Offset, TopicPartition};

/// What a coordinator is made of besides its log.
pub struct TransactionSettings {
    /// How long a reply waits for its records.
    pub commit_timeout: Duration,
    /// Of `__transaction_state`.
    pub partition_count: i32,
    /// Asked for whenever a partition is loaded.
    pub config: Box<dyn Fn() -> TransactionConfig + Send + Sync>,
}

/// The transaction coordinator of a broker.
pub struct TransactionCoordinator<L> {
    runtime: Arc<Runtime<Transactions, L>>,
    targets: Arc<dyn MarkerTargets>,
    partition_count: AtomicI32,
}

impl<L: CoordinatorLog> TransactionCoordinator<L> {
    pub fn new(
        log: Arc<L>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn ProducerIdSource>,
        targets: Arc<dyn MarkerTargets>,
        settings: TransactionSettings,
    ) -> Arc<Self> {
        let TransactionSettings {
            commit_timeout,
            partition_count,
            config,
        } = settings;
        let (have_markers, partitions) = mpsc::unbounded_channel();
        let make = move |partition, leader_epoch| {
            let have_markers = have_markers.clone();
            let machine = TransactionMachine::new(config(), leader_epoch);
            Transactions::new(machine, ids.clone(), move || {
                // Nobody listens any more when the node stops.
                let _ = have_markers.send(partition);
            })
        };
        let coordinator = Arc::new(TransactionCoordinator {
            runtime: Runtime::new(log, clock, commit_timeout, make),
            targets,
            partition_count: AtomicI32::new(partition_count),
        });
        let listener = Arc::downgrade(&coordinator);
        drop(tasks::spawn(send_markers_of(listener, partitions)));
        coordinator
    }

    /// The internal topic was made with this many partitions.
    pub fn set_partition_count(&self, count: i32) {
        self.partition_count.store(count, Ordering::Relaxed);
    }

    /// The partition of `__transaction_state` that a transactional id lives in.
    pub fn partition_for(&self, transactional_id: &str) -> i32 {
        partition_for(
            transactional_id,
            self.partition_count.load(Ordering::Relaxed),
        )
    }

    /// This broker leads a partition of `__transaction_state` now.
    pub fn elect(&self, partition: i32, leader_epoch: LeaderEpoch) {
        self.runtime.elect(partition, leader_epoch);
    }

    pub fn resign(&self, partition: i32) {
        self.runtime.resign(partition);
    }

    pub fn on_high_watermark(&self, partition: i32, high_watermark: Offset) {
        self.runtime.on_high_watermark(partition, high_watermark);
    }

    /// Tells every coordinator the new values of configurations and of the feature level.
    pub fn on_config_changed(&self, config: TransactionConfig) {
        for partition in self.runtime.led_partitions() {
            drop(
                self.runtime
                    .submit(partition, TxnCommand::SetConfig(config)),
            );
        }
    }

    /// A transactional id's producer.
    pub async fn init_producer_id(
        self: &Arc<Self>,
        command: InitProducerId,
    ) -> Result<ProducerIdAndEpoch, ErrorCode> {
        match self.decide(Command::InitProducerId(command)).await? {
            Reply::InitProducerId(reply) => reply,
            other => unreachable!("InitProducerId was answered with {other:?}"),
        }
    }

    /// AddPartitionsToTxn, and AddOffsetsToTxn with the partition of the group.
    pub async fn add_partitions(self: &Arc<Self>, command: AddPartitions) -> Result<(), ErrorCode> {
        match self.decide(Command::AddPartitions(command)).await? {
            Reply::AddPartitions(reply) => reply,
            other => unreachable!("AddPartitions was answered with {other:?}"),
        }
    }

    /// The producer to go on with.
    pub async fn end_txn(
        self: &Arc<Self>,
        command: EndTxn,
    ) -> Result<ProducerIdAndEpoch, ErrorCode> {
        match self.decide(Command::EndTxn(command)).await? {
            Reply::EndTxn(reply) => reply,
            other => unreachable!("EndTxn was answered with {other:?}"),
        }
    }

    async fn decide(self: &Arc<Self>, command: Command) -> Result<Reply, ErrorCode> {
        let partition = self.partition_for(command.transactional_id());
        let may_end = !matches!(command, Command::AddPartitions(_));
        let pending = self.runtime.submit(partition, TxnCommand::Decide(command));
        if may_end {
            self.send_markers(partition);
        }
        match pending.await.unwrap_or(Err(ErrorCode::NotCoordinator)) {
            Ok(TxnReply::Decided(reply)) => Ok(reply),
            Ok(other) => unreachable!("a decision was answered with {other:?}"),
            Err(error) => Err(client_error(error)),
        }
    }

    /// One code for each partition.
    pub async fn verify(&self, command: VerifyPartitions) -> BTreeMap<TopicPartition, ErrorCode> {
        let partitions = command.partitions.clone();
        let partition = self.partition_for(&command.transactional_id);
        match self
            .runtime
            .call(partition, TxnCommand::Verify(command))
            .await
        {
            Ok(TxnReply::Verified(errors)) => errors,
            Ok(other) => unreachable!("Verify was answered with {other:?}"),
            Err(error) => {
                let error = client_error(error);
                partitions
                    .into_iter()
                    .map(|partition| (partition, error))
                    .collect()
            }
        }
    }

    pub async fn describe(
        &self,
        transactional_id: TransactionalId,
    ) -> Result<TransactionMetadata, ErrorCode> {
        let partition = self.partition_for(&transactional_id);
        let command = TxnCommand::Describe(transactional_id);
        match self.runtime.call(partition, command).await {
            Ok(TxnReply::Described(described)) => described,
            Ok(other) => unreachable!("Describe was answered with {other:?}"),
            Err(error) => Err(client_error(error)),
        }
    }

    /// What the transactions are doing, and how many coordinators there are.
    pub fn survey(&self) -> (TransactionStates, Coordinators) {
        let mut states = TransactionStates::default();
        let look = |machine: &Transactions| machine.machine().count_states(&mut states);
        let coordinators = self.runtime.survey(look);
        (states, coordinators)
    }

    /// The transactional ids whose coordinator this broker is. One partition that is loading fails
    /// the whole list, as in Kafka: the client asks again.
    pub async fn list(
        &self,
        filters: ListTransactions,
    ) -> Result<Vec<TransactionListing>, ErrorCode> {
        let mut listed = Vec::new();
        for partition in self.runtime.led_partitions() {
            let command = TxnCommand::List(filters.clone());
            match self.runtime.call(partition, command).await {
                Ok(TxnReply::Listed(listings)) => listed.extend(listings),
                Ok(other) => unreachable!("List was answered with {other:?}"),
                // It has moved away meanwhile: its new coordinator lists it.
                Err(ErrorCode::NotCoordinator) => {}
                Err(error) => return Err(client_error(error)),
            }
        }
        Ok(listed)
    }

    /// Sends the markers that came up in a partition, once the records behind them are committed.
    fn send_markers(self: &Arc<Self>, partition: i32) {
        run_here_then_aside(self.clone().take_and_send(partition));
    }

    async fn take_and_send(self: Arc<Self>, partition: i32) {
        let mut all = false;
        let markers = loop {
            match self
                .runtime
                .call(partition, TxnCommand::TakeMarkers { all })
                .await
            {
                Ok(TxnReply::Markers(markers)) => break markers,
                // The records are not committed yet. What was taken is lost with the reply.
                Err(ErrorCode::RequestTimedOut) => all = true,
                // Loading, or led by another broker: who loads it finds them in the log.
                _ => return,
            }
        };
        for markers in markers {
            run_here_then_aside(self.clone().write_all(partition, markers));
        }
    }

    /// Writes the markers of one transaction until all are written.
    async fn write_all(self: Arc<Self>, partition: i32, markers: TxnMarkers) {
        let mut left = markers.partitions.clone();
        loop {
            let round = judge(self.targets.write(&markers, &left).await);
            if let Some((fenced_by, error)) = round.fenced {
                let id = &markers.transactional_id;
                tracing::warn!(%id, %fenced_by, %error, "a transaction is not this coordinator's");
                return;
            }
            if !self.note_written(partition, &markers, round.written).await {
                return;
            }
            if round.left.is_empty() {
                return;
            }
            left = round.left;
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Whether this partition's coordinator is still the one that has to write the rest.
    async fn note_written(
        &self,
        partition: i32,
        markers: &TxnMarkers,
        written: BTreeSet<TopicPartition>,
    ) -> bool {
        let written = MarkersWritten {
            transactional_id: markers.transactional_id.clone(),
            prepared_at: markers.prepared_at,
            partitions: written,
        };
        loop {
            let command = TxnCommand::MarkersWritten(written.clone());
            match self.runtime.call(partition, command).await {
                Ok(_) => return true,
                // Not enough replicas to complete it: nothing was noted.
                Err(ErrorCode::NotEnoughReplicas) => tokio::time::sleep(RETRY).await,
                // Noted, and only the record of the completion waits. Or what was noted is lost
                // with the machine, and the next one begins again.
                Err(error) => return error == ErrorCode::RequestTimedOut,
            }
        }
    }
}

/// Sends the markers that no request brought about: of transactions that timed out, and of those
/// that a machine found in its log.
async fn send_markers_of<L: CoordinatorLog>(
    coordinator: Weak<TransactionCoordinator<L>>,
    mut partitions: mpsc::UnboundedReceiver<i32>,
) {
    while let Some(partition) = partitions.recv().await {
        match coordinator.upgrade() {
            Some(coordinator) => coordinator.send_markers(partition),
            None => return,
        }
    }
}
