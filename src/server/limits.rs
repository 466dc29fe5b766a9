//! How many connections there may be: `max.connections`, `max.connections.per.ip` and its
//! overrides.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts the connections of a node. A [`Place`] is held for as long as a connection lives.
pub struct ConnectionLimits {
    connections_max: usize,
    per_ip_max: usize,
    per_ip_overrides: HashMap<IpAddr, usize>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    per_ip: HashMap<IpAddr, usize>,
}

/// One counted connection.
pub struct Place {
    limits: Arc<ConnectionLimits>,
    ip: IpAddr,
}

/// Why a connection is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TurnedAway {
    #[error("the node has {max} connections, all that max.connections or its file handles allow")]
    Total { max: usize },
    #[error("{ip} has max.connections.per.ip={max} connections")]
    PerIp { ip: IpAddr, max: usize },
}

impl ConnectionLimits {
    pub fn new(
        connections_max: usize,
        per_ip_max: usize,
        per_ip_overrides: HashMap<IpAddr, usize>,
    ) -> Arc<Self> {
        let open = Mutex::default();
        Arc::new(ConnectionLimits {
            connections_max,
            per_ip_max,
            per_ip_overrides,
            open,
        })
    }

    pub fn enter(self: &Arc<Self>, ip: IpAddr) -> Result<Place, TurnedAway> {
        let per_ip_max = *self.per_ip_overrides.get(&ip).unwrap_or(&self.per_ip_max);
        let mut open = self.open.lock();
        if open.total >= self.connections_max {
            return Err(TurnedAway::Total {
                max: self.connections_max,
            });
        }
        if open.per_ip.get(&ip).copied().unwrap_or(0) >= per_ip_max {
            return Err(TurnedAway::PerIp {
                ip,
                max: per_ip_max,
            });
        }
        open.total += 1;
        *open.per_ip.entry(ip).or_default() += 1;
        Ok(Place {
            limits: self.clone(),
            ip,
        })
    }

    pub fn open_count(&self) -> usize {
        self.open.lock().total
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock();
        open.total -= 1;
        if let Some(count) = open.per_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                open.per_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let ip: IpAddr = "10.0.0.1".parse().unwrap();
        let other: IpAddr = "10.0.0.2".parse().unwrap();
        let limits = ConnectionLimits::new(3, 1, HashMap::from([(other, 2)]));
        let place = limits.enter(ip).unwrap();
        assert_eq!(
            limits.enter(ip).err(),
            Some(TurnedAway::PerIp { ip, max: 1 })
        );
        let _two = [limits.enter(other).unwrap(), limits.enter(other).unwrap()];
        drop(place);
        let _place = limits.enter(ip).unwrap();
        let third: IpAddr = "10.0.0.3".parse().unwrap();
        assert_eq!(
            limits.enter(third).err(),
            Some(TurnedAway::Total { max: 3 })
        );
    }
}
