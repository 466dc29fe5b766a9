//! The broker under test: one that runs already, or `klamm` with a temporary directory.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use crate::connection::Connection;
use crate::request;

const START_LIMIT: Duration = Duration::from_secs(20);

pub struct Broker {
    pub address: SocketAddr,
    pub cluster_id: String,
    /// A word that no other run has, for the names of topics.
    pub run: String,
    /// When the run began: milliseconds since 1970.
    pub now_ms: i64,
    /// Ends with the run.
    started: Option<Started>,
}

struct Started {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Broker {
    pub fn at(address: &str) -> Broker {
        let mut addresses = address.to_socket_addrs().expect("an address host:port");
        Broker::with(addresses.next().expect("an address"), None)
    }

    /// None, for what needs the names of a run only.
    pub fn absent() -> Broker {
        Broker {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            cluster_id: String::new(),
            run: "r0000000000".to_owned(),
            now_ms: 0,
            started: None,
        }
    }

    pub fn start() -> Broker {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (port, controller_port) = free_ports();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let properties = properties(port, controller_port, directory.path());
        let file = directory.path().join("server.properties");
        std::fs::write(&file, properties).expect("a writable temporary directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_klamm"))
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .expect("the klamm of this build");
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "klamm ended before it listened: {ended:?}");
            assert!(begun.elapsed() < START_LIMIT, "klamm does not listen");
            std::thread::yield_now();
        }
        let started = Started {
            child,
            _directory: directory,
        };
        Broker::with(address, Some(started))
    }

    fn with(address: SocketAddr, started: Option<Started>) -> Broker {
        let since_1970 = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("a clock after 1970");
        let mut broker = Broker {
            address,
            cluster_id: String::new(),
            run: format!("r{:010x}", since_1970.as_micros() & 0xff_ffff_ffff),
            now_ms: since_1970.as_millis() as i64,
            started,
        };
        broker.cluster_id = broker.ask_cluster_id();
        broker
    }

    fn ask_cluster_id(&self) -> String {
        let body = request::plain("DescribeCluster", 0, "{}");
        let answer = Connection::open(self.address).ask("DescribeCluster", 0, &body);
        let answer = answer.expect("a broker that answers DescribeCluster");
        let cluster_id = answer.get("cluster_id").and_then(|id| id.as_text());
        cluster_id.unwrap_or_default().to_owned()
    }
}

impl Broker {
    /// The resident memory of a broker that [`Broker::start`] has started.
    pub fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most that it ever was.
    pub fn resident_bytes_max(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let started = self.started.as_ref().expect("a broker of this test");
        let status = format!("/proc/{}/status", started.child.id());
        let status = std::fs::read_to_string(status).expect("a broker that runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        1024 * kib
            .and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
    }
}

impl Broker {
    /// Asks a broker that [`Broker::start`] has started to end, and whether it does in time.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let started = self.started.as_mut().expect("a broker of this test");
        let pid = Pid::from_child(&started.child);
        kill_process(pid, Signal::TERM).expect("a broker that runs");
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if started.child.try_wait().expect("a child").is_some() {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }
}

fn free_ports() -> (u16, u16) {
    let bind = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (first, second) = (bind(), bind());
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    (port(&first), port(&second))
}

fn properties(port: u16, controller_port: u16, directory: &std::path::Path) -> String {
    format!(
        "process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
log.dirs={}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
",
        directory.join("data").display()
    )
}
