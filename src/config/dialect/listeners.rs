//! Lists of listeners as texts: `NAME://host:port,...`.

/// One item; a host may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub name: String,
    pub host: String,
    pub port: String,
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.name, self.host, self.port)
    }
}

/// The items that have the form of a listener; the check at start names the others.
pub(super) fn parse(text: &str) -> Vec<Item> {
    let item = |text: &str| {
        let (name, address) = text.trim().split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Item {
            name: name.to_owned(),
            host: host.to_owned(),
            port: port.to_owned(),
        })
    };
    text.split(',').filter_map(item).collect()
}

pub(super) fn join(items: &[Item]) -> String {
    let texts: Vec<String> = items.iter().map(Item::to_string).collect();
    texts.join(",")
}

/// The first port from `first` on that no item uses.
pub(super) fn free_port(items: &[Item], first: u16) -> u16 {
    let is_used = |port: &u16| items.iter().any(|item| item.port == port.to_string());
    (first..).find(|port| !is_used(port)).unwrap_or(first)
}

/// A host that may stand in `advertised.listeners` as what an old name says: without a scheme.
pub(super) fn bare_host(text: &str) -> &str {
    let host = text.rsplit_once("://").map_or(text, |(_, host)| host);
    host.trim_end_matches('/')
}
