//! Producer ids, handed out from blocks that the controller allocates. What is left of a block when
//! the broker stops is lost, so that no id is ever given twice.

use tokio::sync::Mutex;

use super::node::Node;
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::plan_allocate_producer_ids;
use crate::quorum::QuorumError;
use crate::types::{ErrorCode, ProducerId};

/// The rest of this broker's block.
#[derive(Default)]
pub struct ProducerIds {
    /// The next id and the end of the block. Held while a block is fetched, so that only one is.
    block: Mutex<(i64, i64)>,
}

/// Why there is no id.
#[derive(Debug, thiserror::Error)]
pub enum NoProducerId {
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error("the controller refused a block of producer ids: {0}")]
    Refused(ErrorCode),
}

impl ProducerIds {
    pub async fn next(&self, node: &Node) -> Result<ProducerId, NoProducerId> {
        let mut block = self.block.lock().await;
        if block.0 >= block.1 {
            let broker_id = node.broker_id;
            let allocated = node.submit(move |image| {
                let registered = image.broker(broker_id);
                let epoch = registered.map_or(BrokerEpoch::NONE, |broker| broker.broker_epoch);
                plan_allocate_producer_ids(image, broker_id, epoch)
            });
            let new = allocated
                .await?
                .map_err(|error| NoProducerId::Refused(error.code))?;
            *block = (new.first.0, new.first.0 + new.count);
        }
        let id = ProducerId(block.0);
        block.0 += 1;
        Ok(id)
    }
}
