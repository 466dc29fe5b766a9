//! A leader on another broker, over a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use super::fetcher::OutOfRange;
use super::fetchers::{Answer, ReplicaSource};
use super::surroundings::Surroundings;
use crate::peer::{Address, Connection, PeerError, ReplicaFetchAnswer, ReplicaFetchCall};
use crate::types::{BrokerId, Offset};

/// How long a leader may take to accept a connection.
const DIAL_MAX: Duration = Duration::from_secs(5);

pub struct RemoteLeader {
    surroundings: Arc<Surroundings>,
    leader: BrokerId,
    client_id: String,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

impl RemoteLeader {
    pub fn new(surroundings: Arc<Surroundings>, leader: BrokerId, fetcher: usize) -> RemoteLeader {
        let this_broker = surroundings.this_broker;
        RemoteLeader {
            surroundings,
            leader,
            client_id: format!("broker-{this_broker}-fetcher-{fetcher}"),
            connection: tokio::sync::Mutex::default(),
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, PeerError> {
        let mut kept = self.connection.lock().await;
        if let Some(open) = kept.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let unknown = PeerError::UnknownBroker { id: self.leader.0 };
        let brokers = self.surroundings.brokers();
        let address = brokers.get(&self.leader).and_then(|b| b.address.clone());
        let (host, port) = address.ok_or(unknown)?;
        let address = Address::new(&host, port);
        let fresh = Connection::dial(&address, &self.client_id, DIAL_MAX).await?;
        Ok(kept.insert(Arc::new(fresh)).clone())
    }

    fn said(&self, error: &PeerError) {
        tracing::info!(leader = %self.leader, "a follower gets no answer: {error}");
    }
}

impl ReplicaSource for RemoteLeader {
    fn fetch<'a>(
        &'a self,
        call: &'a ReplicaFetchCall,
        timeout: Duration,
    ) -> Answer<'a, ReplicaFetchAnswer> {
        Box::pin(async move {
            let answer = async {
                let connection = self.connect().await?;
                connection.fetch_as_replica(call, timeout).await
            };
            answer.await.inspect_err(|error| self.said(error)).ok()
        })
    }

    fn bounds<'a>(&'a self, of: &'a OutOfRange, timeout: Duration) -> Answer<'a, (Offset, Offset)> {
        Box::pin(async move {
            let topic_partition = &of.partition.topic_partition;
            let bounds = async {
                let connection = self.connect().await?;
                let replica = self.surroundings.this_broker;
                connection
                    .log_bounds_as_replica(replica, topic_partition, of.leader_epoch, timeout)
                    .await
            };
            match bounds.await {
                Ok(Ok(bounds)) => Some(bounds),
                Ok(Err(error)) => {
                    tracing::info!(%topic_partition, error = error.name(), "no bounds");
                    None
                }
                Err(error) => {
                    self.said(&error);
                    None
                }
            }
        })
    }
}
