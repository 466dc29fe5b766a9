//! `host:port` of a broker, and lists of them.
//!
//! ```text
//! bootstrap = address *("," address)
//! address   = [protocol "://"] host ":" port      host may be empty (this machine) or in brackets
//! ```

use std::fmt;

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("Invalid url in bootstrap.servers: {text}")]
    Invalid { text: String },
    #[error("No resolvable bootstrap urls given in bootstrap.servers")]
    Empty,
}

impl Address {
    pub fn new(host: &str, port: u16) -> Address {
        Address {
            host: host.to_owned(),
            port,
        }
    }

    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let invalid = || AddressError::Invalid {
            text: text.to_owned(),
        };
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(invalid());
        }
        Ok(Address::new(bare.unwrap_or(host), port))
    }

    /// The host to connect to: an empty one is this machine.
    pub fn target(&self) -> &str {
        match self.host.as_str() {
            "" => "localhost",
            host => host,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The addresses of a `bootstrap.servers` value; blank items are passed over.
pub fn parse_bootstrap(text: &str) -> Result<Vec<Address>, AddressError> {
    let items = text.split(',').map(str::trim).filter(|i| !i.is_empty());
    let addresses: Vec<Address> = items.map(Address::parse).collect::<Result<_, _>>()?;
    match addresses.is_empty() {
        true => Err(AddressError::Empty),
        false => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_kafka_reads_them() {
        let read = |text| Address::parse(text).map(|a| (a.host, a.port));
        assert_eq!(read("a:1"), Ok(("a".into(), 1)));
        assert_eq!(read(":9092"), Ok(("".into(), 9092)));
        assert_eq!(read("[::1]:9092"), Ok(("::1".into(), 9092)));
        assert_eq!(read("PLAINTEXT://b.c:2"), Ok(("b.c".into(), 2)));
        for bad in ["a", "a:", "a:x", "a:65536", "::1:9092"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_bootstrap("a:1, b:2,").map(|a| a.len()), Ok(2));
        assert_eq!(parse_bootstrap(" ,"), Err(AddressError::Empty));
    }
}
