//! Which brokers the active controller has heard of lately, and on which connection.
//!
//! 1. A session lasts from one heartbeat to `broker.session.timeout.ms` after it. The leader of the
//!    quorum alone keeps sessions; a new leader gives every unfenced broker a whole one.
//! 2. A session ends early when the connection that the broker was last heard on is gone and its
//!    address refuses another: then the process is dead.
//! 3. Where no session time is configured it also ends when the broker was [`SILENCE_MAX`] without
//!    a sign of life, that is, neither a heartbeat nor an answer to a probe, and a probe has
//!    waited for [`PROBE_MIN`] at least. A broker whose heartbeats are late is thus not fenced as
//!    long as it answers. A leader of the quorum that fell silent is a silent broker since then.
//! 4. The time in which the controller itself did not run counts for nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::metadata::BrokerEpoch;
use crate::types::BrokerId;

/// Tells connections apart.
pub type ConnectionId = u64;

/// How often a broker sends heartbeats where no interval is configured.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// A broker that gave no sign for so long is asked for one: two heartbeats are missing then.
const PROBE_AFTER: Duration = Duration::from_millis(1000);
/// How long a probe is waited for at least before its silence means anything.
const PROBE_MIN: Duration = Duration::from_millis(500);
const SILENCE_MAX: Duration = Duration::from_millis(2000);

/// A tick that comes so late shows that the controller did not run.
const TICK_LATE: Duration = Duration::from_millis(500);

/// How long a broker may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRule {
    /// `broker.session.timeout.ms`
    pub timeout: Duration,
    /// Whether that was set: then nothing is noticed sooner by silence alone.
    pub is_given: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    epoch: BrokerEpoch,
    heard_at: Duration,
    /// The last heartbeat or answer to a probe.
    sign_at: Duration,
    /// When the first probe since the last sign was sent.
    probed_at: Option<Duration>,
    /// `None`: it is heard from within this process, or was not heard by this controller yet.
    connection: Option<ConnectionId>,
}

impl Session {
    fn new(epoch: BrokerEpoch, heard_at: Duration, connection: Option<ConnectionId>) -> Session {
        Session {
            epoch,
            heard_at,
            sign_at: heard_at,
            probed_at: None,
            connection,
        }
    }

    fn is_over(&self, now: Duration, rule: SessionRule) -> bool {
        let is_silent = !rule.is_given
            && now >= self.sign_at + SILENCE_MAX
            && self.probed_at.is_some_and(|at| now >= at + PROBE_MIN);
        is_silent || now >= self.heard_at + rule.timeout
    }
}

#[derive(Debug, Default)]
pub struct BrokerSessions {
    sessions: BTreeMap<BrokerId, Session>,
    ticked_at: Option<Duration>,
}

impl BrokerSessions {
    /// This node leads from now on; `unfenced` are the brokers that count as alive, with the time
    /// of their last sign of life.
    pub fn begin(
        &mut self,
        unfenced: impl Iterator<Item = (BrokerId, BrokerEpoch, Duration)>,
        now: Duration,
    ) {
        let session = |(id, epoch, sign_at)| {
            let mut session = Session::new(epoch, now, None);
            session.sign_at = sign_at;
            (id, session)
        };
        self.sessions = unfenced.map(session).collect();
        self.ticked_at = Some(now);
    }

    /// To be called every tenth of a second or so.
    pub fn tick(&mut self, now: Duration) {
        let before = self.ticked_at.replace(now).unwrap_or(now);
        let passed = now.saturating_sub(before);
        if passed < TICK_LATE {
            return;
        }
        for session in self.sessions.values_mut() {
            session.heard_at = (session.heard_at + passed).min(now);
            session.sign_at = (session.sign_at + passed).min(now);
            session.probed_at = session.probed_at.map(|at| (at + passed).min(now));
        }
    }

    pub fn heard(
        &mut self,
        broker: BrokerId,
        epoch: BrokerEpoch,
        connection: Option<ConnectionId>,
        now: Duration,
    ) {
        let session = Session::new(epoch, now, connection);
        self.sessions.insert(broker, session);
    }

    /// Those that are to be asked for a sign of life, each once.
    pub fn to_probe(&mut self, now: Duration) -> Vec<(BrokerId, BrokerEpoch)> {
        let mut found = Vec::new();
        for (id, session) in &mut self.sessions {
            if session.probed_at.is_none() && now >= session.sign_at + PROBE_AFTER {
                session.probed_at = Some(now);
                found.push((*id, session.epoch));
            }
        }
        found
    }

