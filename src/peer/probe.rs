//! Whether a process is gone. The kernel closes what it had open, its listening sockets among them:
//! where one listened, a connection is refused.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::address::Address;
use super::connection::Connection;
use super::error::PeerError;
use crate::host::stream;

/// A socket may still listen for a moment when another of its process is closed already.
const TRIES: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(20);
const DIAL_MAX: Duration = Duration::from_millis(500);

/// What a process that is asked for a sign of life does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Answers,
    /// Nobody listens there.
    Gone,
    None,
}

/// Asks for a sign of life on a new connection, which a stopped process accepts and never answers.
pub async fn sign_of_life(address: &Address, within: Duration) -> Sign {
    match Connection::dial(address, "sign-of-life", within).await {
        Ok(_) => Sign::Answers,
        Err(PeerError::Connect { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => {
            Sign::Gone
        }
        Err(_) => Sign::None,
    }
}

/// True only when the address refuses a connection. Silence and any other failure prove nothing.
pub async fn is_gone(address: &Address) -> bool {
    for tried in 0..TRIES {
        if tried > 0 {
            sleep(BETWEEN).await;
        }
        let dialled = stream::connect_to(address.target(), address.port);
        match timeout(DIAL_MAX, dialled).await {
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => return true,
            Ok(Err(_)) | Err(_) => return false,
            Ok(Ok(_)) => {}
        }
    }
    false
}

/// Whether something is known to listen there.
pub async fn listens(address: &Address) -> bool {
    let dialled = stream::connect_to(address.target(), address.port);
    matches!(timeout(DIAL_MAX, dialled).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn who_listens_is_not_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        assert!(!is_gone(&address).await);
        assert!(listens(&address).await);
        drop(listener);
        assert!(is_gone(&address).await);
        assert!(!listens(&address).await);
    }
}
