//! A broker as the cluster's metadata names it.

use super::address::Address;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub id: i32,
    pub address: Address,
    pub rack: Option<String>,
}

impl std::fmt::Display for Broker {
    /// As Kafka prints a node.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, port) = (&self.address.host, self.address.port);
        let rack = self.rack.as_deref().unwrap_or("null");
        let id = self.id;
        write!(f, "{host}:{port} (id: {id} rack: {rack} isFenced: false)")
    }
}