    /// The broker has answered a probe.
    pub fn answered(&mut self, broker: BrokerId, epoch: BrokerEpoch, now: Duration) {
        if let Some(session) = self.sessions.get_mut(&broker)
            && session.epoch == epoch
        {
            session.sign_at = session.sign_at.max(now);
            session.probed_at = None;
        }
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

    /// Those whose session is over, with the time since they were last heard.
    pub fn overdue(
        &self,
        now: Duration,
        rule: SessionRule,
    ) -> Vec<(BrokerId, BrokerEpoch, Duration)> {
        let overdue = self
            .sessions
            .iter()
            .filter(|(_, session)| session.is_over(now, rule));
        let row = |(id, session): (&BrokerId, &Session)| {
            (*id, session.epoch, now.saturating_sub(session.sign_at))
        };
        overdue.map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: SessionRule = SessionRule {
        timeout: Duration::from_secs(9),
        is_given: true,
    };
    const BY_SILENCE: SessionRule = SessionRule {
        is_given: false,
        ..GIVEN
    };
    const ID: BrokerId = BrokerId(1);
    const EPOCH: BrokerEpoch = BrokerEpoch(5);

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn ids(overdue: Vec<(BrokerId, BrokerEpoch, Duration)>) -> Vec<i32> {
        overdue.into_iter().map(|(id, ..)| id.0).collect()
    }

    /// A tick every tenth of a second, with the probes that it asks for.
    fn run(sessions: &mut BrokerSessions, from_ms: u64, to_ms: u64) -> Vec<u64> {
        let mut probed = Vec::new();
        for now in (from_ms..=to_ms).step_by(100) {
            sessions.tick(ms(now));
            if !sessions.to_probe(ms(now)).is_empty() {
                probed.push(now);
            }
        }
        probed
    }

    #[test]
    fn a_silent_broker_is_overdue_and_a_heard_one_is_not() {
        let mut sessions = BrokerSessions::default();
        let brokers = [
            (ID, EPOCH, at(0)),
            (BrokerId(2), BrokerEpoch(6), Duration::ZERO),
        ];
        sessions.begin(brokers.into_iter(), at(0));
        assert_eq!(sessions.overdue(at(8), GIVEN), []);
        sessions.heard(BrokerId(2), BrokerEpoch(6), Some(7), at(8));
        assert_eq!(sessions.overdue(at(9), GIVEN), [(ID, EPOCH, at(9))]);
        sessions.end(ID, BrokerEpoch(4));
        assert_eq!(
            ids(sessions.overdue(at(9), GIVEN)),
            [1],
            "another incarnation"
        );
        sessions.end(ID, EPOCH);
        assert_eq!(sessions.overdue(at(9), GIVEN), []);
        assert_eq!(ids(sessions.overdue(at(17), GIVEN)), [2]);
    }

    #[test]
    fn without_a_given_time_two_seconds_of_silence_are_enough() {
        let mut sessions = BrokerSessions::default();
        sessions.begin([(ID, EPOCH, at(0))].into_iter(), at(0));
        assert_eq!(run(&mut sessions, 0, 1900), [1000], "it is asked once");
        assert_eq!(sessions.overdue(ms(1900), BY_SILENCE), []);
        assert_eq!(ids(sessions.overdue(ms(2000), BY_SILENCE)), [1]);
        assert_eq!(sessions.overdue(ms(2000), GIVEN), []);
    }

    #[test]
    fn one_that_answers_probes_lasts_as_long_as_its_session() {
        let mut sessions = BrokerSessions::default();
        sessions.begin([(ID, EPOCH, at(0))].into_iter(), at(0));
        for asked in (1000..9000).step_by(1000) {
            assert_eq!(run(&mut sessions, asked - 900, asked), [asked]);
            sessions.answered(ID, EPOCH, ms(asked));
            assert_eq!(sessions.overdue(ms(asked + 900), BY_SILENCE), []);
        }
        assert_eq!(ids(sessions.overdue(ms(9000), BY_SILENCE)), [1]);
    }

    #[test]
    fn the_silence_of_the_leader_before_counts_but_it_is_asked_first() {
        let mut sessions = BrokerSessions::default();
        sessions.begin([(ID, EPOCH, ms(500))].into_iter(), ms(2400));
        assert_eq!(sessions.overdue(ms(2500), BY_SILENCE), []);
        assert_eq!(run(&mut sessions, 2500, 2900), [2500]);
        assert_eq!(sessions.overdue(ms(2900), BY_SILENCE), []);
        assert_eq!(ids(sessions.overdue(ms(3000), BY_SILENCE)), [1]);
    }

    #[test]
    fn a_controller_that_did_not_run_fences_nobody_for_it() {
        let mut sessions = BrokerSessions::default();
        sessions.begin([(ID, EPOCH, at(0))].into_iter(), at(0));
        assert_eq!(run(&mut sessions, 0, 1200), [1000]);
        sessions.tick(at(20));
        assert_eq!(sessions.overdue(at(20), BY_SILENCE), []);
        assert_eq!(sessions.overdue(at(20), GIVEN), []);
        assert_eq!(ids(sessions.overdue(ms(20_800), BY_SILENCE)), [1]);
    }

    #[test]
    fn only_the_last_connection_counts() {
        let mut sessions = BrokerSessions::default();
        sessions.heard(ID, EPOCH, Some(1), at(0));
        sessions.heard(ID, EPOCH, Some(2), at(1));
        assert_eq!(sessions.heard_on(ID, 1), None);
        assert_eq!(sessions.heard_on(ID, 2), Some(EPOCH));
        sessions.lost(ID, 1);
        assert!(sessions.is_live(ID, at(2), GIVEN.timeout));
        sessions.lost(ID, 2);
        assert!(!sessions.is_live(ID, at(2), GIVEN.timeout));
        assert_eq!(sessions.overdue(at(2), GIVEN), []);
    }
}
