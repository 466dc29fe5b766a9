//! What the active controller does about brokers that it does not hear of any more.

use std::sync::Arc;
use std::time::Duration;

use super::{Node, rules};
use crate::host::tasks;
use crate::machine::broker_sessions::{ConnectionId, SessionRule};
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::{plan_fence_broker, plan_preferred_leaders, plan_unclean_leaders};
use crate::peer::{Address, Sign, is_gone, sign_of_life};
use crate::types::BrokerId;

/// How many partitions change their leader at a time.
const BALANCED_MAX: usize = 1000;

/// How long one probe waits for its answer.
const PROBE_MAX: Duration = Duration::from_millis(1000);

impl Node {
    /// A connection on which `broker` sent heartbeats has ended. If its process is dead, others
    /// take over at once.
    pub fn lost_broker_connection(self: &Arc<Self>, broker: BrokerId, connection: ConnectionId) {
        let Some(epoch) = self.sessions.lock().heard_on(broker, connection) else {
            return;
        };
        self.sessions.lock().lost(broker, connection);
        self.check_broker(broker, epoch);
    }

    /// Looks, aside, whether the process of a broker is there; fences the broker if it is not.
    fn check_broker(self: &Arc<Self>, broker: BrokerId, epoch: BrokerEpoch) {
        let Some(address) = self.address_of(broker, epoch) else {
            return;
        };
        let node = self.clone();
        drop(tasks::spawn(async move {
            if is_gone(&address).await {
                tracing::info!(broker = broker.0, "its process is gone: {address} refuses");
                node.fence(broker, epoch).await;
            }
        }));
    }

    /// Where an unfenced broker is, if this node leads and it is another one.
    fn address_of(&self, broker: BrokerId, epoch: BrokerEpoch) -> Option<Address> {
        if !self.quorum.is_leader() || broker == self.broker_id {
            return None;
        }
        let image = self.image();
        let known = image.broker(broker).filter(|known| !known.fenced)?;
        if known.broker_epoch != epoch {
            return None;
        }
        let listener = self.config().listeners.inter_broker_name.clone();
        let end_point = known.end_point(&listener).or(known.end_points.first());
        end_point.map(|at| Address::new(&at.host, at.port))
    }

    /// Asks a broker that was not heard lately for a sign of life.
    fn probe(self: &Arc<Self>, broker: BrokerId, epoch: BrokerEpoch) {
        let Some(address) = self.address_of(broker, epoch) else {
            return;
        };
        let node = self.clone();
        drop(tasks::spawn(async move {
            match sign_of_life(&address, PROBE_MAX).await {
                Sign::Answers => {
                    let now = node.clock.monotonic();
                    node.sessions.lock().answered(broker, epoch, now);
                }
                Sign::Gone => {
                    tracing::info!(broker = broker.0, "its process is gone: {address} refuses");
                    node.fence(broker, epoch).await;
                }
                Sign::None => tracing::debug!(broker = broker.0, "no sign of life"),
            }
        }));
    }

    async fn fence(&self, broker: BrokerId, epoch: BrokerEpoch) {
        let config = self.config();
        let fenced = self.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_fence_broker(image, broker, epoch, &rules)
        });
        match fenced.await {
            Ok(Ok(())) => {
                self.sessions.lock().end(broker, epoch);
                tracing::info!(broker = broker.0, "fenced");
            }
            // It has registered anew, or another node leads.
            Ok(Err(error)) => {
                self.sessions.lock().end(broker, epoch);
                tracing::debug!(broker = broker.0, "not fenced: {error}");
            }
            Err(error) => tracing::debug!(broker = broker.0, "not fenced: {error}"),
        }
    }

    /// Waits until this broker has acted on an image in which it is not fenced.
    pub async fn unfenced_here(&self) {
        let mut changes = self.quorum.subscribe();
        while let Some(change) = changes.next().await {
            if change.image.is_active(self.broker_id) {
                return self.partitions.wait_applied(change.image.offset()).await;
            }
        }
    }

    /// This node leads the quorum from now on: brokers get a whole session, unless their process is
    /// seen to be gone.
    pub fn begin_sessions(self: &Arc<Self>) {
        let image = self.image();
        let unfenced = image.brokers().filter(|broker| !broker.fenced);
        let unfenced: Vec<_> = unfenced.map(|b| (b.broker_id, b.broker_epoch)).collect();
        let now = self.clock.monotonic();
        // A leader of the quorum that fell silent did not just begin to be a silent broker.
        let silent = self.quorum.heard_leader();
        let heard_at = |broker| match silent {
            Some((leader, ago)) if leader == broker => now.saturating_sub(ago),
            _ => now,
        };
        let heard = unfenced
            .iter()
            .map(|(id, epoch)| (*id, *epoch, heard_at(*id)));
        self.sessions.lock().begin(heard, now);
        self.comparison.lock().begin();
        for (broker, epoch) in unfenced {
            self.check_broker(broker, epoch);
        }
    }

    /// Gives partitions back to their preferred leaders.
    pub async fn balance_leaders(&self) {
        let config = self.config();
        let balanced = self.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_preferred_leaders(image, BALANCED_MAX, &rules)
        });
        if let Err(error) = balanced.await {
            tracing::debug!("leaders not balanced: {error}");
        }
    }

    /// Finds leaders for partitions that may have one that is not in sync.
    pub async fn elect_unclean_leaders(&self) {
        let config = self.config();
        let elected = self.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_unclean_leaders(image, BALANCED_MAX, &rules)
        });
        if let Err(error) = elected.await {
            tracing::debug!("no unclean elections: {error}");
        }
    }

    /// Fences those whose session is over, and asks for signs of life.
    pub async fn watch_sessions(self: &Arc<Self>, rule: SessionRule) {
        let now = self.clock.monotonic();
        let (to_probe, overdue) = {
            let mut sessions = self.sessions.lock();
            sessions.tick(now);
            (sessions.to_probe(now), sessions.overdue(now, rule))
        };
        for (broker, epoch) in to_probe {
            self.probe(broker, epoch);
        }
        for (broker, epoch, silence) in overdue {
            let fenced = self.image().broker(broker).is_none_or(|known| known.fenced);
            if fenced || broker == self.broker_id {
                self.sessions.lock().end(broker, epoch);
                continue;
            }
            tracing::warn!(
                broker = broker.0,
                "was not heard for {} ms",
                silence.as_millis()
            );
            self.fence(broker, epoch).await;
        }
    }
}
