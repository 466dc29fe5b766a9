//! The life of a broker of a cluster, as the active controller sees it.
//!
//! ```text
//! register ──> heartbeats, fenced ──caught up──> heartbeats, unfenced ──> "may I go?" ──> gone
//!                    ^                                    │
//!                    └────────── fenced: not heard ───────┘
//! ```
//!
//! 1. Heartbeats have a connection of their own. The controller takes its end for the end of the
//!    process, so a new controller is spoken to at once, not at the next beat.
//! 2. A log directory that fails is told of at once, and again with each beat.
//! 3. The epoch is that of the registration. When the controller does not know it any more, the
//!    broker registers again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::StartError;
use super::background::until;
use crate::api::{Beat, ControllerIsr, LifecycleError, Node, heartbeat, register_broker};
use crate::config::NodeConfig;
use crate::host::tasks;
use crate::machine::broker_sessions::{HEARTBEAT_INTERVAL, SessionRule};
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::RegisterBroker;
use crate::peer::{Address, ControllerChannel, is_gone};
use crate::quorum::{QuorumError, Waiting};
use crate::types::{ErrorCode, Offset};

/// How soon a fenced broker asks again.
const SOON: Duration = Duration::from_millis(20);
/// How often it is looked whether another controller leads.
const LOOK: Duration = Duration::from_millis(50);
/// How long a heartbeat waits for its answer at least.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// How long a controlled shutdown may take.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(5);
/// How long a majority of the voters must have been gone before a controlled shutdown is given up:
/// one that is only restarted may come back.
const GONE_MIN: Duration = Duration::from_millis(500);
/// How often the sessions of the other brokers are looked at.
const SESSIONS: Duration = Duration::from_millis(100);

pub struct Lifecycle {
    channel: Arc<ControllerChannel>,
    epoch: Arc<AtomicI64>,
}

impl Lifecycle {
    /// Registers the broker and returns once it is unfenced.
    pub async fn start(
        node: &Arc<Node>,
        channel: Arc<ControllerChannel>,
        request: RegisterBroker,
        stopping: &watch::Receiver<bool>,
        waiting: &Waiting,
    ) -> Result<(Lifecycle, BrokerEpoch), StartError> {
        let isr = ControllerIsr {
            broker_id: node.broker_id,
            channel: node.channel.clone(),
            quorum: node.quorum.clone(),
        };
        let (of_isr, stop) = (node.clone(), stopping.clone());
        drop(tasks::spawn(until(stop, async move {
            of_isr.partitions.run_isr_changes(&isr).await;
        })));
        let quorum = &node.config().broker.quorum;
        let time_ms = quorum.initial_broker_registration_timeout_ms.max(1);
        let time = Duration::from_millis(time_ms as u64);
        let epoch = tokio::time::timeout(time, register(&channel, &request, time, waiting)).await;
        let epoch = epoch.map_err(|_| {
            StartError::Refused(format!("it was not registered within {time_ms} ms"))
        })??;
        // However long it takes to catch up: as in Kafka the time-out is for the registration.
        serve(node, &channel, epoch, time, waiting).await;
        let lifecycle = Lifecycle {
            channel: channel.clone(),
            epoch: Arc::new(AtomicI64::new(epoch.0)),
        };
        let beats = beat(
            node.clone(),
            channel,
            request,
            lifecycle.epoch.clone(),
            waiting.clone(),
        );
        drop(tasks::spawn(until(stopping.clone(), beats)));
        Ok((lifecycle, epoch))
    }

    /// Of the last registration.
    pub fn epoch(&self) -> BrokerEpoch {
        BrokerEpoch(self.epoch.load(Ordering::SeqCst))
    }

    /// Hands over what this broker leads.
    pub async fn shut_down(&self, node: &Node) {
        if !node.config().broker.identity.controlled_shutdown_enable {
            return;
        }
        let epoch = self.epoch();
        let asked = async {
            loop {
                match heartbeat(node, &self.channel, epoch, true, SHUT_DOWN_MAX).await {
                    Ok(Beat {
                        should_shut_down: true,
                        ..
                    }) => return,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!("leaving without a word: {error}");
                        return;
                    }
                }
                tokio::time::sleep(SOON).await;
            }
        };
        tokio::select! {
            asked = tokio::time::timeout(SHUT_DOWN_MAX, asked) => if asked.is_err() {
                tracing::warn!("no controller let this broker go in time");
            },
            () = voters_gone(node) => {
                tracing::info!("no majority of the voters is left: nothing is handed over");
            }
        }
    }
}

