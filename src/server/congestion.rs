//! The congestion control of connections that stay on this machine.
//!
//! Where the system's default finds out the rate of the link and paces to it (BBR), it does so on
//! the loopback too, where there is none to find: every burst waits for a timer, and sending
//! costs several times the processor time. A connection takes over what its listener has when it
//! is accepted; changed later, the pacing stays. So the listener has [`LOCAL`], and a connection
//! from elsewhere is given the system's default back before anything is sent on it.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use tokio::net::TcpStream;

/// Does not pace, and every kernel lets everybody use it.
const LOCAL: &str = "reno";

/// Those that do not pace either: nothing would be gained.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// What the connections of a listener get.
pub struct Congestion {
    /// For connections from elsewhere; `None`: they have it already.
    system_default: Option<String>,
}

impl Congestion {
    /// To be called before anything is accepted.
    pub fn of_listener(listener: impl AsFd) -> Congestion {
        let system_default = tcp_congestion(&listener)
            .ok()
            .filter(|name| !UNPACED.contains(&name.as_str()))
            .filter(|_| set_tcp_congestion(&listener, LOCAL).is_ok());
        Congestion { system_default }
    }

    /// A connection was accepted and nothing was sent on it yet.
    pub fn on_accept(&self, stream: &TcpStream, peer: SocketAddr) {
        let Some(system_default) = &self.system_default else {
            return;
        };
        if is_local(stream, peer) {
            return;
        }
        if let Err(error) = set_tcp_congestion(stream, system_default) {
            tracing::debug!(%peer, system_default, "congestion control stays {LOCAL}: {error}");
        }
    }
}

fn is_local(stream: &TcpStream, peer: SocketAddr) -> bool {
    let peer = peer.ip().to_canonical();
    let own = stream.local_addr().map(|own| own.ip().to_canonical());
    peer.is_loopback() || own.is_ok_and(|own| own == peer)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn local_connections_are_not_paced_and_others_are_as_the_system_says() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let system_default = tcp_congestion(&listener).unwrap();
        let congestion = Congestion::of_listener(&listener);
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        congestion.on_accept(&stream, peer);
        let unpaced = tcp_congestion(&stream).unwrap();
        assert!(UNPACED.contains(&unpaced.as_str()), "{unpaced}");

        congestion.on_accept(&stream, "192.0.2.1:9".parse().unwrap());
        let of_elsewhere = tcp_congestion(&stream).unwrap();
        assert_eq!(of_elsewhere, system_default);
    }
}
