//! Where this process stands in a network.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::OnceLock;

/// The address from which the host of this container comes to a port that its engine has
/// published. `None` outside of a container.
pub fn host_of_container() -> Option<IpAddr> {
    static FOUND: OnceLock<Option<IpAddr>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let marks = ["/.dockerenv", "/run/.containerenv"];
        if !marks.iter().any(|mark| Path::new(mark).exists()) {
            return None;
        }
        let mut text = String::new();
        // Files of /proc have no length that could be reserved.
        let file = std::fs::File::open("/proc/net/route").ok()?;
        file.take(1 << 20).read_to_string(&mut text).ok()?;
        default_gateway(&text).map(IpAddr::V4)
    })
}

/// The gateway of the route to everywhere; numbers are hexadecimal, lowest byte first.
fn default_gateway(routes: &str) -> Option<Ipv4Addr> {
    routes.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (destination, gateway) = (columns.next()?, columns.next()?);
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        let is_default = destination.bytes().all(|digit| digit == b'0') && gateway != 0;
        is_default.then(|| Ipv4Addr::from(gateway.to_le_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_to_everywhere_names_the_gateway() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
                      eth0\t000012AC\t00000000\t0001\t0\t0\t0\t0000FFFF\n\
                      eth0\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\n";
        assert_eq!(default_gateway(routes), Some(Ipv4Addr::new(172, 18, 0, 1)));
        assert_eq!(default_gateway("Iface\tDestination\tGateway\n"), None);
        assert_eq!(default_gateway(""), None);
    }
}