/// Returns when so many voters have no process any more that nobody can lead.
async fn voters_gone(node: &Node) {
    let mut since = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let voters = node.quorum.voters();
        let mut gone = 0;
        for voter in &voters {
            if voter.id == node.broker_id {
                continue;
            }
            if let Ok(address) = Address::parse(&voter.address) {
                gone += usize::from(is_gone(&address).await);
            }
        }
        let now = node.clock.monotonic();
        if !lacks_majority(voters.len(), gone) {
            since = None;
        } else if now.saturating_sub(*since.get_or_insert(now)) >= GONE_MIN {
            return;
        }
    }
}

/// Whether `gone` of so many voters are too many. Of none nothing is known.
fn lacks_majority(voters: usize, gone: usize) -> bool {
    voters > 0 && (voters - gone) * 2 <= voters
}

/// Registers until it is accepted.
async fn register(
    channel: &ControllerChannel,
    request: &RegisterBroker,
    time: Duration,
    waiting: &Waiting,
) -> Result<BrokerEpoch, StartError> {
    waiting.waits_for("its registration with the active controller");
    loop {
        match register_broker(channel, request, time).await {
            Ok(epoch) => return Ok(epoch),
            Err(LifecycleError::Refused(ErrorCode::InconsistentClusterId)) => {
                return Err(StartError::Quorum(QuorumError::ForeignCluster {
                    found: None,
                    expected: request.cluster_id.to_string(),
                }));
            }
            Err(LifecycleError::Refused(
                error @ (ErrorCode::UnsupportedVersion | ErrorCode::InvalidRegistration),
            )) => return Err(StartError::Refused(error.name().to_owned())),
            Err(error) if waiting.because(&error.to_string()) => {}
            Err(error) => tracing::info!("not registered yet: {error}"),
        }
        tokio::time::sleep(SOON * 5).await;
    }
}

/// Catches up and beats until it is unfenced.
async fn serve(
    node: &Node,
    channel: &ControllerChannel,
    epoch: BrokerEpoch,
    time: Duration,
    waiting: &Waiting,
) {
    waiting.waits_for("the metadata that the other brokers have");
    // Partitions are led from the change of the metadata on that follows.
    node.partitions.surroundings().set_broker_epoch(epoch);
    // It is unfenced once it has seen that entry.
    node.partitions.wait_applied(Offset(epoch.0)).await;
    waiting.waits_for("the active controller to unfence it");
    let ask = || heartbeat(node, channel, epoch, false, time);
    until_unfenced(ask, || node.unfenced_here(), waiting).await;
}

/// Beats until the controller says that it is unfenced, and that is `known` here.
async fn until_unfenced<B, K>(
    mut ask: impl FnMut() -> B,
    mut known: impl FnMut() -> K,
    waiting: &Waiting,
) where
    B: Future<Output = Result<Beat, LifecycleError>>,
    K: Future<Output = ()>,
{
    loop {
        match ask().await {
            // Fenced again before that was known here, it would wait for ever without a beat.
            Ok(beat) if !beat.is_fenced => {
                if tokio::time::timeout(LOOK, known()).await.is_ok() {
                    return;
                }
            }
            Ok(_) => _ = waiting.because("it answers that this broker is still fenced"),
            Err(error) => {
                tracing::debug!("heartbeat: {error}");
                waiting.because(&error.to_string());
            }
        }
        tokio::time::sleep(SOON).await;
    }
}

