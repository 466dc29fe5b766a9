//! A listening socket and its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::budget::FrameBudget;
use super::congestion::Congestion;
use super::connection::{ConnectionSettings, Service, serve};
use super::limits::ConnectionLimits;
use super::log_pace::LogPace;
use super::traffic::Traffic;
use crate::api::{Connection, ConnectionKind};
use crate::host::{Listener, Stream, stream, tasks};

/// Connections the kernel may hold ready for accept (`socket.listen.backlog.size` at least).
const BACKLOG_MIN: u32 = 1024;

/// How long to wait after a failed accept (no file handles left, say) before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What all connections of a node share.
#[derive(Clone)]
pub struct ListenerSettings {
    pub limits: Arc<ConnectionLimits>,
    pub budget: FrameBudget,
    pub frame_bytes_max: usize,
    pub idle_max: Duration,
    pub stopping: watch::Receiver<bool>,
}

/// A bound socket that does not accept yet, so that the port is known and taken before the node is
/// ready to serve.
pub struct Bound {
    name: Arc<str>,
    kind: ConnectionKind,
    listener: Listener,
    congestion: Option<Congestion>,
    turned_away: LogPace,
    traffic: Arc<Traffic>,
}

/// Binds `address` for the listener `name`.
pub fn bind(
    name: &str,
    kind: ConnectionKind,
    address: SocketAddr,
    backlog: u32,
) -> io::Result<Bound> {
    let listener = stream::listen(address, backlog.max(BACKLOG_MIN))?;
    let name: Arc<str> = name.into();
    Ok(Bound {
        traffic: Traffic::of(name.clone()),
        name,
        kind,
        congestion: listener.socket().map(Congestion::of_listener),
        listener,
        turned_away: LogPace::default(),
    })
}

impl Bound {
    pub fn kind(&self) -> ConnectionKind {
        self.kind
    }

    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts until the node stops, then waits for its connections to end.
    pub async fn run<S: Service>(self, service: Arc<S>, settings: ListenerSettings) {
        let mut stopping = settings.stopping.clone();
        // Each connection holds a sender; when all are gone, so are the connections.
        let (alive, mut all_ended) = mpsc::channel::<()>(1);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stopping.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    self.start(stream, peer, service.clone(), &settings, alive.clone());
                }
                Err(error) => {
                    tracing::warn!(listener = &*self.name, "accept failed: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(alive);
        let _ = all_ended.recv().await;
    }

    fn start<S: Service>(
        &self,
        stream: Stream,
        peer: SocketAddr,
        service: Arc<S>,
        settings: &ListenerSettings,
        alive: mpsc::Sender<()>,
    ) {
        let place = match settings.limits.enter(peer.ip()) {
            Ok(place) => place,
            Err(turned_away) => {
                self.traffic.turned_away.increment();
                if let Some(left_out) = self.turned_away.admit(Instant::now()) {
                    let listener = &*self.name;
                    tracing::info!(listener, %peer, left_out, "turned away: {turned_away}");
                }
                return;
            }
        };
        if let (Some(congestion), Some(socket)) = (&self.congestion, stream.socket()) {
            congestion.on_accept(socket, peer);
        }
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, "connection lost at once: {error}");
            return;
        }
        let local = stream.local_addr().ok();
        let connection = Arc::new(Connection::new(self.name.clone(), peer, local, self.kind));
        let connection_settings = ConnectionSettings {
            budget: settings.budget.clone(),
            frame_bytes_max: settings.frame_bytes_max,
            idle_max: settings.idle_max,
            stopping: settings.stopping.clone(),
            traffic: self.traffic.clone(),
        };
        let open = self.traffic.enter();
        tasks::spawn(async move {
            serve(stream, peer, connection, service, connection_settings).await;
            drop((place, alive, open));
        });
    }
}
