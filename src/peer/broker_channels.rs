//! Connections of this broker to the others, for what it asks of them besides records.
//!
//! 1. There is one connection to each broker; a dead one is replaced when it is needed. Answers
//!    come in the order of the requests.
//! 2. A broker that has come back elsewhere is dialled there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::address::Address;
use super::connection::Connection;
use super::error::PeerError;
use crate::types::BrokerId;

/// How long a broker may take to accept a connection.
const DIAL_MAX: Duration = Duration::from_secs(5);

/// Knows where brokers listen to one another.
pub trait BrokerFinder: Send + Sync + 'static {
    /// `None`: no broker of this id is registered, or it has no listener for brokers.
    fn broker_address(&self, broker: BrokerId) -> Option<Address>;
}

/// Held while it is dialled, so that a dead broker holds up only those who want it.
type Slot = tokio::sync::Mutex<Option<Arc<Connection>>>;

pub struct BrokerChannels {
    client_id: String,
    finder: Arc<dyn BrokerFinder>,
    slots: Mutex<HashMap<BrokerId, Arc<Slot>>>,
}

impl BrokerChannels {
    pub fn new(client_id: &str, finder: Arc<dyn BrokerFinder>) -> BrokerChannels {
        BrokerChannels {
            client_id: client_id.to_owned(),
            finder,
            slots: Mutex::default(),
        }
    }

    /// The connection to a broker, dialled if need be.
    pub async fn connection(&self, broker: BrokerId) -> Result<Arc<Connection>, PeerError> {
        let address = self.finder.broker_address(broker);
        let address = address.ok_or(PeerError::UnknownBroker { id: broker.0 })?;
        let slot = self.slots.lock().entry(broker).or_default().clone();
        let mut kept = slot.lock().await;
        let usable = |open: &&Arc<Connection>| !open.is_closed() && *open.address() == address;
        if let Some(open) = kept.as_ref().filter(usable) {
            return Ok(open.clone());
        }
        let fresh = Connection::dial(&address, &self.client_id, DIAL_MAX).await?;
        Ok(kept.insert(Arc::new(fresh)).clone())
    }
}