async fn beat(
    node: Arc<Node>,
    channel: Arc<ControllerChannel>,
    request: RegisterBroker,
    epoch: Arc<AtomicI64>,
    waiting: Waiting,
) {
    let interval = heartbeat_interval(&node.config());
    let mut next = node.clock.monotonic() + interval;
    let mut led_by = node.quorum.leader_and_term();
    let mut offline_told = 0;
    loop {
        tokio::time::sleep(LOOK.min(interval)).await;
        let now = node.clock.monotonic();
        let leads = node.quorum.leader_and_term();
        let offline = node.partitions.offline_directories().len();
        if now < next && leads == led_by && offline == offline_told {
            continue;
        }
        let current = BrokerEpoch(epoch.load(Ordering::SeqCst));
        match heartbeat(&node, &channel, current, false, interval.max(ANSWER_MAX)).await {
            Ok(beat) => {
                led_by = leads;
                offline_told = offline;
                next = now + if beat.is_fenced { SOON } else { interval };
            }
            Err(LifecycleError::Refused(ErrorCode::StaleBrokerEpoch)) => {
                tracing::warn!("the controller does not know this broker's epoch");
                let again = RegisterBroker {
                    previous_broker_epoch: current,
                    log_dirs: node.partitions.online_directories(),
                    ..request.clone()
                };
                let time = Duration::from_secs(10);
                match register(&channel, &again, time, &waiting).await {
                    Ok(new) => {
                        epoch.store(new.0, Ordering::SeqCst);
                        serve(&node, &channel, new, time, &waiting).await;
                    }
                    Err(error) => tracing::warn!("not registered again: {error}"),
                }
            }
            Err(error) => tracing::debug!("heartbeat: {error}"),
        }
    }
}

fn session_rule(config: &NodeConfig) -> SessionRule {
    let timeout_ms = config.broker.quorum.broker_session_timeout_ms.max(1);
    SessionRule {
        timeout: Duration::from_millis(timeout_ms as u64),
        is_given: config.is_given("broker.session.timeout.ms"),
    }
}

fn heartbeat_interval(config: &NodeConfig) -> Duration {
    if !config.is_given("broker.heartbeat.interval.ms") {
        return HEARTBEAT_INTERVAL;
    }
    let interval_ms = config.broker.quorum.broker_heartbeat_interval_ms.max(1);
    Duration::from_millis(interval_ms as u64)
}

/// Looks after the sessions of brokers while this node leads the quorum.
pub fn start_controller(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    if !node.quorum.is_voter() {
        return;
    }
    let node = node.clone();
    let work = async move {
        let rule = session_rule(&node.config());
        let replication = node.config().broker.replication.clone();
        let balance_s = replication.leader_imbalance_check_interval_seconds.max(1);
        let balance_interval = Duration::from_secs(balance_s as u64);
        let mut balanced_at = node.clock.monotonic();
        let mut led_term = None;
        loop {
            let (leader, term) = node.quorum.leader_and_term();
            if leader != Some(node.broker_id) {
                led_term = None;
            } else if led_term != Some(term) {
                // Once it has committed something it has all that was committed before.
                let settled = node.submit(|_| crate::metadata::Plan::answer(())).await;
                if settled.is_ok() {
                    led_term = Some(term);
                    node.begin_sessions();
                }
            } else {
                node.watch_sessions(rule).await;
                let now = node.clock.monotonic();
                let due = now >= balanced_at + balance_interval;
                if due && replication.auto_leader_rebalance_enable {
                    balanced_at = now;
                    node.balance_leaders().await;
                }
            }
            let news = node.quorum.wait_for_leader((leader, term));
            let _ = tokio::time::timeout(SESSIONS, news).await;
        }
    };
    drop(tasks::spawn(until(stopping.clone(), work)));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn half_of_the_voters_are_no_majority() {
        let lacking = |voters| (0..=voters).find(|gone| lacks_majority(voters, *gone));
        assert_eq!([1, 2, 3, 4, 5].map(lacking), [1, 1, 2, 2, 3].map(Some));
        assert!(!lacks_majority(0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_is_fenced_before_it_knew_that_it_was_not_goes_on_beating() {
        // Unfenced and fenced again at once, so that no metadata ever shows it unfenced; it is
        // unfenced for good by a later heartbeat.
        let answers = [Some(true), Some(false), None, Some(true), Some(false)];
        let beats = Cell::new(0);
        let ask = || {
            let is_fenced = answers[beats.get()];
            beats.set(beats.get() + 1);
            std::future::ready(match is_fenced {
                Some(is_fenced) => Ok(Beat {
                    is_fenced,
                    should_shut_down: false,
                }),
                None => Err(LifecycleError::Refused(ErrorCode::NotController)),
            })
        };
        let known = async || {
            if beats.get() < answers.len() {
                std::future::pending::<()>().await;
            }
        };
        let waiting = Waiting::default();
        let ends = tokio::time::timeout(
            Duration::from_secs(10),
            until_unfenced(ask, known, &waiting),
        );
        ends.await.expect("it beats until it knows");
        assert_eq!(beats.get(), answers.len());
    }
}
