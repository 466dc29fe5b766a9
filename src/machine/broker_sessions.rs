//! Which brokers the active controller has heard of lately, and on which connection.
//!
//! 1. A session lasts from one heartbeat to `broker.session.timeout.ms` after it. The leader of the
//!    quorum alone keeps sessions; a new leader gives every unfenced broker a whole one.
//! 2. A session ends early when the connection that the broker was last heard on is gone and its
//!    address refuses another: then the process is dead.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::metadata::BrokerEpoch;
use crate::types::BrokerId;

/// Tells connections apart.
pub type ConnectionId = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    epoch: BrokerEpoch,
    heard_at: Duration,
    /// `None`: it is heard from within this process, or was not heard by this controller yet.
    connection: Option<ConnectionId>,
}

#[derive(Debug, Default)]
pub struct BrokerSessions {
    sessions: BTreeMap<BrokerId, Session>,
}

impl BrokerSessions {
    /// This node leads from now on; `unfenced` are the brokers that count as alive.
    pub fn begin(
        &mut self,
        unfenced: impl Iterator<Item = (BrokerId, BrokerEpoch)>,
        now: Duration,
    ) {
        let session = |(id, epoch)| {
            let session = Session {
                epoch,
                heard_at: now,
                connection: None,
            };
            (id, session)
        };
        self.sessions = unfenced.map(session).collect();
    }

    pub fn heard(
        &mut self,
        broker: BrokerId,
        epoch: BrokerEpoch,
        connection: Option<ConnectionId>,
        now: Duration,
    ) {
        let session = Session {
            epoch,
            heard_at: now,
            connection,
        };
        self.sessions.insert(broker, session);
    }

    /// Whether `connection` is the one `broker` was last heard on; if so, its epoch.
    pub fn heard_on(&self, broker: BrokerId, connection: ConnectionId) -> Option<BrokerEpoch> {
        let session = self.sessions.get(&broker)?;
        (session.connection == Some(connection)).then_some(session.epoch)
    }

    /// Forgets the session of this incarnation.
    pub fn end(&mut self, broker: BrokerId, epoch: BrokerEpoch) {
        if self
            .sessions
            .get(&broker)
            .is_some_and(|session| session.epoch == epoch)
        {
            self.sessions.remove(&broker);
        }
    }

    /// Whether a connection of the broker was heard on lately, and is not known to be lost.
    pub fn is_live(&self, broker: BrokerId, now: Duration, timeout: Duration) -> bool {
        let session = self.sessions.get(&broker);
        session.is_some_and(|s| s.connection.is_some() && now < s.heard_at + timeout)
    }

    /// The connection is gone; the session runs out by itself unless the broker is heard again.
    pub fn lost(&mut self, broker: BrokerId, connection: ConnectionId) {
        if let Some(session) = self.sessions.get_mut(&broker)
            && session.connection == Some(connection)
        {
            session.connection = None;
        }
    }

    /// Those not heard for `timeout`.
    pub fn overdue(&self, now: Duration, timeout: Duration) -> Vec<(BrokerId, BrokerEpoch)> {
        let overdue = self
            .sessions
            .iter()
            .filter(|(_, session)| now >= session.heard_at + timeout);
        overdue.map(|(id, session)| (*id, session.epoch)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(9);
    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_silent_broker_is_overdue_and_a_heard_one_is_not() {
        let mut sessions = BrokerSessions::default();
        let brokers = [(BrokerId(1), BrokerEpoch(5)), (BrokerId(2), BrokerEpoch(6))];
        sessions.begin(brokers.into_iter(), at(0));
        assert_eq!(sessions.overdue(at(8), TIMEOUT), []);
        sessions.heard(BrokerId(2), BrokerEpoch(6), Some(7), at(8));
        assert_eq!(
            sessions.overdue(at(9), TIMEOUT),
            [(BrokerId(1), BrokerEpoch(5))]
        );
        sessions.end(BrokerId(1), BrokerEpoch(4));
        assert_eq!(
            sessions.overdue(at(9), TIMEOUT).len(),
            1,
            "another incarnation"
        );
        sessions.end(BrokerId(1), BrokerEpoch(5));
        assert_eq!(sessions.overdue(at(9), TIMEOUT), []);
        assert_eq!(sessions.overdue(at(17), TIMEOUT).len(), 1);
    }

    #[test]
    fn only_the_last_connection_counts() {
        let mut sessions = BrokerSessions::default();
        let (id, epoch) = (BrokerId(1), BrokerEpoch(5));
        sessions.heard(id, epoch, Some(1), at(0));
        sessions.heard(id, epoch, Some(2), at(1));
        assert_eq!(sessions.heard_on(id, 1), None);
        assert_eq!(sessions.heard_on(id, 2), Some(epoch));
        sessions.lost(id, 1);
        assert!(sessions.is_live(id, at(2), TIMEOUT));
        sessions.lost(id, 2);
        assert!(!sessions.is_live(id, at(2), TIMEOUT));
        assert_eq!(sessions.overdue(at(2), TIMEOUT), []);
    }
}
