//! What the operating system lets this process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, and returns what holds then.
pub fn raise_file_handles() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    let reached = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    reached.map_or(usize::MAX, |limit| limit as usize)
}

/// Whether a socket can be made for IPv6 at all.
pub fn has_ipv6() -> bool {
    std::net::UdpSocket::bind("[::1]:0").is_ok()
}
