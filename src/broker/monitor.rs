//! What a node tells those who look after it: whether it serves, and its metrics.
//!
//! ```text
//! opening -> forming -> recovering -> registering -> running -> handing over -> stopping
//! ```
//!
//! 1. It answers from before anything of the node is there, and until all of it has ended.
//! 2. Metrics are gathered for one who asks at a time, apart from the workers.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::seen::Seen;
use super::{StartError, scrape, start};
use crate::api::Node;
use crate::config::{Listener, NodeConfig, SecurityProtocol, host_and_port};
use crate::host::tasks;
use crate::log::{Cleaner, LogDir};
use crate::metrics::Exposition;
use crate::server::{FrameBudget, HttpAnswer, HttpService, HttpSocket, Traffic};

/// What a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    #[default]
    Opening,
    /// It looks for the other controllers.
    Forming,
    Recovering,
    /// It waits until the controllers count on it.
    Registering,
    Running,
    HandingOver,
    Stopping,
}

impl Phase {
    /// Kafka's number (`BrokerState.java`).
    pub fn broker_state(self) -> u8 {
        match self {
            Phase::Opening | Phase::Forming | Phase::Registering => 1,
            Phase::Recovering => 2,
            Phase::Running => 3,
            Phase::HandingOver => 6,
            Phase::Stopping => 7,
        }
    }
}

/// What is known of a node so far.
#[derive(Default)]
pub struct Monitor {
    phase: Mutex<Phase>,
    pub(super) log_dirs: OnceLock<Vec<Arc<LogDir>>>,
    pub(super) cleaner: OnceLock<Arc<Cleaner>>,
    node: OnceLock<Weak<Node>>,
    pub(super) traffic: Mutex<Vec<Arc<Traffic>>>,
    pub(super) budgets: Mutex<Vec<FrameBudget>>,
    gathering: tokio::sync::Mutex<()>,
}

impl Monitor {
    pub fn enter(&self, phase: Phase) {
        *self.phase.lock() = phase;
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    pub fn watch(&self, node: &Arc<Node>) {
        let _ = self.node.set(Arc::downgrade(node));
    }

    pub fn node(&self) -> Option<Arc<Node>> {
        self.node.get()?.upgrade()
    }

    /// Why the node does not serve; `None` when it does.
    pub fn unwell(&self) -> Option<String> {
        let reason = match self.phase() {
            Phase::Opening => "starting: the log directories are being opened",
            Phase::Forming => "starting: waiting for the metadata quorum",
            Phase::Recovering => {
                let left = self.log_dirs.get().into_iter().flatten();
                let left: usize = left.map(|dir| dir.unopened_count()).sum();
                return Some(format!("starting: {left} logs are still to be opened"));
            }
            Phase::Registering => "starting: waiting for the controllers to count on this broker",
            Phase::Running => return self.node().and_then(|node| unheard(&node)),
            Phase::HandingOver => "stopping: what this broker leads is being handed over",
            Phase::Stopping => "stopping",
        };
        Some(reason.to_owned())
    }

    async fn health(&self) -> HttpAnswer {
        match self.unwell() {
            None => HttpAnswer::line(200, "ok"),
            Some(reason) => HttpAnswer::line(503, &reason),
        }
    }

    async fn metrics(self: Arc<Self>) -> HttpAnswer {
        let _one_at_a_time = self.gathering.lock().await;
        let this = self.clone();
        let text = tasks::spawn_blocking(move || scrape::text(&Seen::of(&this)));
        match text.await {
            Ok(body) => HttpAnswer {
                status: 200,
                content_type: Exposition::CONTENT_TYPE,
                body,
            },
            Err(error) => HttpAnswer::line(500, &format!("metrics were not gathered: {error}")),
        }
    }
}

/// Why a node that has started does not serve.
fn unheard(node: &Node) -> Option<String> {
    if !node.config().broker.is_broker() {
        let leader = node.quorum.leader();
        return leader.is_none().then(|| "no controller leads".to_owned());
    }
    let image = node.image();
    let own = image.broker(node.broker_id);
    let is_fenced = own.is_none_or(|own| own.fenced);
    is_fenced.then(|| "fenced: the controllers do not hear this broker".to_owned())
}

/// Answers at the address of `klamm.metrics.listener`.
struct Endpoint(Arc<Monitor>);

impl HttpService for Endpoint {
    fn get(&self, path: &str) -> Pin<Box<dyn Future<Output = Option<HttpAnswer>> + Send + '_>> {
        let is_metrics = path == "/metrics";
        let is_health = path == "/health";
        Box::pin(async move {
            match (is_metrics, is_health) {
                (true, _) => Some(self.0.clone().metrics().await),
                (_, true) => Some(self.0.health().await),
                _ => None,
            }
        })
    }
}

/// The endpoint; it ends some time after this is dropped.
pub struct Served {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Served {
    /// Returns once the port is free.
    pub async fn end(self) {
        self.stop.send_replace(true);
        let _ = self.running.await;
    }
}

/// Serves `monitor` where the configuration wants it.
pub async fn serve(
    config: &NodeConfig,
    monitor: &Arc<Monitor>,
) -> Result<Option<Served>, StartError> {
    let configured = &config.broker.metrics.klamm_metrics_listener;
    let Some((host, port)) = host_and_port(configured) else {
        return Ok(None);
    };
    let listener = Listener {
        name: "klamm.metrics.listener=http".to_owned(),
        security_protocol: SecurityProtocol::Plaintext,
        host: host.to_owned(),
        port,
    };
    let addresses = start::resolve(&listener).await?;
    let any = SocketAddr::from((IpAddr::from([0; 4]), port));
    let address = addresses.first().copied().unwrap_or(any);
    let failed = |source| StartError::Bind {
        listener: listener.to_string(),
        source,
    };
    let socket = HttpSocket::bind(address).map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    let (stop, stopping) = watch::channel(false);
    let running = tasks::spawn(socket.run(Arc::new(Endpoint(monitor.clone())), stopping));
    Ok(Some(Served {
        address,
        stop,
        running,
    }))
}
