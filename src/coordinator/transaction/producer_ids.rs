//! Producer ids of this broker, from blocks that the controller gives.

use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::machine::ProducerIdSource;
use crate::host::tasks;
use crate::machine::transaction::{ProducerIdBlock, ProducerIds};
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::plan_allocate_producer_ids;
use crate::peer::ControllerChannel;
use crate::quorum::{Quorum, QuorumError};
use crate::types::{BrokerId, ErrorCode, ProducerId};

/// How long the controller may take to give a block.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The blocks of this broker. What is left of them when it stops is lost, so that no id is ever
/// given twice.
pub struct BlockProducerIds {
    broker_id: BrokerId,
    quorum: Arc<Quorum>,
    channel: Arc<ControllerChannel>,
    ids: Mutex<ProducerIds>,
    /// Held over the request for a block, so that only one is asked for.
    asking: tokio::sync::Mutex<()>,
    is_asking_aside: AtomicBool,
    this: Weak<BlockProducerIds>,
}

/// Why there is no id.
#[derive(Debug, thiserror::Error)]
pub enum NoProducerId {
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error("the controller refused a block of producer ids: {0}")]
    Refused(ErrorCode),
}

impl BlockProducerIds {
    pub fn new(
        broker_id: BrokerId,
        quorum: Arc<Quorum>,
        channel: Arc<ControllerChannel>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| BlockProducerIds {
            broker_id,
            quorum,
            channel,
            ids: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            is_asking_aside: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// The next id, when there is one.
    pub async fn next(&self) -> Result<ProducerId, NoProducerId> {
        loop {
            if let Ok(id) = self.draw() {
                return Ok(id);
            }
            self.ask().await?;
        }
    }

    /// Waits until there is an id to draw.
    pub async fn available(&self) -> Result<(), NoProducerId> {
        while self.ids.lock().is_empty() {
            self.ask().await?;
        }
        Ok(())
    }

    /// Takes a block from the controller, unless another task has just done so.
    async fn ask(&self) -> Result<(), NoProducerId> {
        let _asking = self.asking.lock().await;
        if !self.ids.lock().wants_block() {
            return Ok(());
        }
        let block = match self.quorum.is_leader() {
            true => self.ask_here().await?,
            false => self.ask_controller().await?,
        };
        self.ids.lock().add_block(block);
        Ok(())
    }

    async fn ask_controller(&self) -> Result<ProducerIdBlock, NoProducerId> {
        let image = self.quorum.image();
        let registered = image.broker(self.broker_id);
        let epoch = registered.map_or(BrokerEpoch::NONE, |broker| broker.broker_epoch);
        let channel = &self.channel;
        let allocated = channel.allocate_producer_ids(self.broker_id, epoch.0, BLOCK_TIMEOUT);
        let allocated = allocated.await.map_err(|error| {
            tracing::warn!("no block of producer ids: {error}");
            QuorumError::TimedOut
        })?;
        let (first, len) = allocated.map_err(NoProducerId::Refused)?;
        Ok(ProducerIdBlock {
            start: ProducerId(first),
            len,
        })
    }

    async fn ask_here(&self) -> Result<ProducerIdBlock, NoProducerId> {
        let broker_id = self.broker_id;
        let allocated = self.quorum.submit(BLOCK_TIMEOUT, move |image| {
            let registered = image.broker(broker_id);
            let epoch = registered.map_or(BrokerEpoch::NONE, |broker| broker.broker_epoch);
            plan_allocate_producer_ids(image, broker_id, epoch)
        });
        let given = allocated
            .await?
            .map_err(|error| NoProducerId::Refused(error.code))?;
        Ok(ProducerIdBlock {
            start: given.first,
            len: i32::try_from(given.count).unwrap_or(i32::MAX),
        })
    }

    fn ask_aside(&self) {
        let Some(this) = self.this.upgrade() else {
            return;
        };
        if self.is_asking_aside.swap(true, Ordering::AcqRel) {
            return;
        }
        drop(tasks::spawn(async move {
            if let Err(error) = this.ask().await {
                tracing::warn!("no block of producer ids: {error}");
            }
            this.is_asking_aside.store(false, Ordering::Release);
        }));
    }
}

impl ProducerIdSource for BlockProducerIds {
    fn draw(&self) -> Result<ProducerId, ErrorCode> {
        let (drawn, wants_block) = {
            let mut ids = self.ids.lock();
            (ids.draw(), ids.wants_block())
        };
        if wants_block {
            self.ask_aside();
        }
        drawn
    }
}
