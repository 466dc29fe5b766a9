//! Clients that are told an address and then never use it.
//!
//! ```text
//! connection: new -- Metadata --> told -- any other work --> used
//! ```
//!
//! 1. A client goes by its address and client id. One that works on any connection has reached
//!    what it was told.
//! 2. Who hangs up after Metadata is a tool; a client that cannot connect elsewhere keeps its first
//!    connection and waits. After [`PATIENCE`] it is counted, and told in a line of the log.
//! 3. Only a broker that is alone can know: others may have been reached instead.
//! 4. What is kept is bounded; beyond that nobody is watched.

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::context::{Connection, ConnectionKind, Context};
use super::{Node, told};
use crate::host::tasks;

/// How long a client may take from being told to working.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many clients are watched at a time.
const WATCHED_MAX: usize = 256;
/// How many clients are remembered that have worked.
const USED_MAX: usize = 4096;
/// How much of a client id is kept.
const NAME_MAX: usize = 100;
/// How many lines one process writes about this.
const LINES_MAX: u64 = 10;

const NEW: u8 = 0;
const TOLD: u8 = 1;
const USED: u8 = 2;

/// Metadata.
const METADATA: i16 = 3;
/// What a client asks for before it works: Metadata, SaslHandshake, ApiVersions, SaslAuthenticate,
/// DescribeCluster, GetTelemetrySubscriptions.
const BEFORE_WORK: &[i16] = &[METADATA, 17, 18, 36, 60, 71];

/// Its address, and the beginning of its client id.
type Client = (IpAddr, String);

/// Watches the clients of a node.
#[derive(Default)]
pub struct Reach {
    state: Mutex<State>,
    not_reached: AtomicU64,
}

#[derive(Default)]
struct State {
    used: BTreeSet<Client>,
    watched: usize,
}

impl Reach {
    /// How many clients did not use what they were told.
    pub fn not_reached(&self) -> u64 {
        self.not_reached.load(Ordering::Relaxed)
    }

    /// Notes a request, before it is answered.
    pub fn note(&self, context: &Context) {
        let connection = &context.connection;
        let before = connection.use_of.load(Ordering::Relaxed);
        if before == USED || connection.kind != ConnectionKind::Broker {
            return;
        }
        let key = context.api.key;
        let now = match BEFORE_WORK.contains(&key) {
            false => USED,
            true if key == METADATA => TOLD,
            true => return,
        };
        if now == before {
            return;
        }
        connection.use_of.store(now, Ordering::Relaxed);
        debug_assert!(before == NEW || now == USED);
        let client_id = context.client_id.as_ref();
        let client_id = client_id.map_or(String::new(), |id| id.chars().take(NAME_MAX).collect());
        let client = (connection.peer.ip().to_canonical(), client_id);
        match now {
            USED => self.used(client),
            _ => self.watch(context, client),
        }
    }

    fn used(&self, client: Client) {
        let mut state = self.state.lock();
        if state.used.len() >= USED_MAX {
            state.used.clear();
        }
        state.used.insert(client);
    }

    fn watch(&self, context: &Context, client: Client) {
        let mut state = self.state.lock();
        if state.watched >= WATCHED_MAX || state.used.contains(&client) {
            return;
        }
        state.watched += 1;
        drop(state);
        let node = Arc::downgrade(&context.node);
        let connection = Arc::downgrade(&context.connection);
        drop(tasks::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            judge(node, connection, client);
        }));
    }
}

/// After the patience: a client that still holds its first connection and has not worked.
fn judge(node: Weak<Node>, connection: Weak<Connection>, client: Client) {
    let Some(node) = node.upgrade() else {
        return;
    };
    let has_worked = {
        let mut state = node.reach.state.lock();
        state.watched -= 1;
        state.used.contains(&client)
    };
    let Some(connection) = connection.upgrade() else {
        return;
    };
    if has_worked || connection.use_of.load(Ordering::Relaxed) != TOLD {
        return;
    }
    let image = node.image();
    let Some(own) = image
        .broker(node.broker_id)
        .filter(|_| image.brokers().count() == 1)
    else {
        return;
    };
    let Some((host, port)) = told::address(&node, &connection, own) else {
        return;
    };
    let is_lines_end = node.reach.not_reached() >= LINES_MAX;
    drop(tasks::spawn_blocking(move || {
        if is_where_it_came(&connection, &host, port) {
            return;
        }
        node.reach.not_reached.fetch_add(1, Ordering::Relaxed);
        if !is_lines_end {
            tell(
                &connection,
                &client.1,
                &host,
                port,
                node.reach.not_reached(),
            );
        }
    }));
}

/// What it was told is what it has reached already: it only has nothing to do.
fn is_where_it_came(connection: &Connection, host: &str, port: i32) -> bool {
    let Some(local) = connection.local else {
        return true;
    };
    let found = (host, 0).to_socket_addrs();
    let is_own = found.is_ok_and(|mut found| found.any(|at| at.ip().to_canonical() == local.ip()));
    is_own && i32::from(local.port()) == port
}

fn tell(connection: &Connection, client_id: &str, host: &str, port: i32, clients: u64) {
    let (listener, peer) = (&connection.listener, connection.peer);
    tracing::warn!(
        clients,
        "client {client_id:?} at {peer} was told {host}:{port} {} s ago and has not come there; if \
         it cannot connect, set advertised.listeners={listener}://HOST:PORT \
         (KAFKA_ADVERTISED_LISTENERS) to an address at which it reaches this broker",
        PATIENCE.as_secs()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(local: &str) -> Connection {
        let peer = "172.18.0.1:40000".parse().unwrap();
        let local = Some(local.parse().unwrap());
        Connection::new("PLAINTEXT".into(), peer, local, ConnectionKind::Broker)
    }

    #[test]
    fn a_client_that_was_told_where_it_is_has_reached_it() {
        let reached = connection("127.0.0.1:9092");
        assert!(is_where_it_came(&reached, "localhost", 9092));
        assert!(!is_where_it_came(&reached, "localhost", 29092));
        let mapped = connection("172.18.0.5:9092");
        assert!(is_where_it_came(&mapped, "172.18.0.5", 9092));
        assert!(!is_where_it_came(&mapped, "localhost", 9092));
    }
}
