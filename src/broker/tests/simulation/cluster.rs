//! The nodes of a simulated cluster: their machines, what they keep, and the processes that run.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::api::Node;
use crate::broker::Broker;
use crate::config::{NodeConfig, Property, Sources, argument_properties};
use crate::host::Host;
use crate::host::simulated::key_value::MemoryKeyValue;
use crate::host::simulated::network::Network;
use crate::host::simulated::{Process, SimulatedClock};
use crate::log::tests::faulty_disk::{Crash, FaultyDisk};
use crate::peer::Address;

pub const NODES: usize = 3;
pub const CLIENT_PORT: u16 = 9092;

/// How long a clean stop may take before it is ended as an operator would end it.
const STOP_MAX: Duration = Duration::from_secs(20);

pub fn machine_of_node(id: i32) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, id as u8).into()
}

pub fn machine_of_client(number: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 1, number as u8).into()
}

pub fn address_of(id: i32) -> Address {
    Address::new(&machine_of_node(id).to_string(), CLIENT_PORT)
}

fn config(id: i32, more: &[String]) -> NodeConfig {
    let ids = 1..=NODES as i32;
    let voters: Vec<_> = ids
        .map(|id| format!("{id}@{}:9093", machine_of_node(id)))
        .collect();
    let host = machine_of_node(id);
    let mut pairs = vec![
        "process.roles=broker,controller".to_owned(),
        format!("node.id={id}"),
        format!("listeners=PLAINTEXT://{host}:{CLIENT_PORT},CONTROLLER://{host}:9093"),
        format!("advertised.listeners=PLAINTEXT://{host}:{CLIENT_PORT}"),
        "controller.listener.names=CONTROLLER".to_owned(),
        format!("controller.quorum.voters={}", voters.join(",")),
        "log.dirs=/logs".to_owned(),
        "metadata.log.dir=/metadata".to_owned(),
        "klamm.log.dir.reserve.bytes=0".to_owned(),
        "num.partitions=1".to_owned(),
        "min.insync.replicas=2".to_owned(),
        "auto.create.topics.enable=false".to_owned(),
    ];
    pairs.extend_from_slice(more);
    let file: Vec<Property> = argument_properties(pairs.iter().map(String::as_str)).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    NodeConfig::load(sources).unwrap().0
}

/// How a process ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    NotStarted(String),
    Failed(String),
    Stopped,
}

struct Running {
    process: Arc<Process>,
    /// Once it serves.
    shown: Arc<Mutex<Option<Arc<Node>>>>,
    stop: Arc<Notify>,
    task: JoinHandle<Ended>,
}

/// A node: what stays when its process ends, and the process.
pub struct SimNode {
    pub id: i32,
    pub machine: IpAddr,
    pub disk: FaultyDisk,
    /// Of the metadata, on two disks of which one is there.
    stores: [MemoryKeyValue; 2],
    metadata_disk: usize,
    config: NodeConfig,
    clock: Arc<SimulatedClock>,
    network: Arc<Network>,
    running: Option<Running>,
    pub is_paused: bool,
}

impl SimNode {
    pub fn new(id: i32, network: &Arc<Network>, ahead_ms: i64, more: &[String]) -> SimNode {
        SimNode {
            id,
            machine: machine_of_node(id),
            disk: FaultyDisk::new(),
            stores: Default::default(),
            metadata_disk: 0,
            config: config(id, more),
            clock: Arc::new(SimulatedClock::new(Instant::now(), ahead_ms)),
            network: network.clone(),
            running: None,
            is_paused: false,
        }
    }

    pub fn start(&mut self) {
        assert!(self.running.is_none(), "node {} runs", self.id);
        let process = Process::start(&self.network, self.machine);
        let store = self.stores[self.metadata_disk].clone();
        let host = Host {
            disk: Arc::new(self.disk.clone()),
            clock: self.clock.clone(),
            open_key_value: Arc::new(move |_| Ok(Arc::new(store.clone()))),
        };
        let shown = Arc::new(Mutex::new(None));
        let stop = Arc::new(Notify::new());
        let (config, show, stopping) = (self.config.clone(), shown.clone(), stop.clone());
        let task = process.spawn(async move {
            let broker = match Broker::start_on(host, config).await {
                Ok((broker, _)) => broker,
                Err(error) => return Ended::NotStarted(error.to_string()),
            };
            *show.lock() = Some(broker.node.clone());
            let failed = tokio::select! {
                error = broker.failed() => Some(error),
                () = stopping.notified() => None,
            };
            *show.lock() = None;
            match failed {
                Some(error) => Ended::Failed(error.to_string()),
                None => {
                    broker.stop().await;
                    Ended::Stopped
                }
            }
        });
        self.running = Some(Running {
            process,
            shown,
            stop,
            task,
        });
    }

    /// The other disk of the metadata takes the place of this one, as in another order of
    /// `log.dirs`.
    pub fn swap_metadata(&mut self) {
        assert!(self.running.is_none(), "node {} runs", self.id);
        self.metadata_disk = 1 - self.metadata_disk;
    }

    pub fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// The node, while it serves.
    pub fn node(&self) -> Option<Arc<Node>> {
        self.running.as_ref()?.shown.lock().clone()
    }

    pub fn process(&self) -> Option<Arc<Process>> {
        self.running.as_ref().map(|running| running.process.clone())
    }

    /// The process ends at once. What it wrote is there for the next one, but after `crash` it
    /// may not be.
    pub fn kill(&mut self, crash: Crash) {
        let Some(running) = self.running.take() else {
            return;
        };
        running.process.kill(crash != Crash::Kill);
        *running.shown.lock() = None;
        self.disk = self.disk.crash(crash);
        self.stores = [0, 1].map(|disk: usize| self.stores[disk].crash());
        self.is_paused = false;
    }

    /// Stops it cleanly; how it ended, or `None` if it did not in time and was killed.
    pub async fn stop(&mut self) -> Option<Ended> {
        let running = self.running.as_mut()?;
        running.stop.notify_one();
        let ended = timeout(STOP_MAX, &mut running.task).await;
        self.kill(Crash::Kill);
        ended.ok().map(|ended| ended.expect("a stop that panicked"))
    }

    /// How it ended, if it did by itself.
    pub async fn ended(&mut self) -> Option<Ended> {
        let running = self.running.as_mut()?;
        if !running.task.is_finished() {
            return None;
        }
        let ended = (&mut running.task).await;
        Some(ended.unwrap_or_else(|error| Ended::Failed(error.to_string())))
    }

    pub fn pause(&mut self) {
        if let Some(running) = &self.running {
            running.process.pause();
            self.is_paused = true;
        }
    }

    pub fn resume(&mut self) {
        if let Some(running) = &self.running {
            running.process.resume();
        }
        self.is_paused = false;
    }
}
