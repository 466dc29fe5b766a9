//! What Kafka's clients log of a broker that they cannot connect to, on standard error.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::host::{Clock, SystemClock};
use crate::peer::{Address, PeerError};

use super::when::log_time;

pub fn of_admin(client_id: &str, node: i32, address: &Address, error: &PeerError) {
    tell("AdminClient", client_id, node, address, error);
}

pub fn of_consumer(client_id: &str, node: i32, address: &Address, error: &PeerError) {
    tell("Consumer", client_id, node, address, error);
}

pub fn of_producer(client_id: &str, node: i32, address: &Address, error: &PeerError) {
    tell("Producer", client_id, node, address, error);
}

fn tell(kind: &str, client_id: &str, node: i32, address: &Address, error: &PeerError) {
    let time = log_time(SystemClock::new().now_ms().0);
    let what = match error {
        PeerError::Resolve { .. } => {
            format!("Error connecting to node {address} (id: {node} rack: null isFenced: false)")
        }
        PeerError::Connect { .. } | PeerError::Timeout { .. } => {
            let resolved = (address.target(), address.port).to_socket_addrs();
            let place = place(address, resolved.ok().and_then(|mut found| found.next()));
            format!(
                "Connection to node {node} ({place}) could not be established. Node may not be \
                 available."
            )
        }
        _ => return,
    };
    eprintln!(
        "[{time}] WARN [{kind} clientId={client_id}] {what} \
         (org.apache.kafka.clients.NetworkClient)"
    );
    if let PeerError::Resolve { .. } = error {
        let host = address.target();
        eprintln!("java.net.UnknownHostException: {host}: Name or service not known");
    }
}

/// As Java prints an address: the name, if there is one, and the number that it stands for.
fn place(address: &Address, resolved: Option<SocketAddr>) -> String {
    let host = address.target();
    match resolved {
        None => format!("{host}/<unresolved>:{}", address.port),
        Some(at) if at.ip().to_string() == host => format!("/{at}"),
        Some(at) => format!("{host}/{at}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_as_java_prints_them() {
        let at = "127.0.0.1:9".parse().ok();
        assert_eq!(place(&Address::new("127.0.0.1", 9), at), "/127.0.0.1:9");
        assert_eq!(
            place(&Address::new("localhost", 9), at),
            "localhost/127.0.0.1:9"
        );
        assert_eq!(
            place(&Address::new("nowhere", 9), None),
            "nowhere/<unresolved>:9"
        );
    }
}
