//! Puts the transaction coordinator together: its log, its ids, where its markers go.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::api::{Coordinators, TRANSACTION_STATE};
use crate::config::NodeConfig;
use crate::coordinator::TopicLog;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::transaction::{
    BlockProducerIds, ClusterMarkers, LocalMarkers, TransactionCoordinator, TransactionSettings,
};
use crate::host::Clock;
use crate::machine::transaction::{TransactionConfig, TransactionVersion};
use crate::metadata::MetadataImage;
use crate::partition::Partitions;
use crate::peer::{BrokerChannels, ControllerChannel};
use crate::quorum::Quorum;
use crate::record::Compression;
use crate::types::BrokerId;

/// How long an answer waits for its record to be replicated. Kafka waits for as long as the
/// transaction may take; a client has asked again by then.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// What the coordinator is made of.
pub struct TransactionServices<'a> {
    pub broker_id: BrokerId,
    pub config: &'a Arc<ArcSwap<NodeConfig>>,
    pub clock: &'a Arc<dyn Clock>,
    pub quorum: &'a Arc<Quorum>,
    pub partitions: &'a Arc<Partitions>,
    pub channel: &'a Arc<ControllerChannel>,
    /// The ways to the other brokers.
    pub brokers: &'a Arc<BrokerChannels>,
}

impl TransactionServices<'_> {
    /// The coordinators, the one of transactions told of the partitions of its topic.
    pub fn coordinators(self, groups: Arc<GroupCoordinator<TopicLog>>) -> Coordinators {
        let (quorum, partitions, clock) = (self.quorum, self.partitions, self.clock);
        let log = TopicLog::new(
            TRANSACTION_STATE,
            Compression::None,
            self.config
                .load()
                .broker
                .transaction
                .transaction_state_log_load_buffer_size,
            quorum.clone(),
            partitions.clone(),
            clock.clone(),
        );
        let producer_ids =
            BlockProducerIds::new(self.broker_id, quorum.clone(), self.channel.clone());
        let markers = LocalMarkers::new(
            quorum.clone(),
            partitions.clone(),
            groups.clone(),
            clock.clone(),
        );
        let transactions = TransactionCoordinator::new(
            log,
            clock.clone(),
            producer_ids.clone(),
            ClusterMarkers::new(quorum.clone(), markers.clone(), self.brokers.clone()),
            self.settings(),
        );
        partitions.observe(TRANSACTION_STATE, transactions.clone());
        Coordinators {
            groups,
            transactions,
            markers,
            producer_ids,
        }
    }

    fn settings(&self) -> TransactionSettings {
        let config = self.config.load();
        let image = self.quorum.image();
        let existing = image.topic(TRANSACTION_STATE);
        let configured = config
            .broker
            .transaction
            .transaction_state_log_num_partitions;
        let partition_count = existing.map_or(configured, |topic| topic.partitions.len() as i32);
        let (config, quorum) = (self.config.clone(), self.quorum.clone());
        TransactionSettings {
            commit_timeout: COMMIT_TIMEOUT,
            partition_count,
            config: Box::new(move || transaction_config(&config.load(), &quorum.image())),
        }
    }
}

/// What the node has configured, and the version that the cluster has settled on.
pub fn transaction_config(node: &NodeConfig, image: &MetadataImage) -> TransactionConfig {
    let broker = &node.broker.transaction;
    let level = image.feature_level("transaction.version");
    TransactionConfig {
        transaction_max_timeout_ms: broker.transaction_max_timeout_ms,
        transactional_id_expiration_ms: broker.transactional_id_expiration_ms,
        // A level this broker does not know is never finalized with it.
        transaction_version: TransactionVersion::from_level(level)
            .unwrap_or(TransactionVersion::V2),
    }
}
